"""The experiment of chapter 12 in three parts: what it reads, how it is trained, what its heads do.

Everything is small enough for a notebook on two cores: the built-in English-Italian corpus and a model of one layer.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.data.batching import BatchStream
from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.data.grammar.pairs import Corpus, Pair
from transformer_ref.faster import TrainingLoss, accelerate, freed_memory_kept
from transformer_ref.model.transformer import Transformer
from transformer_ref.special_tokens import BOS, EOS, PAD
from transformer_ref.text.tokenizer import WordTokenizer
from transformer_ref.training.first_weights import draw_weights
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.optimizer import HAS_MUON, build_optimizer
from transformer_ref.training.trainer import Progress, Training, fit, validation_loss

PAIRS, STEPS = 60_000, 500
MODEL = dict(
    d_model=128, heads=8, encoder_layers=1, decoder_layers=1, d_ff=256, dropout=0.0, norm_first=True,
    tie_embeddings=True, max_length=128,
)  # fmt: skip
TRAINING = TrainingConfig(
    steps=STEPS, tokens_per_batch=1_536, schedule="linear", learning_rate=1e-2, muon_rate=1.2e-2, muon_momentum=0.9,
    weight_decay=0.2, muon_weight_decay=0.2, label_smoothing=0.05, max_grad_norm=10.0,
)  # fmt: skip
OTHER_RATE = 5e-3  # AdamW's, for a model whose parts are somebody else's
STATES = 10  # kept during a training run, one after each tenth of it
LINES = 20  # of progress


class Experiment(NamedTuple):
    """The data and the sizes of a training run. Both languages share one tokenizer, and so one embedding table."""

    corpus: Corpus
    tokenizer: WordTokenizer
    config: ModelConfig
    train: BatchStream
    validation: BatchStream


class Trained(NamedTuple):
    """The records of a training run: each step's loss, (step, loss) on validation, and the model's states then."""

    losses: list[float]
    validations: list[tuple[int, float]]
    states: list[dict[str, Tensor]]


def prepare(pairs: int = PAIRS, seed: int = 1, **changes) -> Experiment:
    """Return the built-in corpus, its tokenizer, batches, and the model's sizes.

    pairs: number of training pairs; seed: of their order; changes: fields of `ModelConfig`, such as d_model=64.
    """
    corpus = build_corpus(train=pairs)
    sides = [[pair.english for pair in corpus.train], [pair.italian for pair in corpus.train]]
    tokenizer = WordTokenizer.build([*sides[0], *sides[1]])
    config = ModelConfig(tokenizer.size, tokenizer.size, **{**MODEL, **changes})

    def stream(split: Sequence[Pair]) -> BatchStream:
        ids = [[tokenizer.encode(text) for text in side] for side in zip(*(pair[:2] for pair in split), strict=True)]
        return BatchStream(*ids, TRAINING.tokens_per_batch, PAD, BOS, EOS, seed)

    return Experiment(corpus, tokenizer, config, stream(corpus.train), stream(corpus.validation))


def train(
    model: nn.Module,
    experiment: Experiment,
    steps: int = STEPS,
    seed: int = 1,
    say: Callable[[str], object] = print,
) -> Trained:
    """Train a model in place on the experiment's pairs and return the records of the run.

    model: maps source ids and target input to logits, (batch, source), (batch, target) -> (batch, target, vocabulary).
        The package's `Transformer` is trained by the package's quick parts, any other by AdamW, as all are where torch
        has no Muon, and from first weights that are drawn as the package's are: those of nn.Embedding begin too large.
    say: told how it goes, a line now and then.
    """
    quick = isinstance(model, Transformer)
    if not quick:
        draw_weights(model, experiment.config)
    rates = (
        {} if quick and HAS_MUON else dict(learning_rate=OTHER_RATE, muon_rate=0.0, weight_decay=0.0, max_grad_norm=1.0)
    )
    config = replace(TRAINING, steps=steps, seed=seed, **rates)
    pad, smoothing = experiment.config.pad, config.label_smoothing
    loss = TrainingLoss(pad, smoothing) if quick else MeanLoss(pad, smoothing)
    training = Training(
        accelerate(model) if quick else model, build_optimizer(model, config), experiment.train, config, loss
    )
    found, tenth, told = Trained([], [], []), 0, 0

    def after(progress: Progress) -> None:
        nonlocal tenth, told
        if int(progress.share * STATES) > tenth:
            tenth = int(progress.share * STATES)
            found.states.append({name: tensor.detach().clone() for name, tensor in model.state_dict().items()})
            batches = experiment.validation.one_epoch()
            found.validations.append((progress.step, validation_loss(model, batches, pad)))
        if int(progress.share * LINES) > told:
            told = int(progress.share * LINES)
            recent = training.losses[-max(steps // LINES, 1) :]
            say(f"step {progress.step:,} of {steps:,}  loss {sum(recent) / len(recent):.3f}")

    try:
        with freed_memory_kept():
            fit(training, after)
    finally:
        found.losses.extend(training.losses)
        model.eval()
    return found


def opened(model: nn.Module, experiment: Experiment) -> Transformer:
    """Return the package's Transformer with a model's weights, since it can return its attention weights.

    model: the package's, which is returned unchanged, or a learner's Transformer(config), which is not modified; its
    weights are found by role. Raises OwnCodeError where they are not found or the two differ in numbers.
    """
    if isinstance(model, Transformer):
        return model
    # Grading, where the model is the package's, sees no more of the package than it needs.
    from transformer_ref.learner.own_weights import reference_of

    return reference_of(model, experiment.config)


@contextlib.contextmanager
def switched_off(model: Transformer, heads: Iterable[tuple[str, int, int]]) -> Iterator[None]:
    """Inside the `with` these heads are switched off: their output is multiplied by zero.

    heads: (kind, layer, head), counted from 0; kind: "encoder", "decoder" or "cross".
    Raises ValueError for an unknown kind.
    """
    places = {"encoder": (model.encoder, "self_attention"), "decoder": (model.decoder, "self_attention"),
              "cross": (model.decoder, "cross_attention")}  # fmt: skip
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    try:
        for kind, layer, head in heads:
            if kind not in places:
                raise ValueError(f'heads: expected "encoder", "decoder" or "cross", got {kind!r}')
            stack, name = places[kind]
            attention = getattr(stack.layers[layer], name)
            width = model.config.d_head
            with torch.no_grad():  # the output projection reads the heads side by side
                attention.out_proj.weight[:, head * width : (head + 1) * width] = 0
        yield
    finally:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(before[name])
