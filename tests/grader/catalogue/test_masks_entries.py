"""Answers to chapter 08 as students write them: what fails, and what the report says."""

import pytest

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.judging.verdict import Verdict

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])


def verdict_on(exercise: str, source: str, key: bytes = KEY) -> Verdict:
    return judge_and_explain(catalogue.find(exercise), LocalEndpoint(namespace_of(source)), key)


def failed(verdict: Verdict) -> set[str]:
    return {outcome.probe.name for outcome in verdict.outcomes if not outcome.passed}


def message(verdict: Verdict) -> str:
    return verdict.misconception.message if verdict.misconception else ""


LOW_CONSTANT = """
def masked_attention(Q, K, V, mask):
    scores = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, CONSTANT)
    weights = torch.softmax(scores, -1)
    if mask is not None:
        weights = weights * mask
    return weights @ V, weights
"""
V_WRITTEN = """
def masked_attention(Q, K, V, mask):
    scores = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
        V[...] = V.nan_to_num()
    weights = torch.softmax(scores, -1).nan_to_num()
    return weights @ V, weights
"""
UNIFORM = """
def masked_attention(Q, K, V, mask):
    scores = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, -1).nan_to_num(1 / K.shape[-2])
    return weights @ V, weights
"""
TIMES_INFINITY = """
def masked_attention(Q, K, V, mask):
    scores = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1])
    if mask is not None:
        scores = scores + (~mask) * float("-inf")
    weights = torch.nan_to_num(torch.softmax(scores, -1))
    return weights @ V, weights
"""
DETACHED = """
def masked_attention(Q, K, V, mask):
    scores = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, -1).nan_to_num()
    return weights @ V, weights.detach()
"""
MAXIMUM_OF_ALL = """
def masked_attention(Q, K, V, mask):
    s = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1])
    if mask is None:
        mask = torch.ones_like(s, dtype=torch.bool)
    e = torch.exp(s - s.amax(-1, keepdim=True)) * mask
    w = e / (e.sum(-1, keepdim=True) + 1e-9)
    return w @ V, w
"""
NO_MAXIMUM = """
def masked_attention(Q, K, V, mask):
    s = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1])
    if mask is not None:
        s = s.masked_fill(~mask, float("-inf"))
    e = torch.exp(s)
    w = (e / e.sum(-1, keepdim=True)).nan_to_num()
    return w @ V, w
"""
LEAKS = """
def leaks(model, ids, t):
    mode = model.training
    model.eval()
    with torch.no_grad():
        a = model(ids)
        V = a.shape[-1]
        other = ids.clone()
        other[:, t:] = CHANGED
        b = model(other)
    model.train(mode)
    gap = (a[:, :t] - b[:, :t]).abs()
    return LEAKING
"""
ONE_MORE, LARGEST = "(ids[:, t:] + 1) % V", "gap.max() > 1e-3"
TRAINING_AND_EQUAL = """
def leaks(model, ids, t):
    changed = ids.clone()
    changed[:, t:] = (changed[:, t:] + 1) % model(ids).shape[-1]
    return not torch.equal(model(ids)[:, :t], model(changed)[:, :t])
"""
ONE_AFTER_ANOTHER = """
def leaks(model, ids, t):
    mode = model.training
    model.eval()
    before, found = model(ids), False
    for place in range(t, ids.shape[1]):
        other = ids.clone()
        other[:, place] = (ids[:, place] + 1) % before.shape[-1]
        found = found or bool((before - model(other))[:, :t].abs().max() > 1e-3)
    model.train(mode)
    return found
"""
ALL_PLACES = """
def leaks(model, ids, t):
    mode = model.training
    model.eval()
    other = ids.clone()
    before = model(ids)
    other[:, t:] = (ids[:, t:] + 1) % before.shape[-1]
    gap = (before - model(other))CUT.abs().max()
    model.train(mode)
    return bool(gap > 1e-3)
"""
DRAWN_GLOBALLY = """
def leaks(model, ids, t):
    mode = model.training
    model.eval()
    torch.manual_seed(0)
    other, before = ids.clone(), model(ids)
    other[:, t:] = torch.randint(0, before.shape[-1], other[:, t:].shape)
    gap = (before - model(other))[:, :t].abs().max()
    model.train(mode)
    return bool(gap > 1e-3)
"""
RENORMALIZED = """
def masked_attention(Q, K, V, mask):
    w = torch.softmax(Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1]), dim=-1)
    if mask is not None:
        w = (w * mask / (w * mask).sum(-1, keepdim=True)).nan_to_num()
    return w @ V, w
"""
LOOP_TO_TQ = """
def causal_mask(Tq, offset=0):
    mask = torch.ones(Tq, offset + Tq, dtype=torch.bool)
    for i in range(Tq):
        for j in range(i + 1, Tq):
            mask[i, j] = False
    return mask
"""
IDS_WRITTEN = """
def decoder_mask(ids, pad):
    T = ids.shape[1]
    ids[ids == pad] = 0
    return (ids != 0)[:, None, None] & torch.ones(T, T, dtype=torch.bool).tril()
"""
FUTURE_ONLY = """
def decoder_mask(ids, pad):
    T = ids.shape[1]
    return (ids != pad)[:, None, None, :] & torch.triu(torch.ones(T, T), 1).bool()
"""
ROWS_REPEATED = """
def to_torch_mha(mask, h):
    return (~mask).repeat_interleave(h, dim=2)[:, 0]
"""


