"""Multi30k from a folder or from its mirrors: what is there is aligned, what is missing or broken is named."""

import gzip
import hashlib
import os
from pathlib import Path

import pytest
from file_server import FileServer

from transformer_ref.data import multi30k
from transformer_ref.data.download import DownloadError
from transformer_ref.data.multi30k import FILES, FOLDER_VARIABLE, LANGUAGES, SPLITS, load_multi30k

needs_multi30k = pytest.mark.skipif(FOLDER_VARIABLE not in os.environ, reason=f"{FOLDER_VARIABLE} is not set")


def write(folder, name: str, *lines: str) -> None:
    with gzip.open(folder / name, "wt", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))


def made_files(folder: Path) -> dict[str, bytes]:
    """Return small files by the names of the real ones, with as many lines in each language."""
    for name in FILES:
        write(folder, name, *(hashlib.sha256(f"{name} {number}".encode()).hexdigest() for number in range(200)))
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """Serve the real files if there are any, else made ones, in the place of the mirrors."""
    real = os.environ.get(FOLDER_VARIABLE)
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    if real:
        files = {name: (Path(real) / name).read_bytes() for name in FILES if (Path(real) / name).is_file()}
    else:
        (tmp_path / "made").mkdir()
        files = made_files(tmp_path / "made")
        checksums = {name: (len(content), hashlib.sha256(content).hexdigest()) for name, content in files.items()}
        monkeypatch.setattr(multi30k, "FILES", checksums)
    monkeypatch.setattr(multi30k, "DOWNLOADS", tmp_path / "downloads")
    with FileServer(files).running() as server:
        monkeypatch.setattr(multi30k, "MIRRORS", (server.address,))
        yield server


def test_lines_are_read_in_order_and_stripped(tmp_path):
    write(tmp_path, "val.en.gz", "A dog . ", "Two dogs .")
    write(tmp_path, "val.fr.gz", "Un chien .", "Deux chiens à l'eau .")
    assert load_multi30k("val", "en", "fr", tmp_path) == (
        ["A dog .", "Two dogs ."],
        ["Un chien .", "Deux chiens à l'eau ."],
    )


def test_the_environment_says_where_the_folder_is(tmp_path, monkeypatch):
    write(tmp_path, "val.en.gz", "A dog .")
    write(tmp_path, "val.de.gz", "Ein Hund .")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert load_multi30k("val").target == ["Ein Hund ."]


def test_a_folder_that_lacks_a_file_is_told_which_and_is_left_as_it_is(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected the file train.en or train.en.gz"):
        load_multi30k("train", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_sides_of_different_length_are_refused(tmp_path):
    write(tmp_path, "val.en.gz", "A dog .", "Two dogs .")
    write(tmp_path, "val.de.gz", "Ein Hund .")
    with pytest.raises(ValueError, match="val: expected as many lines in en as in de, got 2 and 1"):
        load_multi30k("val", folder=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [(("test",), "split"), (("val", "it"), "source"), (("val", "en", "it"), "target"), (("val", "de", "de"), "target")],
)
def test_an_unknown_split_or_language_is_named(arguments, field):
    with pytest.raises(ValueError, match=f"{field}: expected (one of|another)"):
        load_multi30k(*arguments)


@needs_multi30k
@pytest.mark.parametrize(("split", "lines"), [("train", 29_000), ("val", 1_014), ("test_2016_flickr", 1_000)])
def test_the_real_corpus_has_its_known_sizes(split, lines):
    for target in ("de", "fr"):
        sides = load_multi30k(split, "en", target)
        assert len(sides.source) == len(sides.target) == lines and all(sides.source) and all(sides.target)


def test_every_split_has_a_checksum_in_every_language():
    assert set(FILES) == {f"{split}.{language}.gz" for split in SPLITS for language in LANGUAGES}
    assert len({sha256 for _, sha256 in FILES.values()}) == len(FILES)


@needs_multi30k
def test_the_checksums_are_those_of_the_real_files():
    folder = Path(os.environ[FOLDER_VARIABLE])
    present = [name for name in FILES if (folder / name).is_file()]
    assert len(present) >= 9
    for name in present:
        content = (folder / name).read_bytes()
        assert FILES[name] == (len(content), hashlib.sha256(content).hexdigest()), name


def test_without_a_folder_the_two_files_come_from_a_mirror_and_only_once(mirror, capsys):
    first = load_multi30k("val", "de", "fr")
    assert load_multi30k("val", "de", "fr") == first and len(first.source) in (200, 1_014)
    assert [name for name, _ in mirror.requests] == ["val.de.gz", "val.fr.gz"]
    assert "val.de.gz  [####" in capsys.readouterr().err


def test_a_split_whose_connection_was_dropped_is_the_same_split(mirror):
    mirror.breaks_after = [1_000, 300]
    load_multi30k("test_2016_flickr")
    assert [start for _, start in mirror.requests] == [0, 1_000, 1_300, 0]


def test_a_corrupted_file_and_a_dead_network_are_told_in_one_line_with_the_way_out(mirror, monkeypatch):
    mirror.files["val.en.gz"] = b"?" + mirror.files["val.en.gz"][1:]
    with pytest.raises(DownloadError, match=r"val.en.gz: .* expected the SHA-256 .* --data-dir or MULTI30K_DIR"):
        load_multi30k("val")
    monkeypatch.setattr(multi30k, "MIRRORS", ("http://127.0.0.1:9/nobody",))
    with pytest.raises(DownloadError, match=r"Connection refused\. Where there is no network, .* --data-dir"):
        load_multi30k("val", "en", "fr")
