"""How a learner's parts differ from the package's, and which classic mistake does the same, before a training run.

Each part that a training run or a translation uses gets a small input. A Transformer is compared with the package's
that holds its weights: sound, or with one fault of the laboratory in it, and the fault that gives the same numbers is
named.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_ref.config import ModelConfig
from transformer_ref.data.batching import shift_right
from transformer_ref.faults.experiment import Experiment, Fault
from transformer_ref.faults.known import FAULTS
from transformer_ref.learner import own_weights
from transformer_ref.learner.own_file import MODEL, LearnersFile, OwnCodeError
from transformer_ref.learner.own_model import OwnTransformer
from transformer_ref.learner.own_search import own_greedy
from transformer_ref.learner.own_training import new_own_model
from transformer_ref.learner.own_weights import NotFound
from transformer_ref.model.transformer import Transformer
from transformer_ref.training.loss import MeanLoss, masked_cross_entropy, smooth_targets

SMALL = dict(d_model=12, heads=3, encoder_layers=2, decoder_layers=2, d_ff=20, dropout=0.0, max_length=24)
READINGS = 16  # of a learner's weights, tried with each fault
CLOSE = dict(rtol=1e-4, atol=1e-5)


def remarks(code: LearnersFile, config: ModelConfig) -> list[str]:
    """Return a sentence for each part that computes something else than the package's; it may still be trained.

    config: of the model to be trained; the check uses a smaller one. A part that raises, that refuses the small sizes
    or that returns something unexpected is skipped: a hint never stops a training run, and the rehearsal reports what
    cannot be trained.
    """
    found = []
    for ask in (_of_transformer, _of_shift, _of_loss, _of_targets, _of_greedy, _of_beam):
        try:
            found += ask(code, config)
        except Exception:
            continue
    return found


def _of_transformer(code: LearnersFile, config: ModelConfig) -> Iterator[str]:
    own = _small(code, config)
    try:
        own_weights.as_reference(own)
    except OwnCodeError as different:
        fault = _same_fault(own)
        if fault is None:
            yield f"{different}. It can be trained, and no page can be made of it"
        else:
            yield (
                f"{MODEL} computes what comes out with this mistake: {fault.name}. Look for something like "
                f"`{fault.code}` where `{fault.sound}` is meant"
            )


def _small(code: LearnersFile, config: ModelConfig) -> OwnTransformer:
    """Return a small model of the learner's in evaluation mode, with no weight equal to 0 or 1."""
    special = max(config.pad, config.bos, config.eos)
    vocabulary = dict(source_vocabulary=special + 15, target_vocabulary=special + (15 if config.tie_embeddings else 17))
    own = new_own_model(code, replace(config, **vocabulary, **SMALL), seed=1).eval()
    draw = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for weight in own.parameters():
            weight += 0.2 * torch.randn(weight.shape, generator=draw)
    return own


def _same_fault(own: OwnTransformer) -> Fault | None:
    """Return the fault with which the package's model gives the learner's outputs, or None."""
    source, target = own_weights.random_ids(own.config)
    try:
        with torch.no_grad():
            wanted = own(source, target)  # (batch, target, vocabulary)
        for reference in own_weights.references(own, READINGS):
            with torch.no_grad():
                sound = reference(source, target)
            for fault in FAULTS:
                said = _with_fault(reference, fault, source, target)
                changed = said is not None and not torch.equal(said, sound)
                if changed and own_weights.gap(said, wanted) < own_weights.SAME:
                    return fault
    except (NotFound, RuntimeError, ValueError):  # its roles or shapes are not those of the package's model
        return None
    return None


def _with_fault(sound: Transformer, fault: Fault, source: Tensor, target: Tensor) -> Tensor | None:
    """Return the model's output with a fault in it; None for a fault that the model cannot have."""
    experiment = Experiment(copy.deepcopy(sound), MeanLoss(sound.config.pad))
    try:
        fault.put(experiment)
        with torch.no_grad():
            return experiment.model(source, target)
    except (RuntimeError, IndexError):
        return None


def _labels(config: ModelConfig) -> Tensor:
    """Return two rows of labels, the second with padding."""
    first = max(config.pad, config.bos, config.eos) + 1
    words = [[first, first + 1, first + 2, first, config.eos], [first + 3, config.eos, *[config.pad] * 3]]
    return torch.tensor(words)  # (2, 5)


