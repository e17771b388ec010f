"""The benchmark measures everyone on the same work, writes what it says it writes, and README shows a recorded copy."""

import json
import re
from pathlib import Path

import pytest
import torch

from transformer_ref.benchmark import contest, decoding, record, run, training
from transformer_ref.benchmark.contest import OURS, Contender, rows_of
from transformer_ref.config import TrainingConfig
from transformer_ref.data.grammar import build_corpus

CPU = torch.device("cpu")
PEERS = {"torch.nn.Transformer", "Hugging Face Marian", "x-transformers"}
ROOT = Path(__file__).parents[2]
PAGE, README = ROOT / "book" / "measured.md", ROOT / "README.md"
FIELDS = ["work", "config", "precision", "peer", "ours", "theirs", "ratio", "share_of_peak"]


@pytest.fixture
def small(monkeypatch):
    """Make everything small enough for a few seconds."""
    monkeypatch.setattr(run, "SIZES", {"d16": dict(d_model=16, heads=2, encoder_layers=1, decoder_layers=1, d_ff=32)})
    monkeypatch.setattr(run, "MEASURED_BATCHES", 2)
    monkeypatch.setattr(contest, "PAUSE", 0.0)
    monkeypatch.setattr(run, "VOCABULARY", 1_500)
    monkeypatch.setattr(training, "TOKENS_PER_BATCH", 128)
    monkeypatch.setattr(training, "SENTENCES", 40)
    monkeypatch.setattr(decoding, "SENTENCES", 6)
    monkeypatch.setattr(decoding, "EXTRA_LENGTH", 4)
    monkeypatch.setattr(decoding, "BATCH_SIZE", 4)
    monkeypatch.setattr(decoding, "NAIVE_SENTENCES", 2)
    monkeypatch.setattr(decoding, "TALKER", TrainingConfig(steps=2, tokens_per_batch=256))
    monkeypatch.setattr(decoding, "build_corpus", lambda: build_corpus(train=300, validation=4, test=4, held_out=2))


