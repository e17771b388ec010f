"""Without padding everything is as with it, only that the padding is not computed."""

import pytest
import torch
from drawn import generator, ids, seeds, sizes, tensor, tiny_model
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.fast import loss as loss_module
from transformer_ref.fast.loss import hidden_at
from transformer_ref.fast.packing import (
    ROWS,
    SHORTEST,
    PackedMask,
    Packing,
    can_pack,
    packed_attention,
    packed_multi_head,
    with_spare_rows,
)
from transformer_ref.model.attention import explicit_attention
from transformer_ref.model.masks import causal_mask
from transformer_ref.model.multi_head_attention import MultiHeadAttention, split_heads
from transformer_ref.model.transformer import Transformer

lengths = st.lists(st.integers(1, SHORTEST + 3), min_size=1, max_size=4)


def real(counts: list[int]) -> torch.Tensor:
    """Return (batch, length), True at the first tokens of each row."""
    return torch.arange(max(counts)) < torch.tensor(counts)[:, None]


@given(lengths, sizes(3, largest=4), seeds)
def test_vectors_go_to_their_sentence_and_head_and_back(counts, drawn, seed):
    pieces, heads, d_head = drawn
    cells, packing = real(counts), Packing(real(counts))
    x = tensor(seed, *cells.shape, pieces * heads * d_head)
    packed = packing.pack(x)
    assert packed[: packing.tokens].equal(x[cells]) and not packed[packing.tokens :].any()
    by_head = packing.by_head(packed, pieces, heads)  # (pieces, batch * heads, length, d_head)
    assert packing.by_token(by_head, heads).equal(packed)
    expected = x.unflatten(-1, (pieces, heads, d_head)).permute(2, 0, 3, 1, 4)[:, cells[:, None].expand(-1, heads, -1)]
    found = by_head[:, :, : cells.shape[1]].unflatten(1, (len(counts), heads))
    assert found[:, cells[:, None].expand(-1, heads, -1)].equal(expected)


@pytest.mark.parametrize("causal", [False, True])
@given(lengths, seeds)
def test_packed_self_attention_is_the_attention_of_each_sentence_alone(causal, counts, seed):
    heads, d_model = 3, 6
    packing = Packing(real(counts))
    x = tensor(seed, sum(counts), 3 * d_model).requires_grad_()
    ours = packed_attention(with_spare_rows(x), None, PackedMask(packing, packing, causal), heads)[: len(x)]
    theirs = torch.cat(
        [
            explicit_attention(
                *(split_heads(part[None], heads) for part in sentence.chunk(3, dim=-1)),
                mask=causal_mask(len(sentence)) if causal else None,
            )
            .output[0]
            .transpose(0, 1)
            .flatten(1)
            for sentence in x.split(counts)
        ]
    )
    torch.testing.assert_close(ours, theirs)
    upstream = tensor(seed + 1, *ours.shape)
    torch.testing.assert_close(*(torch.autograd.grad(each, x, upstream)[0] for each in (ours, theirs)))


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, SHORTEST + 2)), min_size=1, max_size=4), seeds)
def test_packed_cross_attention_asks_the_sentence_s_own_source(counts, seed):
    heads, d_model = 2, 10
    asking, answering = ([count[side] for count in counts] for side in (0, 1))
    layer = MultiHeadAttention(d_model, heads).double()
    query = tensor(seed, sum(asking), d_model).requires_grad_()
    memory = tensor(seed + 1, sum(answering), d_model).requires_grad_()
    mask = PackedMask(Packing(real(asking)), Packing(real(answering)))
    ours = packed_multi_head(layer, with_spare_rows(query), with_spare_rows(memory), mask)[: len(query)]
    theirs = torch.cat(
        [
            layer(one[None], other[None]).output[0]
            for one, other in zip(query.split(asking), memory.split(answering), strict=True)
        ]
    )
    torch.testing.assert_close(ours, theirs)
    moved = [query, memory, *layer.parameters()]
    for mine, other in zip(*(torch.autograd.grad(each.square().sum(), moved) for each in (ours, theirs)), strict=True):
        torch.testing.assert_close(mine, other)


