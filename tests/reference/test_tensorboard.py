"""The curves reach TensorBoard where it is installed; where it is not, nothing is missed."""

import sys
from types import ModuleType

import pytest

from transformer_ref.training.tensorboard import TensorBoard, is_installed
from transformer_ref.training.trainer import Progress


def progress(step: int, loss: float) -> Progress:
    return Progress(step, step / 2, loss, 30, 0.1 * step)


@pytest.fixture
def written(monkeypatch):
    """Stand in for torch.utils.tensorboard and return what is written to it."""
    events = []

    class SummaryWriter:
        def __init__(self, folder: str) -> None:
            self.folder = folder

        def add_scalar(self, name: str, value: float, step: int) -> None:
            events.append((name, value, step))

        def flush(self) -> None:
            events.append("flush")

    module = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    return events


def test_every_loss_is_written_at_its_step_and_a_validation_flushes(written, tmp_path):
    board = TensorBoard(tmp_path)
    board(progress(1, 4.5))
    board(progress(2, 4.0))
    board.validated(progress(2, 4.0), 4.2)
    assert written == [("loss/training", 4.5, 1), ("loss/training", 4.0, 2), ("loss/validation", 4.2, 2), "flush"]


@pytest.mark.skipif(not is_installed(), reason="tensorboard is not installed")
def test_the_real_tensorboard_reads_what_was_written(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = TensorBoard(tmp_path)
    board(progress(1, 4.5))
    board.validated(progress(1, 4.5), 4.25)
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss/validation")] == [(1, 4.25)]
