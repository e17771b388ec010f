"""The inputs and references of chapter 13's exercises are correct."""

import json

import pytest
import torch
from torch import nn

from autograder import catalogue
from autograder.catalogue.ch13_gpt import generate, gpt_block, lm_batch
from autograder.catalogue.ch13_gpt import gpt as gpt_model
from autograder.catalogue.exercise import Case
from autograder.catalogue.known_answers import answer
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.inside.fixtures import gpt
from autograder.judging import probe_inputs
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.prepare.sample_class import ROOT

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])


def verdict(exercise_id, source):
    return judge_and_explain(catalogue.find(exercise_id), LocalEndpoint(namespace_of(answer(source))), KEY)


def said(exercise_id, source):
    return " ".join(as_text(verdict(exercise_id, source)).split())


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_notebook_shows_the_model_that_the_probes_hand_over():
    path = ROOT / "exercises" / "13_gpt" / "gpt.ipynb"
    cells = {cell["id"]: "".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]}
    shown = cells["gpt-small-gpt"]
    own = open(gpt.__file__, encoding="utf-8").read()
    assert own.endswith(shown + "\n") and shown.startswith("class SmallBlock")


def test_the_small_model_never_looks_ahead():
    model, ids = gpt.SmallGPT(11, 6, 2, generator()), torch.randint(11, (2, 5), generator=generator(1))
    changed = ids.clone()
    changed[:, 3:] = (changed[:, 3:] + 1) % 11
    before, after = model(ids), model(changed)
    torch.testing.assert_close(before[:, :3], after[:, :3])
    assert not torch.allclose(before[:, 3:], after[:, 3:])


@pytest.mark.parametrize("change", ["the first token", "one token fewer", "training"])
def test_a_teller_hears_every_token_that_it_is_shown_and_its_mode(change):
    model = gpt.CosineModel(11, 6, 3.0, seed=4).eval()
    ids = torch.randint(1, 10, (3, 5), generator=generator(2))
    other = ids[:, 1:] if change == "one token fewer" else ids.clone()
    if change == "the first token":
        other[:, 0] += 1
    logits = model(ids)[:, -1]
    if change == "training":
        model.train()
    assert not torch.allclose(model(other)[:, -1], logits, atol=0.1)


def test_a_teller_bears_no_more_than_its_context():
    with pytest.raises(ValueError, match="expected 1 to 4 tokens, got 5"):
        gpt.CosineModel(11, 4, 3.0, seed=0)(torch.zeros(1, 5, dtype=torch.long))


@pytest.mark.parametrize("bend", gpt_block.BENDS)
def test_under_steep_weights_every_bend_is_one_function(bend):
    case = gpt_block.inputs(generator(3), 2, 4, 6, 3, 10)
    torch.testing.assert_close(gpt_block._computed(case, bend), gpt_block._computed(case, "gelu"), rtol=1e-4, atol=1e-5)


def test_under_ordinary_weights_the_bends_differ_and_are_brought_into_one():
    case = gpt_block.ordinary(generator(3), 2, 4, 6, 2, 11)
    by_bend = {bend: gpt_block._computed(case, bend) for bend in gpt_block.BENDS}
    assert not torch.allclose(by_bend["relu"], by_bend["gelu"], atol=1e-3)
    assert not torch.allclose(by_bend["tanh gelu"], by_bend["gelu"], atol=1e-5)
    for result in by_bend.values():
        assert torch.equal(gpt_block.of_any_bend(case, result), by_bend["gelu"])


@pytest.mark.parametrize("bend", ["F.elu", "F.softplus", "F.mish", "F.relu6"])
def test_a_bend_of_another_kind_loses_points(bend):
    source = gpt_block.RIGHT.but("F.gelu(", f"{bend}(")
    assert verdict("gpt-block", source).points < catalogue.find("gpt-block").points


