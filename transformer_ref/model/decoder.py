"""The target sentence reads itself and the source, layer after layer (chapter 09)."""

from typing import NamedTuple

from torch import Tensor, nn

from transformer_ref.config import Activation, ModelConfig
from transformer_ref.model.feed_forward import FeedForward
from transformer_ref.model.key_value_cache import DecoderCache, KeyValueCache
from transformer_ref.model.multi_head_attention import MultiHeadAttention
from transformer_ref.model.residual import Residual


class DecoderLayerResult(NamedTuple):
    """The output of one layer and, on request, the weights of its two attentions."""

    output: Tensor  # (batch, target, d_model)
    self_weights: Tensor | None  # (batch, heads, target, target)
    cross_weights: Tensor | None  # (batch, heads, target, source)


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention, then the feed-forward network (Vaswani et al. 2017, section 3.1)."""

    def __init__(
        self, d_model: int, heads: int, d_ff: int, dropout: float, norm_first: bool, activation: Activation = "relu"
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.self_attention_residual = Residual(d_model, dropout, norm_first)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention_residual = Residual(d_model, dropout, norm_first)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.feed_forward_residual = Residual(d_model, dropout, norm_first)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        target_mask: Tensor | None = None,
        source_mask: Tensor | None = None,
        target_cache: KeyValueCache | None = None,
        source_cache: KeyValueCache | None = None,
        need_weights: bool = False,
    ) -> DecoderLayerResult:
        """Return the output, (batch, target, d_model), and on request the weights of each head.

        x: (batch, target, d_model); memory: (batch, source, d_model), the encoder's output.
        target_mask: broadcastable to (batch, heads, target, target), source_mask: to
            (batch, heads, target, source), True = may attend.
        target_cache, source_cache: keys and values of earlier steps, see `MultiHeadAttention`.
        """
        attended, self_weights = self.self_attention(
            self.self_attention_residual.read(x), mask=target_mask, cache=target_cache, need_weights=need_weights
        )
        x = self.self_attention_residual.write(x, attended)
        attended, cross_weights = self.cross_attention(
            self.cross_attention_residual.read(x),
            memory,
            mask=source_mask,
            cache=source_cache,
            need_weights=need_weights,
        )
        x = self.cross_attention_residual.write(x, attended)
        change = self.feed_forward(self.feed_forward_residual.read(x))
        return DecoderLayerResult(self.feed_forward_residual.write(x, change), self_weights, cross_weights)


class Decoded(NamedTuple):
    """The hidden states of a batch of targets, with the memory of their sources."""

    hidden: Tensor  # (batch, target, d_model)
    self_weights: list[Tensor]  # one (batch, heads, target, target) a layer, or nothing
    cross_weights: list[Tensor]  # one (batch, heads, target, source) a layer, or nothing


class Decoder(nn.Module):
    """A stack of layers and, in pre-norm or on request, a last norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            DecoderLayer(
                config.d_model, config.heads, config.d_ff, config.dropout, config.norm_first, config.activation
            )
            for _ in range(config.decoder_layers)
        )
        ends_in_norm = config.norm_first or config.last_norm
        self.norm = nn.LayerNorm(config.d_model) if ends_in_norm else nn.Identity()

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        target_mask: Tensor | None = None,
        source_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
        need_weights: bool = False,
    ) -> Decoded:
        """Return the output of the last layer and on request the weights.

        cache: one for all layers; the other arguments are those of `DecoderLayer`.
        """
        self_weights, cross_weights = [], []
        for index, layer in enumerate(self.layers):
            target_cache = None if cache is None else cache.target[index]
            source_cache = None if cache is None else cache.source[index]
            x, of_target, of_source = layer(
                x, memory, target_mask, source_mask, target_cache, source_cache, need_weights
            )
            if need_weights:
                self_weights.append(of_target)  # (batch, heads, target, target)
                cross_weights.append(of_source)  # (batch, heads, target, source)
        return Decoded(self.norm(x), self_weights, cross_weights)
