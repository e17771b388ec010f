"""Answers to chapter 09 as students write them: what fails, and what the report says."""

import pytest
import torch

from autograder import catalogue
from autograder.catalogue.ch09_blocks import decoder_layer, encoder_layer, param_count, transformer
from autograder.catalogue.ch09_blocks.shared import RATE, dropped_by_element
from autograder.catalogue.exercise import Case
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.judging.verdict import Verdict

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])
ENCODER, DECODER = encoder_layer.RIGHT, decoder_layer.RIGHT
ON_WORDS = "self.drop = lambda x: F.dropout1d(x, dropout, self.training)"
ONLY_AT_1 = "self.drop = nn.Dropout(float(dropout == 1))"
WORDS_TOO = "x = F.dropout(x, self.drop.p, self.training and 0 < self.drop.p < 1)"

OVER_WORDS = """
def layer_norm(x, g, b, eps):
    mean, variance = x.mean(1, keepdim=True), x.var(1, keepdim=True, correction={correction})
    return (x - mean) / torch.sqrt(variance + eps) * g + b
"""


def verdict_on(exercise: str, source: str) -> Verdict:
    return judge_and_explain(catalogue.find(exercise), LocalEndpoint(namespace_of(source)), KEY)


def failed(verdict: Verdict) -> set[str]:
    return {outcome.probe.name for outcome in verdict.outcomes if not outcome.passed}


def message(verdict: Verdict) -> str:
    return verdict.misconception.message if verdict.misconception else ""


@pytest.mark.parametrize(
    ("exercise", "source"),
    [
        ("encoder-layer", ENCODER.but(encoder_layer.DROP, ONLY_AT_1)),
        ("encoder-layer", ENCODER.but(encoder_layer.DROP, ON_WORDS)),
        ("encoder-layer", ENCODER.beginning_with(WORDS_TOO)),
        ("decoder-layer", DECODER.but(decoder_layer.DROP, ONLY_AT_1)),
    ],
)
def test_a_wrong_dropout_shows_where_only_some_is_dropped(exercise, source):
    assert failed(verdict_on(exercise, source)) == {"in training, dropout 0.4"}


def test_dropout_inside_a_sub_layer_may_be_at_its_end():
    twice = ENCODER.but("return self.narrow(torch.relu(self.widen(x)))",
                        "return self.drop(self.narrow(torch.relu(self.widen(x))))")  # fmt: skip
    assert not failed(verdict_on("encoder-layer", twice))


def test_what_the_normal_form_of_dropout_cannot_read_stays_as_it_is():
    case = Case((torch.full((2, 16, 16), 2.0),), construct=(16, 4, 20, RATE, True))
    for result in (None, torch.zeros(3), torch.randn(2, 16, 16)):
        assert dropped_by_element(1.0, 4.0)(case, result) is result


@pytest.mark.parametrize(
    ("exercise", "source", "probe"),
    [
        ("encoder-layer", ENCODER.but("torch.relu(", "F.relu6("), "other sizes, post-norm"),
        ("decoder-layer", DECODER.but("torch.relu(", "F.relu6("), "other sizes, post-norm"),
        ("transformer", transformer.RIGHT.but("torch.relu(", "F.relu6("), "other sizes"),
    ],
)
def test_a_relu_with_an_upper_end_fails(exercise, source, probe):
    assert probe in failed(verdict_on(exercise, source))


