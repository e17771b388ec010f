"""Weights copied from torch's own modules into ours, so that the two can be compared."""

import torch
from torch import nn

from transformer_ref.model.decoder import DecoderLayer
from transformer_ref.model.encoder import EncoderLayer
from transformer_ref.model.multi_head_attention import MultiHeadAttention

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}  # rounding of another order of additions


def assert_agree(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE[theirs.dtype])


def shaken(module: nn.Module, seed: int) -> nn.Module:
    """Return the module with every weight moved: biases of 0 and norms of 1 would hide mistakes."""
    drawing = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=drawing, dtype=parameter.dtype))
    return module


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    projections = (ours.q_proj, ours.k_proj, ours.v_proj)
    with torch.no_grad():
        for projection, weight in zip(projections, theirs.in_proj_weight.chunk(3), strict=True):
            projection.weight.copy_(weight)
        ours.out_proj.weight.copy_(theirs.out_proj.weight)
        if theirs.in_proj_bias is not None:
            for projection, bias in zip(projections, theirs.in_proj_bias.chunk(3), strict=True):
                projection.bias.copy_(bias)
            ours.out_proj.bias.copy_(theirs.out_proj.bias)


def copy_encoder_layer(ours: EncoderLayer, theirs: nn.TransformerEncoderLayer) -> None:
    copy_attention(ours.self_attention, theirs.self_attn)
    for mine, other in (
        (ours.feed_forward.fc1, theirs.linear1),
        (ours.feed_forward.fc2, theirs.linear2),
        (ours.self_attention_residual.norm, theirs.norm1),
        (ours.feed_forward_residual.norm, theirs.norm2),
    ):
        mine.load_state_dict(other.state_dict())


def copy_decoder_layer(ours: DecoderLayer, theirs: nn.TransformerDecoderLayer) -> None:
    copy_attention(ours.self_attention, theirs.self_attn)
    copy_attention(ours.cross_attention, theirs.multihead_attn)
    for mine, other in (
        (ours.feed_forward.fc1, theirs.linear1),
        (ours.feed_forward.fc2, theirs.linear2),
        (ours.self_attention_residual.norm, theirs.norm1),
        (ours.cross_attention_residual.norm, theirs.norm2),
        (ours.feed_forward_residual.norm, theirs.norm3),
    ):
        mine.load_state_dict(other.state_dict())
