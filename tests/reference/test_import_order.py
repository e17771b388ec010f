"""A module imports only from rows above its own, so no reader meets a part before its chapter."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import transformer_ref

PACKAGE = Path(transformer_ref.__file__).parent

ROWS = (  # the table of ARCHITECTURE; a folder stands for all modules in it
    ("special_tokens", "shapes", "notices", "model_state", "config", "atomic_write", "processors", "machine", "device"),
    (
        "text.vocabulary",
        "text.byte_pair_encoding",
        "text.lines",
        "text.line_reader",
        "text.sentence_pieces",
        "text.tokenizer",
    ),
    ("model.embedding",),
    ("model.similarity", "model.softmax"),
    ("model.attention",),
    ("model.key_value_cache", "model.multi_head_attention", "model.keeping_weights"),
    ("model.positional_encoding",),
    ("model.masks",),
    ("model.feed_forward", "model.residual", "model.encoder", "model.decoder", "model.transformer"),
    ("model.tokens_alone",),
    ("live_model", "mine", "own_code"),
    ("data",),
    ("training.loss", "training.processes", "training.muon"),
    ("fast", "faster"),
    ("training",),
    ("decoding",),
    ("faults",),
    ("learner",),
    ("checkpoint", "training.resume", "training.run", "training.run_card"),
    ("interop",),
    ("translate", "learn", "evaluation", "validation_bleu"),
    ("recording",),
    ("benchmark",),
    ("capstone",),
    ("visualization",),
    ("beyond",),
    ("visualization.explorers", "visualization.explore"),
    ("arguments",),
    ("__main__",),
)
ORDER = [entry for row in ROWS for entry in row]


def module_name(path):
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


PATHS = sorted(PACKAGE.rglob("*.py"))
MODULES = [module_name(path) for path in PATHS if path.name != "__init__.py"]


def place(module):
    """Return the place of a module in the order; within a row a module may import from those left of it."""
    entries = [entry for entry in ORDER if module == entry or module.startswith(entry + ".")]
    assert entries, f"{module} is not in the table"
    return ORDER.index(max(entries, key=len))


@cache
def imports(path):
    """Return the full names of what a file imports, `from a import b` as a.b and a."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: expected an absolute import, got a relative one"
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def own_imports(module):
    """Return the modules of transformer_ref that a module imports."""
    path = PACKAGE / (module.replace(".", "/") + ".py")
    return {name.removeprefix("transformer_ref.") for name in imports(path)} & set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_what_stands_before_it(module):
    later = [name for name in own_imports(module) if place(name) > place(module)]
    assert not later, f"{module} imports {later}, which the reader has not met"


@pytest.mark.parametrize("module", [module for module in MODULES if module.startswith("training.")])
def test_training_reaches_no_decoding_however_far_one_follows_its_imports(module):
    reached, todo = set(), [module]
    while todo:
        reached.add(current := todo.pop())
        if not current.startswith("learner."):  # a learner's model brings its own searches
            todo += own_imports(current) - reached
    assert not {name for name in reached if name.startswith(("decoding.", "translate", "evaluation"))}


def test_only_the_door_knows_of_the_fast_folder():
    outside = [module for module in MODULES if not module.startswith("fast.") and module != "faster"]
    assert not [module for module in outside if any(name.startswith("fast.") for name in own_imports(module))]


FIGURES = [
    name for name in MODULES if name.startswith("visualization.") and not name.startswith("visualization.explore")
]


@pytest.mark.parametrize("module", FIGURES)
def test_a_figure_knows_numbers_and_words_and_nothing_of_the_model(module):
    assert all(name.startswith("visualization.") for name in own_imports(module))


@pytest.mark.parametrize("path", [path for path in PATHS if path.name == "__init__.py"], ids=module_name)
def test_an_init_imports_nothing_of_ours(path):
    assert not {name for name in imports(path) if name.startswith("transformer_ref")}


STATE = """
import importlib, logging, os, random, sys, warnings
names, libraries = sys.argv[1].split(","), sys.argv[2].split(",")
for library in libraries:
    importlib.import_module(library)
import torch

def state():
    return (torch.get_rng_state().tolist(), random.getstate(),
            torch.get_default_dtype(), torch.get_num_threads(),
            torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled(), list(warnings.filters),
            list(logging.getLogger().handlers), dict(os.environ), os.getcwd(), sys.path[:])

before = state()
for name in names:
    importlib.import_module("transformer_ref." + name)
changed = [number for number, (old, new) in enumerate(zip(before, state(), strict=True)) if old != new]
raise SystemExit(f"changed: {changed}" if changed else 0)
"""


def test_importing_everything_prints_nothing_and_changes_no_global_state():
    libraries = {
        name
        for path in PATHS
        for name in imports(path)
        if name.split(".")[0] not in ("transformer_ref", *sys.stdlib_module_names)
    }
    library = [module for module in MODULES if module != "__main__"]  # the program sets up its own process
    roots = sorted({name.split(".")[0] for name in libraries} | {"torch"})
    done = subprocess.run(
        [sys.executable, "-c", STATE, ",".join(library), ",".join(roots)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


HEAVY = (
    "ctranslate2",
    "matplotlib",
    "numpy",
    "onnx",
    "onnxruntime",
    "sacrebleu",
    "tensorboard",
    "transformers",
    "x_transformers",
)


def test_no_command_waits_for_a_library_that_only_another_one_needs():
    code = (
        "import sys, torch; before = set(sys.modules); import transformer_ref.__main__; "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & set(HEAVY)