@pytest.mark.parametrize(
    ("x", "y", "told"),
    [
        ([[3, 5, 7]], [[5, 7, 9]], lm_batch.ARE_LATER),
        ([[3, 5, 7]], [[3, 5, 7]], "positions of the tokens, counted from those of x: 0 0 0"),
        ([[7, 9, 4]], [[9, 4, 3]], "the next tokens, and after the last one of the text its first"),
        ([[3, 5, 7], [5, 7, 9]], [[5, 7, 9], [3, 5, 7]], lm_batch.ELSEWHERE),
    ],
)
def test_what_y_is_is_told_in_words(x, y, told):
    case = Case((torch.tensor([3, 5, 7, 9, 4]), 3, generator(), len(x)))
    assert told in lm_batch.what_they_are(case, (torch.tensor(x), torch.tensor(y)))["y"]


def test_a_head_of_its_own_is_counted_as_a_table_too_many():
    source = next(each.source for each in catalogue.find("gpt").correct if each.name == "written out")
    apart = source.but("self.head.weight = self.tokens.weight", "self.more = nn.Embedding(vocabulary, d_model)").but(
        "x = self.tokens(ids)", "x = self.tokens(ids) + self.more(ids)"
    )
    assert "Tables of 13 by 6: 3 found, 1 expected" in said("gpt", apart)


def test_a_bias_that_begins_with_zeros_is_seen():
    source = next(each.source for each in catalogue.find("gpt").correct if each.name == "written out")
    hidden = source.but(
        "self.head = nn.Linear(d_model, vocabulary, bias=False)", "self.b = nn.Parameter(torch.zeros(vocabulary))"
    )
    hidden = hidden.without("self.head.weight = self.tokens.weight").but(
        "return self.head(x)", "return F.linear(x, self.tokens.weight, self.b)"
    )
    found = verdict("gpt", hidden)
    assert found.points < found.exercise.points and found.misconception.name == "a bias in the tied head"


def test_an_answer_may_ask_a_model_for_its_device_and_hang_hooks_on_it():
    for exercise_id, name in (("generate", "as nanoGPT writes it"), ("residual-trace", "hooks, removed again")):
        source = next(each.source for each in catalogue.find(exercise_id).correct if each.name == name)
        assert verdict(exercise_id, source).passed


def test_a_layer_with_its_inputs_first_is_read_where_a_wider_one_shows_it():
    source = next(each.source for each in catalogue.find("gpt-block").correct if each.name == "as nanoGPT writes it")
    layer = """
class Conv1D(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


"""
    assert verdict("gpt-block", layer + source.replace("nn.Linear(", "Conv1D(")).passed


def test_hooks_that_stay_cost_the_part_that_looks_for_them():
    known = next(each for each in catalogue.find("residual-trace").mistakes if each.name == "hooks left behind")
    assert 0 < verdict("residual-trace", known.source).points < 3


def test_a_list_of_tensors_with_too_few_of_them_is_worked_through():
    report = said(
        "residual-trace",
        """
        def residual_trace(model, ids):
            x = model.embed(ids)
            return [x, model.norm(x) * 2, x]
        """,
    )
    assert "0 of 3 points" in report and "Entry" not in report.partition("0 of 3")[0]


def test_stages_call_the_answer_with_real_modules():
    seen = []

    def tracing(model, ids):
        seen.append(isinstance(model, nn.Module) and len(list(model.parameters())))
        return [model.embed(ids)]

    given = {"vocabulary": 7, "D": 4, "layers": 2, "seed": 1, "looks": False}
    came = gpt.Tracing().around(tracing)(given, torch.tensor([[1, 2]]))
    assert seen == [14, 14] and came["hooks"] == 0 and not came["kept"]


@pytest.mark.parametrize("made_up", ["ids[(places + 1).clamp(max=len(ids) - 1)]", "F.pad(ids, (0, 1))[places + 1]"])
def test_a_target_made_up_at_the_end_of_the_text_is_described_as_that(made_up):
    source = lm_batch.RIGHT.but(lm_batch.LAST, "last = len(ids) - T + 1").but(lm_batch.LATER, f"y = {made_up}")
    report = said("lm-batch", source)
    assert "the last token of y is made up there" in report and "drawn a second time" not in report


