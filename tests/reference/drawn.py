"""What the laws draw: shapes with no two sizes equal, tensors, masks, ids and tiny models."""

import torch
from hypothesis import strategies as st
from torch import Tensor

from transformer_ref.config import ModelConfig
from transformer_ref.model.transformer import Transformer

seeds = st.integers(0, 2**31)


def sizes(count: int, largest: int = 8) -> st.SearchStrategy[list[int]]:
    """Draw `count` different sizes."""
    return st.lists(st.integers(1, largest), min_size=count, max_size=count, unique=True)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def tensor(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=generator(seed), dtype=dtype)


def mask(seed: int, *shape: int) -> Tensor:
    """Return a mask with at least one False."""
    drawn = torch.rand(*shape, generator=generator(seed)) < 0.6
    drawn[..., -1, -1] = False
    return drawn


def ids(seed: int, *shape: int, low: int = 3, high: int = 11) -> Tensor:
    """Return ids of ordinary tokens."""
    return torch.randint(low, high, shape, generator=generator(seed))


def tiny_config(**changes: object) -> ModelConfig:
    """Return a config in which every axis has another size."""
    values = {
        "source_vocabulary": 11,
        "target_vocabulary": 13,
        "d_model": 12,
        "heads": 3,
        "encoder_layers": 2,
        "decoder_layers": 1,
        "d_ff": 20,
        "dropout": 0.1,
        "max_length": 17,
    }
    return ModelConfig(**{**values, **changes})


def tiny_model(seed: int = 0, **changes: object) -> Transformer:
    """Return a tiny model in float64 and evaluation mode, its biases and norms away from 0 and 1.

    Its weights are twice the usual size, so that what it says depends on what it reads.
    """
    model = Transformer(tiny_config(**changes)).double().eval()
    drawing = generator(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.3 * torch.randn(parameter.shape, generator=drawing, dtype=torch.float64)
            else:
                parameter.copy_(
                    2
                    * parameter.shape[-1] ** -0.5
                    * torch.randn(parameter.shape, generator=drawing, dtype=torch.float64)
                )
    return model
