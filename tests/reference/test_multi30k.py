"""The folder of Multi30k: what it holds is aligned, what it lacks is named."""

import gzip
import os

import pytest

from transformer_ref.data.multi30k import FOLDER_VARIABLE, load_multi30k

needs_multi30k = pytest.mark.skipif(FOLDER_VARIABLE not in os.environ, reason=f"{FOLDER_VARIABLE} is not set")


def write(folder, name: str, *lines: str) -> None:
    with gzip.open(folder / name, "wt", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))


def test_lines_are_read_in_order_and_stripped(tmp_path):
    write(tmp_path, "val.en.gz", "A dog . ", "Two dogs .")
    write(tmp_path, "val.fr.gz", "Un chien .", "Deux chiens à l'eau .")
    assert load_multi30k("val", "en", "fr",
                         tmp_path) == (["A dog .", "Two dogs ."], ["Un chien .", "Deux chiens à l'eau ."])


def test_the_environment_says_where_the_folder_is(tmp_path, monkeypatch):
    write(tmp_path, "val.en.gz", "A dog .")
    write(tmp_path, "val.de.gz", "Ein Hund .")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert load_multi30k("val").target == ["Ein Hund ."]


def test_a_missing_folder_or_file_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    with pytest.raises(FileNotFoundError, match=f"--data-dir or by {FOLDER_VARIABLE}"):
        load_multi30k("train")
    with pytest.raises(FileNotFoundError, match=r"expected the file train.en.gz"):
        load_multi30k("train", folder=tmp_path)


def test_sides_of_different_length_are_refused(tmp_path):
    write(tmp_path, "val.en.gz", "A dog .", "Two dogs .")
    write(tmp_path, "val.de.gz", "Ein Hund .")
    with pytest.raises(ValueError, match="val: expected as many lines in en as in de, got 2 and 1"):
        load_multi30k("val", folder=tmp_path)


@pytest.mark.parametrize(("arguments", "field"), [(("test", ), "split"), (("val", "it"), "source"),
                                                  (("val", "en", "it"), "target")])
def test_an_unknown_split_or_language_is_named(arguments, field):
    with pytest.raises(ValueError, match=f"{field}: expected one of"):
        load_multi30k(*arguments)


@needs_multi30k
@pytest.mark.parametrize(("split", "lines"), [("train", 29_000), ("val", 1_014), ("test_2016_flickr", 1_000)])
def test_the_real_corpus_has_its_known_sizes(split, lines):
    for target in ("de", "fr"):
        sides = load_multi30k(split, "en", target)
        assert len(sides.source) == len(sides.target) == lines and all(sides.source) and all(sides.target)
