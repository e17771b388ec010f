"""A recording continues from its finished parts, but only under the settings that they were made with."""

import json

import pytest

from book.recorded.kept import Kept


@pytest.fixture
def kept(tmp_path):
    return lambda settings=("a", 1): Kept("heads", settings, tmp_path)


def test_what_was_finished_before_an_interruption_is_not_made_again(kept):
    def interrupted():
        raise KeyboardInterrupt

    assert kept().made("first", lambda: (1, "two")) == [1, "two"]
    with pytest.raises(KeyboardInterrupt):
        kept().made("second", interrupted)
    assert kept().made("first", interrupted) == [1, "two"]
    assert "second" not in kept()


def test_pieces_of_other_settings_are_forgotten(kept):
    kept().keep("first", 1, seconds=2.0)
    assert "first" not in kept(("a", 2)) and "first" in kept()


def test_the_processor_time_of_all_pieces_is_summed_over_interruptions(kept):
    kept().keep("first", 1, seconds=2.0)
    again = kept()
    again.keep("second", 2, seconds=3.5)
    assert again.seconds == kept().seconds == 5.5


def test_nothing_stays_when_the_recording_is_written(kept, tmp_path):
    kept().keep("first", 1, seconds=2.0)
    kept().forget()
    assert list(tmp_path.iterdir()) == [] and "first" not in kept()


def test_a_piece_that_cannot_be_written_leaves_the_others(kept, tmp_path):
    kept().keep("first", 1, seconds=2.0)
    with pytest.raises(TypeError):
        kept().keep("second", object(), seconds=1.0)
    assert list(json.loads((tmp_path / "heads.json").read_text(encoding="utf-8"))["pieces"]) == ["first"]
