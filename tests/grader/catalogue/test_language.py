"""The words in which entries are written refuse what was not meant."""

import json
import sys
from dataclasses import replace
from importlib import import_module

import pytest
import torch

from autograder import catalogue
from autograder.catalogue import sections
from autograder.catalogue.exercise import Case, EntryError, Evidence, Exercise, Misconception, Section
from autograder.catalogue.families import in_place, lost_an_axis_of_1, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import FAR, PROMISED, SECOND_CALL, hidden, normal, usual_probes, visible

RIGHT = answer("""
    def attend(W, V):
        mixed = W @ V
        return mixed
""")
HERE = Section("05", "The weighted average: mixing the values", "sec-05-mix")


def test_an_answer_loses_its_margin_and_nothing_else():
    assert RIGHT == "def attend(W, V):\n    mixed = W @ V\n    return mixed\n"


def test_a_change_replaces_what_stands_there_once():
    assert "mixed = V @ W" in RIGHT.but("W @ V", "V @ W")
    assert RIGHT.but("W @ V", "V @ W").but("return mixed", "return mixed.sum()").endswith("return mixed.sum()\n")


def test_two_changes_of_one_answer_are_made_together_where_they_fit():
    turned, summed = RIGHT.but("W @ V", "V @ W"), RIGHT.but("return mixed", "return mixed.sum()")
    assert turned.together(summed) == RIGHT.but("W @ V", "V @ W").but("return mixed", "return mixed.sum()")
    other_values = RIGHT.before("mixed = W @ V", "V = -V").ending_in(".detach()")
    assert other_values.together(turned) == RIGHT.before("mixed = W @ V", "V = -V").ending_in(".detach()").but(
        "W @ V", "V @ W"
    )


def test_changes_that_together_name_an_argument_twice_are_not_made_together():
    summed = answer("def total(x):\n    return x.sum(dim=0)\n")
    kept = summed.but("dim=0", "dim=0, keepdim=True")
    assert kept.together(summed.but("sum(", "sum(keepdim=False, ")) is None


def test_changes_of_the_same_place_of_another_answer_or_of_nothing_are_not_made_together():
    turned = RIGHT.but("W @ V", "V @ W")
    assert turned.together(RIGHT.but("mixed = W @ V", "mixed = V")) is None
    assert turned.together(formula("attend(W, V)", "W @ V").but("W @ V", "V @ W")) is None
    assert turned.together(RIGHT) is None and turned.together(turned) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("W @ V.transpose(1, 2)", "(W * V).mean(2)"),  # the ending would act on the mean, and V is turned no more
        ("W @ V[0]", "V @ W"),
        ("W @ V ** 2", "W + V"),
    ],
)
def test_changes_of_which_one_alters_what_the_other_means_are_not_made_together(first, second):
    first, second = RIGHT.but("W @ V", first), RIGHT.but("W @ V", second)
    assert first.together(second) is None and second.together(first) is None


def test_changes_of_which_one_holds_the_other_whole_are_made_together():
    squared, doubled = RIGHT.but("W @ V", "(W @ V) ** 2"), RIGHT.but("W @ V", "2 * V")
    assert squared.together(doubled) == RIGHT.but("W @ V", "(2 * V) ** 2")


def test_an_expression_is_not_put_where_its_neighbours_would_take_it_apart():
    scaled = answer("def decode(m, t, size):\n    return (m + t) * size\n")
    bare, halved = scaled.but("(m + t) * size", "m + t"), scaled.but("(m + t)", "(m + t).int()")
    assert bare.together(halved) is None
    counted = scaled.but("* size", "* 8")
    assert counted.together(halved) == scaled.but("(m + t)", "(m + t).int()").but("* size", "* 8")


@pytest.mark.parametrize(("old", "times"), [("W @ W", 0), ("mixed", 2)])
def test_a_change_that_does_not_apply_exactly_once_is_refused(old, times):
    with pytest.raises(ValueError, match=rf"exactly once, got it {times} times"):
        RIGHT.but(old, "V")


def test_a_block_is_indented_as_the_line_that_it_replaces():
    changed = RIGHT.but(
        "mixed = W @ V",
        """
        mixed = 0
        for row in V:
            mixed = mixed + row
        """,
    )
    assert changed == (
        "def attend(W, V):\n    mixed = 0\n    for row in V:\n        mixed = mixed + row\n    return mixed\n"
    )


