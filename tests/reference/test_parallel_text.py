"""A folder of text files is a corpus, or one line says why it is none."""

import gzip

import pytest
import torch

from transformer_ref.data.parallel_text import Parallel, is_usable, load_parallel


def write(folder, **contents: bytes) -> None:
    """Write `en=b"..."` into train.en, `de_gz=b"..."` into train.de.gz."""
    for name, content in contents.items():
        (folder / f"train.{name.replace('_', '.')}").write_bytes(content)


def test_plain_files_and_gzip_files_are_read_alike(tmp_path):
    write(tmp_path, en=b"A dog . \n\nTwo dogs .", it_gz=gzip.compress("Un cane .\n\nDue cani, perché no?\n".encode()))
    assert load_parallel(tmp_path, "train", "en", "it") == (
        ["A dog .", "", "Two dogs ."],
        ["Un cane .", "", "Due cani, perché no?"],
    )


def test_a_line_ends_only_where_the_file_says_so(tmp_path):
    write(tmp_path, en="one\u2028still one\rand still\r\ntwo\n".encode(), de=b"eins\nzwei\n")
    assert load_parallel(tmp_path, "train", "en", "de").source == ["one\u2028still one\rand still", "two"]


# with no time in the files: they are part of the tests' names, which must be the same in every worker of pytest
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"Ein Hund .\n" * 900, mtime=0)[:-9], "expected a whole gzip file, got .*train.de.gz"),
        (gzip.compress(b"Ein Hund .\n" * 900, mtime=0)[:40], "expected a whole gzip file, got .*train.de.gz"),
        (b"Ein Hund .\n", "expected a whole gzip file, got .*train.de.gz"),
        (gzip.compress("Ein Hündchen .\n".encode("latin-1"), mtime=0), "expected UTF-8 text, got .*train.de.gz"),
        (
            gzip.compress(b"Ein Hund .\nZwei Hunde .\n", mtime=0),
            "train: expected as many lines in en as in de, got 1 and 2",
        ),
    ],
)
def test_a_broken_file_is_named(tmp_path, content, message):
    write(tmp_path, en=b"A dog .\n", de_gz=content)
    with pytest.raises(ValueError, match=message):
        load_parallel(tmp_path, "train", "en", "de")


def test_a_language_is_not_translated_into_itself(tmp_path):
    with pytest.raises(ValueError, match='target: expected another language than the source, got "en"'):
        load_parallel(tmp_path, "train", "en", "en")


def test_the_fingerprint_depends_on_every_line_its_side_and_its_place():
    corpora = [
        Parallel(["a", "b"], ["c", "d"]),
        Parallel(["b", "a"], ["c", "d"]),
        Parallel(["a", "b"], ["c", "e"]),
        Parallel(["c", "d"], ["a", "b"]),
        Parallel(["a"], ["b", "c", "d"]),
        Parallel(["a b"], ["c d"]),
    ]
    assert len({corpus.sha256() for corpus in corpora}) == len(corpora)
    assert corpora[0].sha256() == Parallel(["a", "b"], ["c", "d"]).sha256()


def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path):
    (tmp_path / "train.en").write_bytes(b"\xef\xbb\xbfone\ntwo\n")
    (tmp_path / "train.it").write_bytes(b"uno\ndue\n")
    assert load_parallel(tmp_path, "train", "en", "it").source == ["one", "two"]


def test_a_pair_is_usable_unless_a_side_is_empty_or_too_long():
    lengths = [(1, 4), (4, 1), (0, 2), (2, 0), (0, 0), (5, 1), (1, 5)]
    wanted = [True, True, False, False, False, False, False]
    assert [is_usable(*pair, 4) for pair in lengths] == wanted
    assert is_usable(*torch.tensor(lengths).T, 4).tolist() == wanted
