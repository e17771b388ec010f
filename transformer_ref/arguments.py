"""What each command of `python -m transformer_ref` takes."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from transformer_ref.benchmark.result import CONFIGS, WORKS
from transformer_ref.config import DECODING_PRECISIONS, PRECISIONS, SCHEDULES, DecodingConfig
from transformer_ref.evaluation import TOKENIZE
from transformer_ref.training.recipes import RECIPES, SIZES
from transformer_ref.validation_bleu import LINES

EXAMPLES = {
    "train": """examples:
  python -m transformer_ref train                       the built-in English-Italian corpus, about a minute
  python -m transformer_ref train --minutes 1           the same, stopped by the clock
  python -m transformer_ref train --resume              go on where Ctrl-C stopped it
  python -m transformer_ref train --corpus multi30k --minutes 10         downloads two megabytes
  python -m transformer_ref train --corpus multi30k --steps 1800 --tokens-per-batch 4096 --dropout 0.2
                                                        half an hour on two cores, for a better translator
  python -m transformer_ref train --corpus multi30k --source de --target fr --data-dir ~/multi30k
  python -m transformer_ref train --corpus files --data-dir ~/mine --source en --target it
                                                        train.en, train.it, val.en, val.it, plain or .gz
  python -m transformer_ref train --model my_transformer.py --output build/mine
                                                        the code that `python -m autograder assemble` gathered
  torchrun --nproc-per-node 2 -m transformer_ref train --corpus multi30k
  python -m transformer_ref train --corpus wmt14 --size big --grad-accumulation-steps 8 --data-dir ~/wmt14""",
    "translate": """examples:
  python -m transformer_ref translate "I closed the windows."
  python -m transformer_ref translate --checkpoint build/multi30k --beam-size 5 < english.txt > german.txt
  tail -f chat.txt | python -m transformer_ref translate      answers each line when it arrives""",
    "evaluate": """examples:
  python -m transformer_ref evaluate --split held_out
  python -m transformer_ref evaluate --checkpoint build/multi30k --split test_2017_mscoco
  python -m transformer_ref evaluate --checkpoint build/multi30k --show 10      and ten lines, the worst first
  python -m transformer_ref evaluate --precision int8         and how many translations are those of fp32""",
    "export": """examples:
  python -m transformer_ref export --format page build/translator -o translator.html
  python -m transformer_ref export --format onnx --output build/onnx
  python -m transformer_ref export --format ctranslate2 --quantization int8 --output build/ctranslate2""",
    "benchmark": """examples:
  python -m transformer_ref benchmark                   every peer that is installed, some ten minutes
                                                        for each instruction set; Ctrl-C, then the same
                                                        command again, goes on where it was
  python -m transformer_ref benchmark --work greedy beam --instruction-set AVX2 --again
  python -m transformer_ref benchmark --record          keeps the result and writes its table into the book""",
}

MACHINE = """the machine:
  Threads, precisions and kernels are chosen by short measurements on this machine; `python -m autograder doctor` and
  the card of a training run list them. To choose yourself, set ATTENTION_BY_HAND_MACHINE, such as
  threads=2,precision=fp32,muon=fp32,attention=kernel,top_k=8000,linear=plain,products=plain,int8=onednn
  (any of these)."""

SETTINGS = (  # of a training run: field, type, help
    ("tokens_per_batch", int, "size of a batch: padded tokens of its longer side"),
    ("grad_accumulation_steps", int, "parts in which a batch is computed; needs less memory and gives the same result"),
    ("learning_rate", float, "peak learning rate of AdamW"),
    ("muon_rate", float, "peak learning rate of Muon, which updates the hidden matrices; 0 uses AdamW for all weights"),
    ("warmup_steps", int, "steps over which the learning rates grow to their peak"),
    ("label_smoothing", float, "share of the target probability that the other tokens get"),
    ("weight_decay", float, "weight decay of AdamW"),
    ("max_grad_norm", float, "clip the gradients to this norm, computed over all of them together"),
    ("ema_decay", float, "decay of the moving average of the weights, which is what is saved; 0 for no average"),
    ("patience", int, "stop after this many validations without a better loss, and keep the best model"),
    ("num_validations", int, "number of validations during the run"),
    ("seed", int, "random seed for weights, dropout and the order of the data (default: 1)"),
)
SIZE_SETTINGS = (  # of the model: field, type, help
    ("d_model", int, "width of the vectors between layers; must be a multiple of --heads"),
    ("heads", int, "attention heads in each attention layer"),
    ("encoder_layers", int, "number of encoder layers"),
    ("decoder_layers", int, "number of decoder layers"),
    ("d_ff", int, "width of the hidden layer in the feed-forward networks"),
    ("max_length", int, "longest sentence in tokens; longer ones are left out"),
)


def parser(functions: Mapping[str, Callable[[argparse.Namespace], None]]) -> argparse.ArgumentParser:
    """Return the parser of the commands. functions: name of a command -> the function that runs it."""
    top = argparse.ArgumentParser(
        prog="python -m transformer_ref",
        description="Train a Transformer and translate with it.",
        epilog=MACHINE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(required=True, metavar="train | translate | evaluate | export | benchmark")
    _add_training(commands, functions)
    _add_translating(commands, functions)
    _add_evaluating(commands, functions)
    _add_exporting(commands, functions)
    _add_measuring(commands, functions)
    return top


def _add_training(commands, functions: Mapping[str, Callable]) -> None:
    training = _command(commands, "train", functions, "train a model on a corpus and save a checkpoint")
    training.add_argument(
        "--corpus",
        choices=sorted(RECIPES),
        default="grammar",
        help="corpus to train on (default: grammar, which is built in)",
    )
    training.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder with the corpus's files, such as train.en or train.en.gz; nothing is written there",
    )
    training.add_argument(
        "--cache-dir",
        metavar="DIR",
        type=Path,
        help="where the prepared corpus is kept for other processes and later runs (default: prepared/ in the output "
        "folder if the files have more than 32 MB; smaller ones are kept in memory)",
    )
    training.add_argument("--source", metavar="LANGUAGE", help="source language (default: en)")
    training.add_argument(
        "--target", metavar="LANGUAGE", help="target language (default: de, or it for the built-in corpus)"
    )
    training.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        help="folder for the checkpoint and a report of the run (default: build/<corpus>)",
    )
    training.add_argument(
        "--size", choices=sorted(SIZES), help="use the model size of the original paper instead of the corpus's default"
    )
    for name, kind, text in SIZE_SETTINGS:
        training.add_argument("--" + name.replace("_", "-"), metavar="X", type=kind, help=text)
    training.add_argument(
        "--vocabulary", metavar="N", type=int, help="largest size of the vocabulary that both languages share"
    )
    training.add_argument(
        "--dropout", metavar="X", type=float, help="dropout rate; a long run on little data needs a higher one"
    )
    training.add_argument(
        "--model",
        metavar="FILE",
        type=Path,
        help="train the Transformer in your own file, such as my_transformer.py, with its loss, schedule and batches "
        "if it has them; its code runs with all of your rights",
    )
    training.add_argument(
        "--from",
        dest="start",
        metavar="DIR",
        type=Path,
        help="start from a trained model, with its tokenizers and sizes (fine-tuning)",
    )
    _add_length_and_rates(training)


def _add_length_and_rates(training: argparse.ArgumentParser) -> None:
    """Add the options for the length and the rates of a training run, and for what happens to an earlier one."""
    length = training.add_mutually_exclusive_group()
    length.add_argument(
        "--minutes",
        metavar="M",
        type=float,
        help="length of the run; reading the corpus, validation and saving take additional time",
    )
    length.add_argument("--steps", metavar="N", type=int, help="length of the run in steps")
    for name, kind, text in SETTINGS:
        training.add_argument("--" + name.replace("_", "-"), metavar="X", type=kind, help=text)
    training.add_argument("--schedule", choices=SCHEDULES, help="how the learning rates fall after the warmup")
    training.add_argument(
        "--precision", choices=PRECISIONS, help="auto uses bf16 arithmetic if that is faster on this machine"
    )
    training.add_argument(
        "--muon-precision", choices=PRECISIONS, help="the same for Muon's matrix products (default: auto)"
    )
    training.add_argument(
        "--validate-bleu",
        metavar="N",
        nargs="?",
        type=int,
        const=LINES,
        help="at each validation, also translate N validation lines greedily and print their BLEU (default for N: "
        "%(const)s)",
    )
    again = training.add_mutually_exclusive_group()
    again.add_argument(
        "--resume",
        action="store_true",
        help="go on from the training saved in the output folder: after 5, 10, 20, 40 and 80 seconds, "
        "then every two minutes, and whenever it is stopped; its other options must be given again, and "
        "--learning-rate, --muon-rate and --max-grad-norm may be changed",
    )
    again.add_argument("--overwrite", action="store_true", help="lose the model that the output folder holds")


def _add_translating(commands, functions: Mapping[str, Callable]) -> None:
    translating = _command(commands, "translate", functions, "translate the sentences given, or the lines of stdin")
    translating.add_argument("sentences", nargs="*", help="none: one line of stdin is one sentence")
    _add_checkpoint(translating)
    _add_decoding(translating)
    translating.add_argument(
        "--n-best",
        metavar="N",
        type=int,
        help="write the N best of each line, at most --beam-size: line ||| translation ||| score; ||| within a "
        "translation becomes &#124;&#124;&#124;",
    )
    translating.add_argument(
        "--progress",
        action="store_true",
        help="count the lines on stderr (default: where stderr is a terminal and stdin and stdout are not)",
    )


def _add_evaluating(commands, functions: Mapping[str, Callable]) -> None:
    evaluating = _command(commands, "evaluate", functions, "score a checkpoint on sentences it was not trained on")
    _add_checkpoint(evaluating)
    evaluating.add_argument(
        "--split", default="test", help="validation, test, or another that the corpus has, such as held_out"
    )
    evaluating.add_argument("--data-dir", metavar="DIR", help="the folder with the corpus's files")
    evaluating.add_argument(
        "--tokenize",
        choices=TOKENIZE,
        help="how BLEU cuts a line into words (default: by the target language; 13a for most)",
    )
    evaluating.add_argument(
        "--show",
        type=int,
        metavar="N",
        help="also print N lines, from the worst to the best, with source, reference and translation; words that only "
        "one of the two has are in [brackets]",
    )
    _add_decoding(evaluating)


def _add_exporting(commands, functions: Mapping[str, Callable]) -> None:
    exporting = _command(
        commands, "export", functions, "write a checkpoint in another library's form, or as a page that translates"
    )
    exporting.add_argument("folder", nargs="?", metavar="CHECKPOINT", type=Path, help="the same as --checkpoint")
    _add_checkpoint(exporting)
    exporting.add_argument("--format", choices=("page", "onnx", "ctranslate2", "marian"), required=True)
    exporting.add_argument(
        "-o", "--output", metavar="PATH", type=Path, required=True, help="the folder to write; of a page, the file"
    )
    exporting.add_argument("--quantization", metavar="NAME", help="of ctranslate2, such as int8 (default: fp32)")


def _add_measuring(commands, functions: Mapping[str, Callable]) -> None:
    measuring = _command(
        commands, "benchmark", functions, "measure training and decoding, and compare with the alternatives"
    )
    measuring.add_argument("--work", nargs="+", choices=WORKS, default=WORKS, help="a part of it (default: all)")
    measuring.add_argument(
        "--config", nargs="+", choices=CONFIGS, default=CONFIGS, help="these models and recipes (default: all)"
    )
    measuring.add_argument(
        "--instruction-set",
        metavar="NAME",
        nargs="+",
        help="such as AVX2, to which a newer processor is limited (default: AVX2 and the processor's own)",
    )
    measuring.add_argument("--again", action="store_true", help="also measure what this version has measured before")
    measuring.add_argument("--piece", nargs=3, help=argparse.SUPPRESS)  # what a process of the benchmark measures
    measuring.add_argument(
        "--repeats", metavar="N", type=int, default=3, help="rounds to take the median of (default: 3)"
    )
    measuring.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        default=Path("build/benchmark"),
        help="where benchmark.json goes (default: %(default)s)",
    )
    measuring.add_argument(
        "--record",
        action="store_true",
        help="measure nothing; keep the last result and write its table into the book and README.md",
    )


def _command(commands, name: str, functions: Mapping[str, Callable], text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=EXAMPLES[name],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:<number> or mps (default: auto)")
    command.set_defaults(command=functions[name])
    return command


def _add_decoding(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--beam-size",
        metavar="N",
        type=int,
        default=DecodingConfig.beam_size,
        help="hypotheses kept at each step (default: %(default)s)",
    )
    command.add_argument(
        "--length-penalty",
        metavar="X",
        type=float,
        default=DecodingConfig.length_penalty,
        help="0 compares hypotheses by log p, 1 by its mean over the tokens (default: %(default)g)",
    )
    command.add_argument(
        "--batch-size",
        metavar="N",
        type=int,
        default=DecodingConfig.batch_size,
        help="lines translated together (default: %(default)s)",
    )
    command.add_argument(
        "--precision",
        choices=DECODING_PRECISIONS,
        default="fp32",
        help="bf16 is faster on some machines and a little coarser; auto: bf16 where it is faster; int8 is faster on "
        "most CPUs and coarser still: `evaluate --precision int8` compares its translations with those of fp32 "
        "(default: fp32)",
    )


def _add_checkpoint(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--checkpoint",
        metavar="DIR",
        type=Path,
        default=Path(RECIPES["grammar"].output),
        help="what `train` left (default: %(default)s)",
    )
    whose = command.add_mutually_exclusive_group()
    whose.add_argument(
        "--model",
        metavar="FILE",
        type=Path,
        help="your own file, with whose code the checkpoint was trained; it is run",
    )
    whose.add_argument(
        "--run-its-code",
        action="store_true",
        help="run the copy of such a file that the checkpoint keeps, with all of your rights: only if you trust it",
    )