def batch(seed: int, source: list[int], target: list[int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return source ids, target ids and a mask of the labels that count."""
    wanted = real(target)
    source_ids = ids(seed, len(source), max(source)).where(real(source), 0)
    return source_ids, ids(seed + 1, *wanted.shape), wanted


@pytest.mark.parametrize("norm_first", [False, True])
@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), min_size=1, max_size=4), seeds)
def test_a_model_computes_the_wanted_rows_as_it_computes_all(norm_first, counts, seed):
    model = tiny_model(norm_first=norm_first)
    arguments = batch(seed, [count[0] for count in counts], [count[1] for count in counts])
    ours, theirs = hidden_at(model, *arguments), model.hidden(*arguments[:2])[arguments[2]]
    torch.testing.assert_close(ours, theirs)
    used = [parameter for name, parameter in model.named_parameters() if name != "output.weight"]
    for mine, other in zip(*(torch.autograd.grad(each.square().sum(), used) for each in (ours, theirs)), strict=True):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("target", [[7, 1], [8] * 4, [8, *[1] * 25], [1]])
def test_only_the_wanted_rows_are_computed_up_to_a_size_that_comes_again(target):
    model, seen = tiny_model(), []
    model.decoder.layers[0].feed_forward.register_forward_hook(lambda layer, given, made: seen.append(len(made)))
    assert len(hidden_at(model, *batch(1, [5] * len(target), target))) == sum(target)
    assert seen[0] % ROWS == 0 and seen[0] - ROWS < sum(target) <= seen[0]


def test_what_cannot_be_packed_is_computed_with_its_padding():
    model, source, target = tiny_model(), torch.tensor([[0, 0, 0], [3, 4, 5]]), torch.tensor([[1, 6], [1, 7]])
    wanted = torch.tensor([[True, True], [False, True]])
    expected = model.hidden(source, target)[wanted]
    torch.testing.assert_close(hidden_at(model, source, target, wanted), expected)


def test_a_source_with_a_hole_is_refused_here_too():
    wanted = torch.tensor([[True, True], [False, True]])
    with pytest.raises(ValueError, match="source_ids: expected padding .* at the end of a row only"):
        hidden_at(tiny_model(), torch.tensor([[3, 0, 5], [3, 4, 5]]), torch.tensor([[1, 6], [1, 7]]), wanted)


@pytest.mark.parametrize(
    ("row", "fits"),
    [([1, 1, 0], True), ([1, 1, 1], True), ([0, 1, 1], False), ([1, 0, 1], False), ([0, 0, 0], False), ([], False)],
)
def test_real_tokens_stand_at_the_beginning(row, fits):
    assert can_pack(torch.tensor([[1] * len(row), row], dtype=torch.bool)) == fits


def test_in_bf16_it_is_as_good_as_bf16_is():
    model = Transformer(tiny_model().config, generator(1)).eval()
    arguments = batch(3, [6, 3, 1], [4, 8, 2])
    exact, coarse = hidden_at(model, *arguments), hidden_at(model.bfloat16(), *arguments)
    assert coarse.dtype == torch.bfloat16
    assert (coarse.float() - exact).norm() < 0.02 * exact.norm()


def test_a_gpu_keeps_its_padding(monkeypatch):
    model = tiny_model()
    monkeypatch.setattr(loss_module, "Packing", None)  # to use it would fail
    on_meta = model.to("meta")
    with pytest.raises(RuntimeError, match="meta"):  # it came to choosing rows of `hidden`, whose number is unknown
        hidden_at(on_meta, *(each.to("meta") for each in batch(1, [2], [2])))


@pytest.mark.parametrize("features", [(), (3,), (2, 3)])
@pytest.mark.parametrize("count", [0, 1, ROWS - 1, ROWS, ROWS + 1])
def test_spare_rows_are_zeros_up_to_a_size_that_comes_again(count, features):
    rows = torch.rand(count, *features) + 1
    padded = with_spare_rows(rows)
    assert len(padded) % ROWS == 0 and len(padded) - ROWS < count
    assert padded[:count].equal(rows) and not padded[count:].any()
