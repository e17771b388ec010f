"""Train a translator of own parts with one broken part at a time, and have 12.3 judge it: broken_parts.json.

    python -m book.recorded.broken_parts [--only NAME ...]

The solutions' parts are in one file, as `assemble` writes it. In each training one of them is a known mistake of the
catalogue. `assemble` would leave it out, and `train --model` would name it before the first step; neither is asked, so
this shows what the translations tell. Every model learns the built-in corpus and is asked what 12.3 asks. Some of the
answers are recorded, so that a test can have them judged again by the symptoms as they are then. A minute of one core a
part, and several for the search; what is recorded already is kept.
"""

import argparse
import json
import math
import platform
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from autograder import catalogue, course
from autograder.assemble import gather
from autograder.assemble.run import TRANSLATOR
from autograder.assemble.write import as_file
from autograder.catalogue.exercise import Misconception
from autograder.diagnosis.explain import explain
from autograder.judging.judge import JudgingSession, draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.judging.probe_inputs import question_of
from autograder.judging.verdict import Verdict
from autograder.prepare.release import answer_cells
from transformer_ref.data.batching import pad_sequences
from transformer_ref.data.parallel_text import Parallel
from transformer_ref.learner.own_code import OwnCode
from transformer_ref.learner.own_model import OwnTransformer
from transformer_ref.learner.own_training import OwnParts, own_settings
from transformer_ref.recording import FOLDER
from transformer_ref.special_tokens import BOS, EOS, PAD
from transformer_ref.text.tokenizer import Tokenizer
from transformer_ref.training.recipes import RECIPES, load_split, varied
from transformer_ref.training.run import changed, prepare
from transformer_ref.training.trainer import fit

RECORD = FOLDER / "broken_parts.json"
SOUND = "none"
SIZES = dict(d_model=64, heads=4, d_ff=128)  # half of the recipe's
STEPS, TOKENS, LAST = 500, 1_024, 50  # of a training; the steps whose mean loss stands for its end
LONGEST, BEAM, EXPONENT = 40, 4, 1.0  # tokens of a translation; of a search
KEY = draw_key(b"broken parts", "12_capstone", "translate", [])  # of the lines that 12.3 asks for
Decode = Callable[[OwnTransformer, Tensor], list[list[int]]]


class Broken(NamedTuple):
    """A part of the learner's file with a mistake of the catalogue."""

    exercise: str
    mistake: str

    def known(self) -> Misconception:
        """The mistake."""
        return next(each for each in catalogue.find(self.exercise).mistakes if each.name == self.mistake)


BROKEN = {
    "no root of d_k": Broken("multi-head-attention", "no scaling"),
    "heads not transposed back": Broken("multi-head-attention", "heads merged by reshape alone"),
    "no causal mask": Broken("decoder-mask", "padding only"),
    "no padding mask": Broken("transformer", "pads of the source seen"),
    "no positions": Broken("transformer", "no positions"),
    "norm over the words": Broken("layer-norm", "over the words"),
    "no residual": Broken("transformer", "no residual"),
    "the source not read": Broken("transformer", "cross-attention reads the decoder"),
    "targets not shifted": Broken("shift-right", "not shifted"),
    "smoothing counts pads": Broken("smooth-targets", "rows of pads left"),
    "the cache misplaced": Broken("decode-step", "position always 0"),
    "beam sum without length": Broken("beam-search", "no division by the length"),
}
OWN_NORM = """

class OwnNorm(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return layer_norm(x, self.weight, self.bias, 1e-5)
"""


def with_broken(sound: OwnCode, name: str) -> OwnCode:
    """Return the file with one part replaced by the broken one.

    The solution's Transformer uses torch's norms; for a broken norm it uses the learner's.
    """
    if name == SOUND:
        return sound
    text, broken = sound.text, BROKEN[name]
    if broken.exercise == "layer-norm":
        text = text.replace("nn.LayerNorm(", "OwnNorm(") + OWN_NORM
    return OwnCode.of_text(sound.name, f"{text}\n\n\n{broken.known().source}")


def assembled() -> OwnCode:
    """Return the file of the solutions' parts. They are not judged again: release has done that."""
    root, pieces = course.find_root(), []
    for assignment in catalogue.ASSIGNMENTS:
        if asked_of := [name for name in assignment.exercise_ids if name in TRANSLATOR]:
            released = course.read_notebook(course.notebook_path(root, "exercises", assignment))
            solved = answer_cells(root, "solutions", assignment)
            for cell in released["cells"]:
                cell["source"] = solved.get(cell["id"], cell["source"])
            cells = list(course.code_cells(released))
            pieces += [gather.answer_of(cells, assignment, assignment.load(name)) for name in asked_of]
    return OwnCode.of_text("my_transformer.py", as_file(pieces, len(pieces)).text)


class Trained(NamedTuple):
    """A trained model, its tokenizer, and its final loss."""

    model: OwnTransformer
    tokenizer: Tokenizer
    loss: float


