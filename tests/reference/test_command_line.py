"""The three commands: what they leave, what they print, and one clear line when something is wrong."""

import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open

from transformer_ref import checkpoint as checkpoint_module
from transformer_ref import machine
from transformer_ref.__main__ import main
from transformer_ref.checkpoint import MODEL_FILE, load_checkpoint, save_checkpoint
from transformer_ref.text.line_reader import chunks_of_lines
from transformer_ref.training import recipes, run
from transformer_ref.training.gradients import DivergedError, TrainingError
from transformer_ref.training.recipes import RECIPES
from transformer_ref.training.resume import TRAINING_FILE
from transformer_ref.training.run_card import CARD_FILE, CURVES_FILE, PAGE_FILE, add_scores
from transformer_ref.training.trainer import Progress
from transformer_ref.translate import Translation


@pytest.fixture(autouse=True)
def small_corpus(monkeypatch):
    """Make the built-in corpus small, so that a training run takes a second."""
    build = recipes.build_corpus
    monkeypatch.setattr(recipes, "build_corpus", lambda: build(train=300, validation=20, test=12, held_out=8))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """Return a folder that `train` left after three steps."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        build = recipes.build_corpus
        patch.setattr(recipes, "build_corpus", lambda: build(train=300, validation=20, test=12, held_out=8))
        assert main(["train", "--steps", "3", "--output", str(folder), "--device", "cpu"]) == 0
    return folder


def test_training_leaves_a_model_and_what_resuming_needs(checkpoint):
    left = {path.name for path in checkpoint.iterdir()} - {"tensorboard"}  # for those who have it installed
    assert left == {MODEL_FILE, TRAINING_FILE, CARD_FILE, PAGE_FILE, CURVES_FILE}


def test_training_shows_step_loss_speed_and_time_left_on_stderr_and_nothing_on_stdout(tmp_path, capsys):
    assert main(["train", "--steps", "2", "--output", str(tmp_path), "--device", "cpu"]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.search(r"step 2 \(100%\)  loss \d\.\d{3}  [\d,]+ tokens/s  0:00 left", shown.err)
    assert "?" not in shown.err and "step 1 " not in shown.err  # its speed is measured from the second step on
    assert "validation loss" in shown.err and "done after 2 steps" in shown.err
    assert re.search(r"cost: 2 steps are \d\.\de\+\d+ operations, about \d+ seconds at 60% of the", shown.err)


def test_resuming_goes_on_after_the_saved_step(checkpoint, tmp_path, capsys):
    assert main(["train", "--steps", "2", "--output", str(tmp_path), "--device", "cpu"]) == 0
    assert main(["train", "--steps", "5", "--output", str(tmp_path), "--device", "cpu", "--resume"]) == 0
    shown = capsys.readouterr().err.split("done after 2 steps")[1]
    assert re.findall(r"step (\d+) \(", shown) == ["4", "5"]  # a speed is measured from the second step here on
    assert "cost: 3 steps are" in shown


@pytest.mark.parametrize("command", [["train"], ["export", "--format", "marian"], ["benchmark"]])
def test_an_output_that_is_a_file_is_said_before_any_work(command, checkpoint, tmp_path, capsys):
    taken = tmp_path / "taken"
    taken.write_text("mine", encoding="utf-8")
    source = ["--checkpoint", str(checkpoint)] if command[0] == "export" else []
    assert main([*command, *source, "--output", str(taken), "--device", "cpu"]) == 2
    assert capsys.readouterr().err == (
        f"transformer_ref: output: expected a folder to write into, got {taken} (Not a directory)\n"
    )
    assert taken.read_text(encoding="utf-8") == "mine"


def test_a_disk_with_room_for_the_model_alone_keeps_the_model_and_is_one_line_and_status_two(
    tmp_path, capsys, monkeypatch
):
    save, message = checkpoint_module.save_file, "I/O error: No space left on device (os error 28)"

    def save_or_fail(tensors, path, metadata):
        if any(name.startswith("optimizer.") for name in tensors):
            path.write_bytes(b"half of it")
            raise SafetensorError(message)
        save(tensors, path, metadata=metadata)

    monkeypatch.setattr(checkpoint_module, "save_file", save_or_fail)
    assert main(["train", "--steps", "2", "--output", str(tmp_path), "--device", "cpu"]) == 2
    shown = capsys.readouterr().err.splitlines()[-1]
    assert shown == f"transformer_ref: checkpoint: expected to write {tmp_path / TRAINING_FILE}, got: {message}"
    assert load_checkpoint(tmp_path).notes["step"] == 2
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [MODEL_FILE]


def test_control_c_saves_and_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def pressed(training, on_step):
        training.step = 1
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "fit", pressed)
    assert main(["train", "--output", str(tmp_path), "--device", "cpu"]) == 130
    assert "--resume goes on from there" in capsys.readouterr().err
    assert (tmp_path / TRAINING_FILE).is_file() and (tmp_path / MODEL_FILE).is_file()


def test_a_training_that_fails_saves_and_says_where(tmp_path, capsys, monkeypatch):
    def failing(training, on_step):
        training.step = 3
        raise TrainingError("loss: expected a finite number, got nan")

    monkeypatch.setattr(run, "fit", failing)
    assert main(["train", "--output", str(tmp_path), "--device", "cpu"]) == 2
    assert f"got nan. Saved in {tmp_path} after 3 steps" in capsys.readouterr().err
    assert (tmp_path / TRAINING_FILE).is_file() and (tmp_path / MODEL_FILE).is_file()


@pytest.mark.parametrize("saves", [0, 1])
def test_a_training_that_diverges_keeps_the_last_saved_state_and_names_the_way_on(saves, tmp_path, capsys, monkeypatch):
    def diverging(training, on_step):
        training.step, training.seconds = 3, 200.0
        if saves:
            on_step(Progress(3, 0.0, 1.0, 1, 200.0))
        training.step = 4
        raise DivergedError("loss: expected a finite number, got nan")

    command = ["train", "--output", str(tmp_path), "--device", "cpu", "--steps", "9"]
    with monkeypatch.context() as patch:
        patch.setattr(run, "fit", diverging)
        assert main(command) == 2
    shown = capsys.readouterr().err.splitlines()[-1]
    if not saves:
        assert shown.endswith(
            "got nan. Nothing was saved yet; start again with a smaller --learning-rate, --muon-rate or --max-grad-norm"
        )
        assert not (tmp_path / TRAINING_FILE).exists() and not (tmp_path / MODEL_FILE).exists()
        return
    assert f"got nan. {tmp_path} holds the state after 3 steps; go on from there with --resume and a smaller" in shown
    assert main([*command, "--resume", "--muon-rate", "0"]) == 2
    assert "muon_rate: expected 0.0, got 0.012" in capsys.readouterr().err
    assert main([*command, "--resume", "--learning-rate", "1e-3", "--max-grad-norm", "0.5", "--steps", "4"]) == 0
    shown = capsys.readouterr().err
    assert "learning_rate is 0.001 from here on, after " in shown
    assert "max_grad_norm is 0.5 from here on, after 10 until now" in shown and "muon_rate" not in shown
    assert load_checkpoint(tmp_path).notes["step"] == 4


@pytest.fixture
def text_files(tmp_path):
    """Return a folder with a corpus of text files, with some unusable lines."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for split, count in (("train", 40), ("val", 6), ("test", 5)):
        english = [f"the number {number} is {number * 7}" for number in range(count)]
        italian = [f"il numero {number} è {number * 7}" for number in range(count)]
        if split == "train":
            english[3], italian[5], italian[7], english[9] = "", "", "parola " * 300, "word " * 300
        (folder / f"{split}.en").write_text("\n".join(english), encoding="utf-8")
        (folder / f"{split}.it").write_text("\n".join(italian), encoding="utf-8")
    return folder


