"""Training without padding: the real tokens of a batch, one after another in one row.

A batch is as long as its longest sentence, and the rest is padding: computed, then ignored. A norm, a projection or a
feed-forward network treats each token by itself, so it does as well on (tokens, d_model), real ones only. Attention is
the only part that needs to know which tokens are of one sentence. It cuts the features into heads anyway, which moves
every vector; here the same move brings each sentence's tokens back side by side, and the opposite one takes them apart.

`model/attention.py` and `model/multi_head_attention.py` say what is computed, gradients included.
"""

import torch
from torch import Tensor, nn

from transformer_ref.fast.attention import SHORTEST
from transformer_ref.fast.products import linear
from transformer_ref.model.masks import causal_mask
from transformer_ref.model.multi_head_attention import MultiHeadAttention

ROWS = 32


def with_spare_rows(rows: Tensor) -> Tensor:
    """Return rows, (rows, ...), followed by rows of zeros up to a multiple of ROWS.

    A CPU's library compiles a product in bf16 for each new shape, in about half a millisecond. Since nearly every batch
    has another number of real tokens, that would be a tenth of a small model's training time.
    """
    return nn.functional.pad(rows, (0, 0) * (rows.dim() - 1) + (0, -len(rows) % ROWS))


def can_pack(real: Tensor) -> bool:
    """Return whether every row of a boolean (batch, length) is one or more True, then False."""
    return bool(real[:, :1].all()) and real.shape[1] > 0 and not bool((real[:, 1:] & ~real[:, :-1]).any())


class Packing:
    """Where the real tokens of a batch are.

    real: (batch, length), boolean, True at real tokens; `can_pack` must be True of it.
    """

    def __init__(self, real: Tensor) -> None:
        sentence, place = real.nonzero(as_tuple=True)  # (tokens,) of each
        self._places = sentence * real.shape[1] + place  # (tokens,) in batch * length
        self.tokens = len(sentence)
        self.real = nn.functional.pad(real, (0, max(SHORTEST - real.shape[1], 0)))  # (batch, length), at least SHORTEST
        self._sentence, self._place = sentence[:, None, None], place[:, None, None]  # (tokens, 1, 1)
        counts = real.sum(dim=1, keepdim=True)  # (batch, 1)
        first = counts.cumsum(0) - counts  # (batch, 1) the first token of each sentence
        self._token = first + torch.arange(self.real.shape[1]).where(self.real, 0)  # (batch, length) in each cell
        self._moves: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}

    def pack(self, x: Tensor) -> Tensor:
        """Return the real tokens, then spare rows of zeros, (rows, d_model), of x, (batch, length, d_model)."""
        return with_spare_rows(x.flatten(0, 1).index_select(0, self._places))

    def by_head(self, x: Tensor, pieces: int, heads: int) -> Tensor:
        """Return the tokens of each sentence, for each head: (pieces, batch * heads, length, d_head).

        x: (rows, pieces * d_model), such as queries, keys and values next to each other. At padded positions the first
        token is repeated; spare rows are left out.
        """
        batch, length = self.real.shape
        x = x.reshape(x.shape[0] * pieces * heads, -1)  # (rows * pieces * heads, d_head)
        return x.index_select(0, self._move(pieces, heads)[0]).view(pieces, batch * heads, length, -1)

    def by_token(self, x: Tensor, heads: int) -> Tensor:
        """Return (rows, pieces * d_model) for x, (pieces, batch * heads, length, d_head): the inverse of `by_head`."""
        rows = x.flatten(0, 2).index_select(0, self._move(len(x), heads)[1])
        rows = rows.view(-1, len(x) * heads * x.shape[-1])  # (rows, pieces * d_model)
        rows[self.tokens :] = 0
        return rows

    def _move(self, pieces: int, heads: int) -> tuple[Tensor, Tensor]:
        """Return the row index of each cell of `by_head`, and the cell index of each row."""
        if (pieces, heads) not in self._moves:
            batch, length = self.real.shape
            slots = torch.arange(pieces * heads).view(pieces, 1, heads, 1)
            there = self._token[:, None] * (pieces * heads) + slots  # (pieces, batch, heads, length)
            piece, head = torch.arange(pieces)[:, None], torch.arange(heads)
            back = ((piece * batch + self._sentence) * heads + head) * length + self._place  # (tokens, pieces, heads)
            self._moves[pieces, heads] = there.flatten(), with_spare_rows(back).flatten()
        return self._moves[pieces, heads]


