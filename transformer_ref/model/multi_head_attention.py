"""Several attentions side by side (chapter 06).

    MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O
    head_i             = Attention(Q W_i^Q, K W_i^K, V W_i^V)

Vaswani et al. 2017, section 3.2.2. One softmax makes one average; h heads make h of them, each over its own
d_head = d_model / h features. The matrices W_1^Q ... W_h^Q are side by side in one (d_model, d_model) matrix,
so all heads are projected at once, and cutting the features into h pieces separates them.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from transformer_ref.model.attention import AttentionResult, Kernel, attend, attention_weights, fused_attention
from transformer_ref.model.key_value_cache import KeysAndValues, KeyValueCache
from transformer_ref.shapes import expect_shape


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Split the features of each token into `heads` pieces, and move the head axis before the tokens.

    x: (batch, length, d_model). Returns (batch, heads, length, d_head).
    Raises ValueError when d_model is not a multiple of heads.
    """
    expect_shape("x", x, "batch", "length", "d_model")
    batch, length, d_model = x.shape
    _expect_heads(d_model, heads)
    pieces = x.reshape(batch, length, heads, d_model // heads)  # (batch, length, heads, d_head)
    return pieces.transpose(1, 2)  # (batch, heads, length, d_head)


def _expect_heads(d_model: int, heads: int) -> None:
    if heads < 1:
        raise ValueError(f"heads: expected at least 1, got {heads}")
    if d_model % heads:
        raise ValueError(f"d_model: expected a multiple of heads ({heads}), got {d_model}")


def merge_heads(x: Tensor) -> Tensor:
    """Join the pieces of each token again: the inverse of `split_heads`.

    x: (batch, heads, length, d_head). Returns (batch, length, d_model).
    """
    expect_shape("x", x, "batch", "heads", "length", "d_head")
    return x.transpose(1, 2).flatten(start_dim=2)  # (batch, length, d_model)


class MultiHeadAttention(nn.Module):
    """Project, split, attend, merge, project.

    d_model: width of the tokens, a multiple of `heads`; dropout: on the weights, while training;
    bias: whether the four projections add one. Raises ValueError when d_model is not a multiple of heads.
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        _expect_heads(d_model, heads)
        self.heads = heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)  # W^Q
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)  # W^K
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)  # W^V
        self.out_proj = nn.Linear(d_model, d_model, bias=bias)  # W^O
        self.dropout = nn.Dropout(dropout)
        self.kernel: Kernel = F.scaled_dot_product_attention  # what attends where nobody asks for weights

    def forward(
        self,
        query_input: Tensor,
        key_value_input: Tensor | None = None,
        mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
        need_weights: bool = False,
    ) -> AttentionResult:
        """Return the output (batch, query, d_model) and, on request, each head's weights.

        query_input: (batch, query, d_model), the tokens of the queries.
        key_value_input: (batch, key, d_model), the tokens of keys and values; None means the tokens of the queries
            (self-attention), another tensor makes it cross-attention.
        mask: boolean, broadcastable to (batch, heads, query, key), True = may attend; None allows all.
        cache: keys and values of earlier calls. Self-attention adds its new ones; cross-attention computes
            them on the first call and reuses them after that.
        need_weights: also return the weights, (batch, heads, query, key), by the explicit path.
        """
        query = split_heads(self.q_proj(query_input), self.heads)  # (batch, heads, query, d_head)
        key, value = self._keys_and_values(query_input, key_value_input, cache)  # (batch, heads, key, d_head)
        query = query.to(key.dtype)  # a cache may keep more digits
        if need_weights or (self.training and self.dropout.p > 0):
            weights = attention_weights(query, key, mask)  # (batch, heads, query, key)
            attended = attend(self.dropout(weights), value)  # (batch, heads, query, d_head)
        else:
            attended, weights = fused_attention(query, key, value, mask, self.kernel)  # (batch, heads, query, d_head)
        merged = merge_heads(attended).to(query_input.dtype)  # (batch, query, d_model)
        return AttentionResult(self.out_proj(merged), weights)

    def _keys_and_values(
        self, query_input: Tensor, key_value_input: Tensor | None, cache: KeyValueCache | None
    ) -> KeysAndValues:
        if key_value_input is not None and cache is not None and cache.held is not None:
            return cache.held
        asked = query_input if key_value_input is None else key_value_input  # (batch, key, d_model)
        new = KeysAndValues(
            split_heads(self.k_proj(asked), self.heads), split_heads(self.v_proj(asked), self.heads)
        )  # (batch, heads, key, d_head)
        return new if cache is None else cache.append(new)