def _of_shift(code: LearnersFile, config: ModelConfig) -> Iterator[str]:
    labels, own = _labels(config), code.part("shift_right")
    if own is None:
        return
    with code.called("shift_right"):
        shifted = torch.as_tensor(own(labels.clone(), config.bos))
    if torch.equal(shifted, labels):
        yield "shift_right gives the labels as they are: the decoder reads what it should predict, and learns to copy"
    elif not torch.equal(shifted, shift_right(labels, config.bos)):
        yield f"shift_right makes {shifted.tolist()[0]} of {labels.tolist()[0]}, not bos and all labels but the last"


def _of_loss(code: LearnersFile, config: ModelConfig) -> Iterator[str]:
    labels, own = _labels(config), code.part("masked_ce")
    if own is None:
        return
    logits = torch.randn(*labels.shape, int(labels.max()) + 2, generator=torch.Generator().manual_seed(1))
    with code.called("masked_ce"):
        loss = torch.as_tensor(own(logits.clone(), labels.clone(), config.pad))
    loss = loss.to(logits)
    if torch.allclose(loss, F.cross_entropy(logits.flatten(0, 1), labels.flatten()), **CLOSE):
        yield "masked_ce counts padding: pads cost something, and the model learns to write them"
    elif not torch.allclose(loss, masked_cross_entropy(logits, labels, config.pad), **CLOSE):
        yield "masked_ce gives another number than the mean of -log p over the labels that are not pads"


def _of_targets(code: LearnersFile, config: ModelConfig) -> Iterator[str]:
    labels, own = _labels(config), code.part("smooth_targets")
    if own is None:
        return
    sizes = int(labels.max()) + 2, 0.1, config.pad
    with code.called("smooth_targets"):
        targets, wanted = torch.as_tensor(own(labels.clone(), *sizes)), smooth_targets(labels, *sizes)
    if targets.shape == wanted.shape and targets[labels == config.pad].any():
        yield "smooth_targets counts padding: rows whose label is a pad are not zero, so pads are learned like words"
    elif targets.shape != wanted.shape or not torch.allclose(targets.to(wanted), wanted, **CLOSE):
        yield "smooth_targets gives other shares than 1 - eps to the label, 0 to the pad, the rest in equal parts"


def _of_greedy(code: LearnersFile, config: ModelConfig) -> Iterator[str]:
    if code.part("greedy_decode") is None:
        return
    own, longest = _small(code, config), 7
    source, _ = own_weights.random_ids(own.config)
    ids = own_greedy(own, source, longest)
    if ids.shape[1] < 2:
        yield "greedy_decode adds no token to bos"
        return
    with torch.no_grad():  # prefix by prefix, since a model that sees later words says something else of a whole row
        likeliest = [own(source, ids[:, :place])[:, -1].argmax(dim=-1) for place in range(1, ids.shape[1])]
    wanted = torch.stack(likeliest, dim=1)  # (batch, tokens)
    ended = (ids[:, :-1] == config.eos).cummax(dim=1).values  # (batch, tokens): after the end anything may be
    if (ids[:, 0] != config.bos).any() or ((ids[:, 1:] != wanted) & ~ended).any():
        yield "greedy_decode writes a word that is not the likeliest after those before it"
    elif ids.shape[1] <= longest and not (ids == config.eos).any(dim=1).all():
        yield "greedy_decode stops before every row has ended"


def _of_beam(code: LearnersFile, config: ModelConfig) -> Iterator[str]:
    own = code.part("beam_search")
    if own is None:
        return
    eos, first = config.eos, max(config.pad, config.bos, config.eos) + 1
    table = torch.full((first + 3,), 1e-4)
    table[[eos, first, first + 1]] = torch.tensor([0.4, 0.3, 0.2])
    step = _after(table.div(table.sum()).log(), eos)
    with code.called("beam_search"):
        found = [([int(id) for id in ids], float(score)) for ids, score in own(step, 3, 4, 1.0, config.bos, eos)]
    for ids, score in found:
        ids = ids if ids[:1] == [config.bos] else [config.bos, *ids]  # some return only what was generated
        if len(ids) < 2:
            continue
        total = sum(float(step(torch.tensor([ids[:place]]))[0, ids[place]]) for place in range(1, len(ids)))
        if abs(score - total / (len(ids) - 1)) > 1e-3:
            yield (
                "beam_search does not divide the sum of log p by the length to the power of alpha: with only a sum, "
                "short answers win"
            )
            return


def _after(log_p: Tensor, eos: int) -> Callable[[Tensor], Tensor]:
    """A model without memory: any word may follow, and eos becomes more probable with every word."""

    def step(prefixes: Tensor) -> Tensor:
        scores = log_p.repeat(len(prefixes), 1)  # (prefixes, vocabulary)
        scores[:, eos] += 0.5 * (prefixes.shape[1] - 1)
        return scores.log_softmax(dim=-1)

    return step
