"""The weights of `torch.nn.Transformer`, in and out.

Torch's module is only the two stacks: embeddings, positions and output stay as they are. It keeps the three
input projections of an attention in one matrix, one under the other.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from transformer_ref.config import ModelConfig
from transformer_ref.model.encoder import EncoderLayer
from transformer_ref.model.multi_head_attention import MultiHeadAttention
from transformer_ref.model.transformer import Transformer
from transformer_ref.model_state import unwrapped

Pair = tuple[str, Tensor, Tensor]  # torch's name, our tensor, torch's


def torch_transformer(config: ModelConfig) -> nn.Transformer:
    """Return a new module of torch with the sizes and the variant of a config, batch first."""
    sizes = config.d_model, config.heads, config.d_ff, config.dropout
    variant = {"activation": config.activation, "norm_first": config.norm_first, "batch_first": True}
    if config.activation == "silu":  # torch knows two by name
        variant["activation"] = nn.functional.silu
    ends_in_norm = config.norm_first or config.last_norm
    encoder_norm, decoder_norm = (nn.LayerNorm(config.d_model) if ends_in_norm else None for _ in range(2))
    return nn.Transformer(
        config.d_model,
        config.heads,
        batch_first=True,
        custom_encoder=nn.TransformerEncoder(
            nn.TransformerEncoderLayer(*sizes, **variant),
            config.encoder_layers,
            encoder_norm,
            enable_nested_tensor=False,
        ),
        custom_decoder=nn.TransformerDecoder(
            nn.TransformerDecoderLayer(*sizes, **variant), config.decoder_layers, decoder_norm
        ),
    )


@torch.no_grad()
def load_torch_transformer(model: Transformer, theirs: nn.Transformer) -> None:
    """Load the weights of torch's module into the model's stacks.

    Raises ValueError naming what differs: a size, a norm or its eps, the activation, a bias left out. A torch module
    made with `norm_first=False` ends in one norm more than the paper's; the model then needs `last_norm` in its config.
    """
    model = unwrapped(model)
    for _, our, their in list(_pairs(model, theirs)):  # all are compared before one is moved
        our.copy_(their)


@torch.no_grad()
def save_torch_transformer(model: Transformer) -> nn.Transformer:
    """Return torch's module with copies of the weights of the model's stacks."""
    model = unwrapped(model)
    weight = model.output.weight
    theirs = torch_transformer(model.config).to(weight.device, weight.dtype).train(model.training)
    for _, our, their in _pairs(model, theirs):
        their.copy_(our)
    return theirs


def _pairs(model: Transformer, theirs: nn.Transformer) -> Iterator[Pair]:
    for stack in ("encoder", "decoder"):
        our_stack, their_stack = getattr(model, stack), getattr(theirs, stack)
        _expect_equal(f"{stack} layers", len(our_stack.layers), len(their_stack.layers))
        _expect_equal(f"{stack}.norm", isinstance(our_stack.norm, nn.LayerNorm), their_stack.norm is not None)
        for index, (our, their) in enumerate(zip(our_stack.layers, their_stack.layers, strict=True)):
            _expect_equal("norm_first", model.config.norm_first, their.norm_first)
            _expect_equal("heads", model.config.heads, their.self_attn.num_heads)
            _expect_activation(our.feed_forward.activation, their.activation)
            for name, our_tensor, their_tensor in _layer_pairs(our, their):
                _expect_equal(f"{stack}.layers.{index}.{name}", tuple(our_tensor.shape), tuple(their_tensor.shape))
                yield name, our_tensor, their_tensor
        if their_stack.norm is not None:
            yield from _same_names("norm", our_stack.norm, their_stack.norm)


def _layer_pairs(our: nn.Module, their: nn.Module) -> Iterator[Pair]:
    yield from _attention_pairs("self_attn", our.self_attention, their.self_attn)
    yield from _same_names("norm1", our.self_attention_residual.norm, their.norm1)
    if isinstance(our, EncoderLayer):
        yield from _same_names("norm2", our.feed_forward_residual.norm, their.norm2)
    else:
        yield from _attention_pairs("multihead_attn", our.cross_attention, their.multihead_attn)
        yield from _same_names("norm2", our.cross_attention_residual.norm, their.norm2)
        yield from _same_names("norm3", our.feed_forward_residual.norm, their.norm3)
    yield from _same_names("linear1", our.feed_forward.fc1, their.linear1)
    yield from _same_names("linear2", our.feed_forward.fc2, their.linear2)


def _attention_pairs(name: str, our: MultiHeadAttention, their: nn.MultiheadAttention) -> Iterator[Pair]:
    stacked = our.q_proj, our.k_proj, our.v_proj
    _expect_equal(f"{name}.in_proj_weight", "one", "none" if their.in_proj_weight is None else "one")
    _expect_equal(f"{name}.in_proj_bias", "one", "none" if their.in_proj_bias is None else "one")
    for projection, weight, bias in zip(
        stacked, their.in_proj_weight.chunk(3), their.in_proj_bias.chunk(3), strict=True
    ):
        yield f"{name}.in_proj_weight", projection.weight, weight
        yield f"{name}.in_proj_bias", projection.bias, bias
    yield from _same_names(f"{name}.out_proj", our.out_proj, their.out_proj)


def _same_names(name: str, our: nn.Module, their: nn.Module) -> Iterator[Pair]:
    if isinstance(our, nn.LayerNorm):
        _expect_equal(f"{name}.eps", our.eps, their.eps)
    for part in ("weight", "bias"):
        _expect_equal(f"{name}.{part}", "one", "none" if getattr(their, part) is None else "one")
        yield f"{name}.{part}", getattr(our, part), getattr(their, part)


def _expect_activation(our: Callable[[Tensor], Tensor], their: Callable[[Tensor], Tensor]) -> None:
    """Compare the outputs of two activations: torch's layer may hold any function, under any name."""
    x = torch.linspace(-3, 3, 7, dtype=torch.float64)
    if not torch.allclose(our(x), their(x)):
        raise ValueError(f"activation: expected {our.__name__}, as the model has it, got another function")


def _expect_equal(name: str, our: object, their: object) -> None:
    if our != their:
        raise ValueError(f"{name}: expected {our}, as the model has it, got {their}")
