"""The source sentence reads itself, layer after layer (chapter 09)."""

from typing import NamedTuple

from torch import Tensor, nn

from transformer_ref.config import Activation, ModelConfig
from transformer_ref.model.attention import AttentionResult
from transformer_ref.model.feed_forward import FeedForward
from transformer_ref.model.multi_head_attention import MultiHeadAttention
from transformer_ref.model.residual import Residual


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network (Vaswani et al. 2017, section 3.1)."""

    def __init__(
        self, d_model: int, heads: int, d_ff: int, dropout: float, norm_first: bool, activation: Activation = "relu"
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.self_attention_residual = Residual(d_model, dropout, norm_first)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.feed_forward_residual = Residual(d_model, dropout, norm_first)

    def forward(self, x: Tensor, mask: Tensor | None = None, need_weights: bool = False) -> AttentionResult:
        """Return the output, (batch, source, d_model), and on request the weights of each head.

        x: (batch, source, d_model); mask: broadcastable to (batch, heads, source, source), True = may attend.
        """
        attended, weights = self.self_attention(
            self.self_attention_residual.read(x), mask=mask, need_weights=need_weights
        )
        x = self.self_attention_residual.write(x, attended)
        change = self.feed_forward(self.feed_forward_residual.read(x))
        return AttentionResult(self.feed_forward_residual.write(x, change), weights)


class EncoderResult(NamedTuple):
    """The memory for the decoder and, on request, the weights."""

    memory: Tensor  # (batch, source, d_model)
    weights: list[Tensor]  # one (batch, heads, source, source) a layer, or nothing


class Encoder(nn.Module):
    """A stack of layers and, in pre-norm or on request, a last norm.

    Post-norm layers end in a norm already; the stream of pre-norm layers is only ever added to. (Left to
    itself `torch.nn.Transformer` adds the last norm in both; `last_norm` asks for that.)
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(
                config.d_model, config.heads, config.d_ff, config.dropout, config.norm_first, config.activation
            )
            for _ in range(config.encoder_layers)
        )
        ends_in_norm = config.norm_first or config.last_norm
        self.norm = nn.LayerNorm(config.d_model) if ends_in_norm else nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None = None, need_weights: bool = False) -> EncoderResult:
        """Return the memory and on request the weights; the arguments are those of `EncoderLayer`."""
        all_weights = []
        for layer in self.layers:
            x, weights = layer(x, mask, need_weights)
            if need_weights:
                all_weights.append(weights)  # (batch, heads, source, source)
        return EncoderResult(self.norm(x), all_weights)
