"""Wrong norms, residuals, positions and feed-forward networks, in the place of sound ones."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from transformer_ref.faults.experiment import Experiment
from transformer_ref.model.positional_encoding import SinusoidalPositions
from transformer_ref.model.residual import Residual


def replaced(kind: type[nn.Module], make: Callable[[nn.Module], nn.Module]) -> Callable[[Experiment], None]:
    """Return the fault that replaces every module of a kind by a function of it."""

    def put(experiment: Experiment) -> None:
        for module in list(experiment.model.modules()):
            for name, child in module.named_children():
                if isinstance(child, kind):
                    setattr(module, name, make(child))

    return put


class OtherNorm(nn.Module):
    """A layer norm with the weights of a correct one, over another axis or with another variance."""

    def __init__(self, sound: nn.LayerNorm, axis: int = -1, correction: int = 0) -> None:
        super().__init__()
        self.weight, self.bias, self.axis, self.correction = sound.weight, sound.bias, axis, correction

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, length, d_model)."""
        correction = min(self.correction, x.shape[self.axis] - 1)
        variance = x.var(dim=self.axis, keepdim=True, correction=correction)
        return (x - x.mean(dim=self.axis, keepdim=True)) / (variance + 1e-5).sqrt() * self.weight + self.bias


class WithoutResidual(Residual):
    """Drops the tokens to which the sub-layer's output should be added."""

    def __init__(self, sound: Residual) -> None:
        nn.Module.__init__(self)
        self.norm, self.dropout, self.norm_first = sound.norm, sound.dropout, sound.norm_first

    def write(self, x: Tensor, change: Tensor) -> Tensor:
        """Return only the change."""
        return self.dropout(change)


class OtherPositions(nn.Module):
    """Positions other than those of the tokens. of: (tokens, their positions) -> rows of the table."""

    def __init__(self, sound: SinusoidalPositions, add: Callable[[Tensor, Tensor, int], Tensor]) -> None:
        super().__init__()
        self.register_buffer("table", sound.table, persistent=False)
        self.add = add

    def forward(self, x: Tensor, positions: int = 0) -> Tensor:
        """Return x, (batch, length, d_model), with what `add` makes of it."""
        return self.add(x, self.table, positions)


def positions(add: Callable[[Tensor, Tensor, int], Tensor]) -> Callable[[Experiment], None]:
    """Return the fault that adds other positions."""
    return replaced(SinusoidalPositions, lambda sound: OtherPositions(sound, add))


def by_sentence(experiment: Experiment) -> None:
    """Give every token the index of its sentence in the batch as its position, modulo the length of the table."""
    positions(lambda x, table, first: x + table[torch.arange(len(x)) % len(table), None])(experiment)


def unscaled(experiment: Experiment) -> None:
    experiment.model.source_embedding.scale = experiment.model.target_embedding.scale = 1.0


def linear_feed_forward(experiment: Experiment) -> None:
    for layer in [*experiment.model.encoder.layers, *experiment.model.decoder.layers]:
        layer.feed_forward = nn.Sequential(layer.feed_forward.fc1, layer.feed_forward.fc2)


def frozen_encoder(experiment: Experiment) -> None:
    """Detach the memory on its way to the decoder."""
    encoder = experiment.model.encoder
    sound = encoder.forward

    def forward(*arguments, **named):
        result = sound(*arguments, **named)
        return result._replace(memory=result.memory.detach())

    encoder.forward = forward
