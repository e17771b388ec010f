"""Our recipes as `train` runs them: Muon, the running mean of the weights and all, in the precision chosen here."""

import dataclasses

import torch

from transformer_ref.benchmark.contest import OURS, Contender
from transformer_ref.benchmark.operations import operations_per_token
from transformer_ref.benchmark.sentences import invented_stream
from transformer_ref.config import ModelConfig
from transformer_ref.device import choose_precision
from transformer_ref.faster import TrainingLoss, accelerate, freed_memory_kept
from transformer_ref.model.transformer import Transformer
from transformer_ref.training.average import WeightAverage
from transformer_ref.training.cost import muon_operations
from transformer_ref.training.optimizer import build_optimizer
from transformer_ref.training.recipes import RECIPES, load_split
from transformer_ref.training.run import prepare
from transformer_ref.training.trainer import Progress, Training, fit

STEPS = {"grammar": 10, "multi30k": 3}  # in one turn, after a first one
TIMES_AS_MANY = 10  # on a GPU
VOCABULARY = 8_000  # of the multi30k recipe


def measured_recipe(corpus: str, device: torch.device) -> tuple[Contender, float]:
    """Return a recipe of RECIPES, ready to train, and the operations of model and Muon per real target token.

    corpus: "grammar" (the built-in one) or "multi30k".

    The built-in corpus is prepared as in `train`. For Multi30k, which would have to be downloaded, there are invented
    sentences of the same lengths.
    """
    training = _grammar(device) if corpus == "grammar" else _invented(corpus, device)
    is_bf16 = choose_precision(training.config.precision, device) == torch.bfloat16
    training.config = dataclasses.replace(training.config, precision="bf16" if is_bf16 else "fp32")
    stream = training.stream
    steps = STEPS[corpus] * (1 if device.type == "cpu" else TIMES_AS_MANY)
    of_muon = muon_operations(training.model.config) if training.config.muon_rate else 0.0
    operations = operations_per_token(training.model.config, iter(stream), of_muon)
    stream.epoch = stream.position = 0
    contender = Contender(
        OURS,
        training.config.precision,
        lambda: take_steps(training, steps),
        freed_memory_kept,  # as in `__main__`
        first=lambda: take_steps(training, 1),
    )
    return contender, operations


def take_steps(training: Training, count: int) -> int:
    """Train for `count` steps and return their target tokens."""
    last, before = training.step + count, training.tokens

    def is_last(progress: Progress) -> bool:
        return progress.step >= last

    fit(training, is_last)
    return training.tokens - before


def _grammar(device: torch.device) -> Training:
    recipe = RECIPES["grammar"]
    train, validation = (load_split("grammar", split, *recipe.languages) for split in ("train", "validation"))
    return prepare("grammar", train, validation, recipe.languages, recipe.training, device).training


def _invented(corpus: str, device: torch.device) -> Training:
    recipe = RECIPES[corpus]
    model_config, config = ModelConfig(VOCABULARY, VOCABULARY, **recipe.model), recipe.training
    model = accelerate(Transformer(model_config, torch.Generator().manual_seed(config.seed)).to(device))
    return Training(
        model,
        build_optimizer(model, config),
        invented_stream(VOCABULARY, config.tokens_per_batch),
        config,
        TrainingLoss(model_config.pad, config.label_smoothing),
        WeightAverage(model, config.ema_decay) if config.ema_decay else None,
    )