def test_any_two_text_files_are_a_corpus_and_what_cannot_be_learned_from_is_counted(
    text_files, tmp_path, capsys, monkeypatch
):
    small = dict(d_model=16, heads=2, encoder_layers=1, decoder_layers=1, d_ff=24)
    monkeypatch.setitem(RECIPES["files"].model, "norm_first", True)
    monkeypatch.setitem(recipes.SIZES, "base", small)
    output, data = tmp_path / "trained", ["--data-dir", str(text_files)]
    arguments = [
        "--corpus",
        "files",
        "--target",
        "it",
        "--steps",
        "2",
        "--size",
        "base",
        "--grad-accumulation-steps",
        "3",
        "--device",
        "cpu",
        "--output",
        str(output),
    ]
    assert main(["train", *arguments, *data]) == 0
    assert "train: left out 2 pairs with an empty side and 2 with more than 255 tokens" in capsys.readouterr().err
    assert main(["evaluate", "--checkpoint", str(output), "--beam-size", "1", "--device", "cpu", *data]) == 0
    card = json.loads((output / CARD_FILE).read_text(encoding="utf-8"))
    assert (card["data"]["train"]["pairs"], card["data"]["validation"]["pairs"]) == (36, 6)
    assert card["model"]["d_ff"] == 24 and card["training"]["grad_accumulation_steps"] == 3
    assert [entry["split"] for entry in card["scores"]] == ["test"]
    assert "tok:13a" in (output / PAGE_FILE).read_text(encoding="utf-8")


