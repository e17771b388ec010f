"""`python -m transformer_ref`: train, translate, evaluate, export, benchmark."""

import argparse
import contextlib
import io
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# torch reads these when it is imported. By default waiting threads spin for milliseconds, and a training run becomes
# several times as slow as soon as anything else runs on the machine. Where they sleep at once, waking them takes a
# third of a step. So they spin for about 50 microseconds (5,000 times, in GNU's library), or elsewhere not at all.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")
    os.environ["OMP_WAIT_POLICY"] = "passive"

import torch

from transformer_ref.arguments import SETTINGS, SIZE_SETTINGS, parser
from transformer_ref.benchmark.record import record
from transformer_ref.benchmark.result import RESULT_FILE, read
from transformer_ref.benchmark.tables import full_table
from transformer_ref.checkpoint import Checkpoint, load_checkpoint
from transformer_ref.config import DecodingConfig
from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.data.parallel_text import Parallel, ParallelFiles
from transformer_ref.data.prepared import Store
from transformer_ref.device import choose_device
from transformer_ref.evaluation import bleu, chrf, exact_match, samples, sense_accuracy, tokenize_of, window_baseline
from transformer_ref.faster import freed_memory_kept, measure_machine
from transformer_ref.interop.ctranslate2 import save_ctranslate2
from transformer_ref.interop.marian import save_marian
from transformer_ref.interop.onnx import save_onnx
from transformer_ref.interop.page import save_page
from transformer_ref.learner.own_code import OwnCode
from transformer_ref.learner.own_faults import remarks
from transformer_ref.learner.own_file import OwnCodeError
from transformer_ref.learner.own_model import OwnTransformer
from transformer_ref.learner.own_training import OwnParts, own_settings, rehearse
from transformer_ref.learner.own_weights import as_reference
from transformer_ref.machine import limit_threads
from transformer_ref.notices import Notice
from transformer_ref.text.line_reader import chunks_of_lines
from transformer_ref.training.cost import REACHED, Cost, about, muon_product_rate, product_rate, training_cost
from transformer_ref.training.gradients import NO_MEMORY, DivergedError, TrainingError
from transformer_ref.training.processes import Processes, join_processes, leave_processes
from transformer_ref.training.progress import LinesDone, ProgressLine, clock
from transformer_ref.training.recipes import RECIPES, Recipe, find_split, load_split, varied
from transformer_ref.training.resume import RATES, load_training
from transformer_ref.training.run import Run, changed, expect_nothing_to_lose, expect_writable, prepare, train
from transformer_ref.training.run_card import PAGE_FILE, add_scores, run_card, write_run_card
from transformer_ref.training.sole_use import sole_use
from transformer_ref.training.tensorboard import TensorBoard, is_installed
from transformer_ref.training.trainer import Training, share_done
from transformer_ref.translate import Translator, open_model
from transformer_ref.validation_bleu import ValidationBleu
from transformer_ref.visualization.curves import curves

