"""Twelve classic mistakes, one part each: `assemble` names them, and so does a training that is begun with them."""

from typing import NamedTuple

import newcomer
import pytest

from autograder import catalogue
from autograder.catalogue.exercise import Misconception
from transformer_ref.config import ModelConfig
from transformer_ref.faults.of_own_code import remarks
from transformer_ref.own_code import OwnCode


class Broken(NamedTuple):
    """A part with a mistake of the catalogue.

    trained: words of what `train --model` says of it first; None where neither a training nor a translation asks this
    part.
    """

    exercise: str
    mistake: str
    trained: str | None


BROKEN = {
    "no root of d_k": Broken("multi-head-attention", "no scaling", "this mistake: no scaling"),
    "heads not transposed back": Broken(
        "multi-head-attention", "heads merged by reshape alone", "this mistake: heads merged without transpose"
    ),
    "no causal mask": Broken("decoder-mask", "padding only", "this mistake: no causal mask"),
    "no padding mask": Broken("transformer", "pads of the source seen", "this mistake: no padding mask"),
    "no positions": Broken("transformer", "no positions", "this mistake: no positions"),
    "norm over the words": Broken("layer-norm", "over the words", None),  # torch's own norms stand in the layers
    "no residual": Broken("transformer", "no residual", "this mistake: no residual"),
    "the source not read": Broken(
        "transformer", "cross-attention reads the decoder", "this mistake: cross-attention reads the decoder"
    ),
    "targets not shifted": Broken("shift-right", "not shifted", "the decoder reads what it should predict"),
    "smoothing counts pads": Broken("smooth-targets", "rows of pads left", "smooth_targets counts padding"),
    "the cache misplaced": Broken("decode-step", "position always 0", None),  # own models are read without a cache
    "beam sum without length": Broken(
        "beam-search", "no division by the length", "does not divide the sum of log p by the length"
    ),
}
CONFIG = ModelConfig(30, 30, d_model=16, heads=2, encoder_layers=1, decoder_layers=1, d_ff=24, norm_first=True,
                     tie_embeddings=True, max_length=20)  # fmt: skip


def known(broken: Broken) -> Misconception:
    return next(each for each in catalogue.find(broken.exercise).wrong if each.name == broken.mistake)


@pytest.fixture(scope="module")
def sound() -> str:
    """A file of the solutions' parts; what is defined again at its end takes their place."""
    return newcomer.gathered()


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What `assemble` says of a broken part: of all of them in as few commands as there are mistakes in one exercise."""
    rounds: list[dict[str, Broken]] = []
    for name, broken in BROKEN.items():
        free = (each for each in rounds if broken.exercise not in {other.exercise for other in each.values()})
        chosen = next(free, None)
        if chosen is None:
            rounds.append(chosen := {})
        chosen[name] = broken
    lines = {}
    for together in rounds:
        answers = {broken.exercise: known(broken).source for broken in together.values()}
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
    message = known(BROKEN[name]).message
    assert message[:60] in said[name]


@pytest.mark.parametrize("name", [name for name, broken in BROKEN.items() if broken.trained])
def test_who_trains_a_file_with_a_broken_part_is_told_which_before_the_first_step(sound, name):
    broken = OwnCode.of_text("my_transformer.py", f"{sound}\n\n\n{known(BROKEN[name]).source}")
    found = remarks(broken, CONFIG)
    assert len(found) == 1 and BROKEN[name].trained in found[0], found