def trained(code: OwnCode) -> Trained:
    """Train this code on the built-in corpus."""
    recipe = varied(RECIPES["grammar"], model=SIZES)
    config = changed(own_settings(recipe.training, code), steps=STEPS, tokens_per_batch=TOKENS, seed=1)
    splits = [_split(split) for split in ("train", "validation")]
    run = prepare("grammar", *splits, recipe.languages, config, torch.device("cpu"), recipe, parts=OwnParts(code))
    fit(run.training, lambda progress: None)
    model = run.training.average.of(run.training.model) if run.training.average else run.training.model
    return Trained(model.eval(), run.source_tokenizer, sum(run.training.losses[-LAST:]) / LAST)


@cache
def _split(name: str) -> Parallel:
    return load_split("grammar", name, *RECIPES["grammar"].languages)


@torch.inference_mode()
def greedily(model: OwnTransformer, source: Tensor) -> list[list[int]]:
    """The likeliest next token of each row, all rows in one batch, as the notebook's solution does it."""
    target = torch.full((len(source), 1), BOS)
    while not (target == EOS).any(dim=1).all() and target.shape[1] <= LONGEST:
        newest = model(source, target)[:, -1].argmax(dim=-1)  # (batch,)
        target = torch.cat([target, newest[:, None]], dim=1)
    return target[:, 1:].tolist()


@torch.inference_mode()
def by_beam(model: OwnTransformer, source: Tensor) -> list[list[int]]:
    """The best hypothesis of the learner's own beam search, one sentence after another."""
    search, found = model.code.module.beam_search, []
    for row in source:

        def step(prefixes: Tensor, row: Tensor = row) -> Tensor:
            return model(row[None].expand(len(prefixes), -1), prefixes)[:, -1].log_softmax(dim=-1)

        found.append(search(step, BEAM, LONGEST, EXPONENT, BOS, EOS)[0][0][1:])
    return found


class _Cached:
    """A learner's decoder as `decode_step` takes one: its heads are in the batch, (batch * heads, words, d_head)."""

    def __init__(self, model: OwnTransformer) -> None:
        self.own, self.module = model.own, model.code.module
        (self.layer,) = self.own.decoder
        self.asks, self.across = self.layer.attentions
        self.layers = [self]

    def embed(self, ids: Tensor, places: Tensor) -> Tensor:
        """Words at their places, each sentence once for each head, (batch * heads, words, d_model)."""
        width = self.own.cfg.d_model
        table = self.module.sinusoidal_pe(int(places.max()) + 1, width)
        x = self.own.target(ids) * math.sqrt(width) + table[places].to(self.own.target.weight.dtype)
        return x.repeat_interleave(self.own.cfg.heads, dim=0)

    def query(self, x: Tensor) -> Tensor:
        """The queries of each head."""
        return self._of_each_head(self.asks.W_q, x)

    def key(self, x: Tensor) -> Tensor:
        """The keys of each head."""
        return self._of_each_head(self.asks.W_k, x)

    def value(self, x: Tensor) -> Tensor:
        """The values of each head."""
        return self._of_each_head(self.asks.W_v, x)

    def rest(self, x: Tensor, mixed: Tensor, cross: tuple[Tensor, Tensor]) -> Tensor:
        """The layer from the output projection on."""
        heads = self.own.cfg.heads
        x, (memory, seen) = x[::heads], cross
        together = mixed.unflatten(0, (-1, heads)).transpose(1, 2).flatten(2)  # (batch, words, d_model)
        x = x + self.asks.W_o(together)
        x = x + self.across(self.layer.norms[1](x), memory, seen)
        x = x + self.layer.think(self.layer.norms[2](x))
        return x.repeat_interleave(heads, dim=0)

    def head(self, x: Tensor) -> Tensor:
        """Logits, (batch, words, vocabulary)."""
        return self.own.output(self.own.decoder_norm(x[:: self.own.cfg.heads]))

    def _of_each_head(self, projection: torch.nn.Module, x: Tensor) -> Tensor:
        heads = self.own.cfg.heads
        whole = projection(self.layer.norms[0](x[::heads]))  # (batch, words, d_model)
        return whole.unflatten(2, (heads, -1)).transpose(1, 2).flatten(0, 1)