def test_every_peer_is_measured_at_every_work_and_the_result_is_written(small, tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("ctranslate2")
    said = []
    rows = run.benchmark(tmp_path, CPU, sizes=["d16"], repeats=1, say=said.append)
    content = json.loads((tmp_path / record.RESULT_FILE).read_text())
    assert sorted(content) == ["machine", "rows"] and {"device", "threads", "torch"} <= set(content["machine"])
    assert len(content["rows"]) == len(rows) and all(list(row) == FIELDS for row in content["rows"])
    of = {
        work: {row["peer"] for row in content["rows"] if row["work"] == work and row["precision"] == "fp32"}
        for work in record.WORKS
    }
    installed = {"x-transformers"} if training.find_spec("x_transformers") else set()
    assert of["training"] == (PEERS - {"x-transformers"}) | installed
    assert of["greedy"] == {"naive", "Hugging Face Marian", "CTranslate2", "CTranslate2 int8"}
    assert of["beam"] == of["greedy"] - {"naive"}
    for row in content["rows"]:
        assert row["ours"] > 0 and row["theirs"] > 0
        assert row["ratio"] == pytest.approx(row["ours"] / row["theirs"], rel=0.2)  # all are rounded
        assert (row["share_of_peak"] is not None) == (row["work"] == "training")


def test_a_part_measured_anew_leaves_the_other_parts(tmp_path):
    path, described = tmp_path / "benchmark.json", {"device": "one"}
    one, two, three = (
        contest.Row(work, "d256", "fp32", "peer", ours, 1.0, ours, None)
        for work, ours in (("training", 1.0), ("greedy", 2.0), ("training", 3.0))
    )
    for rows in ([one, two], [three]):
        record.write(path, described, rows)
    assert [row["ours"] for row in json.loads(path.read_text())["rows"]] == [2.0, 3.0]
    record.write(path, {"device": "another"}, [one])
    assert [row["ours"] for row in json.loads(path.read_text())["rows"]] == [1.0]


def test_contenders_take_turns_and_the_median_round_counts(monkeypatch):
    monkeypatch.setattr(contest, "PAUSE", 0.0)
    turns = []

    def contender(name: str, amounts: list[int]) -> Contender:
        left = iter(amounts)

        def work() -> int:
            turns.append(name)
            return next(left)

        return Contender(name, "fp32", work)

    contest.contest([contender("a", [1] * 4), contender("b", [1] * 4)], 3, lambda words: None)
    assert turns == ["a", "b"] * 4


def test_beside_fp32_stands_no_peer_in_bf16_and_beside_bf16_stand_all():
    contenders = [
        Contender(OURS, "fp32", int),
        Contender(OURS, "bf16", int),
        Contender("peer", "fp32", int),
        Contender("peer, autocast", "bf16", int),
        Contender("8 bits", "int8", int),
    ]
    rows = rows_of("greedy", "d256", contenders, [10.0, 30.0, 5.0, 6.0, 40.0], lambda precision, speed: None)
    assert [(row.precision, row.peer, row.theirs) for row in rows] == [
        ("fp32", "peer", 5.0),
        ("fp32", "8 bits", 40.0),
        ("bf16", "peer", 5.0),
        ("bf16", "peer, autocast", 6.0),
        ("bf16", "8 bits", 40.0),
    ]
    assert rows[0].ratio == 2.0 and rows[-1].ratio == 0.75


def test_everyone_trains_on_the_same_batches():
    one, other = (training.invented_batches(50) for _ in range(2))
    for _ in range(3):
        assert all(a.equal(b) for a, b in zip(next(one), next(other), strict=True))


def test_the_operations_of_a_token_are_about_six_for_each_weight_it_meets():
    config = run.model_config("d256")
    weights = 3 * (4 * 256**2 + 2 * 256 * 1_024) + 3 * (8 * 256**2 + 2 * 256 * 1_024) + 8_000 * 256
    # attention's own products are 4 % on top; sources are 7 % shorter than targets, so fewer tokens meet the encoder
    assert run.operations_per_token(config) == pytest.approx(6 * weights, rel=0.05)


def test_greedy_translations_are_the_same_in_every_library(small, tmp_path):
    ctranslate2, transformers = (pytest.importorskip(name) for name in ("ctranslate2", "transformers"))
    config = run.model_config("d16")
    model = decoding.talker(config, tmp_path, CPU, lambda words: None)
    sentences = decoding.sources(config)
    special = {config.pad, config.bos, config.eos}
    ours = [[id for id in ids if id not in special] for ids in decoding.translate(model, sentences, 1)]
    decoding.decoding_contenders(model, sentences, 1, tmp_path, ["fp32"])  # leaves their models
    translator = ctranslate2.Translator(str(tmp_path / "CTranslate2"), intra_threads=1)
    marian = transformers.MarianMTModel.from_pretrained(tmp_path / "marian").eval()
    for sentence, words in zip(sentences, ours, strict=True):
        length = max(map(len, ours))
        (found,) = translator.translate_batch([[str(id) for id in sentence]], beam_size=1, max_decoding_length=length)
        generated = marian.generate(torch.tensor([sentence]), num_beams=1, do_sample=False, max_new_tokens=length)
        for theirs in (map(int, found.hypotheses[0]), generated[0].tolist()):  # an endless one is cut at its own place
            assert [id for id in theirs if id not in special][: len(words)] == words


def test_a_trained_talker_is_trained_once(small, tmp_path):
    said = []
    first, second = (decoding.talker(run.model_config("d16"), tmp_path, CPU, said.append) for _ in range(2))
    assert len(said) == 1
    assert all(a.equal(b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_recording_writes_the_table_into_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RECORDED", tmp_path / "recorded.json")
    result, page, readme = (tmp_path / name for name in ("benchmark.json", "measured.md", "README.md"))
    row = contest.Row("greedy", "d256", "bf16", "naive", 400.0, 18.0, 22.22, None)
    shown = contest.Row("greedy", "d256", "fp32", "CTranslate2", 300.0, 301.0, 0.99, None)
    record.write(result, {"device": "a small machine", "threads": 2, "torch": "2"}, [row, shown])
    readme.write_text(f"{record.SHORT_BEGIN}\nold\n{record.SHORT_END}\n")
    page.write_text(f"before\n{record.BEGIN}\nold\n{record.END}\nafter\n")
    record.record(result, page, readme)
    text = page.read_text()
    assert "| CTranslate2 | 300 | 301 | 0.99 |" in readme.read_text()
    assert "naive" not in readme.read_text() and "old" not in readme.read_text()
    assert "| greedy | d256 | bf16 | naive | 400 | 18 | 22.22 |  |" in text and "a small machine" in text
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert (tmp_path / "recorded.json").read_text() == result.read_text()


def test_recording_without_a_result_or_without_marks_says_what_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="run the benchmark first"):
        record.record(tmp_path / "benchmark.json", PAGE, README)
    record.write(tmp_path / "benchmark.json", {"device": "x", "threads": 1, "torch": "2"}, [])
    (tmp_path / "page.md").write_text("no marks")
    for name, pages in (("page", (tmp_path / "page.md", README)), ("readme", (PAGE, tmp_path / "page.md"))):
        with pytest.raises(ValueError, match=f"{name}: expected the marks"):
            record.record(tmp_path / "benchmark.json", *pages)


@pytest.mark.parametrize("file", [PAGE, README])
def test_the_book_and_readme_show_the_recorded_benchmark(file):
    page = file.read_text(encoding="utf-8")
    assert "benchmark" in page and "| training | d256 |" in page and record.with_table(page) == page


def test_readme_shows_all_its_rows_and_no_more_than_eight():
    shown = README.read_text(encoding="utf-8").split(record.SHORT_BEGIN)[1].split(record.SHORT_END)[0]
    assert len(re.findall(r"^\| (?:training|greedy|beam) ", shown, flags=re.MULTILINE)) == len(record.IN_SHORT) <= 8
