"""The benchmark gives everyone the same work, keeps what was measured, and the book and README show a recorded copy."""

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from transformer_ref.__main__ import main
from transformer_ref.benchmark import (
    contest,
    decoding,
    instruction_sets,
    operations,
    recipes,
    record,
    result,
    run,
    sentences,
    tables,
    training,
)
from transformer_ref.benchmark.contest import OURS, Contender, Row, rows_of
from transformer_ref.config import ModelConfig
from transformer_ref.data.parallel_text import Parallel
from transformer_ref.training.optimizer import HAS_MUON
from transformer_ref.training.recipes import RECIPES, load_split

CPU = torch.device("cpu")
ROOT = Path(__file__).parents[2]
PAGE, README = ROOT / "book" / "measured.md", ROOT / "README.md"
needs_muon = pytest.mark.skipif(not HAS_MUON, reason="Muon came with torch 2.9")


@pytest.fixture
def small(monkeypatch):
    """Make everything small enough for a few seconds."""
    monkeypatch.setattr(run, "SIZES", {"d256": dict(d_model=16, heads=2, encoder_layers=1, decoder_layers=1, d_ff=32)})
    monkeypatch.setattr(operations, "MEASURED_BATCHES", 2)
    monkeypatch.setattr(contest, "PAUSE", 0.0)
    monkeypatch.setattr(run, "VOCABULARY", 1_500)
    monkeypatch.setattr(training, "CPU_TOKENS", 128)
    monkeypatch.setattr(sentences, "SENTENCES", 40)
    monkeypatch.setattr(decoding, "SENTENCES", 6)
    monkeypatch.setattr(decoding, "BATCH_SIZE", 4)
    monkeypatch.setattr(decoding, "NAIVE_SENTENCES", 2)
    monkeypatch.setattr(recipes, "STEPS", {"grammar": 2, "multi30k": 1})
    monkeypatch.setattr(recipes, "load_split", _few_lines)


def _few_lines(corpus: str, split: str, source: str, target: str) -> Parallel:
    lines = load_split(corpus, "validation", source, target)
    return Parallel(lines.source[:60], lines.target[:60])


def _described(instruction_set: str, device: str = "a machine") -> dict:
    return {"device": device, "instruction_set": instruction_set, "threads": 2, "torch": "2"}