def test_a_line_goes_only_where_it_stands_once():
    assert RIGHT.without("mixed = W @ V") == "def attend(W, V):\n    return mixed\n"
    with pytest.raises(ValueError, match="got it 0 times"):
        RIGHT.without("mixed = V")


def test_every_value_that_is_returned_passes_through_a_method():
    source = answer("""
        def attend(W, V):
            if V is None:
                return W
            return W @ V
    """)
    assert source.ending_in(".float()") == (
        "def attend(W, V):\n    if V is None:\n        return W.float()\n    return (W @ V).float()\n"
    )


def test_of_several_values_and_of_a_class_what_comes_back_passes_through_a_method():
    assert (
        answer("""
        def attend(W, V):
            return W @ V, (W, V), W.T
    """)
        .ending_in(".float()")
        .endswith("return (W @ V).float(), ((W, V)).float(), W.T.float()\n")
    )
    module = answer("""
        class Attend(nn.Module):
            def size(self):
                return 3

            def forward(self, x):
                return x, self.w
    """)
    assert module.ending_in(".squeeze()") == module.but("return x, self.w", "return x.squeeze(), self.w.squeeze()")


def test_new_lines_take_the_margin_of_the_line_beside_them():
    halved = "if W is V:\n    W = W / 2"
    assert RIGHT.before("mixed = W @ V", halved) == (
        "def attend(W, V):\n    if W is V:\n        W = W / 2\n    mixed = W @ V\n    return mixed\n"
    )
    assert RIGHT.after("mixed = W @ V", "mixed = mixed / 2").endswith(
        "W @ V\n    mixed = mixed / 2\n    return mixed\n"
    )
    for put in (RIGHT.before, RIGHT.after):
        with pytest.raises(ValueError, match="'mixed' exactly once, got it 0 times"):
            put("mixed", "W = V")


def test_a_formula_is_a_function_of_one_line():
    assert formula("attend(W, V)", "W @ V") == "def attend(W, V):\n    return W @ V\n"


def test_what_is_changed_in_place_is_named_and_what_is_particular_is_added():
    known = in_place("V", RIGHT.before("return mixed", "V *= 2"), HERE, "It doubles.")
    assert known.name == "V changed in place" and "    V *= 2\n" in known.source
    assert "the caller's V:" in known.message and known.message.endswith("passed in. It doubles.")
    assert in_place("V", known.source, HERE).message.endswith("passed in. Make a new one.")


@pytest.mark.parametrize(
    "kind", [lambda source: mistake("odd", source, HERE, "words"), lambda source: correct("odd", source)]
)
def test_an_answer_that_is_no_python_is_refused_by_its_name(kind):
    with pytest.raises(ValueError, match="odd: expected Python"):
        kind(RIGHT.but("W @ V", "W @"))


def test_the_usual_mistakes_are_those_that_were_given_a_section():
    assert [known.name for known in usual_mistakes(RIGHT, float32=HERE)] == ["always float32"]
    every = list(usual_mistakes(RIGHT, detached=HERE, float32=HERE, squeezed=HERE))
    assert [known.source.splitlines()[-1].strip() for known in every] == [
        "return mixed.detach()",
        "return mixed.float()",
        "return mixed.squeeze()",
    ]


def test_the_usual_mistakes_know_the_arguments_by_name():
    known = usual_mistakes(RIGHT, arguments="W V", detached=HERE, single=HERE, viewed=HERE, rounded=HERE, root="W @ V")
    sources = {each.name: each.source for each in known}
    assert "    V = V.detach()\n    mixed = W @ V\n" in sources["V cut off from the gradient"]
    assert "    W, V = W.float(), V.float()\n" in sources["single precision inside"]
    assert "return mixed.to(dtype)" in sources["single precision inside"]
    assert "    W = W.view(-1).view(W.shape)\n" in sources["view of what lies transposed"]
    assert "mixed = int(W @ V)" in sources["root rounded"]


