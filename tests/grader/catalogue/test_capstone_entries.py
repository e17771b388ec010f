"""The checks of chapter 12 find what they should, and say what is true of it."""

import dataclasses
import json

import pytest
import torch

from autograder import catalogue
from autograder.catalogue.ch12_capstone import audit, average_checkpoints, export_attention, symptoms, tokenizer
from autograder.catalogue.known_answers import answer
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.prepare.sample_class import ROOT
from transformer_ref import capstone
from transformer_ref.recording import recording
from transformer_ref.training.recipes import RECIPES

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])


def verdict(exercise_id, source):
    return judge_and_explain(catalogue.find(exercise_id), LocalEndpoint(namespace_of(answer(source))), KEY)


def said(exercise_id, source):
    found = verdict(exercise_id, source)
    assert found.points < found.exercise.points
    return " ".join(as_text(found).split())


def overlap_of(condition):
    return audit.RIGHT.but(audit.OTHERS, f"if {condition} for pair in split")


@pytest.mark.parametrize(
    "source",
    [
        overlap_of('name not in ("train", "held_out")'),
        overlap_of('name in ("validation", "test", "dev")'),
        audit.RIGHT.but("sum(is_long(pair) for pair in pairs)", 'sum(is_long(pair) for pair in splits["train"])'),
        audit.RIGHT.but(audit.SPACES, 'import re\n        return re.sub(" +", " ", line).strip()'),
        audit.RIGHT.but("len(line.split()) >", 'len(line.split(" ")) >'),
    ],
)
def test_an_audit_that_overlooks_a_split_or_a_kind_of_white_space_loses_points(source):
    found = verdict("audit", source)
    assert found.points < found.exercise.points


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            audit.RIGHT.but(
                audit.OVERLAP,
                """
                overlap = 0
                for name, split in splits.items():
                    if name != "train":
                        split = [pair for pair in split if not is_empty(pair)]
                        overlap = sum(normal(a) in known or normal(b) in known for a, b in split)""",
            ),
            "each split replaces the count of the one before",
        ),
        (audit.RIGHT.but(audit.OTHERS, "for pair in split"), 'The pairs of "train" were counted as overlap too'),
        (overlap_of('name in ("validation", "test")'), "was not counted because of its name"),
    ],
)
def test_an_overlap_of_the_wrong_splits_is_described_as_what_it_is(source, told):
    assert told in said("audit", source)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            audit.RIGHT.but(audit.SPACES, 'return line.strip().replace("  ", " ")'),
            "not every run of white space inside a line becomes one space",
        ),
        (
            audit.RIGHT.but(
                audit.DUPLICATES,
                """
                duplicates = 0
                for split in splits.values():
                    whole = [(normal(a), normal(b)) for a, b in split if not is_empty((a, b))]
                    duplicates += len(whole) - len({tuple(sorted(pair)) for pair in whole})""",
            ),
            "Pairs of validation and test were counted as duplicates too",
        ),
        (
            audit.RIGHT.but(
                audit.OVERLAP,
                """
                known, overlap = set(), 0
                for name, split in splits.items():
                    whole = [(normal(a), normal(b)) for a, b in split if not is_empty((a, b))]
                    if name == "train":
                        known = {line for pair in whole for line in pair}
                    overlap += 0 if name == "train" else sum(a in known or b in known for a, b in whole)""",
            ),
            'Your counts are wrong where "train" is not the first of the splits.',
        ),
        (
            audit.RIGHT.before(
                "pairs = [pair for split in splits.values() for pair in split]",
                'splits = {name: splits.get(name, []) for name in ("train", "validation", "test")}',
            ),
            "was not counted because of its name",
        ),
        (
            audit.RIGHT.but("known = {line for pair in train for line in pair}", "known = {pair[0] for pair in train}"),
            "looked for among the sources of training only",
        ),
        (
            audit.RIGHT.but("sum(is_empty(pair) for", "sum((not pair[0].strip()) + (not pair[1].strip()) for")
            .but("sum(is_long(pair) for", "sum(len(pair[0].split()) // 51 + len(pair[1].split()) // 51 for"),
            "Pairs are counted, not lines.",
        ),
    ],
)  # fmt: skip
def test_a_wrong_count_is_described_whatever_the_code_that_gives_it(source, told):
    assert told in said("audit", source)


@pytest.mark.parametrize(
    ("line", "text", "compared"),
    [
        ("the dog", " the dog", " the dog"),
        ("the dog", "the dog ", "the dog "),
        (" the  dog\t", "the dog", "the dog"),
        (" the  dog\t", " the  dog\t", "the dog"),
        ("", "", ""),
    ],
)
def test_white_space_may_be_lost_at_the_ends_and_not_added(line, text, compared):
    assert tokenizer.as_compared(line, text) == compared