def test_patience_ends_a_training_that_stopped_learning_and_keeps_its_best_model(tmp_path, capsys, monkeypatch):
    losses = iter([3.0, 2.0, 2.5, 2.1, 1.0])
    monkeypatch.setattr(run, "validation_loss", lambda *arguments: next(losses))
    arguments = ["--steps", "20", "--num-validations", "10", "--patience", "2", "--device", "cpu"]
    assert main(["train", *arguments, "--output", str(tmp_path)]) == 0
    assert "done after 8 steps" in capsys.readouterr().err
    assert load_checkpoint(tmp_path).notes["step"] == 4


def test_bleu_stands_next_to_the_validation_loss_and_changes_no_step(tmp_path, capsys):
    command = ["train", "--steps", "4", "--num-validations", "2", "--device", "cpu", "--precision", "fp32"]
    for name, options in (("plain", []), ("bleu", ["--validate-bleu", "5"])):
        assert main([*command, *options, "--output", str(tmp_path / name)]) == 0
    shown = re.findall(r"validation BLEU (\d+\.\d\d) of 5 lines, greedy, .*tok:13a", capsys.readouterr().err)
    assert len(shown) == 2
    plain, other = (safe_open(tmp_path / name / TRAINING_FILE, framework="pt") for name in ("plain", "bleu"))
    assert plain.get_tensor("losses").equal(other.get_tensor("losses"))
    assert main([*command, "--validate-bleu", "0", "--overwrite", "--output", str(tmp_path / "bleu")]) == 2
    assert "validate-bleu: expected at least 1 line, got 0" in capsys.readouterr().err


def test_translate_writes_one_line_a_sentence(checkpoint, capsys):
    assert (
        main(["translate", "--checkpoint", str(checkpoint), "--beam-size", "1", "I closed the windows.", "She went."])
        == 0
    )
    assert len(capsys.readouterr().out.split("\n")) == 3


@pytest.mark.parametrize("precision", ["fp32", "bf16", "auto", "int8"])
def test_translate_computes_in_the_precision_asked_for(precision, checkpoint, capsys, monkeypatch):
    import transformer_ref.__main__ as command_line

    seen, translate = [], command_line.Translator.translate
    monkeypatch.setattr(
        command_line.Translator,
        "translate",
        lambda self, *rest, **named: (seen.append(self.precision), translate(self, *rest, **named))[1],
    )
    assert main(["translate", "--checkpoint", str(checkpoint), "--precision", precision, "She went."]) == 0
    assert seen[0] in ({"fp32", "bf16"} if precision == "auto" else {precision})
    assert len(capsys.readouterr().out.split("\n")) == 2


def test_translate_reads_past_a_byte_order_mark(checkpoint, capsys, monkeypatch):
    import transformer_ref.__main__ as command_line

    seen = []
    monkeypatch.setattr(command_line.Translator, "translate", lambda self, lines, **named: seen.extend(lines) or [])
    monkeypatch.setattr(sys, "stdin", io.StringIO("\ufeffI closed the windows.\nShe went.\n"))
    assert main(["translate", "--checkpoint", str(checkpoint), "--beam-size", "1"]) == 0
    assert seen == ["I closed the windows.", "She went."]


