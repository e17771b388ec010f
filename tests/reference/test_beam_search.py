"""Beam search finds what a slow and obvious search finds."""

import math
from itertools import product

import pytest
import torch
from drawn import ids as draw_ids
from drawn import seeds, tiny_config, tiny_model
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import ScriptedModel, random_script

from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.decoding.sampling import sample_decode
from transformer_ref.fast.top_k import PIECE, quick_top_k

PAD, BOS, EOS, VOCABULARY = 0, 1, 2, 5
exponents = st.sampled_from([0.0, 0.6, 1.0, 1.4])


def scripted(seed):
    return ScriptedModel(random_script(seed, VOCABULARY), tiny_config(target_vocabulary=VOCABULARY))


def log_probabilities(script, source, target):
    logits = script(source, target)
    total = math.log(sum(math.exp(x) for x in logits))
    return [x - total for x in logits]


def log_probability(script, source, target):
    return sum(log_probabilities(script, source, target[:t])[target[t]] for t in range(1, len(target)))


def every_answer(max_length):
    """Yield bos and every answer that ends in eos within max_length, or is cut there."""
    others = [id for id in range(VOCABULARY) if id not in (PAD, EOS)]
    for length in range(1, max_length + 1):
        for words in product(others, repeat=length - 1):
            yield [BOS, *words, EOS]
    yield from ([BOS, *words] for words in product(others, repeat=max_length))


def obvious_search(script, source, beam, max_length, exponent):
    """Search one sentence with plain lists."""
    alive, finished = [([BOS], 0.0)], []
    for length in range(1, max_length + 1):
        options = [
            ([*ids, token], score + added)
            for ids, score in alive
            for token, added in enumerate(log_probabilities(script, source, ids))
            if token != PAD
        ]
        options.sort(key=lambda option: -option[1])
        finished += [(ids, score / length**exponent) for ids, score in options[:beam] if ids[-1] == EOS]
        alive = [option for option in options if option[0][-1] != EOS][:beam]
        if len(finished) >= beam:
            break
    cut = [(ids, score / max_length**exponent) for ids, score in alive]
    ranked = sorted(finished, key=lambda option: -option[1]) + sorted(cut, key=lambda option: -option[1])
    return ranked[:beam]


def assert_same(found, expected):
    assert [hypothesis.ids for hypothesis in found] == [ids for ids, _ in expected]
    assert [hypothesis.score for hypothesis in found] == pytest.approx([score for _, score in expected])


@given(seeds, exponents)
def test_a_beam_wide_enough_ranks_every_answer_there_is(seed, exponent):
    model, source = scripted(seed), [4, 7]
    answers = list(every_answer(max_length=3))
    scored = [(ids, log_probability(model.script, source, ids) / (len(ids) - 1) ** exponent) for ids in answers]
    scored.sort(key=lambda answer: (answer[0][-1] != EOS, -answer[1]))
    (found,) = beam_search(model, torch.tensor([source]), len(answers), 3, exponent)
    assert_same(found, scored)


@given(seeds, exponents, st.integers(1, 6), st.integers(1, 7))
def test_a_batch_finds_what_the_obvious_search_finds_for_each_sentence(seed, exponent, beam, max_length):
    model = scripted(seed)
    source = draw_ids(seed, 3, 4)
    source[1, 2:] = 0
    for row, found in enumerate(beam_search(model, source, beam, max_length, exponent)):
        real = source[row, source[row] != 0].tolist()
        assert_same(found, obvious_search(model.script, real, beam, max_length, exponent))


@given(seeds, exponents, st.booleans())
def test_a_beam_of_one_is_greedy(seed, exponent, norm_first):
    model = tiny_model(seed, norm_first=norm_first, target_vocabulary=7, decoder_layers=2)
    source = draw_ids(seed, 5, 6)
    source[1, 4:] = source[3, 2:] = 0
    greedy, beams = greedy_decode(model, source, 12), beam_search(model, source, 1, 12, exponent)
    for row, found in zip(greedy.tolist(), beams, strict=True):
        ((ids, _),) = found
        assert ids == row[: len(ids)] and set(row[len(ids) :]) <= {0}


@given(seeds, exponents, st.integers(1, 5))
def test_a_transformer_s_scores_are_those_of_its_logits_and_the_best_comes_first(seed, exponent, beam):
    model = tiny_model(seed, target_vocabulary=7, decoder_layers=2)
    source = draw_ids(seed, 4, 6)
    source[1, 4:] = source[3, 2:] = 0
    for row, found in enumerate(beam_search(model, source, beam, 9, exponent)):
        for ids, score in found:
            target = torch.tensor([ids])
            logits = model(source[row : row + 1], target[:, :-1]).log_softmax(-1)[0]
            log_p = logits.gather(1, target[0, 1:, None]).sum().item()
            assert score == pytest.approx(log_p / (len(ids) - 1) ** exponent)
        finished = [hypothesis.score for hypothesis in found if hypothesis.ids[-1] == EOS]
        assert finished == sorted(finished, reverse=True) and len(found) == beam
        assert all(EOS not in ids[:-1] for ids, _ in found)
        assert len({tuple(ids) for ids, _ in found}) == beam


@pytest.mark.parametrize("pad", [0, 3])
@pytest.mark.parametrize(
    "decode",
    [
        lambda model, source: greedy_decode(model, source, 6).tolist(),
        lambda model, source: greedy_decode(model, source, 6, use_cache=False).tolist(),
        lambda model, source: [one.ids for one in beam_search(model, source, 3, 6, 1.0)[0]],
        lambda model, source: sample_decode(model, source, 6, torch.Generator().manual_seed(1)).tolist(),
    ],
    ids=["greedy", "greedy without a cache", "beam", "drawn"],
)
def test_padding_is_never_said_however_likely_the_model_finds_it(decode, pad):
    def script(source, target):
        return [9.0 if id == pad else float(id == EOS and len(target) > 3) for id in range(VOCABULARY)]

    model = ScriptedModel(script, tiny_config(target_vocabulary=VOCABULARY, pad=pad))
    for ids in decode(model, torch.tensor([[4, 4]])):
        assert pad not in (ids[: ids.index(EOS)] if EOS in ids else ids)