@pytest.mark.parametrize(
    "source",
    [
        tokenizer.RIGHT.but(tokenizer.KNOWN, 'for word in line.split(" "):'),
        tokenizer.RIGHT.but("return ids", "return ids or [36]"),
        tokenizer.RIGHT.but(tokenizer.END, 'return text.decode("utf-8").strip() + " "'),
        tokenizer.RIGHT.but("elif number >= 4:", "elif number > 4:"),
    ],
)
def test_a_tokenizer_that_adds_ids_or_white_space_or_loses_a_byte_loses_points(source):
    found = verdict("tokenizer", source)
    assert found.points < found.exercise.points


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (tokenizer.RIGHT.but("return ids", "pass"), "encode returned None"),
        (tokenizer.RIGHT.but(tokenizer.END, 'return text.decode("utf-8")'), "with a space in front"),
        (tokenizer.RIGHT.but("elif number >= 4:", "else:"), "raises an error at a special id"),
    ],
)
def test_the_common_slips_of_a_tokenizer_are_described(source, told):
    assert told in said("tokenizer", source)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            tokenizer.RIGHT.but(tokenizer.END, 'text.decode("utf-8").strip()'),
            "decode returned None, where the text 'I closed the windows.' is expected",
        ),
        (
            tokenizer.RIGHT.but("return ids", "return [1, *ids, 2]").but(tokenizer.SPELLED, "ids.append(3)"),
            "encode('I closed the windows.') returned the ids 1, 2; the ids of text are from 4 to 9,999",
        ),
        (tokenizer.RIGHT.but("return ids", "return ids or [36]"), "encode('') returned [36]; an empty line has no ids"),
        (
            tokenizer.RIGHT.but("return ids", "return [float(id) for id in ids]").but(
                "for number in ids:", "for number in map(int, ids):"
            ),
            "a list with items of type float, where a list of ints is expected",
        ),
        (tokenizer.RIGHT.but("if number == 2:", "if number == 3:"), "'I closed the windows.' came back as"),
        (
            tokenizer.RIGHT.but(tokenizer.IDS, "self.ids = {}").but("elif number >= 4:", "elif number >= 5:"),
            "encode returned 22 ids for its 21 characters; at most 10 are allowed",
        ),
    ],
)
def test_what_a_tokenizer_does_wrong_is_said_in_words(source, told):
    report = said("tokenizer", source)
    assert told in report and "at key" not in report


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            tokenizer.RIGHT.but("260 + place", "256 + place").but("number >= 260", "number >= 256")
            .but("number - 260", "number - 256").but("4 + byte", "byte").but("[number - 4]", "[number]"),
            "Your ids begin at 0",
        ),
        (
            tokenizer.RIGHT.but("sorted(set(words))[:9000]", "sorted(w for w in set(words) if words.count(w) > 1)"),
            "Only some of fit's words got an id",
        ),
        (
            tokenizer.RIGHT.but("if word in self.ids:", """
                if " " in line and line not in self.ids and not {*line.split()} <= {*self.ids}:
                    self.ids[line] = 260 + len(self.words)
                    self.words.append(line)
                if line in self.ids:
                    return [self.ids[line]]
                if word in self.ids:"""),
            "encode gave a new id to something that fit has not seen",
        ),
    ],
)  # fmt: skip
def test_a_broken_promise_about_ids_is_traced_to_its_cause(source, told):
    assert told in said("tokenizer", source)


STATES = average_checkpoints.inputs(torch.Generator().manual_seed(7), 6, 3).arguments[0]


def factors_of(source, k=3, states=STATES):
    result = namespace_of(source)["average_checkpoints"](states, k)
    return average_checkpoints.by_factors(average_checkpoints.Case((states, k)), result)


def test_a_sum_of_states_with_other_factors_is_described_by_its_factors():
    ends = average_checkpoints.RIGHT.but("in last)", "in (last[0], last[-1]))").but("total / k", "total / 2")
    told = "your weights are 0.500 times states[3] plus 0.500 times states[5]; they should be 0.333 times each of"
    assert told in said("average-checkpoints", ends)
    newest = average_checkpoints.RIGHT.but("(total / k).to(tensor.dtype)", "tensor.clone()")
    wide = average_checkpoints.inputs(torch.Generator().manual_seed(7), 4, 3, 5, torch.float64, 1e8).arguments[0]
    assert factors_of(newest, 3, wide).startswith("your weights of torch.float64 are 1.000 times states[3]; they")


