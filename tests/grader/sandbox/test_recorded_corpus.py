"""A graded notebook has the built-in corpus to train on, and not the grammar that would translate for it."""

import json
import subprocess
import sys

import pytest

from autograder import catalogue
from autograder.sandbox import visible
from transformer_ref.data.grammar.corpora import build_corpus

(CAPSTONE,) = (each for each in catalogue.ASSIGNMENTS if each.id == "12_capstone")
ASKED = """
import json, sys
from transformer_ref.data.grammar import corpora
corpus = corpora.build_corpus(train=300, validation=20, test=10, held_out=7)
def refused(call):
    try:
        call()
    except (ImportError, ValueError) as error:
        return str(error)
print(json.dumps({
    "corpus": corpus,
    "more": refused(lambda: corpora.build_corpus(train=60_001)),
    "seed": refused(lambda: corpora.build_corpus(seed=8)),
    **{name: refused(lambda: __import__("transformer_ref.data.grammar." + name)) for name in sys.argv[1:]},
}))
"""
GRAMMAR = ("lexicon", "meaning", "italian", "english", "sentences")


@pytest.fixture(scope="module")
def answered(tmp_path_factory) -> dict:
    """The output of a process that sees our packages as a submission of chapter 12 does."""
    folder = tmp_path_factory.mktemp("packages")
    visible.build(folder, CAPSTONE)
    done = subprocess.run(
        [sys.executable, "-c", ASKED, *GRAMMAR], cwd=folder, env={"PYTHONPATH": str(folder)}, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return json.loads(done.stdout)


def test_the_sentences_are_those_of_the_real_corpus(answered):
    real = build_corpus(train=300, validation=20, test=10, held_out=7)
    assert answered["corpus"] == json.loads(json.dumps(real))
    assert any(sense for _, _, sense in answered["corpus"][0])


@pytest.mark.parametrize("name", GRAMMAR)
def test_nothing_that_translates_can_be_imported(answered, name):
    assert f"transformer_ref.data.grammar.{name} cannot be imported while 12_capstone is graded" in answered[name]
    assert f"transformer_ref.data.grammar.{name}" not in visible.modules(CAPSTONE)


def test_more_than_was_recorded_is_refused_in_a_sentence(answered):
    assert answered["more"].startswith("train: expected 0 to 60,000 sentences while a notebook is graded")
    assert answered["seed"].startswith("seed: expected 7")