def test_bytes_that_are_no_utf_8_are_one_line_and_status_two(checkpoint, capsys, monkeypatch):
    assert main(["translate", "--checkpoint", str(checkpoint), "caf\udce9 nero"]) == 2
    assert "lines: expected text that UTF-8 can hold, got '\\udce9'" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"She went.\ncaf\xe9\n"), encoding="utf-8"))
    assert main(["translate", "--checkpoint", str(checkpoint)]) == 2
    shown = capsys.readouterr()
    assert shown.err == "transformer_ref: stdin: expected UTF-8 text, got b'\\xe9' in line 2\n"
    assert len(shown.out.splitlines()) == 1  # the line before it is answered


@pytest.mark.parametrize(("is_terminal", "written"), [(False, "猫 è\n".encode()), (True, b"? \xe8\n")])
def test_translations_are_utf_8_as_the_input_is_and_no_terminal_stops_them(
    is_terminal, written, checkpoint, monkeypatch
):
    import transformer_ref.__main__ as command_line

    class Terminal(io.BytesIO):
        def isatty(self):
            return is_terminal

    output = Terminal()
    monkeypatch.setattr(command_line.Translator, "translate", lambda self, lines, **named: ["猫 è"])
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, encoding="cp1252", newline="\n"))
    assert main(["translate", "--checkpoint", str(checkpoint), "cat"]) == 0
    assert output.getvalue() == written


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e9", "-1"])
def test_a_length_penalty_that_ranks_nothing_is_one_line_and_status_two(number, checkpoint, capsys):
    assert main(["translate", "--checkpoint", str(checkpoint), f"--length-penalty={number}", "She went."]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("transformer_ref: length_penalty: expected a") and shown.out == ""


def test_the_n_best_are_numbered_by_line_and_ranked_by_score(checkpoint, capsys):
    lines = ["I closed the windows.", "She went."]
    assert main(["translate", "--checkpoint", str(checkpoint), "--beam-size", "3", "--n-best", "2", *lines]) == 0
    rows = [row.split(" ||| ") for row in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == ["0", "0", "1", "1"]
    for best, second in (rows[:2], rows[2:]):
        assert float(best[2]) >= float(second[2])


def test_the_fields_of_the_n_best_stay_three_whatever_a_translation_holds(checkpoint, capsys, monkeypatch):
    import transformer_ref.__main__ as command_line

    texts = ["a ||| b", "|||||||", "a\tb | c"]
    answers = [[Translation(text, -1.0)] for text in texts]
    monkeypatch.setattr(command_line.Translator, "n_best", lambda self, lines, count, **named: answers)
    assert main(["translate", "--checkpoint", str(checkpoint), "--n-best", "1", "x", "y", "z"]) == 0
    rows = [row.split("|||") for row in capsys.readouterr().out.splitlines()]
    assert [len(row) for row in rows] == [3, 3, 3]
    assert [row[1].strip().replace("&#124;", "|") for row in rows] == texts


ANSWERS = """
import sys
from transformer_ref import __main__ as command
sys.exit(command.main(["translate", "--beam-size", "1", "--progress", "--checkpoint", *sys.argv[1:]]))
"""


def test_translate_answers_a_line_before_the_next_one_comes(checkpoint, tmp_path):
    lines = ["I closed the windows.", "", "She went."]
    command = [sys.executable, "-c", ANSWERS, str(checkpoint)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        answers = []
        for line in lines:
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
            answers.append(process.stdout.readline().decode().rstrip("\n"))  # waits for ever if nothing comes
        process.stdin.close()
        assert process.stdout.read() == b"" and "3 lines" in process.stderr.read().decode()
    (tmp_path / "in").write_text("\n".join(lines), encoding="utf-8")  # the same from a file, without a last newline
    with open(tmp_path / "in", "rb") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == answers and answers[1] == ""


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=5), max_size=9))
def test_lines_come_in_order_and_whole_from_memory_and_from_a_file(lines):
    data = "".join(line + "\n" for line in lines).encode()
    with tempfile.TemporaryFile() as file:
        file.write(data)
        for most in (1, 3, 100):
            file.seek(0)
            real = chunks_of_lines(io.TextIOWrapper(open(os.dup(file.fileno()), "rb"), encoding="utf-8"), most)
            in_memory = chunks_of_lines(io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"), most)
            text = chunks_of_lines(io.StringIO(data.decode(), newline="\n"), most)
            for chunks in map(list, (real, in_memory, text)):
                assert all(1 <= len(chunk) <= most for chunk in chunks)
                found = [line for chunk in chunks for line in chunk]
                assert found == [line.removeprefix("\ufeff") for line in lines[:1]] + lines[1:]


def test_an_option_out_of_range_is_named_as_it_was_given(checkpoint, text_files, tmp_path, capsys):
    assert main(["translate", "--checkpoint", "no/where", "--n-best", "9", "--beam-size", "3", "x"]) == 2
    assert capsys.readouterr().err == "transformer_ref: n-best: expected 1 to 3, the beam size, got 9\n"
    command = ["train", "--output", str(tmp_path / "out"), "--device", "cpu", "--tokens-per-batch", "2"]
    assert main(command) == 2
    assert "got none among 300; the limit is tokens_per_batch - 1" in capsys.readouterr().err


@pytest.mark.parametrize("most", [1, 2, 5])
def test_the_lines_before_a_line_that_is_not_utf_8_come_and_its_number_is_named(most, tmp_path):
    (tmp_path / "lines").write_bytes(b"uno\ndue\ntre\ncaf\xe9\ncinque\n")
    with open(tmp_path / "lines", "rb") as file:
        for stream in (io.TextIOWrapper(file), io.TextIOWrapper(io.BytesIO((tmp_path / "lines").read_bytes()))):
            chunks, seen = chunks_of_lines(stream, most), []
            with pytest.raises(ValueError, match=r"stdin: expected UTF-8 text, got b'\\xe9' in line 4"):
                for chunk in chunks:
                    seen += chunk
            assert seen == ["uno", "due", "tre"]


def test_a_long_line_is_read_in_linear_time(tmp_path, monkeypatch):
    (tmp_path / "line").write_bytes(b"x" * 300_000)
    monkeypatch.setattr("transformer_ref.text.line_reader.AT_ONCE", 10)
    with open(tmp_path / "line", encoding="utf-8") as file:
        start = time.perf_counter()
        assert [list(map(len, chunk)) for chunk in chunks_of_lines(file, 2)] == [[300_000]]
    assert time.perf_counter() - start < 1.0  # quadratic: many seconds


def test_a_line_that_is_cut_is_named_by_its_number(checkpoint, tmp_path, capsys):
    assert main(["translate", "--checkpoint", str(checkpoint), "--beam-size", "1", "She went.", "She " * 130]) == 0
    shown = capsys.readouterr()
    assert "look out: source: expected at most 127 tokens, got 130 in line 2; the rest is cut off\n" == shown.err
    assert len(shown.out.splitlines()) == 2


@pytest.mark.parametrize("options", [[], ["--tokenize", "intl"]])
def test_evaluate_cuts_words_by_the_target_language(options, checkpoint, text_files, tmp_path, capsys):
    notes = {"corpus": "files", "source": "en", "target": "zh"}
    save_checkpoint(tmp_path / "model", *load_checkpoint(checkpoint)[:3], notes)
    (text_files / "test.en").write_text("I closed the windows.\n", encoding="utf-8")
    (text_files / "test.zh").write_text("我关上了窗户。\n", encoding="utf-8")
    asked = ["evaluate", "--checkpoint", str(tmp_path / "model"), "--data-dir", str(text_files), "--beam-size", "1"]
    assert main([*asked, *options]) == 0
    shown = capsys.readouterr()
    assert f"tok:{'intl' if options else 'zh'}|" in shown.out
    assert ("look out: BLEU: expected references with spaces" in shown.err) == bool(options)


def test_a_model_is_written_over_on_request_only(checkpoint, tmp_path, capsys):
    for path in checkpoint.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    before = (tmp_path / MODEL_FILE).read_bytes()
    arguments = ["train", "--steps", "1", "--output", str(tmp_path), "--device", "cpu"]
    assert main(arguments) == 2
    shown = capsys.readouterr().err
    assert "--output, --resume or --overwrite" in shown and "\n" not in shown.strip()
    assert (tmp_path / MODEL_FILE).read_bytes() == before
    assert main([*arguments, "--overwrite"]) == 0
    assert load_checkpoint(tmp_path).notes["step"] == 1
    assert json.loads((tmp_path / CARD_FILE).read_text())["steps"] == 1


def test_sizes_vocabulary_and_schedule_are_settable_and_a_training_starts_from_another(text_files, tmp_path, capsys):
    data = ["--corpus", "files", "--target", "it", "--data-dir", str(text_files), "--device", "cpu", "--steps", "1"]
    sizes = ["--d-model", "12", "--heads", "3", "--encoder-layers", "1", "--decoder-layers", "2", "--d-ff", "20"]
    first, second = tmp_path / "first", tmp_path / "second"
    assert main(["train", *data, *sizes, "--vocabulary", "270", "--schedule", "linear", "--output", str(first)]) == 0
    config = load_checkpoint(first).model.config
    assert (config.d_model, config.heads, config.decoder_layers, config.d_ff) == (12, 3, 2, 20)
    assert config.source_vocabulary == 270
    assert json.loads((first / CARD_FILE).read_text())["training"]["schedule"] == "linear"
    assert main(["train", *data, "--from", str(first), "--heads", "2", "--output", str(second)]) == 2
    assert "from: expected no size and no vocabulary with it, got heads" in capsys.readouterr().err
    assert main(["train", *data, "--from", str(first), "--dropout", "0.3", "--output", str(second)]) == 0
    tuned = load_checkpoint(second)
    assert (tuned.model.config.d_ff, tuned.model.config.dropout) == (20, 0.3)
    assert tuned.source_tokenizer.to_json() == load_checkpoint(first).source_tokenizer.to_json()


def test_translate_reads_stdin_and_keeps_empty_lines(checkpoint, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("I closed the windows.\n\nShe went.\n"))
    assert main(["translate", "--checkpoint", str(checkpoint), "--beam-size", "2"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert len(lines) == 4 and lines[1] == ""


def test_evaluate_prints_every_score_with_its_signature(checkpoint, capsys, monkeypatch):
    import transformer_ref.__main__ as command_line

    monkeypatch.setattr(command_line, "build_corpus", recipes.build_corpus)
    assert main(["evaluate", "--checkpoint", str(checkpoint), "--split", "held_out", "--beam-size", "1"]) == 0
    shown = capsys.readouterr().out
    for words in ("8 sentences", "penalty 1, fp32", "exact match", "right sense", "four words", "tok:13a", "chrF"):
        assert words in shown
    assert "same as fp32" not in shown


def test_evaluate_shows_lines_from_the_worst_to_the_best(checkpoint, capsys, monkeypatch):
    import transformer_ref.__main__ as command_line

    monkeypatch.setattr(command_line, "build_corpus", recipes.build_corpus)
    asked = ["evaluate", "--checkpoint", str(checkpoint), "--split", "held_out", "--beam-size", "1", "--show"]
    assert main([*asked, "3"]) == 0
    shown = capsys.readouterr().out
    scores = [float(score) for score in re.findall(r"^line [\d,]+, chrF ([\d.]+)$", shown, re.MULTILINE)]
    assert len(scores) == 3 and scores == sorted(scores)
    for side in ("source", "reference", "translation"):
        assert len(re.findall(rf"^  {side} ", shown, re.MULTILINE)) == 3
    assert main([*asked, "0"]) == 2
    assert "show: expected a number of lines, at least 1, got 0" in capsys.readouterr().err


def test_evaluate_in_int8_says_what_int8_costs(checkpoint, capsys, monkeypatch):
    import transformer_ref.__main__ as command_line

    monkeypatch.setattr(command_line, "build_corpus", recipes.build_corpus)
    arguments = ["--checkpoint", str(checkpoint), "--split", "held_out", "--beam-size", "1", "--precision", "int8"]
    assert main(["evaluate", *arguments]) == 0
    shown = capsys.readouterr().out
    assert "penalty 1, int8" in shown
    (compared,) = re.findall(r"same as fp32 +([\d.]+)%  \(fp32: exact match [\d.]+%, BLEU [\d.]+\)", shown)
    assert 0 <= float(compared) <= 100


def test_int8_of_a_learner_s_model_is_one_line_and_status_two(checkpoint, capsys, monkeypatch):
    monkeypatch.setattr("transformer_ref.fast.inference._first_unknown_part", lambda model: "OwnTransformer")
    assert main(["translate", "--checkpoint", str(checkpoint), "--precision", "int8", "She went."]) == 2
    assert capsys.readouterr().err == (
        "transformer_ref: precision: expected a model of the package's own parts for int8, got OwnTransformer\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["translate", "--checkpoint", "no/where", "Hello."],
            "checkpoint: expected the file no/where/model.safetensors",
        ),
        (["translate", "--checkpoint", "no/where", "--device", "cuda:99", "Hello."], "device: expected"),
        (["export", "--format", "onnx", "--quantization", "int8", "--output", "x"], "quantization: expected none"),
        (["benchmark", "--record", "--output", "no/where"], "benchmark: expected the file no/where/benchmark.json"),
        (["benchmark", "--repeats", "0"], "repeats: expected at least 1, got 0"),
        (["train", "--device", "tpu"], "device: expected"),
        (["train", "--steps", "0"], "steps: expected at least 1, got 0"),
        (["train", "--minutes", "-1"], "minutes: expected more than 0, got -1"),
        (["train", "--grad-accumulation-steps", "0"], "grad_accumulation_steps: expected at least 1, got 0"),
        (["train", "--corpus", "wmt14"], "data: expected a folder by --data-dir, got none; the parallel texts of"),
        (["train", "--corpus", "multi30k", "--target", "en"], "target: expected another language than the source"),
        (["train", "--corpus", "multi30k", "--target", "it"], "target: expected one of en, de, fr"),
        (["train", "--target", "de"], 'languages: expected "en" to "it"'),
        (["train", "--data-dir", "mine"], "data: expected no folder for the built-in corpus, got mine"),
        (["train", "--vocabulary", "5"], "vocabulary: expected at least 260, got 5"),
        (["train", "--d-model", "1000000000000", "--heads", "1"], "memory: expected enough for this command, got too "),
        (["train", "--seed", str(2**70)], "seed: expected at most 9223372036854775807, got 1180591620717411303424"),
        (["train", "--corpus", "multi30k", "--data-dir", "no/where"], "data: expected the file train.en or "),
        (["train", "--resume", "--output", "no/where"], "checkpoint: expected the file no/where/training.safetensors"),
    ],
)
def test_a_mistake_is_one_line_and_status_two_and_leaves_nothing_behind(
    arguments, message, capsys, monkeypatch, tmp_path
):
    monkeypatch.delenv("MULTI30K_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    shown = capsys.readouterr().err.strip()
    assert shown.startswith("transformer_ref: " + message) and "\n" not in shown
    assert not any(tmp_path.iterdir())


def test_a_truncated_checkpoint_is_one_line_and_status_two(checkpoint, tmp_path, capsys):
    (tmp_path / MODEL_FILE).write_bytes((checkpoint / MODEL_FILE).read_bytes()[:1_000])
    assert main(["translate", "--checkpoint", str(tmp_path), "Hello."]) == 2
    shown = capsys.readouterr().err.strip()
    assert "expected a complete safetensors file" in shown and "\n" not in shown


@pytest.mark.parametrize("notes", [{}, {"corpus": "a Marian folder"}])
def test_a_model_that_names_no_corpus_is_not_evaluated_and_told_so_in_one_line(notes, checkpoint, tmp_path, capsys):
    save_checkpoint(tmp_path, *load_checkpoint(checkpoint)[:3], notes)
    assert main(["evaluate", "--checkpoint", str(tmp_path)]) == 2
    shown = capsys.readouterr().err.strip()
    assert "checkpoint: expected one that `train` left and that names its corpus" in shown and "\n" not in shown


def test_a_split_without_lines_is_said_before_any_score(checkpoint, text_files, tmp_path, capsys):
    notes = {"corpus": "files", "source": "en", "target": "it"}
    save_checkpoint(tmp_path / "model", *load_checkpoint(checkpoint)[:3], notes)
    for side in ("en", "it"):
        (text_files / f"test.{side}").write_text("")
    assert main(["evaluate", "--checkpoint", str(tmp_path / "model"), "--data-dir", str(text_files)]) == 2
    shown = capsys.readouterr()
    assert shown.err.strip() == "transformer_ref: split: expected lines in test, got none" and not shown.out


@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_scores_for_a_damaged_card_name_its_file(text, tmp_path):
    (tmp_path / CARD_FILE).write_text(text)
    with pytest.raises(ValueError, match=f"card: expected a run's card to add scores to, got {tmp_path}"):
        add_scores(tmp_path, "test", 5, {"BLEU": (1.0, "")})
    assert (tmp_path / CARD_FILE).read_text() == text


def test_an_unknown_split_is_one_line_and_status_two(checkpoint, capsys):
    assert main(["evaluate", "--checkpoint", str(checkpoint), "--split", "tests"]) == 2
    assert "split: expected one of train, validation, test, held_out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "files"), [("onnx", {"encoder.onnx", "decoder.onnx"}), ("ctranslate2", {"model.bin", "config.json"})]
)
def test_export_writes_what_the_other_library_reads(kind, files, checkpoint, tmp_path, capsys):
    pytest.importorskip(kind)
    assert main(["export", "--checkpoint", str(checkpoint), "--format", kind, "--output", str(tmp_path)]) == 0
    assert files <= {path.name for path in tmp_path.iterdir()}
    assert f"written to {tmp_path}" in capsys.readouterr().err


def test_a_model_that_the_other_library_cannot_hold_is_one_line_and_status_two(checkpoint, tmp_path, capsys):
    assert main(["export", "--checkpoint", str(checkpoint), "--format", "marian", "--output", str(tmp_path)]) == 2
    assert "norm_first: expected False, which Marian has, got True" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["train", "translate", "evaluate", "export", "benchmark"])