def leaks(changed: str = ONE_MORE, leaking: str = LARGEST) -> str:
    return LEAKS.replace("CHANGED", changed).replace("LEAKING", leaking)


@pytest.mark.parametrize("number", range(3))
def test_a_constant_above_the_allowed_scores_fails_under_every_key(number):
    key = draw_key(b"secret", "assignment", "exercise", [str(number)])
    low = verdict_on("masked-attention", LOW_CONSTANT.replace("CONSTANT", "-60000.0"), key)
    assert failed(low) == {"pads hidden, and scores of a million"}


def test_a_leak_of_one_logit_is_found_only_by_a_test_that_looks_at_each():
    assert not failed(verdict_on("leaks", leaks()))
    assert failed(verdict_on("leaks", leaks(leaking="(gap > 0.0099).sum() > 1"))) == {"a leak: a faint one"}


@pytest.mark.parametrize("seed", range(3))
def test_tokens_drawn_at_random_may_be_the_old_ones(seed):
    drawn = f"torch.randint(0, V, ids[:, t:].shape, generator=torch.Generator().manual_seed({seed}))"
    verdict = verdict_on("leaks", leaks(drawn))
    assert failed(verdict) and "drawn at random" in message(verdict)


def test_tokens_changed_one_after_another_miss_a_leak():
    verdict = verdict_on("leaks", ONE_AFTER_ANOTHER)
    assert failed(verdict) == {"a leak: other words raise every score", "a leak: other words lower every score"}
    assert "one token after another" in message(verdict)


@pytest.mark.parametrize(
    ("exercise", "source", "words"),
    [
        ("masked-attention", V_WRITTEN, "That may be an argument"),
        ("masked-attention", UNIFORM, "a NaN is replaced by 1 / Tk"),
        ("masked-attention", MAXIMUM_OF_ALL, "The largest *allowed* score"),
        ("masked-attention", NO_MAXIMUM, "with no maximum subtracted"),
        ("masked-attention", LOW_CONSTANT.replace("CONSTANT", "-1e4"), "nothing is left"),
        ("masked-attention", LOW_CONSTANT.replace("CONSTANT", "-60000.0"), "A constant for the hidden scores"),
        ("masked-attention", RENORMALIZED, "whose weights are then set to 0"),
        ("causal-mask", LOOP_TO_TQ, "does the loop reach all offset + Tq of them"),
        ("leaks", DRAWN_GLOBALLY, "Are yours drawn at random?"),
        ("leaks", leaks("(ids[:, t:] + 1) % ids.max()"), "not the largest id of this batch"),
        ("leaks", leaks("(ids[:, t:] + 1) % a.shape[1]"), "the length of the sentence"),
        ("leaks", leaks(leaking="gap > 1e-3"), "a truth value for every logit"),
        ("leaks", TRAINING_AND_EQUAL, "for two reasons"),
        ("to-torch-mha", ROWS_REPEATED, "axis 1, the queries, is h times too long"),
    ],
)
def test_the_report_says_what_is_wrong(exercise, source, words):
    verdict = verdict_on(exercise, source)
    assert words in message(verdict), (failed(verdict), message(verdict))


def test_only_rows_of_extreme_scores_are_said_to_be_too_small():
    verdict = verdict_on("masked-attention", TIMES_INFINITY)
    assert "allowed scores are very low" not in message(verdict)
    assert "Was the mask multiplied by infinity?" in message(verdict)


def test_a_gradient_that_is_cut_off_is_not_said_to_be_nan():
    verdict = verdict_on("masked-attention", DETACHED)
    assert "is NaN" not in message(verdict)


@pytest.mark.parametrize("cut", ["", "[:2]"])
def test_a_test_that_passes_some_sound_models_is_not_said_to_report_all(cut):
    verdict = verdict_on("leaks", ALL_PLACES.replace("CUT", cut))
    assert "a sound model: causal attention" in failed(verdict)
    assert "the same at the last position" not in failed(verdict)
    assert "every model" not in message(verdict) and "The positions are on axis 1" in message(verdict)


def test_a_mask_that_writes_into_the_ids_fails():
    assert failed(verdict_on("decoder-mask", IDS_WRITTEN)) == {"a second call; nothing else is touched"}


def test_a_mask_of_the_future_is_said_to_show_it():
    assert "Words see what comes after them" in message(verdict_on("decoder-mask", FUTURE_ONLY))


def test_a_mask_of_the_diagonal_alone_is_not_said_to_be_filled_above_it():
    window = "torch.tril(torch.ones(Tq, offset + Tq), offset) * torch.triu(torch.ones(Tq, offset + Tq))"
    told = as_text(verdict_on("causal-mask", f"def causal_mask(Tq, offset=0):\n    return ({window}).bool()\n"))
    assert "above it are filled" not in told and "Below the diagonal you have only 0 or False" in told


def test_a_mask_cut_from_a_constant_table_loses_points():
    table = "BIG = torch.ones(16, 16, dtype=torch.bool).tril()\n\n"
    source = table + "def causal_mask(Tq, offset=0):\n    return BIG[offset : offset + Tq, : offset + Tq]\n"
    verdict = verdict_on("causal-mask", source)
    assert {"one new word, several cached", "more new words than cached"} <= failed(verdict)
