"""A model as two ONNX graphs: one reads the source once, the other scores the target as it grows."""

import copy
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from transformer_ref.model.transformer import Encoded, Transformer
from transformer_ref.model_state import unwrapped

ENCODER_FILE, DECODER_FILE = "encoder.onnx", "decoder.onnx"
OPSET = 17
AXES = {  # of any size, by the name of a tensor
    "source_ids": {0: "batch", 1: "source"},
    "target_ids": {0: "batch", 1: "target"},
    "memory": {0: "batch", 1: "source"},
    "mask": {0: "batch", 3: "source"},
    "logits": {0: "batch", 1: "target"},
}


class _Encoder(nn.Module):
    """source_ids (batch, source) -> memory (batch, source, d_model), mask (batch, 1, 1, source)."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, source_ids: Tensor) -> tuple[Tensor, Tensor]:
        encoded = self.model.encode(source_ids)
        return encoded.memory, encoded.mask


class _Decoder(nn.Module):
    """target_ids (batch, target), memory and mask -> logits (batch, target, vocabulary)."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, target_ids: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        return self.model.logits(self.model.decode(target_ids, Encoded(memory, mask, [])).hidden)


def save_onnx(model: Transformer, folder: str | Path) -> tuple[Path, Path]:
    """Write encoder.onnx and decoder.onnx, for batches and lengths of any size, and return their paths.

    encoder.onnx: source_ids -> memory, mask; decoder.onnx: target_ids, memory, mask -> logits.
    Raises ValueError when the model is in training mode, ModuleNotFoundError without the library `onnx`.
    """
    model = unwrapped(model)
    if model.training:
        raise ValueError("model: expected evaluation mode (model.eval()), got training mode")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    model = copy.deepcopy(model).cpu()  # a graph that is traced on a GPU expects one
    source_ids = torch.full((2, 3), model.config.bos)  # an example: no size may equal another
    target_ids = torch.full((2, 4), model.config.bos)
    encoder, decoder = _Encoder(model).eval(), _Decoder(model).eval()  # the exporter gives them back as they came
    with torch.no_grad():
        memory, mask = encoder(source_ids)
    paths = folder / ENCODER_FILE, folder / DECODER_FILE
    _export(encoder, {"source_ids": source_ids}, paths[0], ["memory", "mask"])
    _export(decoder, {"target_ids": target_ids, "memory": memory, "mask": mask}, paths[1], ["logits"])
    return paths


def _export(module: nn.Module, example: dict[str, Tensor], path: Path, outputs: list[str]) -> None:
    with warnings.catch_warnings():  # tracing warns of every check of a shape, which it rightly leaves out
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            tuple(example.values()),
            path,
            input_names=list(example),
            output_names=outputs,
            dynamic_axes={name: AXES[name] for name in (*example, *outputs)},
            opset_version=OPSET,
            dynamo=False,
        )