def test_every_peer_is_measured_at_every_work_and_the_result_is_written(small, tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("ctranslate2")
    for work in ("training", "greedy", "beam"):
        run.measure(tmp_path, CPU, run.Piece("AVX2", work, "d256"), repeats=1, say=lambda words: None)
    (entry,) = result.read(tmp_path / run.RESULT_FILE)
    assert entry["machine"] == result.machine(CPU, "AVX2")
    assert all(list(row) == list(Row._fields) and row["speed"] > 0 for row in entry["rows"])
    named = {
        work: {row["name"] for row in entry["rows"] if row["work"] == work and row["precision"] == "fp32"}
        for work in ("training", "greedy", "beam")
    }
    installed = {"x-transformers"} if training.find_spec("x_transformers") else set()
    assert named["training"] == {OURS, "torch.nn.Transformer", "Hugging Face Marian"} | installed
    assert named["greedy"] == {OURS, "naive", "Hugging Face Marian", "CTranslate2"}
    assert named["beam"] == named["greedy"] - {"naive"}
    assert {row["work"] for row in entry["rows"] if row["precision"] == "int8"} == {"greedy", "beam"}
    for row in entry["rows"]:
        assert (row["share_of_peak"] is not None) == (row["work"] == "training" and row["name"] == OURS)


@needs_muon
@pytest.mark.parametrize(
    "corpus", ["grammar", pytest.param("multi30k", marks=pytest.mark.xdist_group("larger-recipe"))]
)
def test_a_recipe_is_measured_as_train_runs_it(small, tmp_path, monkeypatch, corpus):
    trained = []
    fit = recipes.fit
    monkeypatch.setattr(recipes, "fit", lambda training, on_step: (trained.append(training), fit(training, on_step)))
    monkeypatch.setattr(recipes, "VOCABULARY", 300)
    (row,) = run.measure(tmp_path, CPU, run.Piece("AVX2", "recipe", corpus), repeats=2, say=lambda words: None)
    assert row.speed > 0 and (row.share_of_peak or 0) > 0 and row.precision in ("fp32", "bf16")
    once = trained[0]
    assert all(each is once for each in trained) and once.step == 1 + 2 * (1 + recipes.STEPS[corpus])
    assert [each for each in once.optimizer.optimizers if isinstance(each, torch.optim.Muon)]
    assert (once.average is not None) == bool(RECIPES[corpus].training.ema_decay)
    asked, as_trained = RECIPES[corpus].training.to_dict(), once.config.to_dict()
    assert {name for name in asked if asked[name] != as_trained[name]} <= {"precision", "muon_precision"}


def test_the_operations_of_a_token_are_about_six_for_each_weight_it_meets():
    config = run.model_config("d256")
    weights = 3 * (4 * 256**2 + 2 * 256 * 1_024) + 3 * (8 * 256**2 + 2 * 256 * 1_024) + 8_000 * 256
    # attention's own products are 4 % on top; sources are 7 % shorter than targets, so fewer tokens meet the encoder
    batches = iter(sentences.invented_stream(8_000, 4_096))
    assert operations.operations_per_token(config, batches) == pytest.approx(6 * weights, rel=0.05)


def test_operations_of_a_step_are_shared_among_its_tokens():
    config = ModelConfig(50, 50, d_model=8, heads=2, encoder_layers=1, decoder_layers=1, d_ff=16)
    alone, with_step = (
        operations.operations_per_token(config, iter(sentences.invented_stream(50, 256)), per_step)
        for per_step in (0, 1e6)
    )
    batches = itertools.islice(sentences.invented_stream(50, 256), operations.MEASURED_BATCHES)
    tokens = sum(int((batch.target_labels != 0).sum()) for batch in batches)
    assert with_step - alone == pytest.approx(1e6 * operations.MEASURED_BATCHES / tokens)


def test_everyone_trains_on_the_same_batches():
    one, other = (iter(sentences.invented_stream(50, 512)) for _ in range(2))
    for _ in range(3):
        assert all(a.equal(b) for a, b in zip(next(one), next(other), strict=True))


@pytest.mark.parametrize("beam", [1, 3])
def test_every_decoder_writes_the_same_number_of_tokens_and_in_fp32_the_same_tokens(small, tmp_path, beam):
    pytest.importorskip("ctranslate2")
    pytest.importorskip("transformers")
    config = run.model_config("d256")
    model, batches = decoding.endless_model(config, CPU), decoding.sentence_batches(config)
    special = range(len(decoding.SPECIAL_TOKENS))
    expected = {}
    for decoder in decoding.decoders(model, beam, tmp_path, ["fp32", "bf16"]):
        with decoder.around():
            for number, batch in enumerate(batches):
                found = decoder.decode(batch)
                assert [len(ids) for ids in found] == [batch.length] * len(batch.sources), decoder.name
                assert not any(id in special for ids in found for id in ids), decoder.name
                if decoder.precision == "fp32":
                    assert expected.setdefault(number, found) == found, decoder.name


def test_a_batch_is_decoded_to_its_longest_reference():
    config = run.model_config("d256")
    batches = decoding.sentence_batches(config)
    assert sum(len(batch.sources) for batch in batches) == decoding.SENTENCES
    longest = [len(source) for batch in batches for source in batch.sources]
    assert longest == sorted(longest, reverse=True) and all(ids[-1] == config.eos for ids in batches[0].sources)
    assert [batch.length for batch in batches] == [len(batch.sources[0]) + 1 for batch in batches]


def test_contenders_take_turns_after_a_warm_up_and_the_median_round_counts(monkeypatch):
    monkeypatch.setattr(contest, "PAUSE", 0.0)
    clock, turns = iter(itertools.count()), []
    monkeypatch.setattr(contest.time, "perf_counter", lambda: next(clock))  # every turn takes one second

    def contender(name: str, amounts: list[int]) -> Contender:
        left = iter(amounts)

        def work() -> int:
            turns.append(name)
            return next(left)

        return Contender(name, "fp32", work, first=lambda: turns.append(f"first {name}"))

    speeds = contest.contest([contender("a", [1, 9, 2]), contender("b", [5, 4, 3])], 3, lambda words: None)
    assert speeds == [2, 4]
    assert turns == ["first a", "first b"] + ["first a", "a", "first b", "b"] * 3


def test_only_our_rows_have_a_share_of_peak():
    contenders = [Contender(OURS, "fp32", int), Contender("peer", "fp32", int)]
    rows = rows_of("training", "d256", contenders, [10.0, 5.0], lambda precision, speed: speed / 100)
    assert [row.share_of_peak for row in rows] == [0.1, None]


def test_avx2_is_measured_where_the_processor_can_do_more(monkeypatch, tmp_path):
    monkeypatch.setattr(instruction_sets, "CPU_INFO", tmp_path / "cpuinfo")
    for capability, flags, names in (
        ("AVX512", "avx512f avx512_bf16", ["AVX2", "AVX512-bf16"]),
        ("AVX512", "avx512f", ["AVX2", "AVX512"]),
        ("AVX2", "avx512f avx512_bf16", ["AVX2"]),  # limited by the environment already
        ("DEFAULT", "asimd", ["DEFAULT"]),
    ):
        (tmp_path / "cpuinfo").write_text(flags)
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda name=capability: name)
        assert [each.name for each in instruction_sets.instruction_sets(CPU)] == names
        assert not instruction_sets.instruction_sets(CPU)[-1].environment  # the machine's own


