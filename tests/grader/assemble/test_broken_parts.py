"""Twelve classic mistakes, one part each: `assemble` names them, so does a training run that is begun with them, and so
does 12.3 where they were trained all the same."""

import newcomer
import pytest

from autograder import catalogue
from book.recorded import broken_parts
from book.recorded.broken_parts import BROKEN, SOUND, Broken
from transformer_ref.config import ModelConfig
from transformer_ref.learner.own_code import OwnCode
from transformer_ref.learner.own_faults import remarks
from transformer_ref.recording import recording

BEGUN = {  # what `train --model` reports first; neither training nor translation uses the other parts
    "no root of d_k": "this mistake: no scaling",
    "heads not transposed back": "this mistake: heads merged without transpose",
    "no causal mask": "this mistake: no causal mask",
    "no padding mask": "this mistake: no padding mask",
    "no positions": "this mistake: no positions",
    "no residual": "this mistake: no residual",
    "the source not read": "this mistake: cross-attention reads the decoder",
    "targets not shifted": "the decoder reads what it should predict",
    "smoothing counts pads": "smooth_targets counts padding",
    "beam sum without length": "does not divide the sum of log p by the length",
}
READ = {  # what 12.3 reads from the lines of a translator that was trained with it; the rest does no harm here
    "heads not transposed back": "words that have nothing to do with the line",
    "norm over the words": "good alone, bad in a batch",  # pads are among the words
    "no padding mask": "good alone, bad in a batch",
    "no causal mask": "empty lines",
    "no positions": "the words in any order",
    "the cache misplaced": "what was said comes again",
    "the source not read": "always the same sentence",
    "targets not shifted": "the same words again and again",
}
# Points are lost and the lines bear no mark: one layer on each side learns without residuals, more slowly.
WEAKER = ("no residual",)
CONFIG = ModelConfig(30, 30, d_model=16, heads=2, encoder_layers=1, decoder_layers=1, d_ff=24, norm_first=True,
                     tie_embeddings=True, max_length=20)  # fmt: skip
RECORD = recording("broken_parts")["parts"]
HARM = 3.0  # BLEU; seeds and draws of lines differ by less


@pytest.fixture(scope="module")
def sound() -> str:
    """A file of the solutions' parts; what is defined again at its end takes their place."""
    return newcomer.gathered()


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What `assemble` says of a broken part: of all of them in as few commands as there are mistakes in one
    exercise."""
    rounds: list[dict[str, Broken]] = []
    for name, broken in BROKEN.items():
        free = (each for each in rounds if broken.exercise not in {other.exercise for other in each.values()})
        chosen = next(free, None)
        if chosen is None:
            rounds.append(chosen := {})
        chosen[name] = broken
    lines = {}
    for together in rounds:
        answers = {broken.exercise: broken.known().source for broken in together.values()}
        folder = tmp_path_factory.mktemp("broken")
        newcomer.write_notebooks(folder, answers, only=True)
        text = newcomer.assemble(folder)
        for name, broken in together.items():
            exercise = catalogue.find(broken.exercise)
            start = f"  ✗ {exercise.number} {', '.join(exercise.names)}: "
            lines[name] = next((line for line in text.splitlines() if line.startswith(start)), text)
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_part_is_left_out_of_the_file_and_its_mistake_is_said(said, name):
    message = BROKEN[name].known().message
    assert message[:60] in said[name]


@pytest.mark.parametrize("name", BEGUN)
def test_who_trains_a_file_with_a_broken_part_is_told_which_before_the_first_step(sound, name):
    broken = OwnCode.of_text("my_transformer.py", f"{sound}\n\n\n{BROKEN[name].known().source}")
    found = remarks(broken, CONFIG)
    assert len(found) == 1 and BEGUN[name] in found[0], found


def test_the_file_that_is_trained_with_broken_parts_is_that_which_assemble_writes(sound):
    assert broken_parts.assembled().text == sound


@pytest.mark.parametrize("name", RECORD)
def test_what_12_3_reads_from_the_lines_of_a_training_with_a_broken_part(name):
    verdict = broken_parts.judged(broken_parts.replayed(RECORD[name]), None)
    named = verdict.misconception.name if verdict.misconception else ""
    assert named == RECORD[name]["named"] == READ.get(name, "")


@pytest.mark.parametrize("name", [name for name in RECORD if name != SOUND])
def test_a_broken_part_spoils_translations_and_is_read_from_them_or_does_neither(name):
    lost = RECORD[SOUND]["bleu"] - RECORD[name]["bleu"]
    assert lost > HARM if name in READ or name in WEAKER else lost < HARM
