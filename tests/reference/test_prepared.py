"""A corpus on the disk gives the batches of one in memory, is prepared once, and anew only when something changed."""

import gzip
import itertools
import subprocess

import pytest
import torch

from transformer_ref.__main__ import main
from transformer_ref.config import TrainingConfig
from transformer_ref.data import prepared as module
from transformer_ref.data.parallel_text import ParallelFiles, find_parallel, load_parallel
from transformer_ref.data.prepared import Store, prepared, prepared_tokenizer
from transformer_ref.text.tokenizer import WordTokenizer
from transformer_ref.training.recipes import SMALL, SMALL_TRAINING, Recipe, Subwords
from transformer_ref.training.run import prepare

WORDS = ["uno", "due", "tre", "perche\u0301", "l'amico.", "窓"]
SIZES = dict(d_model=12, heads=2, encoder_layers=1, decoder_layers=1, d_ff=16)
RECIPE = Recipe(("en", "it"), "", Subwords(290), {**SMALL, **SIZES, "max_length": 20}, SMALL_TRAINING)
CONFIG = TrainingConfig(steps=2, tokens_per_batch=64, muon_rate=0.0)


def lines(count, shift):
    drawn = [" ".join(WORDS[(i * shift + k) % len(WORDS)] for k in range(i * shift % 7)) for i in range(count)]
    return [*drawn, "", "\u200b", " ".join(["uno"] * 40), "tre"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of a training run and a validation set, prepared in blocks of seven pairs."""
    monkeypatch.setattr(module, "BLOCK", 7)
    for split, count in (("train", 50), ("val", 8)):
        (tmp_path / f"{split}.en").write_text("\n".join(lines(count, 3)), encoding="utf-8")
        with gzip.open(tmp_path / f"{split}.it.gz", "wt", encoding="utf-8", newline="\r\n") as file:
            file.write("\n".join(lines(count, 5)) + "\n")
    return tmp_path


def both_runs(folder):
    """The run of a corpus in memory and that of the same on the disk."""
    for split_of in (load_parallel, find_parallel):
        splits = [split_of(folder, split, "en", "it") for split in ("train", "val")]
        store = Store(folder / "cache", workers=2)
        yield prepare("files", *splits, ("en", "it"), CONFIG, torch.device("cpu"), RECIPE, store=store)


def test_a_prepared_corpus_gives_exactly_the_batches_of_one_in_memory(folder):
    in_memory, on_disk = both_runs(folder)
    assert on_disk.source_tokenizer.to_json() == in_memory.source_tokenizer.to_json()
    assert on_disk.data == in_memory.data and in_memory.data["train"]["empty"] > 2 < in_memory.data["train"]["pairs"]
    assert in_memory.data["train"]["too_long"] == 1
    for ours, theirs in (
        (on_disk.training.stream, in_memory.training.stream),
        (on_disk.validation, in_memory.validation),
    ):
        assert ours.sha256 == theirs.sha256
        epochs = [itertools.islice(iter(stream), 40) for stream in (ours, theirs)]  # more than an epoch
        for one, other in [*zip(*epochs, strict=True), *zip(ours.one_epoch(), theirs.one_epoch(), strict=True)]:
            assert all(a.equal(b) for a, b in zip(one, other, strict=True))


def test_the_digest_of_many_sequences_is_that_of_one_after_another(folder, monkeypatch):
    monkeypatch.setattr(module, "ROWS", 5)
    in_memory, on_disk = both_runs(folder)
    assert on_disk.training.stream.sha256 == in_memory.training.stream.sha256


def test_what_is_prepared_is_not_prepared_again_until_the_text_or_the_tokenizer_changes(folder, monkeypatch):
    files, store = find_parallel(folder, "train", "en", "it"), Store(folder / "cache", workers=1)
    learn = Subwords(290)
    tokenizer = prepared_tokenizer(files, learn, store)
    first = prepared(files, [tokenizer] * 2, 19, store)
    started = []
    monkeypatch.setattr(module, "_prepare", lambda *given: started.append(given))

    def again(tokenizers, longest=19):
        try:
            return prepared(files, tokenizers, longest, store)
        except FileNotFoundError:  # nothing was written by the one above
            return None

    assert again([prepared_tokenizer(files, learn, store)] * 2).sha256 == first.sha256 and not started
    assert len(again([tokenizer] * 2, longest=3).sources) < len(first.sources) and not started
    assert again([tokenizer, WordTokenizer.build(["uno"])]) is None and len(started) == 1
    (folder / "train.en").write_text("\n".join([*lines(50, 3)[:-1], "due"]), encoding="utf-8")
    assert again([tokenizer] * 2) is None and len(started) == 2


def test_an_interrupted_preparation_goes_on_after_the_blocks_that_are_there(folder):
    files = find_parallel(folder, "train", "en", "it")
    tokenizers = [WordTokenizer.build(WORDS)] * 2
    seen = []
    whole = prepared(files, tokenizers, 19, Store(folder / "whole", workers=2, report=seen.append))
    assert sum(seen) == 54 and len(seen) == 8
    described = [tokenizer.to_json() for tokenizer in tokenizers]
    cache = folder / "cut"
    name = next(path.name for path in (folder / "whole").iterdir() if path.is_dir())
    parts = (cache / name).with_suffix(".7.parts")
    parts.mkdir(parents=True)
    for side, text in zip(module.SIDES, described, strict=True):
        (parts / f"{side}.json").write_text(text, encoding="utf-8")
    job = dict(files=list(map(str, files)), parts=str(parts), workers=3, worker=1, block=7)
    module._encode_blocks(job)  # one of three has done its share; the others were killed
    there = {path.name: path.stat().st_mtime_ns for path in parts.glob("*.block")}
    (parts / ".5.block-a1b2c3").write_bytes(b"half of a block")
    assert set(there) == {"1.block", "4.block", "7.block"}
    kept = {}
    join = module._join

    def look(parts, *rest):
        kept.update({path.name: path.stat().st_mtime_ns for path in parts.glob("*.block")})
        join(parts, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_join", look)
        again = prepared(files, tokenizers, 19, Store(cache, workers=2))
    assert len(kept) == 8 and all(kept[name] == time for name, time in there.items())
    assert again.sha256 == whole.sha256 and not list(cache.glob("*.parts"))


def test_a_run_that_prepares_the_same_at_the_same_time_and_is_done_first_leaves_its_result_to_the_other(
    folder, monkeypatch
):
    files = find_parallel(folder, "train", "en", "it")
    store, tokenizers = Store(folder / "cache", workers=2), [WordTokenizer.build(WORDS)] * 2
    start, first = subprocess.Popen, []

    def start_late(*arguments, **options):
        monkeypatch.setattr(subprocess, "Popen", start)
        first.append(prepared(files, tokenizers, 19, store))  # which removes the blocks at its end
        return start(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", start_late)
    assert prepared(files, tokenizers, 19, store).sha256 == first[0].sha256
    assert not list((folder / "cache").glob("*.parts")) and not list((folder / "cache").glob("*.joined"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"uno\ndue\n", "train: expected as many lines in en as in it, got 2 and 54"),
        (b"caf\xe9\n" * 54, "data: expected UTF-8 text, got .*train.en"),
    ],
)
def test_text_that_is_no_corpus_is_one_sentence(folder, content, words):
    (folder / "train.en").write_bytes(content)
    files = find_parallel(folder, "train", "en", "it")
    with pytest.raises(ValueError, match=words):
        prepared(files, [WordTokenizer.build(WORDS)] * 2, 19, Store(folder / "cache", workers=2))


def test_a_command_trains_from_a_cache_and_a_resumed_one_prepares_nothing(folder, monkeypatch, capsys):
    command = ["train", "--corpus", "files", "--data-dir", str(folder), "--source", "en", "--target", "it"]
    command += ["--d-model", "12", "--heads", "2", "--encoder-layers", "1", "--decoder-layers", "1", "--d-ff", "16"]
    command += ["--vocabulary", "290", "--device", "cpu", "--tokens-per-batch", "64", "--precision", "fp32"]
    command += ["--output", str(folder / "out")]
    assert main([*command, "--cache-dir", str(folder / "cache"), "--steps", "2"]) == 0
    assert "66 pairs prepared" in capsys.readouterr().err  # 54 to train on and 12 to validate on
    monkeypatch.setattr(subprocess, "Popen", None)  # no worker is started, and no text is read
    monkeypatch.setattr(ParallelFiles, "load", None)
    monkeypatch.setattr(ParallelFiles, "pairs", None)
    assert main([*command, "--cache-dir", str(folder / "cache"), "--steps", "3", "--resume"]) == 0