@pytest.mark.skipif(not torch.backends.cpu.get_cpu_capability().startswith("AVX"), reason="needs an x86 processor")
def test_a_process_with_its_environment_is_limited_to_avx2():
    code = "from transformer_ref.benchmark.instruction_sets import *; print(own_name(torch.device('cpu')))"
    environment = {**os.environ, **instruction_sets.AVX2.environment}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "AVX2\n"


@pytest.fixture
def two_sets(monkeypatch):
    """Let there be two instruction sets, and a fast import."""
    sets = [instruction_sets.InstructionSet("AVX2", {"LIMIT": "avx2"}), instruction_sets.InstructionSet("own", {})]
    monkeypatch.setattr(run, "instruction_sets", lambda device: sets)
    monkeypatch.setattr(run, "import_milliseconds", lambda: 1.0)


def _stub(measured: list, fails: str = ""):
    """Return a stand-in for measuring a piece: it adds a row or fails."""

    def measure_piece(piece, environment, output, device, repeats) -> int:
        measured.append((piece, dict(environment)))
        if str(piece) == fails:
            return 1
        row = Row(piece.work, piece.config, OURS, "fp32", 1.0)
        result.add(output / run.RESULT_FILE, result.machine(device, piece.instruction_set), [row])
        return 0

    return measure_piece


def test_a_run_measures_every_piece_in_its_environment_and_goes_on_where_it_was(two_sets, tmp_path):
    measured, said = [], []
    pieces = run.planned(result.WORKS, ["AVX2", "own"])
    with pytest.raises(run.BenchmarkError, match=r"got no result of AVX2, training d128;"):
        run.benchmark(tmp_path, CPU, say=said.append, measure_piece=_stub(measured, "AVX2, training d128"))
    assert [piece for piece, _ in measured] == pieces  # a failure does not keep the others from being measured
    assert all(environment == ({"LIMIT": "avx2"} if piece[0] == "AVX2" else {}) for piece, environment in measured)
    measured.clear()
    run.benchmark(tmp_path, CPU, say=said.append, measure_piece=_stub(measured))
    assert [str(piece) for piece, _ in measured] == ["AVX2, training d128"]
    measured.clear()
    run.benchmark(tmp_path, CPU, ["greedy"], only=["own"], again=True, say=said.append, measure_piece=_stub(measured))
    assert [str(piece) for piece, _ in measured] == ["own, greedy d256"]
    measured.clear()
    run.benchmark(tmp_path, CPU, configs=["d128"], again=True, say=lambda words: None, measure_piece=_stub(measured))
    assert [str(piece) for piece, _ in measured] == ["AVX2, training d128", "own, training d128"]
    assert sum("measured before" in line for line in said) == len(pieces) - 1


