"""The curves in TensorBoard, for those who have it installed."""

import importlib.util
from pathlib import Path

from transformer_ref.training.trainer import Progress


def is_installed() -> bool:
    """Return whether TensorBoard can be imported."""
    return importlib.util.find_spec("tensorboard") is not None


class TensorBoard:
    """Called after each step; writes event files for `tensorboard --logdir` into a folder."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter  # takes seconds, and is not always there

        self._writer = SummaryWriter(str(folder))

    def __call__(self, progress: Progress) -> None:
        """Write a step's loss."""
        self._writer.add_scalar("loss/training", progress.loss, progress.step)

    def validated(self, progress: Progress, loss: float) -> None:
        """Write a validation's loss, and flush the file."""
        self._writer.add_scalar("loss/validation", loss, progress.step)
        self._writer.flush()
