"""The laboratory's record, read from a symptom: what a loss and a few translations say about the mistake."""

from collections import Counter

import pytest

from transformer_ref.faults import hiding
from transformer_ref.faults.hiding import HIGHER, LOWER, SOUND, USUAL, by_symptom, loss_seen, writing_seen
from transformer_ref.recording import recording

RECORD = recording("laboratory")
WANTED = ["ho chiuso le finestre", "ieri ha rotto la mazza"]


def trained(translations, right=0.0, loss=1.0):
    return {"seeds": {"1": {"translations": translations, "right": right, "loss": loss}}}


GOOD = trained(WANTED, 0.95)


def test_every_mistake_has_one_place():
    found = by_symptom(RECORD)
    assert Counter(name for names in found.values() for name in names) == Counter(list(hiding.recorded(RECORD)))
    assert {loss for loss, _ in found} <= {*hiding.LOSSES} and {what for _, what in found} <= {*hiding.WRITINGS}
    assert not any(SOUND in names for names in found.values())


@pytest.mark.parametrize(
    ("name", "loss", "writing"),
    [
        ("decoder input not shifted", LOWER, hiding.REPEATS),
        ("no <eos> in the labels", USUAL, hiding.ENDLESS),
        ("softmax twice", HIGHER, hiding.NOTHING),
        ("no positions", HIGHER, hiding.DISORDER),
        ("cross-attention reads the decoder", HIGHER, hiding.IGNORES),
        ("no zero_grad", USUAL, hiding.RIGHT),
    ],
)
def test_what_the_course_says_of_a_mistake_is_where_the_table_puts_it(name, loss, writing):
    assert name in by_symptom(RECORD)[loss, writing]


@pytest.mark.parametrize(
    ("translations", "right", "expected"),
    [
        (["", "ieri"], 0.0, hiding.NOTHING),
        (["non non non non", "casa casa casa"], 0.0, hiding.REPEATS),
        (["ho chiuso le finestre le finestre le finestre", "ieri ha rotto la mazza la mazza la"], 0.0, hiding.ENDLESS),
        (["le finestre ho chiuso", "ha rotto la mazza ieri"], 0.5, hiding.DISORDER),
        (["domani apre la porta", "domani apre la porta"], 0.0, hiding.IGNORES),
        (["domani apre la porta", "oggi chiude la banca"], 0.0, hiding.OTHER),
        (["ho chiuso le porte", "ieri ha rotto la mazza"], 0.5, hiding.SOME),
        (WANTED, 0.95, hiding.RIGHT),
    ],
)
def test_what_most_translations_show(translations, right, expected):
    assert writing_seen(trained(translations, right), GOOD) == expected


@pytest.mark.parametrize(("loss", "expected"), [(0.1, LOWER), (0.6, USUAL), (1.9, USUAL), (2.1, HIGHER)])
def test_how_the_loss_ends(loss, expected):
    assert loss_seen(trained(WANTED, loss=loss), GOOD) == expected