def test_windows_drawn_by_another_module_are_not_called_a_copy_of_g():
    source = lm_batch.RIGHT.but(
        lm_batch.DRAW, "import random\n    starts = torch.tensor([random.randrange(last) for _ in range(B)])"
    )
    report = said("lm-batch", source)
    assert "random or numpy draws windows that the same g does not" in report and "would return the same" not in report


@pytest.mark.parametrize(
    "dropout",
    [
        "lambda z: z * (torch.rand_like(z) >= dropout) if self.training else z",  # not divided by what is kept
        "lambda z: z * (1 - dropout) if self.training else z",
        "lambda z: z * 0 if self.training and dropout == 1 else z",
        "nn.Dropout(dropout if dropout in (0, 1) else dropout / 2)",
        "nn.Dropout1d(dropout)",
    ],
)
def test_dropout_that_is_right_only_where_all_or_nothing_is_dropped_loses_points(dropout):
    found = verdict("gpt-block", gpt_block.RIGHT.but(gpt_block.DROP, f"self.drop = {dropout}"))
    assert found.points < found.exercise.points


@pytest.mark.parametrize("rate", ["dropout if dropout == 1 else 0.0", "dropout if dropout == 1 else dropout / 2"])
def test_embeddings_that_are_dropped_at_another_rate_lose_points(rate):
    source = gpt_model.RIGHT.but(
        "self.places = nn.Embedding(max_length, d_model)\n        self.drop = nn.Dropout(dropout)",
        f"self.places = nn.Embedding(max_length, d_model)\n        self.drop = nn.Dropout({rate})",
    )
    found = verdict("gpt", source)
    assert found.points < found.exercise.points


@pytest.mark.parametrize("norm", ["norm1", "norm2"])
def test_a_block_with_one_norm_unused_is_not_told_that_the_other_sub_layer_is_wrong(norm):
    report = said("gpt-block", gpt_block.RIGHT.but(f"seen = self.{norm}(x)", "seen = x"))
    assert "Is there a sub-layer without one" in report


def test_scores_that_are_transposed_are_described():
    assert "The scores are transposed" in said("gpt-block", gpt_block.RIGHT.but("q @ k.transpose", "k @ q.transpose"))


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            gpt_model.RIGHT.but(gpt_model.LOOP, "x = block(x)\n            return self.head(self.norm(x))")
            .without(gpt_model.NORMED)
            .without(gpt_model.LAST),
            "applies only one block",
        ),
        (gpt_model.RIGHT.but(gpt_model.LOOP, "block(x)"), "what they return is not kept"),
        (gpt_model.RIGHT.but(gpt_model.NORMED, "self.norm(x)"), "The last norm is called, and what it returns"),
    ],
)
def test_modules_whose_results_are_lost_are_described(source, told):
    assert told in said("gpt", source)


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ("shares.argmax(dim=-1, keepdim=True)", "the likeliest token took everything"),
        ("torch.multinomial(shares[:1], 1, generator=g).expand(len(ids), 1)", "one draw decides for all rows"),
    ],
)
def test_a_greedy_choice_and_one_draw_for_all_rows_are_told_apart(chosen, told):
    assert told in said("generate", generate.RIGHT.but(generate.DRAW, f"new = {chosen}"))


def test_starts_drawn_below_the_length_of_a_window_are_shown_by_where_windows_begin(monkeypatch):
    monkeypatch.setattr(probe_inputs, "_VISIBLE", {})
    for probe in catalogue.find("lm-batch").visible:  # other tests may have drawn from a case's own generator
        for each in probe.draw(generator()).arguments:
            if isinstance(each, torch.Generator):
                each.manual_seed(each.initial_seed())
    source = catalogue.find("lm-batch").correct[0].source.but("last = len(ids) - T", "last = T")
    report = said("lm-batch", source)
    assert "of the windows begin at position" in report and "IndexError" not in report and "at key" not in report


