"""Which optimizer updates which parameter (chapter 10).

AdamW updates everything, or, with Muon, everything except the matrices between hidden layers. Muon (Jordan et al. 2024)
replaces the momentum of a matrix by the nearest orthogonal matrix, so that all directions are updated alike.
"""

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn

from transformer_ref.config import Precision, TrainingConfig
from transformer_ref.faster import Muon
from transformer_ref.model_state import unwrapped
from transformer_ref.training.processes import ALONE, Processes

HAS_MUON = hasattr(torch.optim, "Muon")  # torch 2.9 and later


class OptimizerGroup:
    """Several torch optimizers that step together; each keeps the peak learning rate it was created with."""

    def __init__(self, optimizers: Iterable[torch.optim.Optimizer]) -> None:
        self.optimizers = list(optimizers)
        self._peaks = [[group["lr"] for group in optimizer.param_groups] for optimizer in self.optimizers]

    def scale_rates(self, factor: float) -> None:
        """Set each learning rate to this share of its peak."""
        for optimizer, peaks in zip(self.optimizers, self._peaks, strict=True):
            for group, peak in zip(optimizer.param_groups, peaks, strict=True):
                group["lr"] = peak * factor

    def zero_grad(self) -> None:
        """Remove every gradient."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)

    def step(self) -> None:
        """Update every weight."""
        for optimizer in self.optimizers:
            optimizer.step()

    def settle_muon(self, precision: Precision, device: torch.device) -> Precision:
        """Set the precision of Muon's products, and return it; "auto" is replaced by the choice for this device."""
        for optimizer in self.optimizers:
            if isinstance(optimizer, Muon):
                optimizer.precision = precision
                precision = optimizer.settle_precision(device)
        return precision

    def tensors(self) -> dict[str, Tensor]:
        """Return the state of the optimizers as named tensors."""
        return {
            f"{place}.{parameter}.{name}": tensor
            for place, optimizer in enumerate(self.optimizers)
            for parameter, memory in optimizer.state_dict()["state"].items()
            for name, tensor in memory.items()
        }

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Load the state that `tensors()` returned."""
        states: list[dict[int, dict[str, Tensor]]] = [{} for _ in self.optimizers]
        for key, tensor in tensors.items():
            place, parameter, name = key.split(".", 2)
            states[int(place)].setdefault(int(parameter), {})[name] = tensor
        for optimizer, state in zip(self.optimizers, states, strict=True):
            optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def build_optimizer(
    model: nn.Module,
    config: TrainingConfig,
    processes: Processes = ALONE,
    hidden_of: Callable[[nn.Module], Iterable[Tensor]] | None = None,
) -> OptimizerGroup:
    """Return AdamW for all parameters, or Muon for the hidden matrices and AdamW for the rest.

    processes: those that take each step together; hidden_of: yields the matrices that Muon may update, by default
    `hidden_matrices`. Raises ValueError if Muon is requested and this torch has none.
    """
    if config.muon_rate and not HAS_MUON:
        raise ValueError(
            f"muon_rate: expected 0 (AdamW for every weight), got {config.muon_rate:g}: Muon came with torch 2.9, and "
            f"this is torch {torch.__version__}"
        )
    hidden = list((hidden_of or hidden_matrices)(model)) if config.muon_rate else []
    chosen = {id(parameter) for parameter in hidden}
    rest = [parameter for parameter in model.parameters() if id(parameter) not in chosen]
    adam = _adam(rest, config)
    if not hidden:
        return OptimizerGroup([adam])
    muon = Muon(
        hidden,
        lr=config.muon_rate,
        weight_decay=config.muon_weight_decay,
        momentum=config.muon_momentum,
        adjust_lr_fn="match_rms_adamw",
        processes=processes,
        precision=config.muon_precision,
    )
    return OptimizerGroup([adam, muon])


def _adam(parameters: Iterable[Tensor], config: TrainingConfig) -> torch.optim.AdamW:
    """Return AdamW, fused into one kernel; torch before 2.4 has that only on GPUs."""
    parameters, options = list(parameters), dict(weight_decay=config.weight_decay, eps=1e-9)
    options |= dict(lr=config.learning_rate, betas=(config.beta_1, config.beta_2))
    try:
        return torch.optim.AdamW(parameters, fused=True, **options)
    except RuntimeError:
        return torch.optim.AdamW(parameters, **options)


def hidden_matrices(model: nn.Module) -> Iterator[Tensor]:
    """Yield the weights between hidden vectors: those of every linear layer but the output."""
    model = unwrapped(model)  # or a compiled model's output layer would pass for a hidden one
    tables = {id(table) for name, table in model.named_parameters() if "embedding" in name}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and name != "output" and id(module.weight) not in tables:
            yield module.weight