def test_help_has_examples_a_newcomer_can_copy(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert f"python -m transformer_ref {command}" in capsys.readouterr().out


def test_help_names_every_choice_that_the_environment_variable_sets(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert [name for name in machine.VALUES if f"{name}=" not in shown] == []


@pytest.mark.slow
@pytest.mark.xdist_group("built-in-training")
def test_the_built_in_training_learns_the_language(tmp_path, monkeypatch, capsys):
    from transformer_ref.data.grammar.corpora import build_corpus
    from transformer_ref.evaluation import exact_match, sense_accuracy
    from transformer_ref.translate import Translator

    monkeypatch.setattr(recipes, "build_corpus", build_corpus)
    assert main(["train", "--output", str(tmp_path), "--device", "cpu"]) == 0
    translator, corpus = Translator(*load_checkpoint(tmp_path)[:3]), build_corpus()
    # Measured with seed 1 on one thread: 0.999 and 1.000 unseen, 0.998 and 0.999 held out. Rounding differs with the
    # number of threads, and one of the 32 combinations that are held out is then sometimes missed as a whole.
    # Words within four places of the ambiguous one decide 0.57.
    for pairs, exact, senses in ((corpus.test, 0.985, 0.99), (corpus.held_out, 0.94, 0.94)):
        translations = translator.translate([pair.english for pair in pairs], beam_size=1)
        assert exact_match(translations, [pair.italian for pair in pairs]) >= exact
        assert sense_accuracy(translations, pairs) >= senses
    assert translator.translate(["I closed the windows.", "I bought a new Windows for my computer."]) == [
        "Ho chiuso le finestre.",
        "Ho comprato un nuovo Windows per il mio computer.",
    ]
    assert RECIPES["grammar"].training.minutes is None


@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_reader_who_leaves_early_sees_no_traceback(lines):
    code = (
        "import sys; from transformer_ref import __main__ as command; "
        f"command.COMMANDS['translate'] = lambda options: print('una riga\\n' * {lines}); "
        "sys.stdin.readline(); sys.exit(command.main(['translate', 'a line']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        process.stdin.write(b"now\n")
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_threads_that_wait_are_told_to_sleep_before_torch_is_imported():
    program = """
import os, sys
class Watch:
    def find_spec(self, name, *rest):
        if name == "torch":
            print(os.environ.get("OMP_WAIT_POLICY"), os.environ.get("GOMP_SPINCOUNT")); sys.stdout.flush(); os._exit(0)
sys.meta_path.insert(0, Watch())
import transformer_ref.__main__
"""
    for policy, expected in (({}, "passive 5000"), ({"OMP_WAIT_POLICY": "active"}, "active None")):
        without = {
            name: value for name, value in os.environ.items() if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
        }
        run = subprocess.run([sys.executable, "-c", program], env=without | policy, capture_output=True, text=True)
        assert run.stdout.strip() == expected