@torch.inference_mode()
def by_cache(model: OwnTransformer, source: Tensor) -> list[list[int]]:
    """The likeliest next token, by the learner's own `decode_step`: only the newest word is computed."""
    decoder, own = _Cached(model), model.own
    seen = decoder.module.padding_mask(source, own.cfg.pad)
    memory = decoder.module.embedded(own, own.source, source)
    for layer in own.encoder:
        memory = layer(memory, seen)
    empty = torch.zeros(len(source) * own.cfg.heads, 0, own.cfg.d_model // own.cfg.heads)
    cache = [(empty, empty, (own.encoder_norm(memory), seen))]
    target = torch.full((len(source), 1), BOS)
    while not (target == EOS).any(dim=1).all() and target.shape[1] <= LONGEST:
        logits, cache = decoder.module.decode_step(decoder, target[:, -1:], cache, target.shape[1] - 1)
        target = torch.cat([target, logits.argmax(dim=-1, keepdim=True)], dim=1)
    return target[:, 1:].tolist()


DECODES: dict[str, Decode] = {"decode-step": by_cache, "beam-search": by_beam}  # any other mistake: greedily


def translating(made: Trained, decode: Decode) -> Callable[[list[str]], list[str]]:
    """Return what 12.3 asks for."""

    def translate(lines: list[str]) -> list[str]:
        if not lines:
            return []
        source = pad_sequences([[*made.tokenizer.encode(line), EOS] for line in lines], PAD)
        found = [made.tokenizer.decode(row) for row in map(_until_end, decode(made.model, source))]
        return [text if line.strip() else "" for line, text in zip(lines, found, strict=True)]

    return translate


def _until_end(row: Sequence[int]) -> list[int]:
    return list(row[: row.index(EOS)]) if EOS in row else list(row)


def judged(translate: Callable[[list[str]], list[str]], key: bytes | None = KEY) -> Verdict:
    """The verdict of a learner's own check of 12.3 on a translator: with a key, also on its hidden lines."""
    session = JudgingSession(catalogue.find("translate"), key, disclosed=True)
    endpoint = LocalEndpoint({"translate": translate})
    session.ask(endpoint, hidden=False)
    session.ask(endpoint, hidden=True)
    return explain(session.verdict())


def replayed(seen: dict) -> Callable[[list[str]], list[str]]:
    """Return a translator that returns the recorded translations for the visible probes, and nothing for other
    lines."""
    asked = _asked()
    known = {tuple(lines): list(said) for lines, said in zip(asked, seen["answers"], strict=True)}
    for place, (line, said) in enumerate(zip(asked[0], seen["answers"][0], strict=True)):
        known.setdefault((line,), [seen["alone"].get(str(place), said)])
    return lambda lines: known.get(tuple(lines), [""] * len(lines))


def _asked() -> list[list[str]]:
    """The lines of the visible probes."""
    exercise = catalogue.find("translate")
    return [question_of(exercise, probe, b"")[0].arguments[0] for probe in exercise.visible]


def of(verdict: Verdict) -> dict:
    """The record of a verdict: the score on its hidden lines, the points, the named mistake, the translations for the
    visible probes, and the indices of the first one's lines whose translation differs when translated separately."""
    *visible, whole = verdict.outcomes
    scale = whole.probe.scale
    score = scale.measure(whole.expected.result, whole.got.result)
    answers = [outcome.got.result[: len(lines)] for outcome, lines in zip(visible, _asked(), strict=True)]
    alone = visible[0].got.result[len(answers[0]) : 2 * len(answers[0])]
    return {
        "bleu": round(score, 2),
        "points": round(scale.share(score) * verdict.exercise.points, 1),
        "named": verdict.misconception.name if verdict.misconception else "",
        "answers": answers,
        "alone": {str(place): text for place, text in enumerate(alone) if text != answers[0][place]},
    }


def measure(sound: OwnCode, name: str, known: dict[str, Trained]) -> dict:
    """Train with a broken part, judge it, and return the record.

    known: the model of the correct file, with which a broken search or cache translates too.
    """
    code, began = with_broken(sound, name), time.process_time()
    search = DECODES.get(BROKEN[name].exercise) if name in BROKEN else None
    if search and SOUND in known:
        model = known[SOUND].model
        made = known[SOUND]._replace(model=model.__deepcopy__({}))
        made.model.code = code
    else:
        made = trained(code)
        if name == SOUND or search:
            known[SOUND] = made
    found = of(judged(translating(made, search or greedily)))
    return {"loss": round(made.loss, 3), "seconds": round(time.process_time() - began), **found}


def main(arguments: Sequence[str] | None = None) -> None:
    """Train what is missing in the record, writing after each training."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[SOUND, *BROKEN], metavar="NAME", help="these anew")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    about = {
        "versions": {"python": platform.python_version(), "torch": torch.__version__}, "steps": STEPS,
        "tokens_per_batch": TOKENS, "sizes": SIZES, "seed": 1,
        "command": "python -m book.recorded.broken_parts",
    }  # fmt: skip
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    if record.get("about") != about:
        record = {"about": about, "parts": {}}
    for name in chosen.only or ():
        record["parts"].pop(name, None)
    sound, known = assembled(), {}
    # what the sound model translates with comes right after it
    for name in sorted([SOUND, *BROKEN], key=lambda name: name in BROKEN and BROKEN[name].exercise not in DECODES):
        if name in record["parts"] or name not in (chosen.only or (SOUND, *BROKEN)):
            continue
        record["parts"][name] = seen = measure(sound, name, known)
        told = {what: value for what, value in seen.items() if what != "answers"}
        print(f"{name}: {told}", flush=True)
        write(record)


def write(record: dict) -> None:
    """Write the record atomically."""
    record["parts"] = {name: record["parts"][name] for name in (SOUND, *BROKEN) if name in record["parts"]}
    part = RECORD.with_suffix(".part")
    part.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(RECORD)


if __name__ == "__main__":
    main()