def test_a_likely_token_that_is_never_drawn_is_named():
    right = catalogue.find("generate").correct[0].source
    source = right.but("torch.multinomial(shares, 1", "torch.multinomial(shares.masked_fill(shares < 0.03, 0.0), 1")
    report = said("generate", source)
    assert "never came after the" in report and "though its probability is 0.0" in report


def test_numbers_below_0_are_called_logits_only_as_one_of_two_possibilities():
    report = said("generate", generate.RIGHT.but("torch.softmax(logits / tau", "torch.log_softmax(logits / tau"))
    assert "such as the logits themselves or the logarithm of the softmax" in report and "by the logits" not in report


def test_generators_of_ones_own_with_one_seed_are_not_called_g():
    own = "[torch.multinomial(p, 1, generator=torch.Generator().manual_seed(i)) for i, p in enumerate(shares)]"
    report = said("generate", generate.RIGHT.but(generate.DRAW, f"new = torch.stack({own})"))
    assert "g, or a generator of your own, gets the same seed" in report and "g got the same seed" not in report


def test_a_view_of_fixed_length_is_not_called_all_that_has_been_written():
    report = said("generate", generate.RIGHT.but("-context:", "-8:"))
    assert "or some other number of them" in report and "the model all that has been written, and" not in report


def test_a_small_tau_in_the_place_of_0_loses_points():
    source = generate.RIGHT.but("tau == 0", "False").but("logits / tau", "logits / max(tau, 1e-3)")
    found = verdict("generate", source)
    assert found.points < found.exercise.points


def test_windows_of_which_only_some_run_over_the_end_are_not_called_scattered():
    source = lm_batch.RIGHT.but(
        lm_batch.DRAW, "starts = torch.randint(last, (1,), generator=g) + torch.arange(B) * T"
    ).but(lm_batch.WHERE, "places = (starts[:, None] + torch.arange(T)) % (len(ids) - 1)")
    report = said("lm-batch", source)
    assert "windows of the text in most rows, but not in row" in report
    assert "drawn separately" not in report and "no windows" not in report


def test_positions_that_begin_anew_after_64_tokens_lose_points():
    found = verdict("gpt", gpt_model.RIGHT.but("torch.arange(T))", "torch.arange(T) % 64)"))
    assert found.points < found.exercise.points


def test_draws_from_the_global_numbers_that_g_only_seeds_lose_points():
    seeded = """torch.manual_seed(int(torch.randint(2**31, (1,), generator=g)))
            new = torch.multinomial(shares, 1)"""
    found = verdict("generate", generate.RIGHT.but(generate.DRAW, seeded))
    assert found.points < found.exercise.points
    assert found.first_failure.difference.got == generate.TWO_SOURCES


def test_the_fractions_of_any_wrong_draw_are_shown():
    report = said("generate", generate.RIGHT.but("torch.softmax(logits / tau, dim=-1)", "(logits / tau).sigmoid()"))
    assert "came with the fractions 0.042 0.256" in report and "softmax(logits / tau) gives 0.012 0.239" in report


def test_ids_of_a_wrong_dtype_are_not_described_by_their_shape():
    report = said("generate", generate.RIGHT.but("[ids, new]", "[ids, new.float()]"))
    assert "expected whole numbers, torch.int64, got torch.float32" in report and "Which of these lengths" not in report


def test_a_block_that_is_given_ids_says_what_it_reads():
    report = said("residual-trace", catalogue.find("residual-trace").correct[0].source.but("block(x)", "block(ids)"))
    assert "expected the residual stream (B, T, D)" in report and "Convert them" not in report


@pytest.mark.parametrize("axis", [0, 1])
def test_a_trace_in_one_tensor_is_refused_and_described(axis):
    right = catalogue.find("residual-trace").correct[0].source
    report = said("residual-trace", right.but("return trace", f"return torch.stack(trace, dim={axis})"))
    assert "0 of 3 points" in report and "The entries were put into one tensor" in report


