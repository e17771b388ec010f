"""Record what the residual and the norm do to a deep stack: depth.json, which chapter 09 shows.

    python -m book.recorded.depth

Stacks of 2 to 24 encoder layers, with and without the residual, normalized after the addition, before the sub-layer or
never. "start": before any training, the norm of the gradient that reaches each layer, and how alike the words of a
sentence are after the last. "trained": how many words such a stack names rightly after STEPS steps, with a warm-up. The
task is to say the sentence in reverse; the words are drawn at random. Three seeds each; four minutes of one core.
"""

import itertools
import json
import time
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer_ref.config import ModelConfig
from transformer_ref.model.embedding import Embedding
from transformer_ref.model.encoder import Encoder
from transformer_ref.model.positional_encoding import SinusoidalPositions
from transformer_ref.model.residual import Residual
from transformer_ref.recording import FOLDER

WORDS, LONGEST, BATCH = 12, 6, 32
SIZES = dict(d_model=32, heads=4, d_ff=64)
DEPTHS, SEEDS = (2, 4, 6, 8, 12, 16, 20, 24), (1, 2, 3)
NORMS, RESIDUALS = ("after", "before", "none"), (True, False)
TRAINED_DEPTHS, TRAINED_NORMS = (2, 6), ("after", "before")
STEPS, WARM_UP, RATE, JUDGED = 800, 200, 3e-3, 500
RECORD = FOLDER / "depth.json"


class WithOrWithout(Residual):
    """A residual that may lack the addition, the norm, or both."""

    def __init__(self, sound: Residual, added: bool, normed: bool) -> None:
        nn.Module.__init__(self)
        self.norm = sound.norm if normed else nn.Identity()
        self.dropout, self.norm_first, self.added = sound.dropout, sound.norm_first, added

    def write(self, x: Tensor, change: Tensor) -> Tensor:
        """Return x with the change added, or the change alone; (batch, length, d_model)."""
        return super().write(x if self.added else torch.zeros_like(x), change)


class Stack(nn.Module):
    """A number of encoder layers between an embedding and an output projection; initialized like a Transformer."""

    def __init__(self, layers: int, norm: str, residual: bool) -> None:
        super().__init__()
        config = ModelConfig(
            WORDS, WORDS, encoder_layers=layers, dropout=0.0, norm_first=norm == "before", max_length=LONGEST, **SIZES
        )
        self.words = Embedding(WORDS, config.d_model)
        self.positions = SinusoidalPositions(config.max_length, config.d_model)
        self.encoder, self.output = Encoder(config), nn.Linear(config.d_model, WORDS)
        for layer in self.encoder.layers:
            for name, child in list(layer.named_children()):
                if isinstance(child, Residual):
                    setattr(layer, name, WithOrWithout(child, residual, norm != "none"))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def read(self, ids: Tensor) -> Tensor:
        """Return the words after the last layer: (batch, length) -> (batch, length, d_model)."""
        return self.encoder(self.positions(self.words(ids))).memory

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits for each word at each position: (batch, length) -> (batch, length, words)."""
        return self.output(self.read(ids))


def loss_of(model: Stack, ids: Tensor) -> Tensor:
    """Return the mean loss of predicting the sentences in reverse."""
    return F.cross_entropy(model(ids).flatten(0, 1), ids.flip(1).flatten())


class Start(NamedTuple):
    """A stack before training."""

    gradients: list[float]  # norm over the weights of each layer, the first layer first
    alike: float  # mean cosine of two words of a sentence, after the last layer


def start(layers: int, norm: str, residual: bool, seed: int) -> Start:
    """Return measurements of a stack before training, on one batch."""
    torch.manual_seed(seed)
    model = Stack(layers, norm, residual)
    ids = torch.stack([torch.randperm(WORDS)[:LONGEST] for _ in range(BATCH)])  # no word twice in a sentence
    loss_of(model, ids).backward()
    norms = [
        torch.stack([weight.grad.double().norm() for weight in layer.parameters()]).norm()
        for layer in model.encoder.layers
    ]
    with torch.no_grad():
        ends = F.normalize(model.read(ids).double(), dim=-1)  # (batch, length, d_model)
    cosines = ends @ ends.mT  # (batch, length, length)
    others = ~torch.eye(LONGEST, dtype=torch.bool)
    return Start([float(f"{norm:.3g}") for norm in norms], round(cosines[:, others].mean().item(), 3))


def trained(layers: int, norm: str, residual: bool, seed: int) -> tuple[float, float]:
    """Return the loss of the last fifty steps and the accuracy on new sentences."""
    torch.manual_seed(seed)
    model = Stack(layers, norm, residual)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / WARM_UP))
    losses = []
    for _ in range(STEPS):
        length = int(torch.randint(2, LONGEST + 1, ()))
        loss = loss_of(model, torch.randint(WORDS, (BATCH, length)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    ids = torch.randint(WORDS, (JUDGED, LONGEST), generator=torch.Generator().manual_seed(1_000))
    with torch.no_grad():
        right = (model.eval()(ids).argmax(dim=-1) == ids.flip(1)).double().mean().item()
    return round(sum(losses[-50:]) / 50, 3), round(right, 3)


def main() -> None:
    """Measure, train and write the record."""
    torch.set_num_threads(1)
    record: dict = {"torch": torch.__version__, "words": WORDS, "longest": LONGEST, "batch": BATCH, "sizes": SIZES}
    record |= {"depths": DEPTHS, "seeds": SEEDS, "steps": STEPS, "warm_up": WARM_UP, "rate": RATE}
    record |= {"start": [], "trained": []}
    for residual, norm in itertools.product(RESIDUALS, NORMS):
        rows = {str(layers): [start(layers, norm, residual, seed)._asdict() for seed in SEEDS] for layers in DEPTHS}
        record["start"].append({"residual": residual, "norm": norm, "by_depth": rows})
        first = {layers: [row["gradients"][0] for row in found] for layers, found in rows.items()}
        print(residual, norm, first, [row["alike"] for row in rows[str(DEPTHS[-1])]], flush=True)
    for layers, residual, norm in itertools.product(TRAINED_DEPTHS, RESIDUALS, TRAINED_NORMS):
        began = time.process_time()
        pairs = [trained(layers, norm, residual, seed) for seed in SEEDS]
        found = {"losses": [loss for loss, _ in pairs], "right": [right for _, right in pairs]}
        record["trained"].append({"layers": layers, "residual": residual, "norm": norm} | found)
        print(layers, residual, norm, found, f"{time.process_time() - began:.0f} s", flush=True)
        RECORD.write_text(json.dumps(record).replace("}, {", "},\n{") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