LINES_AT_ONCE = 16  # batches of lines that are sorted by length together, where there are that many lines
LARGE = 32_000_000  # bytes of a corpus from which on it is prepared on the disk
LEFT = ("closed by peer", "gloo", "NCCL", "onnection")  # in torch's words for a process that cannot be reached
LOSS_ALT = "The training loss falls step by step; the validation loss, measured now and then, falls with it."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0 success, 2 a mistake in the command, 130 Ctrl-C, 141 a closed
    output pipe.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="replace")  # a terminal may lack a letter of a translation
        else:
            sys.stdout.reconfigure(encoding="utf-8")  # as stdin is read, whatever the locale
    options = parser(COMMANDS).parse_args(arguments)
    try:
        limit_threads()
        with freed_memory_kept(), _warnings_in_one_line():
            options.command(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # who reads our output has left, as `head` does; nothing more must go there
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (ValueError, OSError, TrainingError, ModuleNotFoundError) as error:
        print(f"transformer_ref: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        if not any(words in str(error) for words in NO_MEMORY):
            raise
        print(f"transformer_ref: memory: expected enough for this command, got too little ({error})", file=sys.stderr)
        return 2
    return 0


def run_train(options: argparse.Namespace) -> None:
    """Train by the recipe, as the options change it; under torchrun, as one of several processes."""
    processes, options.device = join_processes(options.device)
    try:
        _train(options, processes)
    except RuntimeError as error:
        if not _has_lost_a_process(error, processes):
            raise
        said = f"processes: expected {processes.count} to train together, got one that left"
        raise TrainingError(f"{said} ({' '.join(str(error).split())[:200]})") from error
    finally:
        leave_processes(processes)


def _has_lost_a_process(error: RuntimeError, processes: Processes) -> bool:
    """Whether an error of torch says that another process of the group cannot be reached."""
    ours = isinstance(error, TrainingError)
    return processes.count > 1 and not ours and any(word in str(error) for word in LEFT)


def _train(options: argparse.Namespace, processes: Processes) -> None:
    recipe = RECIPES[options.corpus]
    device = choose_device(options.device)
    languages = options.source or recipe.languages[0], options.target or recipe.languages[1]
    output = options.output or Path(recipe.output)
    names = ("steps", "minutes", "precision", "muon_precision", "schedule", *(name for name, _, _ in SETTINGS))
    code = OwnCode.read(options.model) if options.model else None
    asked = {name: getattr(options, name) for name in names}
    config = changed(own_settings(recipe.training, code) if code else recipe.training, **asked)
    if not (options.resume or options.overwrite):
        processes.first_alone(lambda: expect_nothing_to_lose(output, "--output, --resume or --overwrite"))
    recipe, start = _recipe(recipe, options, device)
    lines = processes.first_alone(lambda: [_split(options, split, languages) for split in ("train", "validation")])
    expect_writable(output)
    counting = LinesDone("pairs prepared")
    store = Store(options.cache_dir or output / "prepared", report=counting.add)
    parts = OwnParts(code) if code else None
    run = prepare(options.corpus, *lines, languages, config, device, recipe, processes, start, parts, store)
    counting.end()
    doubts = []
    if code:
        if processes.is_first:
            _say(f"{code.name}: trying its parts before the first step; this takes up to a minute")
        doubts = rehearse(run.training.model, next(run.validation.one_epoch()).to(device), run.training.loss)
        doubts += remarks(code, run.training.model.config)
    new_rates = [name for name in RATES if asked[name] is not None]
    notes = load_training(output, run.training, new_rates) if options.resume else []
    watchers = []
    if processes.is_first:
        _say_what_is_coming(run, device)
        for line in [*(_whose(run.notes) if code else []), *(f"look out: {doubt}" for doubt in doubts), *notes]:
            _say(line)
        if doubts:
            _say("Better stop with Ctrl-C and correct this first: training does not make it right.")
        line = ProgressLine()
        watchers = [line, *([TensorBoard(output / "tensorboard")] if is_installed() else [])]
        if options.validate_bleu is not None:
            watchers.append(_validation_bleu(options.validate_bleu, run, lines[1], line))
    try:
        with sole_use(output) if processes.is_first else contextlib.nullcontext():
            train(run, output, watchers)
    except KeyboardInterrupt:
        _say(f"\nstopped after {run.training.step:,} steps and saved in {output}; --resume goes on from there")
        raise
    except DivergedError as error:
        raise TrainingError(f"{error}. {_after_divergence(run.training, output)}") from error
    except (TrainingError, OwnCodeError) as error:
        raise TrainingError(f"{error}. Saved in {output} after {run.training.step:,} steps") from error
    except RuntimeError as error:
        if code is None or _has_lost_a_process(error, processes):
            raise
        raise TrainingError(f"{code.name}: a training step stopped with {type(error).__name__}: {error}") from error
    if processes.is_first:
        _finish(run, device, output, doubts, options.model)


def _finish(run: Run, device: torch.device, output: Path, doubts: list[str], model: Path | None) -> None:
    """Write the run card, and report where everything is. model: the learner's own file."""
    card = run_card(run, device) | ({"doubts": doubts} if doubts else {})
    write_run_card(output, card, curves(card["curves"], LOSS_ALT, "step", "loss, nats a token").to_svg())
    _say(
        f"done after {run.training.step:,} steps in {clock(run.training.seconds)}; the checkpoint is in {output}, "
        f"its story in {output / PAGE_FILE}"
    )
    for doubt in doubts:
        _say(f"look out, as before the first step: {doubt}")
    with_code = f" --model {model}" if model else ""
    _say(f'next: python -m transformer_ref translate --checkpoint {output}{with_code} "I closed the windows."')


def _after_divergence(training: Training, output: Path) -> str:
    """Return how to go on after a loss that was not finite: from the last saved state, if there is one."""
    if training.saved_step is None:
        return "Nothing was saved yet; start again with a smaller --learning-rate, --muon-rate or --max-grad-norm"
    return (
        f"{output} holds the state after {training.saved_step:,} steps; go on from there with --resume and a smaller "
        "--learning-rate, --muon-rate or --max-grad-norm"
    )


def _validation_bleu(count: int, run: Run, lines: Parallel | ParallelFiles, line: ProgressLine) -> ValidationBleu:
    tokenize, note = tokenize_of(run.notes["target"])
    if note:
        _say(note)
    lines = lines.load() if isinstance(lines, ParallelFiles) else lines
    return ValidationBleu(run, lines, count, tokenize, line.interrupt)


def _split(options: argparse.Namespace, split: str, languages: tuple[str, str]) -> Parallel | ParallelFiles:
    """Return a split's lines; or its files, if it is large, or if there is a cache to prepare them in."""
    files = find_split(options.corpus, split, *languages, options.data_dir)
    if files and (options.cache_dir or files.size() > LARGE):
        return files
    return load_split(options.corpus, split, *languages, options.data_dir)


def _recipe(recipe: Recipe, options: argparse.Namespace, device: torch.device) -> tuple[Recipe, Checkpoint | None]:
    """Return the recipe as the options change it, and the model to go on from, if one is named.

    Raises ValueError for a size or a vocabulary together with such a model, which has its own.
    """
    sizes = {name: getattr(options, name) for name, _, _ in SIZE_SETTINGS if getattr(options, name) is not None}
    given = [*sizes, *(name for name in ("size", "vocabulary") if getattr(options, name) is not None)]
    if options.start and options.model:
        raise ValueError(f"from: expected no --model with it, whose weights are new, got {options.model}")
    if options.start and given:
        raise ValueError(f"from: expected no size and no vocabulary with it, got {', '.join(given)}")
    dropout = {} if options.dropout is None else {"dropout": options.dropout}
    start = open_model(options.start, device) if options.start else None
    return varied(recipe, options.size, options.vocabulary, {**sizes, **dropout}), start


def _whose(notes: Mapping[str, Any]) -> list[str]:
    """Return the authors of the parts of a model that is not the package's own, a line for each part."""
    parts = notes.get("parts", {})
    by_owner = {owner: [name for name, whose in parts.items() if whose == owner] for owner in parts.values()}
    return [f"{owner}: {', '.join(names)}" for owner, names in by_owner.items()]


def _say_what_is_coming(run: Run, device: torch.device) -> None:
    training, notes, count = run.training, run.notes, run.training.processes.count
    for split, data in run.data.items():
        if data["empty"] or data["too_long"]:
            _say(
                f"{split}: left out {data['empty']:,} pairs with an empty side and {data['too_long']:,} with more "
                f"than {data['longest']} tokens"
            )
    weights = sum(parameter.numel() for parameter in training.model.parameters())
    _say(
        f"{notes['corpus']}, {notes['source']} to {notes['target']}: {run.data['train']['pairs']:,} sentences, "
        f"{run.target_tokenizer.size:,} tokens, {weights:,} weights, on {device}"
        + (f" in {count} processes" if count > 1 else "")
    )
    rate, left = product_rate(training.config, device) * count, 1 - share_done(training)
    of_muon = muon_product_rate(training.config, device) * count if training.config.muon_rate else None
    whole = training_cost(training.model.config, training.config, training.stream, rate, of_muon)
    cost = Cost(*(left * each for each in whole))
    _say(
        f"cost: {cost.steps:,.0f} steps are {cost.operations:.1e} operations, about {about(cost.seconds)} at "
        f"{REACHED:.0%} of the {rate:.1e} a second of a large matrix product here"
    )


def run_translate(options: argparse.Namespace) -> None:
    """Write one translation a line to stdout."""
    settings = dict(beam_size=options.beam_size, length_penalty=options.length_penalty, batch_size=options.batch_size)
    DecodingConfig(**settings)  # a setting that does not fit is reported before a model is loaded
    if options.n_best is not None and not 1 <= options.n_best <= options.beam_size:
        raise ValueError(f"n-best: expected 1 to {options.beam_size}, the beam size, got {options.n_best}")
    translator = _translator(options)[0]
    if not options.sentences and sys.stdin.isatty():
        _say("one sentence per line; Ctrl-D ends")
    alone = not (options.sentences or sys.stdin.isatty() or sys.stdout.isatty())
    progress = LinesDone("lines") if options.progress or (alone and sys.stderr.isatty()) else None
    most = LINES_AT_ONCE * options.batch_size
    number = 0  # of lines that have been answered
    for lines in [options.sentences] if options.sentences else chunks_of_lines(sys.stdin, most):
        if options.n_best is not None:
            answers = translator.n_best(lines, options.n_best, first_line=number + 1, **settings)
            for place, translations in enumerate(answers):
                for each in translations:
                    text = each.text.replace("|||", "&#124;&#124;&#124;")  # not the separator; Moses writes it so too
                    print(f"{number + place} ||| {text} ||| {each.score:.4f}")
        else:
            for translation in translator.translate(lines, first_line=number + 1, **settings):
                print(translation)
        sys.stdout.flush()
        number += len(lines)
        if progress:
            progress(number)
    if progress:
        progress.end()


def run_evaluate(options: argparse.Namespace) -> None:
    """Print the scores of a split, each with the signature that a comparison needs."""
    translator, notes = _translator(options)
    if missing := [name for name in ("corpus", "source", "target") if name not in notes]:
        raise ValueError(
            f"checkpoint: expected one that `train` left and that names its corpus, got {options.checkpoint} without "
            f"its {missing[0]}; `translate` and a scorer of your own do without"
        )
    if options.show is not None and options.show < 1:
        raise ValueError(f"show: expected a number of lines, at least 1, got {options.show}")
    lines = load_split(notes["corpus"], options.split, notes["source"], notes["target"], options.data_dir)
    if not lines.source:
        raise ValueError(f"split: expected lines in {options.split}, got none")
    start = time.perf_counter()
    settings = dict(beam_size=options.beam_size, length_penalty=options.length_penalty, batch_size=options.batch_size)
    translations = translator.translate(lines.source, **settings)
    seconds = time.perf_counter() - start
    print(
        f"{notes['corpus']} {options.split}: {len(translations):,} sentences in {seconds:.1f} s, beam "
        f"{options.beam_size}, length penalty {options.length_penalty:g}, {translator.precision}"
    )
    for line in _whose(notes):
        print(line)
    print(f"exact match   {exact_match(translations, lines.target):7.2%}")
    if notes["corpus"] == "grammar":
        corpus = build_corpus()
        pairs = getattr(corpus, options.split)
        print(f"right sense   {sense_accuracy(translations, pairs):7.2%}")
        print(f"  (a reader of four words on either side: {window_baseline(corpus.train, pairs):.2%})")
    tokenize, note = (options.tokenize, None) if options.tokenize else tokenize_of(notes["target"])
    if note:
        _say(note)
    if translator.precision == "int8":
        _compare_with_fp32(translator, lines, translations, options, tokenize)
    scores = {"BLEU": bleu(translations, lines.target, tokenize), "chrF": chrf(translations, lines.target)}
    for name, result in scores.items():
        print(f"{name:12}  {result.score:7.2f}  {result.signature}")
    if options.show is not None:
        print("", *samples(lines.source, translations, lines.target, options.show), sep="\n")
    if add_scores(options.checkpoint, options.split, options.beam_size, scores, translator.precision):
        print(f"added to {options.checkpoint / PAGE_FILE}")


def _compare_with_fp32(
    translator: Translator, lines: Parallel, translations: Sequence[str], options: argparse.Namespace, tokenize: str
) -> None:
    """Print what int8 costs: how many translations equal those of fp32, and the scores of fp32."""
    precise = Translator(translator.model, translator.source_tokenizer, translator.target_tokenizer)
    expected = precise.translate(lines.source, beam_size=options.beam_size, length_penalty=options.length_penalty)
    print(
        f"same as fp32  {exact_match(translations, expected):7.2%}  (fp32: exact match "
        f"{exact_match(expected, lines.target):.2%}, BLEU {bleu(expected, lines.target, tokenize).score:.2f})"
    )


def run_export(options: argparse.Namespace) -> None:
    """Write the model for another library or for a browser."""
    if options.quantization and options.format != "ctranslate2":
        raise ValueError(f"quantization: expected none with --format {options.format}, got {options.quantization}")
    folder = options.folder or options.checkpoint
    if options.format == "page":
        _export_page(options, folder)
        return
    expect_writable(options.output)
    model = _to_export(options, folder).model
    if options.format == "onnx":
        save_onnx(model, options.output)
    elif options.format == "ctranslate2":
        save_ctranslate2(model, options.output, options.quantization)
    else:
        save_marian(model, options.output)
    _say(f"written to {options.output}")


def _to_export(options: argparse.Namespace, folder: Path) -> Checkpoint:
    """Return the checkpoint with the package's model; a learner's is converted, and its outputs are compared first."""
    code = OwnCode.read(options.model) if options.model else None
    found = load_checkpoint(folder, choose_device(options.device), code=code, run_its_code=options.run_its_code)
    if isinstance(found.model, OwnTransformer):
        found = found._replace(model=as_reference(found.model))
        _say("your weights in the package's model give the same logits as your code")
    return found


def _export_page(options: argparse.Namespace, folder: Path) -> None:
    if options.output.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"output: expected a file such as translator.html, got {options.output}")
    expect_writable(options.output.absolute().parent)
    found = _to_export(options, folder)
    facts = [("whose code", line) for line in _whose(found.notes)]
    size = save_page(found.model, found.source_tokenizer, found.target_tokenizer, options.output, found.notes, facts)
    _say(f"written to {options.output}: {size / 1e6:.1f} MB; open it in a browser, or send it")


def run_benchmark(options: argparse.Namespace) -> None:
    """Measure and print the tables, or record what was measured."""
    result = options.output / RESULT_FILE
    if options.record:
        record(result, Path("book/measured.md"), Path("README.md"))
        return
    from transformer_ref.benchmark.run import Piece, benchmark, measure  # no other command should wait for it

    device = choose_device(options.device)
    expect_writable(options.output)
    if options.piece:
        for choice in measure_machine(device):  # with the instructions that this process may use
            _say(str(choice))
        measure(options.output, device, Piece(*options.piece), options.repeats, _say)
        return
    only = options.instruction_set
    benchmark(options.output, device, options.work, options.config, only, options.repeats, options.again, _say)
    print(full_table(read(result)))


def _translator(options: argparse.Namespace) -> tuple[Translator, dict[str, str]]:
    device = choose_device(options.device)
    code = OwnCode.read(options.model) if options.model else None
    checkpoint = open_model(options.checkpoint, device, code, options.run_its_code)
    tokenizers = checkpoint.source_tokenizer, checkpoint.target_tokenizer
    return Translator(checkpoint.model, *tokenizers, options.precision), checkpoint.notes


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Print warnings of this package as the command's own sentences, each time: they are about the user's lines."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def say(message, category, *rest, **named) -> None:
            if issubclass(category, Notice):
                _say(f"look out: {message}")
            else:
                show(message, category, *rest, **named)

        if not sys.warnoptions:
            warnings.filterwarnings("always", category=Notice)
        warnings.showwarning = say
        yield


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


COMMANDS = {
    "train": run_train,
    "translate": run_translate,
    "evaluate": run_evaluate,
    "export": run_export,
    "benchmark": run_benchmark,
}


if __name__ == "__main__":
    sys.exit(main())
