"""GPT: only the decoder, as chapter 13 derives it."""

from itertools import pairwise

import pytest
import torch
from drawn import generator, ids, seeds, sizes, tensor
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from transformer_ref.beyond.gpt import (
    GPT,
    GPTBlock,
    choose,
    generate,
    generate_cached,
    lm_batch,
    logit_lens,
    residual_trace,
)
from transformer_ref.model.residual import Residual

VOCABULARY, PLACES = 13, 9


def small(seed=0, layers=3, dropout=0.0):
    """Return a small GPT in float64, in evaluation mode, whose every weight is drawn and not small."""
    model = GPT(VOCABULARY, d_model=12, h=3, layers=layers, d_ff=20, max_length=PLACES, dropout=dropout).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=generator(seed), dtype=torch.float64))
    return model


@given(seed=seeds, size=sizes(2), extra=st.integers(1, 20))
def test_a_window_is_a_piece_of_the_text_and_its_answers_begin_one_later(seed, size, extra):
    T, B = size
    text = torch.arange(100, 100 + T + extra)
    x, y = lm_batch(text, T, generator(seed), B)
    assert x.shape == y.shape == (B, T)
    assert torch.equal(y, x + 1)
    assert x.min() >= 100 and y.max() < 100 + len(text)


def test_every_window_is_drawn_and_each_equally_often():
    x, _ = lm_batch(torch.arange(7), 3, generator(5), 8_000)
    starts = torch.bincount(x[:, 0], minlength=4) / 8_000
    assert len(starts) == 4
    torch.testing.assert_close(starts, torch.full((4,), 0.25), atol=6 * (0.25 * 0.75 / 8_000) ** 0.5, rtol=0)


def test_a_text_without_a_label_for_its_last_token_is_refused():
    with pytest.raises(ValueError, match=r"ids: expected at least T \+ 1 = 4 tokens, got 3"):
        lm_batch(torch.arange(3), 3, generator(0), 2)


@given(seed=seeds, place=st.integers(0, 6))
def test_a_later_token_changes_no_earlier_output(seed, place):
    block = GPTBlock(12, 3, 20).double().eval()
    x = tensor(seed, 2, 7, 12)
    other = x.clone()
    other[:, place, 0] += 1  # one feature: a norm takes out what all share
    one, two = block(x), block(other)
    torch.testing.assert_close(one[:, :place], two[:, :place])
    assert ((one - two)[:, place:].abs().amax(-1) > 1e-9).all()


def test_a_block_is_torch_s_own_pre_norm_layer_with_a_causal_mask():
    d_model, heads, d_ff = 12, 3, 20
    block = GPTBlock(d_model, heads, d_ff).double().eval()
    oracle = torch.nn.TransformerEncoderLayer(
        d_model, heads, d_ff, 0.0, F.gelu, batch_first=True, norm_first=True, dtype=torch.float64
    ).eval()
    attention = block.self_attention
    parts = [attention.q_proj, attention.k_proj, attention.v_proj]
    with torch.no_grad():
        oracle.self_attn.in_proj_weight.copy_(torch.cat([each.weight for each in parts]))
        oracle.self_attn.in_proj_bias.copy_(torch.cat([each.bias for each in parts]))
        for theirs, ours in (
            (oracle.self_attn.out_proj, attention.out_proj),
            (oracle.linear1, block.feed_forward.fc1),
            (oracle.linear2, block.feed_forward.fc2),
        ):
            theirs.load_state_dict(ours.state_dict())
    x = tensor(3, 2, 5, d_model)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    torch.testing.assert_close(block(x), oracle(x, src_mask=mask))


def test_a_block_drops_what_its_parts_write_and_keeps_the_stream():
    block = GPTBlock(12, 3, 20, dropout=1.0)
    x = tensor(1, 2, 5, 12, dtype=torch.float32)
    torch.testing.assert_close(block.train()(x), x)
    assert all(part.norm_first for part in block.modules() if isinstance(part, Residual))


def test_one_table_reads_and_writes_and_gpt_2_has_124_million_numbers():
    with torch.device("meta"):
        model = GPT(50_257, 768, 12, 12, 3_072, 1_024)
    assert sum(each.numel() for each in model.parameters()) == 124_439_808
    assert sum(each.shape == (50_257, 768) for each in model.parameters()) == 1


def test_beyond_its_positions_a_gpt_reads_nothing():
    model = small()
    assert model(ids(0, 2, PLACES)).shape == (2, PLACES, VOCABULARY)
    with pytest.raises(ValueError, match="ids: expected at most 9 positions, got 10"):
        model(ids(0, 2, PLACES + 1))


@given(seed=seeds, cut=st.integers(1, 7))
def test_a_cache_changes_no_logit_whatever_the_pieces(seed, cut):
    model, text = small(seed), ids(seed, 2, 8)
    cache = model.new_cache()
    with torch.no_grad():
        pieces = [model(text[:, :cut], cache), *(model(text[:, at : at + 1], cache) for at in range(cut, 8))]
        torch.testing.assert_close(torch.cat(pieces, dim=1), model(text))


@given(seed=seeds, tau=st.sampled_from([0.0, 0.7, 2.0]))
def test_with_a_cache_the_same_is_written_as_without(seed, tau):
    model, prompt = small(seed), ids(seed, 3, 4)
    plain = generate(model, prompt, 6, PLACES, tau, generator(seed))
    assert torch.equal(plain, generate_cached(model, prompt, 6, tau, generator(seed)))
    assert torch.equal(plain[:, :4], prompt) and plain.shape == (3, 10)


def test_no_cache_outlives_its_window():
    with pytest.raises(ValueError, match="n: expected at most 6 tokens in one window, got 7"):
        generate_cached(small(), ids(0, 1, 4), 7, 0.0)


@given(seed=seeds, context=st.integers(1, 5))
def test_the_model_is_shown_the_last_tokens_and_no_more(seed, context):
    shown = []

    def model(seen):
        shown.append(seen.clone())
        return F.one_hot((seen.sum(1, keepdim=True) + seen) % VOCABULARY, VOCABULARY).double()

    prompt = ids(seed, 2, 4)
    written = generate(model, prompt, 7, context, 0.0)
    for step, seen in enumerate(shown):
        assert torch.equal(seen, written[:, max(0, 4 + step - context) : 4 + step])


def test_what_is_drawn_follows_the_temperature():
    logits = torch.tensor([0.0, 1.0, 2.0]).expand(20_000, 3)
    for tau in (0.5, 2.0):
        shares = torch.bincount(choose(logits, tau, generator(1)), minlength=3) / 20_000
        torch.testing.assert_close(shares, (logits[0] / tau).softmax(-1), atol=6 * 0.5 / 20_000**0.5, rtol=0)
    assert choose(logits, 0, None).unique().tolist() == [2]


@given(seed=seeds)
def test_the_trace_begins_with_the_embedding_and_ends_where_the_head_reads(seed):
    model, text = small(seed), ids(seed, 2, 6)
    with torch.no_grad():
        trace = residual_trace(model, text)
        assert [tuple(each.shape) for each in trace] == [(2, 6, 12)] * 4
        torch.testing.assert_close(trace[0], model.embed(text))
        changes = [after - before for before, after in pairwise(trace)]
        torch.testing.assert_close(trace[0] + sum(changes), trace[-1])
        torch.testing.assert_close(model.head(model.norm(trace[-1])), model(text))
        lens = logit_lens(model, text)
    assert lens.shape == (4, 2, 6, VOCABULARY)
    torch.testing.assert_close(lens[-1], model(text))
    assert not torch.allclose(lens[0], lens[-1])