@pytest.mark.parametrize(
    "source",
    [
        average_checkpoints.RIGHT,
        average_checkpoints.RIGHT.but("if tensor.is_floating_point():", "if True:"),
        average_checkpoints.RIGHT.but(average_checkpoints.KEPT, "continue"),
        average_checkpoints.RIGHT.but("total / k", "total ** 2"),
        average_checkpoints.RIGHT.but("(total / k).to(tensor.dtype)", "tensor.sum()"),
        average_checkpoints.RIGHT.but("total / k", "total / 0"),
        average_checkpoints.RIGHT.but("return mean", "return list(mean.values())"),
        average_checkpoints.RIGHT.but("return mean", "return {name: [1.0] for name in mean}"),
        average_checkpoints.RIGHT.but("return mean", "return None"),
    ],
)
def test_any_other_result_than_a_sum_with_other_factors_is_left_as_it_is(source):
    assert not isinstance(factors_of(source), average_checkpoints.Factors)


def test_a_result_of_another_type_is_not_called_unreadable():
    report = said("average-checkpoints", average_checkpoints.RIGHT.but("return mean", "return mean, k"))
    assert "expected a dictionary, got a tuple" in report and "can read nothing" not in report


def test_a_sum_written_into_the_newest_state_costs_more_than_one_check():
    in_place = average_checkpoints.RIGHT.but(
        average_checkpoints.DIVIDED, "mean[name] = tensor.copy_((total / k).to(tensor.dtype))"
    )
    found = verdict("average-checkpoints", in_place)
    assert found.points < 4.3
    assert "written into the newest state, which is the caller's" in said("average-checkpoints", in_place)


def test_a_window_that_ends_one_too_early_is_not_taken_for_the_first_states():
    report = said("average-checkpoints", average_checkpoints.RIGHT.but("states[-k:]", "states[-k - 1 : -1]"))
    assert "The window ends one too early" in report and "The first k states" not in report


@pytest.mark.parametrize(
    "source",
    [
        export_attention.RIGHT.but(export_attention.HOLDS, "holds = drop > max(control[:2])"),
        export_attention.RIGHT.but('"drop": drop', '"drop": round(drop, 3)'),
        export_attention.RIGHT.but("whole = score([])", "whole = score([])\n    heads.sort()"),
    ],
)
def test_a_claim_with_controls_overlooked_rounded_or_reordered_loses_points(source):
    found = verdict("export-attention", source)
    assert found.points < found.exercise.points


def test_lines_whose_words_are_reversed_are_seen_though_an_apostrophe_keeps_two_together():
    assert symptoms.backwards("", "L'uomo vede la casa di notte.", "notte. di casa la vede L'uomo")
    assert not symptoms.backwards("", "L'uomo vede la casa di notte.", "vede L'uomo la casa di notte.")


def test_the_notebook_names_the_scale_of_its_points():
    cells = json.loads((ROOT / "solutions/12_capstone/capstone.ipynb").read_text(encoding="utf-8"))["cells"]
    (task,) = ("".join(cell["source"]) for cell in cells if cell["id"] == "translate-task")
    scale = recording("capstone")["scale"]
    assert f"up to about {scale['none']:.0f} BLEU" in task and f"from {scale['full']:.1f} BLEU on" in task


@pytest.mark.parametrize("kept", ["sorted(set(words))[:2500]", "list(dict.fromkeys(words))[:2500]"])
def test_a_table_of_fewer_words_than_fit_may_meet_loses_points(kept):
    source = tokenizer.RIGHT.but("sorted(set(words))[:9000]", kept)
    assert "a line of rare words has more ids than it may" in said("tokenizer", source)


def test_the_experiment_is_the_recipe_of_the_built_in_corpus_in_fewer_steps_and_in_fp32():
    recipe = RECIPES["grammar"]
    assert recipe.model == capstone.MODEL
    assert dataclasses.replace(recipe.training, steps=capstone.STEPS, precision="fp32") == capstone.TRAINING


def test_weights_of_pads_that_are_set_to_0_are_described_as_left_in():
    zeroed = """
        s_ok, t_ok = source[row] != pad, target[row] != pad
        encoder = torch.stack([layer[row] for layer in weights["encoder"]]) * (s_ok[:, None] & s_ok)
        decoder = torch.stack([layer[row] for layer in weights["decoder"]]) * (t_ok[:, None] & t_ok)
        cross = torch.stack([layer[row] for layer in weights["cross"]]) * (t_ok[:, None] & s_ok)"""
    ends = {"encoder": "s, :s]", "decoder": "t, :t]", "cross": "t, :s]"}
    source = export_attention.RIGHT
    for kind, end in ends.items():
        line = f"{kind} = {export_attention.STACK.format(kind)}[:, :, :{end}"
        source = source.but(line, zeroed if kind == "encoder" else "pass")
    report = said("export-attention", source)
    assert "Pads are among your rows and columns" in report and "set to 0 still have their rows" in report