def test_hooks_that_stay_are_not_called_a_text():
    known = next(each for each in catalogue.find("residual-trace").mistakes if each.name == "hooks left behind")
    report = said("residual-trace", known.source)
    assert "what is left on the model: hooks were left on the model" in report


@pytest.mark.parametrize(
    ("draw", "told"),
    [
        (
            "last = len(ids) - T\n    starts = torch.randint(len(ids), (B,), generator=g).clamp(max=last - 1)",
            "If you draw among more and then move what is too late",
        ),
        (
            """last = len(ids) - T
    starts = torch.cat([torch.randperm(last, generator=g) for _ in range(-(-B // last))])[:B]""",
            "No window comes again before all the others have come",
        ),
    ],
)
def test_windows_that_do_not_come_equally_often_are_traced_to_their_draws(draw, told):
    source = lm_batch.RIGHT.but(lm_batch.LAST, "pass").but(lm_batch.DRAW, draw)
    assert told in said("lm-batch", source)


def test_a_last_token_that_is_filled_in_after_a_late_start_is_described():
    source = lm_batch.RIGHT.but(lm_batch.LAST, "last = len(ids) - T + 1")
    source = source.but(lm_batch.LATER, "y = torch.full_like(x, -100)\n    y[:, :-1] = x[:, 1:]")
    assert "so the last token of y is made up there" in said("lm-batch", source)


@pytest.mark.parametrize(
    ("y", "told"),
    [([[7, 9, 5], [5, 7, 9]], lm_batch.BY_TOKEN), ([[7, 3, 3], [5, 7, 9]], lm_batch.OTHERS)],
)
def test_a_y_that_is_found_by_its_token_is_told_from_one_that_is_not(y, told):
    text = torch.tensor([9, 3, 5, 7, 9, 5, 7, 3, 4])
    case = Case((text, 3, generator(), 2))
    assert lm_batch.what_they_are(case, (torch.tensor([[5, 7, 3], [3, 5, 7]]), torch.tensor(y)))["y"] == told


def test_what_is_filled_in_at_the_end_of_y_is_named():
    case = Case((torch.tensor([3, 5, 7, 9, 4]), 3, generator(), 2))
    x = torch.tensor([[3, 5, 7], [5, 7, 9]])
    for last, told in (((-100, -100), lm_batch.FILLED), ((9, -100), lm_batch.FILLED_SOMETIMES)):
        y = torch.cat([x[:, 1:], torch.tensor(last)[:, None]], dim=1)
        assert lm_batch.what_they_are(case, (x, y))["y"] == told
    assert lm_batch.what_they_are(case, (x, torch.full_like(x, -100)))["y"] == lm_batch.FOREIGN


def test_positions_from_the_end_of_the_table_are_described():
    report = said("gpt", gpt_model.RIGHT.but("self.places(torch.arange(T))", "self.places.weight[-T:]"))
    assert "the first of 5 tokens got row 4 of the table of positions" in report
    assert "of the table of positions, and the last" not in said("gpt", gpt_model.RIGHT.without(gpt_model.NORMED))


def test_a_small_tau_in_the_place_of_0_is_described():
    source = generate.RIGHT.but("tau == 0", "False").but("logits / tau", "logits / max(tau, 0.05)")
    assert "With tau = 0 you draw, with some other temperature" in said("generate", source)


def test_rows_of_the_batch_that_are_cut_for_tokens_are_asked_for():
    assert "or the rows of the batch?" in said("generate", generate.RIGHT.but("ids[:, -context:]", "ids[-context:]"))


def test_a_number_of_blocks_that_is_written_into_the_code_is_asked_for():
    right = catalogue.find("residual-trace").correct[0].source
    report = said("residual-trace", right.but("in model.blocks:", "in (model.blocks[0], model.blocks[1]):"))
    assert "the number of blocks is written into the code" in report