def test_lines_are_put_first_in_a_function_and_in_the_forward_of_a_class():
    assert RIGHT.beginning_with("a = 1", "b = 2").startswith("def attend(W, V):\n    a = 1\n    b = 2\n    mixed")
    module = answer("""
        class Attend(nn.Module):
            def __init__(self):
                super().__init__()

            def forward(self, x):
                return x
    """)
    assert module.beginning_with("x = x + 1").endswith("def forward(self, x):\n        x = x + 1\n        return x\n")


@pytest.mark.parametrize(
    ("got", "expected", "lost"),
    [
        (torch.ones(3), torch.ones(1, 3), True),
        (torch.ones(1, 3), torch.ones(1, 3, 1), True),
        ((torch.ones(1, 2), torch.ones(3)), (torch.ones(1, 2), torch.ones(1, 3)), True),
        (torch.zeros(3), torch.ones(1, 3), False),
        (torch.ones(1, 1, 3), torch.ones(1, 3), False),
    ],
)
def test_an_axis_of_1_that_is_lost_is_seen_in_whatever_spelling(got, expected, lost):
    assert lost_an_axis_of_1(Evidence((), expected, got)) is lost


def table(g: torch.Generator, rows: int, columns: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, rows, columns, dtype=dtype), rows))


def drawn(probe) -> Case:
    return probe.draw(torch.Generator().manual_seed(0))


def test_a_probe_draws_a_case_of_its_sizes():
    probe = hidden("other sizes", table, 3, 5, dtype=torch.float64, checks="inputs", rtol=0.1)
    assert drawn(probe).arguments[0].shape == (3, 5) and drawn(probe).arguments[0].dtype == torch.float64
    assert probe.hidden and probe.checks == {"inputs"} and probe.rtol == 0.1
    assert not visible("by hand", Case((1,))).hidden and drawn(visible("by hand", Case((1,)))).arguments == (1,)


def test_sizes_for_a_case_that_is_given_are_refused():
    with pytest.raises(TypeError, match="by hand: expected nothing to draw"):
        visible("by hand", Case((1,)), 3)


def test_the_usual_probes_ask_for_sizes_precision_gradients_and_manners():
    probes = {probe.name: probe for probe in usual_probes(table, other=(4, 6), smallest=(1, 1), common=(2, 7))}
    assert drawn(probes["other sizes"]).arguments[0].shape == (4, 6)
    assert drawn(probes["the smallest sizes"]).arguments[0].shape == (1, 1)
    in_memory, rows = drawn(probes["float64, transposed in memory"]).arguments
    assert in_memory.dtype == torch.float64 and not in_memory.is_contiguous() and rows == 2
    assert probes["gradients"].checks == {"gradients"}
    assert all(probe.hidden and probe.announced_by == PROMISED for probe in probes.values())
    assert probes[SECOND_CALL].checks == {"inputs", "state"}
    again = drawn(probes[SECOND_CALL])
    assert again.before[0].shape == again.arguments[0].shape and not again.before[0].equal(again.arguments[0])


def test_other_sizes_hold_a_zero_and_the_first_row_twice_unless_an_entry_cannot_have_them():
    def rows(**options) -> torch.Tensor:
        probes = {probe.name: probe for probe in usual_probes(table, other=(4, 6), common=(2, 7), **options)}
        return drawn(probes["other sizes"]).arguments[0]

    assert rows()[0, 0] == 0 and rows()[0].equal(rows()[3]) and len(rows().unique(dim=0)) == 3
    assert rows(zero=False)[0, 0] != 0 and len(rows(equal_rows=False).unique(dim=0)) == 4


def test_what_float32_cannot_hold_is_asked_transposed_and_to_the_last_digit():
    def far(g: torch.Generator) -> Case:
        return Case((normal(g, 2, 3, dtype=torch.float64) + FAR,))

    probes = {probe.name: probe for probe in usual_probes(table, other=(4, 6), common=(2, 7), precise=far)}
    asked = probes["float64, transposed in memory"]
    assert asked.rtol == 0 and not drawn(asked).arguments[0].is_contiguous() and drawn(asked).arguments[0].min() > 1e7