def worked_example(source, target):
    """Chapter 11: P(a) = .5, P(b) = .4; after a: a .4, b .3, end .3; after b: end .9."""
    a, b = 3, 4
    after = {
        (): {a: 0.5, b: 0.4, EOS: 0.1},
        (a,): {a: 0.4, b: 0.3, EOS: 0.3},
        (b,): {EOS: 0.9, a: 0.1},
        (a, a): {EOS: 0.8, b: 0.2},
    }
    probability = after.get(tuple(target[1:]), {EOS: 1.0})
    return [math.log(probability.get(id, 1e-9)) for id in range(VOCABULARY)]


def test_the_worked_example_is_lost_by_greedy_and_found_by_two_beams():
    model = ScriptedModel(worked_example, tiny_config(target_vocabulary=VOCABULARY))
    greedy, best = (beam_search(model, torch.tensor([[4]]), beam, 5, 0.0)[0][0] for beam in (1, 2))
    assert (greedy.ids, best.ids) == ([BOS, 3, 3, EOS], [BOS, 4, EOS])
    assert math.exp(greedy.score) == pytest.approx(0.16) and math.exp(best.score) == pytest.approx(0.36)


def test_a_larger_exponent_favors_a_longer_answer():
    def script(source, target):
        probability = {0: {EOS: 0.5, 3: 0.5}, 1: {4: 0.9, EOS: 0.1}, 2: {EOS: 0.9, 4: 0.1}}[min(len(target) - 1, 2)]
        return [math.log(probability.get(id, 1e-9)) for id in range(VOCABULARY)]

    model, source = ScriptedModel(script, tiny_config(target_vocabulary=VOCABULARY)), torch.tensor([[4]])
    assert beam_search(model, source, 3, 6, 0.0)[0][0].ids == [BOS, EOS]
    assert beam_search(model, source, 3, 6, 1.0)[0][0].ids == [BOS, 3, 4, EOS]


def test_finished_sentences_are_not_computed_any_more():
    def script(source, target):
        wanted = EOS if len(target) >= source[0] else 3
        return [8.0 * (id == wanted) - id / 9 for id in range(VOCABULARY)]

    model = ScriptedModel(script, tiny_config(target_vocabulary=VOCABULARY))
    beam_search(model, torch.tensor([[1], [5]]), 1, 9, 1.0)
    assert model.rows_decoded == 1 + 5


@given(seeds, st.integers(1, 30 * PIECE), st.integers(1, 6))
def test_the_largest_found_in_pieces_are_the_largest_of_all(seed, length, count):
    x = torch.randperm(3 * length, generator=torch.Generator().manual_seed(seed)).view(3, length).float()
    count = min(count, length)
    for ours, theirs in zip(quick_top_k(x, count), x.topk(count), strict=True):
        assert torch.equal(ours, theirs)


def test_no_beam_and_dropout_are_refused():
    with pytest.raises(ValueError, match="beam_size: expected at least 1, got 0"):
        beam_search(tiny_model(), torch.tensor([[4]]), 0, 5, 1.0)
    with pytest.raises(ValueError, match="model: expected evaluation mode"):
        beam_search(tiny_model().train(), torch.tensor([[4]]), 2, 5, 1.0)


@pytest.mark.parametrize(
    "decode",
    [
        lambda model, source: greedy_decode(model, source, 0),
        lambda model, source: beam_search(model, source, 2, 0, 1.0),
        lambda model, source: sample_decode(model, source, 0, torch.Generator()),
    ],
)
def test_a_translation_has_room_for_a_token(decode):
    with pytest.raises(ValueError, match="max_length: expected at least 1, got 0"):
        decode(tiny_model(), torch.tensor([[4]]))


@given(seeds, st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(1, 3))
def test_each_source_has_its_own_limit_whatever_is_in_its_batch(seed, limits, beam):
    model = scripted(seed)
    sources = [draw_ids(seed + number, 1, 3)[0].tolist() for number in range(len(limits))]
    batch = torch.tensor(sources)
    found = beam_search(model, batch, beam, limits, 0.6)
    rows = greedy_decode(model, batch, limits)
    for source, limit, hypotheses, row in zip(sources, limits, found, rows, strict=True):
        (alone,) = beam_search(model, torch.tensor([source]), beam, limit, 0.6)
        assert_same(hypotheses, [(each.ids, each.score) for each in alone])
        (greedy,) = greedy_decode(model, torch.tensor([source]), limit)
        assert row[: len(greedy)].tolist() == greedy.tolist() and not row[len(greedy) :].any()
    drawn = sample_decode(model, batch, limits, torch.Generator().manual_seed(seed))
    assert all(not row[limit + 1 :].any() for row, limit in zip(drawn, limits, strict=True))


@pytest.mark.parametrize(
    ("limits", "words"),
    [([3], "max_length: expected one for each of 2 sources, got 1"), ([3, 0], "expected at least 1 for each source")],
)
def test_limits_that_do_not_fit_are_named(limits, words):
    model, batch = scripted(1), torch.tensor([[4, 2], [5, 2]])
    with pytest.raises(ValueError, match=words):
        greedy_decode(model, batch, limits)
    with pytest.raises(ValueError, match=words):
        beam_search(model, batch, 2, limits, 1.0)