def test_each_piece_is_announced_with_the_time_left(two_sets, tmp_path):
    said = []
    run.benchmark(tmp_path, CPU, ["beam"], only=["own"], say=lambda words: None, measure_piece=_stub([]))
    run.benchmark(tmp_path, CPU, ["greedy", "beam"], say=said.append, measure_piece=_stub([]))
    lines = [line for line in said if line.startswith("[")]
    assert lines[0] == "[1/4] AVX2, greedy d256 (about 4 minutes left)"  # 250 s: the last one is measured already
    assert re.fullmatch(r"\[3/4\] own, greedy d256 \(about \d+ seconds left\)", lines[2])  # the stub is faster
    assert lines[3] == "[4/4] own, beam d256: measured before; --again measures it anew"


def test_a_process_of_the_benchmark_measures_the_piece_that_it_was_started_for(small, two_sets, tmp_path, monkeypatch):
    started = []

    def in_this_process(command: list[str], env: dict[str, str]) -> SimpleNamespace:
        started.append(env)
        assert command[:3] == [sys.executable, "-m", "transformer_ref"]
        return SimpleNamespace(returncode=main(command[3:]))

    monkeypatch.setattr(run.subprocess, "run", in_this_process)
    run.benchmark(tmp_path, CPU, ["greedy"], only=["AVX2"], repeats=1, say=lambda words: None)
    assert [env.get("LIMIT") for env in started] == ["avx2"] and started[0]["PATH"] == os.environ["PATH"]
    assert run.is_measured(tmp_path, CPU, run.Piece("AVX2", "greedy", "d256"))


def test_rows_of_other_code_or_another_machine_are_measured_again(two_sets, tmp_path, monkeypatch):
    measured = []
    run.benchmark(tmp_path, CPU, ["greedy"], only=["own"], say=lambda words: None, measure_piece=_stub(measured))
    monkeypatch.setattr(result, "code_digest", lambda: "changed")
    run.benchmark(tmp_path, CPU, ["greedy"], only=["own"], say=lambda words: None, measure_piece=_stub(measured))
    assert len(measured) == 2


def test_an_instruction_set_that_is_not_here_is_refused_with_those_that_are(two_sets, tmp_path):
    with pytest.raises(ValueError, match="instruction_set: expected one of AVX2, own, got AVX-512"):
        run.benchmark(tmp_path, CPU, only=["AVX-512"], say=lambda words: None)


def test_a_work_and_a_model_that_do_not_go_together_are_refused(two_sets, tmp_path):
    with pytest.raises(ValueError, match="config: expected one of training d256, .*, got greedy with grammar"):
        run.benchmark(tmp_path, CPU, ["greedy"], ["grammar"], say=lambda words: None)


def test_new_rows_replace_those_of_their_work_and_model_on_their_machine(tmp_path):
    path, avx2 = tmp_path / "benchmark.json", _described("AVX2")
    training_row, greedy_row = Row("training", "d256", OURS, "fp32", 1.0), Row("greedy", "d256", OURS, "fp32", 2.0)
    result.add(path, avx2, [greedy_row])
    result.add(path, avx2, [training_row])
    result.add(path, _described("AVX512"), [training_row])
    result.add(path, avx2, [training_row._replace(speed=3.0)])
    speeds = {
        entry["machine"]["instruction_set"]: [row["speed"] for row in entry["rows"]] for entry in result.read(path)
    }
    assert speeds == {"AVX2": [3.0, 2.0], "AVX512": [1.0]}
    result.add(path, {**avx2, "threads": 4}, [greedy_row])  # the machine's older rows are no longer comparable
    assert [len(entry["rows"]) for entry in result.read(path)] == [1, 1]


def test_a_file_in_another_format_is_refused(tmp_path):
    (tmp_path / "benchmark.json").write_text(json.dumps({"machine": {}, "rows": []}))
    with pytest.raises(ValueError, match=r"benchmark\.json: expected a result of this version"):
        result.read(tmp_path / "benchmark.json")


