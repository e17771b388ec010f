"""An engineer's mistake gives one sentence that names the argument, never silent nonsense."""

import math

import pytest
import torch
from drawn import ids, tiny_model

from transformer_ref.config import TrainingConfig
from transformer_ref.data.batching import BatchStream
from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.decoding.sampling import sampling_probabilities
from transformer_ref.device import choose_device
from transformer_ref.evaluation import bleu, chrf, exact_match
from transformer_ref.model.multi_head_attention import MultiHeadAttention, split_heads
from transformer_ref.model.positional_encoding import LearnedPositions, SinusoidalPositions
from transformer_ref.text.tokenizer import WordTokenizer
from transformer_ref.training.loss import label_smoothed_cross_entropy, smooth_targets
from transformer_ref.training.schedule import noam_rate
from transformer_ref.translate import Translator

TOKENIZER = WordTokenizer.build(["uno due tre quattro."])


def translator():
    model = tiny_model(3, source_vocabulary=TOKENIZER.size, target_vocabulary=TOKENIZER.size)
    return Translator(model, TOKENIZER, TOKENIZER)


@pytest.mark.parametrize("decode", [greedy_decode, lambda model, source, n: beam_search(model, source, 2, n, 1.0)])
@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        ([[5, 2]], TypeError, "source_ids: expected a tensor, got list"),
        (torch.tensor([5, 2]), ValueError, r"source_ids: expected shape \(batch, length\), got \(2,\)"),
        (torch.tensor([[5.0, 2.0]]), TypeError, "source_ids: expected ids of dtype torch.int64"),
    ],
)
def test_sources_that_are_no_batch_of_ids_are_named_by_every_decoder(decode, source, error, said):
    with pytest.raises(error, match=said):
        decode(tiny_model(1), source, 4)


@pytest.mark.parametrize("target", [[[1]], torch.tensor([1, 5])])
def test_targets_that_are_no_batch_of_ids_are_named(target):
    with pytest.raises((TypeError, ValueError), match="target_ids: expected"):
        tiny_model(1)(ids(1, 1, 4), target)


@pytest.mark.parametrize("exponent", [math.nan, math.inf, -1.0, 1e9])
def test_a_length_penalty_that_ranks_nothing_is_refused_by_the_search_itself(exponent):
    with pytest.raises(ValueError, match="length_penalty: expected a number from 0 to 10"):
        beam_search(tiny_model(1), ids(1, 1, 4), 2, 4, exponent)


def test_a_temperature_without_end_is_refused():
    with pytest.raises(ValueError, match="temperature: expected more than 0 .* and no infinity, got inf"):
        sampling_probabilities(torch.tensor([1.0, 2.0, -math.inf]), math.inf)


@pytest.mark.parametrize("heads", [0, -2])
def test_a_number_of_heads_below_one_is_named(heads):
    for call in (lambda: MultiHeadAttention(8, heads), lambda: split_heads(torch.ones(1, 2, 8), heads)):
        with pytest.raises(ValueError, match=f"heads: expected at least 1, got {heads}"):
            call()


@pytest.mark.parametrize("positions", [-1, [-1]])
@pytest.mark.parametrize("kind", [LearnedPositions, SinusoidalPositions])
def test_no_token_stands_before_the_first_position(kind, positions):
    with pytest.raises(ValueError, match="positions: expected none below 0, got -1"):
        kind(5, 4)(torch.zeros(1, 1, 4), positions)


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, 1.5, math.nan])
def test_a_smoothing_that_is_no_share_is_refused(smoothing):
    labels = torch.tensor([[1, 4]])
    for call in (
        lambda: label_smoothed_cross_entropy(torch.zeros(1, 2, 5), labels, 0, smoothing),
        lambda: smooth_targets(labels, 5, smoothing, 0),
    ):
        with pytest.raises(ValueError, match="smoothing: expected at least 0 and below 1"):
            call()


def test_two_tokens_leave_nothing_to_smooth_over_and_are_enough_without_smoothing():
    labels = torch.tensor([[1, 1]])
    with pytest.raises(ValueError, match="vocabulary: expected at least 3 tokens to smooth over, got 2"):
        smooth_targets(labels, 2, 0.1, 0)
    assert smooth_targets(labels, 2, 0.0, 0).tolist() == [[[0, 1], [0, 1]]]


@pytest.mark.parametrize(("d_model", "warmup_steps", "name"), [(0, 4, "d_model"), (512, 0, "warmup_steps")])
def test_the_rate_names_the_number_that_it_cannot_divide_by(d_model, warmup_steps, name):
    with pytest.raises(ValueError, match=f"{name}: expected at least 1, got 0"):
        noam_rate(1, d_model, warmup_steps)


def test_a_seed_as_long_as_a_time_of_day_draws_batches_and_one_beyond_the_generators_is_named():
    seed = 20261125142241
    assert TrainingConfig(seed=seed).seed == seed
    stream = BatchStream([[5, 6], [7]], [[5], [6]], 9, 0, 1, 2, seed)
    assert next(iter(stream)).source.shape == (2, 3)
    with pytest.raises(ValueError, match="seed: expected at most 9223372036854775807"):
        TrainingConfig(seed=2**63)


def test_one_string_in_place_of_lines_is_named():
    with pytest.raises(TypeError, match="lines: expected a list of lines, got the str"):
        WordTokenizer.build("hello world")
    for metric in (exact_match, bleu, chrf):
        with pytest.raises(TypeError, match="translations: expected a list of lines, got the string 'abc'"):
            metric("abc", "abd")
        with pytest.raises(TypeError, match="references: expected a list of lines, got the string 'a'"):
            metric(["b"], "a")


@pytest.mark.parametrize("metric", [bleu, chrf])
def test_no_lines_have_no_score(metric):
    with pytest.raises(ValueError, match="references: expected at least one, got none"):
        metric([], [])


def test_a_device_of_torchs_own_is_as_good_as_its_name():
    assert choose_device(torch.device("cpu")) == torch.device("cpu")
    with pytest.raises(ValueError, match='device: expected "auto", "cpu", .*, got "None"'):
        choose_device(None)


def test_attention_under_dropout_is_refused_with_a_target_too():
    ours = translator()
    ours.model.train()
    with pytest.raises(ValueError, match=r"model: expected evaluation mode .*, got training mode"):
        ours.attention("uno", "due")


@pytest.mark.parametrize(("pair", "name"), [((["uno"], "due"), "source"), (("uno", ["due"]), "target")])
def test_attention_is_asked_for_one_sentence_and_names_the_other_thing(pair, name):
    with pytest.raises(TypeError, match=f"{name}: expected one string, got "):
        translator().attention(*pair)


@pytest.mark.parametrize("count", [1.5, "1", True])
def test_half_a_translation_cannot_be_counted(count):
    with pytest.raises(ValueError, match="count: expected 1 to 5, the beam, got "):
        translator().n_best(["uno"], count)


def test_a_line_of_which_no_token_is_left_stays_empty():
    assert translator().n_best(["\uffed", "uno"], 1)[0] == []