ENTRY = catalogue.find("attend")
VISIBLE, HIDDEN = visible("one", Case((1,))), hidden("two", Case((1,)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"probes": (VISIBLE,)}, "attend: probes: expected a hidden one, since hidden_points is 3"),
        ({"probes": (HIDDEN,)}, "attend: probes: expected a visible one, since visible_points is 1"),
        ({"probes": (VISIBLE, HIDDEN, HIDDEN)}, "attend: probes: expected different names, got 'two' twice"),
        ({"mistakes": ENTRY.mistakes[:1] * 2}, "attend: mistakes: expected different names"),
        ({"correct": ENTRY.correct[:1] * 2}, "attend: correct: expected different names"),
        (
            {"probes": (VISIBLE, hidden("two", Case((1,)), checks="gradient"))},
            "attend: checks of 'two': expected some of .*, got 'gradient'",
        ),
        ({"hints": ("one", "two")}, "attend: hints: expected a nudge, a plan and pseudocode, got 2"),
        ({"difficulty": 4}, "attend: difficulty: expected 1, 2 or 3, got 4"),
    ],
)
def test_an_entry_that_contradicts_itself_is_refused(changes, said):
    with pytest.raises(EntryError, match=said):
        replace(ENTRY, **changes)


def test_a_section_that_the_book_does_not_have_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="got 'sec-05-mixx'. Did you mean 'sec-05-mix'?"):
        sections.of_chapter("05")("mixx")
    assert sections.of_chapter("05")("mix") == [HERE]


def test_the_sections_noted_are_those_of_the_book():
    assert json.loads(sections.NOTED.read_text(encoding="utf-8")) == sections.read_book()


def test_looking_for_one_exercise_reads_one_exercise(monkeypatch):
    entries = [f"autograder.catalogue.ch{assignment.id}" for assignment in catalogue.ASSIGNMENTS]
    read = [name for name in sys.modules if name.rpartition(".")[0] in entries]
    for name in read:
        monkeypatch.delitem(sys.modules, name)
    import_module("autograder.catalogue.chapters").chapter("autograder.catalogue.ch05_self_attention", "attend").load(
        "attend"
    )
    again = {name.rpartition(".")[2] for name in sys.modules if name.rpartition(".")[0] in entries}
    assert again == {"attend", "shared"}


def quoting(*mistakes: Misconception) -> dict[str, Misconception]:
    """The mistakes of an exercise whose quote is the first number that came back."""
    exercise = Exercise(
        id="doubled",
        number="00.0",
        visible_points=0,
        hidden_points=0,
        section=HERE,
        reference=doubled,
        probes=(),
        mistakes=mistakes,
        correct=(),
        hints=("", "", ""),
        quotes=lambda evidence: f"You got {float(evidence.got.flatten()[0]):g}.",
    )
    return {known.name: known for known in exercise.mistakes}


def doubled(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


@pytest.mark.parametrize(
    ("got", "said"),
    [
        (torch.tensor([3.0, 4.0]), "You got 3. Twice."),
        (torch.tensor([2.0, 4.0]), "Twice."),  # another probe's failure: here nothing differs
        (torch.tensor([3.0, 4.0], dtype=torch.float64), "Twice."),
        (torch.tensor([[3.0, 4.0]]), "You returned shape (1, 2) where (2,) was expected. Twice."),
        ([3.0, 4.0], "Twice."),
    ],
)
def test_an_exercise_s_quote_is_said_of_other_values_and_of_shapes_alone(got, said):
    known = quoting(mistake("plain", "def doubled(x):\n    return x\n", HERE, "Twice."))["plain"]
    assert known.explain(Evidence((), torch.tensor([2.0, 4.0]), got)) == said
    assert known.explain(None) == "Twice."


def test_a_mistake_quotes_what_it_names_or_nothing():
    source = "def doubled(x):\n    return x\n"
    known = quoting(
        mistake("silent", source, HERE, "Twice.", quotes=None),
        mistake("other", source, HERE, "Twice.", quotes=lambda evidence: "Half."),
        in_place("x", source, HERE),
    )
    evidence = Evidence((), torch.tensor([2.0]), torch.tensor([3.0]))
    assert known["silent"].explain(evidence) == "Twice." and known["other"].explain(evidence) == "Half. Twice."
    assert known["x changed in place"].explain(evidence).startswith("Your function changed")