def _two_machines(path: Path) -> None:
    for name, ours, peer in (("AVX2", 300.0, 400.0), ("AVX512", 450.0, 300.0)):
        rows = [
            Row("greedy", "d256", OURS, "fp32", ours),
            Row("greedy", "d256", "CTranslate2", "fp32", peer),
            Row("greedy", "d256", "CTranslate2", "int8", 600.0),
        ]
        result.add(path, _described(name), rows)
    row = Row("greedy", "d256", OURS, "bf16", 900.0)
    result.add(path, _described("AVX512"), [*rows, row, Row("recipe", "grammar", OURS, "bf16", 5_000.0, 0.4)])


def test_a_table_shows_machines_side_by_side(tmp_path):
    _two_machines(tmp_path / "benchmark.json")
    full = tables.full_table(result.read(tmp_path / "benchmark.json"))
    assert "| greedy decoding, d256: sentences a second | AVX2 | AVX512 |" in full
    for line in (
        "| transformer_ref, fp32 | **300** | **450** |",
        "| transformer_ref, bf16 | – | **900** |",
        "| CTranslate2, fp32 | 400 (0.75) | 300 (1.50) |",
        "| CTranslate2, int8 | 600 (0.50) | 600 (1.50) |",  # ours has no int8 here: its fastest
        "| transformer_ref, bf16 | – | **5,000**, 40% |",
    ):
        assert line in full.splitlines()


def test_the_short_table_has_ratios_only(tmp_path):
    _two_machines(tmp_path / "benchmark.json")
    short = tables.short_table(result.read(tmp_path / "benchmark.json"))
    assert "| greedy, fp32: CTranslate2 | 0.75 | 1.50 |" in short.splitlines()
    assert "| beam 5, fastest: CTranslate2 | – | – |" in short.splitlines()
    shown = [line for line in short.splitlines() if line.startswith("| ")]
    assert len(shown) == 1 + len(tables.IN_SHORT) <= 9


def test_recording_replaces_the_same_machine_and_writes_the_tables_into_the_pages(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RECORDED", tmp_path / "recorded.json")
    found, page, readme = (tmp_path / name for name in ("benchmark.json", "measured.md", "README.md"))
    for speed, machine in ((7.0, _described("AVX2")), (8.0, _described("AVX2", "an old laptop"))):
        result.add(record.RECORDED, machine, [Row("beam", "d256", OURS, "fp32", speed)])
    _two_machines(found)
    readme.write_text(f"{record.SHORT_BEGIN}\nold\n{record.SHORT_END}\n")
    page.write_text(f"before\n{record.BEGIN}\nold\n{record.END}\nafter\n")
    record.record(found, page, readme)
    kept = {result.place_of(entry): entry["rows"] for entry in result.read(record.RECORDED)}
    assert set(kept) == {("an old laptop", "AVX2"), ("a machine", "AVX2"), ("a machine", "AVX512")}
    assert all(row["work"] != "beam" for row in kept["a machine", "AVX2"])
    text = page.read_text()
    assert "| CTranslate2, fp32 | 400 (0.75) | – | 300 (1.50) |" in text and "an old laptop" in text
    assert text.startswith("before\n") and text.endswith("after\n") and "old\n" not in text
    assert "| greedy, fp32: CTranslate2 | 0.75 |" in readme.read_text() and "\nold\n" not in readme.read_text()


def test_recording_without_a_result_or_without_marks_says_what_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="run the benchmark first"):
        record.record(tmp_path / "benchmark.json", PAGE, README)
    result.write(tmp_path / "benchmark.json", [])
    (tmp_path / "page.md").write_text("no marks")
    for name, pages in (("page", (tmp_path / "page.md", README)), ("readme", (PAGE, tmp_path / "page.md"))):
        with pytest.raises(ValueError, match=f"{name}: expected the marks"):
            record.record(tmp_path / "benchmark.json", *pages)


@pytest.mark.parametrize(("file", "row"), [(PAGE, "| training with AdamW, d256: "), (README, "| training, fp32: ")])
def test_the_book_and_readme_show_the_recorded_benchmark(file, row):
    page = file.read_text(encoding="utf-8")
    assert row in page and record.with_table(page) == page


def test_the_recorded_result_has_all_rows_that_readme_compares():
    for entry in result.read(record.RECORDED):
        for each in tables.IN_SHORT:
            names = {row["name"] for row in entry["rows"] if (row["work"], row["config"]) == (each.work, each.config)}
            assert {OURS, each.peer} <= names
