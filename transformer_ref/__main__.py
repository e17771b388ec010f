"""`python -m transformer_ref`: train, translate, evaluate."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from transformer_ref.data.download import DownloadError
from transformer_ref.data.grammar import build_corpus
from transformer_ref.device import choose_device
from transformer_ref.evaluation import bleu, chrf, exact_match, sense_accuracy, window_baseline
from transformer_ref.training.checkpoint import load_checkpoint, load_training
from transformer_ref.training.progress import ProgressLine, clock
from transformer_ref.training.recipes import RECIPES, load_split
from transformer_ref.training.run import changed, prepare, train
from transformer_ref.training.trainer import TrainingError
from transformer_ref.translate import Translator

EXAMPLES = {
    "train": """examples:
  python -m transformer_ref train                       the built-in English-Italian corpus, about two minutes
  python -m transformer_ref train --minutes 1           the same, stopped by the clock
  python -m transformer_ref train --resume              go on where Ctrl-C stopped it
  python -m transformer_ref train --corpus multi30k --data-dir ~/multi30k --minutes 10""",
    "translate": """examples:
  python -m transformer_ref translate "I closed the windows."
  python -m transformer_ref translate --checkpoint build/multi30k --beam 5 < english.txt > german.txt""",
    "evaluate": """examples:
  python -m transformer_ref evaluate --split held_out
  python -m transformer_ref evaluate --checkpoint build/multi30k --data-dir ~/multi30k""",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0 done, 2 a mistake in what was asked, 130 stopped by Ctrl-C."""
    options = parser().parse_args(arguments)
    try:
        options.command(options)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    except (ValueError, FileNotFoundError, DownloadError, TrainingError, ModuleNotFoundError) as error:
        print(f"transformer_ref: {error}", file=sys.stderr)
        return 2
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the three commands."""
    top = argparse.ArgumentParser(prog="python -m transformer_ref",
                                  description="Train a Transformer and translate with it.")
    commands = top.add_subparsers(required=True, metavar="train | translate | evaluate")

    training = _command(commands, "train", run_train, "learn from a corpus and leave a checkpoint")
    training.add_argument("--corpus", choices=sorted(RECIPES), default="grammar",
                          help="default: grammar, which is built in")
    training.add_argument("--data-dir", metavar="DIR",
                          help="the folder with multi30k's files, such as train.en.gz")
    training.add_argument("--source", metavar="LANGUAGE", help="the language to read (default: en)")
    training.add_argument("--target", metavar="LANGUAGE",
                          help="the language to write (default: it, or de for multi30k)")
    training.add_argument("--output", metavar="DIR", type=Path,
                          help="where the checkpoint goes (default: build/<corpus>)")
    length = training.add_mutually_exclusive_group()
    length.add_argument("--minutes", metavar="M", type=float, help="train for so long")
    length.add_argument("--steps", metavar="N", type=int, help="train for so many steps")
    training.add_argument("--seed", type=int, help="of weights, dropout and order (default: 1)")
    training.add_argument("--resume", action="store_true",
                          help="go on from the training saved in the output folder")

    translating = _command(commands, "translate", run_translate,
                           "translate the sentences given, or the lines of stdin")
    translating.add_argument("sentences", nargs="*", help="none: one line of stdin is one sentence")
    _add_checkpoint(translating)
    translating.add_argument("--beam", metavar="N", type=int, default=5,
                             help="hypotheses kept at each step (default: 5)")

    evaluating = _command(commands, "evaluate", run_evaluate,
                          "score a checkpoint on sentences it was not trained on")
    _add_checkpoint(evaluating)
    evaluating.add_argument("--split", default="test",
                            help="validation, test or, in the built-in corpus, held_out")
    evaluating.add_argument("--data-dir", metavar="DIR", help="the folder with multi30k's files")
    evaluating.add_argument("--beam", metavar="N", type=int, default=5,
                            help="hypotheses kept at each step (default: 5)")
    return top


def run_train(options: argparse.Namespace) -> None:
    """Train as the recipe says, with what the options change."""
    recipe = RECIPES[options.corpus]
    device = choose_device(options.device)
    languages = options.source or recipe.languages[0], options.target or recipe.languages[1]
    output = options.output or Path(recipe.output)
    config = changed(recipe.training, options.steps, options.minutes, options.seed)
    lines = [
        load_split(options.corpus, split, *languages, options.data_dir) for split in ("train", "validation")
    ]
    run = prepare(options.corpus, *lines, languages, config, device)
    if options.resume:
        load_training(output, run.training)
    parameters = sum(parameter.numel() for parameter in run.training.model.parameters())
    _say(f"{options.corpus}, {languages[0]} to {languages[1]}: {len(lines[0].source):,} sentences, "
         f"{run.tokenizer.size:,} tokens, {parameters:,} weights, on {device}")
    try:
        train(run, output, ProgressLine())
    except KeyboardInterrupt:
        _say(
            f"\nstopped after {run.training.step:,} steps and saved in {output}; --resume goes on from there"
        )
        raise
    _say(
        f"done after {run.training.step:,} steps in {clock(run.training.seconds)}; the checkpoint is in {output}\n"
        f'next: python -m transformer_ref translate --checkpoint {output} "I closed the windows."')


def run_translate(options: argparse.Namespace) -> None:
    """Write one translation a line to stdout."""
    translator = _translator(options)[0]
    if not options.sentences and sys.stdin.isatty():
        _say("one sentence a line; Ctrl-D ends")
    lines = options.sentences or [line.rstrip("\n") for line in sys.stdin]
    for translation in translator.translate(lines, beam=options.beam):
        print(translation)


def run_evaluate(options: argparse.Namespace) -> None:
    """Print the scores of a split, each with what it needs to be compared."""
    translator, notes = _translator(options)
    lines = load_split(notes["corpus"], options.split, notes["source"], notes["target"], options.data_dir)
    start = time.perf_counter()
    translations = translator.translate(lines.source, beam=options.beam)
    seconds = time.perf_counter() - start
    print(
        f"{notes['corpus']} {options.split}: {len(translations):,} sentences in {seconds:.1f} s, beam {options.beam}"
    )
    print(f"exact match   {exact_match(translations, lines.target):7.2%}")
    if notes["corpus"] == "grammar":
        corpus = build_corpus()
        pairs = getattr(corpus, options.split)
        print(f"right sense   {sense_accuracy(translations, pairs):7.2%}")
        print(f"  (a reader of four words on either side: {window_baseline(corpus.train, pairs):.2%})")
    for name, metric in (("BLEU", bleu), ("chrF", chrf)):
        result = metric(translations, lines.target)
        print(f"{name:12}  {result.score:7.2f}  {result.signature}")


def _command(commands, name: str, function, text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".",
                                  epilog=EXAMPLES[name],
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:<number> (default: auto)")
    command.set_defaults(command=function)
    return command


def _add_checkpoint(command: argparse.ArgumentParser) -> None:
    command.add_argument("--checkpoint", metavar="DIR", type=Path, default=Path(RECIPES["grammar"].output),
                         help="what `train` left (default: %(default)s)")


def _translator(options: argparse.Namespace) -> tuple[Translator, dict[str, str]]:
    checkpoint = load_checkpoint(options.checkpoint, choose_device(options.device))
    return Translator(*checkpoint[:3]), checkpoint.notes


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