@pytest.mark.parametrize(
    ("exercise", "source", "words"),
    [
        ("encoder-layer", ENCODER.but("torch.relu(", "F.relu6("), "ReLU has no upper end"),
        ("encoder-layer", ENCODER.but("q.shape[-1] ** 0.5", "asking.shape[-1] ** 0.5"), "the root of D"),
        ("encoder-layer", ENCODER.but("(shares @ v).transpose(1, 2)", "(shares @ v)"), "Exchange heads and words"),
        ("encoder-layer", ENCODER.but("self.W_o((shares @ v).transpose(1, 2).reshape(asking.shape))",
                                      "(shares @ v).transpose(1, 2).reshape(asking.shape)"), "forward never uses it"),
        ("encoder-layer", ENCODER.but(encoder_layer.DROP, "self.drop = nn.Dropout(1 - dropout)"),
         "probability to *keep* a value"),
        ("layer-norm", OVER_WORDS.format(correction=0), "run over the *words*"),
        ("layer-norm", OVER_WORDS.format(correction=1), "run over the *words*"),
        ("layer-norm", OVER_WORDS.format(correction=1), "divided by D - 1"),
        ("param-count", param_count.RIGHT.but(param_count.FF, "feed_forward = D * F + D + F * D + D"),
         "counted as D numbers"),
        ("param-count", param_count.RIGHT.but(param_count.ATTENTION,
                                              "attention = cfg.heads * 3 * (D * D + D) + D * D + D"), "*share* them"),
        ("param-count", param_count.RIGHT.but("last = 2 * norm",
                                              "last = (cfg.encoder_layers + cfg.decoder_layers) * norm"),
         "one more norm was counted for every layer"),
        ("param-count", param_count.RIGHT.but("feed_forward + 2 * norm", "feed_forward + norm").but(
            "feed_forward + 3 * norm", "feed_forward + norm"), "Each sub-layer has its own"),
        ("layer-norm", "def layer_norm(x, g, b, eps):\n    variance = x.var(-1, keepdim=True, unbiased=False)\n"
                       "    return g * x - x.mean(-1, keepdim=True) / torch.sqrt(variance + eps) + b\n",
         "the difference has no brackets"),
    ],
)  # fmt: skip
def test_the_report_says_what_is_wrong(exercise, source, words):
    verdict = verdict_on(exercise, source)
    assert words in message(verdict), (failed(verdict), message(verdict))


def test_a_tied_table_gets_its_gradient_from_the_output_too():
    detached = transformer.RIGHT.but(transformer.LAST, "return y @ self.output.weight.detach().T")
    assert "one table, pre-norm" in failed(verdict_on("transformer", detached))


def test_positions_are_not_a_parameter():
    learned = transformer.RIGHT.before(
        "if cfg.tie_embeddings:", "self.places = nn.Parameter(positions(cfg.max_length, cfg.d_model))"
    ).but(transformer.PLACES, "x = x + self.places[: ids.shape[1]]")
    verdict = verdict_on("transformer", learned)
    assert failed(verdict) == {
        "vocabularies of one size, three tables", "2 encoder layers, 1 decoder layer", "float64, gradients"
    }  # fmt: skip
    assert verdict.misconception is None


def test_the_model_is_called_with_the_names_of_the_notebook():
    names = transformer.Transformer.forward.__code__.co_varnames
    assert names[1:3] == ("src", "tgt_in")


LIBRARY = next(each.source for each in catalogue.find("encoder-layer").correct if "library's attention" in each.name)


def test_a_mask_of_four_axes_for_the_librarys_attention_is_said_to_need_converting():
    unconverted = LIBRARY.but("mask = ~mask.expand(B, self.h, T, T).reshape(B * self.h, T, T)", "pass")
    assert "takes a mask of two axes" in as_text(verdict_on("encoder-layer", unconverted))


def test_dropout_on_one_of_two_sums_is_said_to_drop_x():
    one = ENCODER.but(encoder_layer.PRE_1, "x = self.drop(x + self.attention(seen, seen, mask))").but(
        encoder_layer.POST_1, "x = self.norm1(self.drop(x + self.attention(x, x, mask)))"
    )
    assert "In training x itself is dropped" in message(verdict_on("encoder-layer", one))


def test_a_norm_that_is_not_used_in_pre_norm_is_not_said_to_be_missing():
    unused = DECODER.but(decoder_layer.SEEN[1], "seen = y")
    verdict = verdict_on("decoder-layer", unused)
    assert "nothing is added, pre-norm" in failed(verdict)
    assert "There are two norms" not in message(verdict)
    assert "In pre-norm each sub-layer reads y through its own norm" in message(verdict)


def test_a_norm_that_is_not_used_in_post_norm_is_not_explained_by_pre_norm_alone():
    unused = DECODER.but(decoder_layer.POST[1], f"y = y + self.drop({decoder_layer.POST_SAID[1]})")
    verdict = verdict_on("decoder-layer", unused)
    assert "Only two norms are used" in message(verdict)
    assert "in post-norm each sum goes through its own" in message(verdict)