class PackedMask:
    """The lengths that replace a mask in attention over packed tokens.

    queries, keys: the positions of the tokens that give queries and keys; causal: whether later keys are hidden.
    """

    def __init__(self, queries: Packing, keys: Packing, causal: bool = False) -> None:
        self.queries, self.keys = queries, keys
        allowed = keys.real[:, None, None, :]  # (batch, 1, 1, key)
        if causal:
            allowed = allowed & causal_mask(keys.real.shape[1])  # (batch, 1, query, key)
        self.bias = torch.zeros(allowed.shape).masked_fill_(~allowed, -torch.inf)  # what a score is raised by
        self.asking = queries.real[:, None, :, None]  # (batch, 1, query, 1)


def packed_multi_head(attention: MultiHeadAttention, x: Tensor, memory: Tensor | None, mask: PackedMask) -> Tensor:
    """Return the attention output for packed tokens, (rows, d_model); the three projections are one product or two.

    x: (rows, d_model), the tokens of the queries; memory: (other rows, d_model), those of keys and values, None: x
    itself.
    """
    asking, answering = [attention.q_proj], [attention.k_proj, attention.v_proj]
    if memory is None:
        asked, answered = side_by_side(x, asking + answering), None  # (rows, 3 * d_model)
    else:
        asked, answered = side_by_side(x, asking), side_by_side(memory, answering)
    return attention.out_proj(packed_attention(asked, answered, mask, attention.heads))  # (rows, d_model)


def side_by_side(x: Tensor, projections: list[nn.Linear]) -> Tensor:
    """Return the outputs of several projections of x side by side, computed by one product."""
    biases = [projection.bias for projection in projections if projection.bias is not None]
    weight = torch.cat([projection.weight for projection in projections])  # (all features, d_model)
    return linear(x, weight, torch.cat(biases) if biases else None)


def packed_attention(asked: Tensor, answering: Tensor | None, mask: PackedMask, heads: int) -> Tensor:
    """Return scaled dot-product attention of each head, (rows, d_model).

    asked: (rows, d_model), queries; answering: (other rows, 2 * d_model), keys and values side by side.
    In self-attention all three are in `asked`, (rows, 3 * d_model), and `answering` is None.
    """
    return _PackedAttention.apply(asked, answering, mask, heads)


class _PackedAttention(torch.autograd.Function):
    """Attention and its gradients, with every vector moved once in each direction.

    At padded positions the row of weights is set to zero, so no gradient leaves it.
    """

    @staticmethod
    def forward(ctx, asked: Tensor, answering: Tensor | None, mask: PackedMask, heads: int) -> Tensor:
        if answering is None:
            query, key, value = mask.queries.by_head(asked, 3, heads)  # (batch * heads, length, d_head) each
        else:
            (query,) = mask.queries.by_head(asked, 1, heads)  # (batch * heads, query, d_head)
            key, value = mask.keys.by_head(answering, 2, heads)  # (batch * heads, key, d_head) each
        scale = query.shape[-1] ** -0.5
        scores = torch.bmm(query, key.mT).to(torch.promote_types(query.dtype, torch.float32))
        scores = scores.unflatten(0, (-1, heads)).mul_(scale)  # (batch, heads, query, key)
        weights = scores.add_(mask.bias).softmax(dim=-1).mul_(mask.asking)
        weights = weights.flatten(0, 1).to(query.dtype)  # (batch * heads, query, key)
        ctx.save_for_backward(query, key, value, weights)
        ctx.mask, ctx.heads, ctx.scale, ctx.is_self = mask, heads, scale, answering is None
        return mask.queries.by_token(torch.bmm(weights, value)[None], heads)  # (tokens, d_model)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, weights = ctx.saved_tensors
        mask, heads = ctx.mask, ctx.heads
        (of_output,) = mask.queries.by_head(gradient, 1, heads)  # (batch * heads, query, d_head)
        of_weights = torch.bmm(of_output, value.mT)  # (batch * heads, query, key)
        precise = torch.promote_types(weights.dtype, torch.float32)
        of_scores = torch._softmax_backward_data(of_weights.to(precise), weights.to(precise), -1, precise)
        of_scores = of_scores.mul_(ctx.scale).to(weights.dtype)  # (batch * heads, query, key)
        of_query = query.new_empty(3 if ctx.is_self else 1, *query.shape)
        of_key_value = of_query[1:] if ctx.is_self else key.new_empty(2, *key.shape)
        torch.bmm(of_scores, key, out=of_query[0])
        torch.bmm(of_scores.mT, query, out=of_key_value[0])
        torch.bmm(weights.mT, of_output, out=of_key_value[1])
        of_asked = mask.queries.by_token(of_query, heads)  # (tokens, d_model or 3 * d_model)
        return of_asked, None if ctx.is_self else mask.keys.by_token(of_key_value, heads), None, None
