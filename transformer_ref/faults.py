"""A Transformer with one fault in it: what classic mistakes do to a training (chapter 08's laboratory).

Nothing of the model is changed for this. A fault takes an `Experiment` (a sound model, the loss, the batches, one
training step, how it translates) and puts something wrong in the place of one of its parts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_ref.data.batching import Batch, shift_right
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.model.attention import AttentionResult
from transformer_ref.model.masks import causal_mask
from transformer_ref.model.multi_head_attention import MultiHeadAttention, merge_heads, split_heads
from transformer_ref.model.positional_encoding import SinusoidalPositions
from transformer_ref.model.residual import Residual
from transformer_ref.model.transformer import Transformer
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.trainer import train_step

HIDDEN = -1e9  # what a hidden score is set to


def same_batch(batch: Batch) -> Batch:
    """Return the batch as it is."""
    return batch


def sound_step(experiment: "Experiment", batch: Batch, optimizer: torch.optim.Optimizer) -> float:
    """Take one training step and return the loss."""
    return train_step(experiment.model, batch, optimizer, experiment.loss, clip=1.0).loss


def sound_translations(experiment: "Experiment", source_ids: Tensor, max_length: int) -> Tensor:
    """Return the greedy translation of each source, (batch, at most max_length + 1)."""
    experiment.model.eval()
    return greedy_decode(experiment.model, source_ids, max_length, use_cache=False)


def every_weight(model: nn.Module) -> list[nn.Parameter]:
    """Return what an optimizer is to move."""
    return list(model.parameters())


@dataclass
class Experiment:
    """All that one training consists of, each part replaceable."""

    model: Transformer
    loss: MeanLoss
    batch: Callable[[Batch], Batch] = same_batch  # what becomes of a batch before it is used
    step: Callable[["Experiment", Batch, torch.optim.Optimizer], float] = sound_step
    weights: Callable[[nn.Module], list[nn.Parameter]] = every_weight
    translate: Callable[["Experiment", Tensor, int], Tensor] = sound_translations
    rate: float = 1.0  # by which the learning rate is multiplied


class Fault(NamedTuple):
    """One mistake."""

    name: str  # as people call it
    code: str  # the line that is wrong
    sound: str  # the line as it should be
    test: str  # the name of the test that finds it, in book/recorded/laboratory_tests.py
    put: Callable[[Experiment], None]


# --- attention, opened ----------------------------------------------------------------------------------------------


def shares(scores: Tensor, mask: Tensor) -> Tensor:
    """Return what each query gives each key."""
    return torch.softmax(scores.masked_fill(~mask, HIDDEN), dim=-1)


@dataclass
class Steps:
    """What an attention does, one function a step."""

    split: Callable[[Tensor, int], Tensor] = split_heads
    scale: Callable[[int], float] = lambda d_head: d_head**0.5
    mask: Callable[[Tensor], Tensor] = lambda mask: mask
    shares: Callable[[Tensor, Tensor], Tensor] = shares
    merge: Callable[[Tensor], Tensor] = merge_heads
    keys_from: Callable[[Tensor, Tensor], Tensor] = lambda asking, answering: answering


class OpenAttention(nn.Module):
    """A `MultiHeadAttention` with the same weights, computed by `Steps` that can be replaced."""

    def __init__(self, sound: MultiHeadAttention, steps: Steps) -> None:
        super().__init__()
        self.heads, self.steps = sound.heads, steps
        self.project_query, self.project_key = sound.project_query, sound.project_key
        self.project_value, self.project_output = sound.project_value, sound.project_output

    def forward(
        self,
        query_input: Tensor,
        key_value_input: Tensor | None = None,
        mask: Tensor | None = None,
        cache: None = None,
        need_weights: bool = False,
    ) -> AttentionResult:
        """Return what `MultiHeadAttention` returns, without a cache and always with the weights."""
        steps = self.steps
        asked = query_input if key_value_input is None else steps.keys_from(query_input, key_value_input)
        if mask is None or mask.shape[-1] != asked.shape[1]:
            mask = causal_mask(asked.shape[1])[-query_input.shape[1] :]
        query = steps.split(self.project_query(query_input), self.heads)  # (batch, heads, query, d_head)
        key, value = (steps.split(project(asked), self.heads) for project in (self.project_key, self.project_value))
        scores = query @ key.transpose(-2, -1) / steps.scale(query.shape[-1])  # (batch, heads, query, key)
        weights = steps.shares(scores, steps.mask(mask))  # (batch, heads, query, key)
        return AttentionResult(self.project_output(steps.merge(weights @ value)), weights)


def attentions(model: nn.Module, kinds: str = "encoder self cross") -> list[tuple[nn.Module, str]]:
    """Return (layer, name of its attention) for the attentions of these kinds."""
    found = [(layer, "self_attention") for layer in model.encoder.layers if "encoder" in kinds]
    found += [(layer, "self_attention") for layer in model.decoder.layers if "self" in kinds]
    return found + [(layer, "cross_attention") for layer in model.decoder.layers if "cross" in kinds]


def opened(kinds: str = "encoder self cross", **steps: Callable) -> Callable[[Experiment], None]:
    """Return the fault that replaces steps of the attentions of these kinds."""

    def put(experiment: Experiment) -> None:
        for layer, name in attentions(experiment.model, kinds):
            setattr(layer, name, OpenAttention(getattr(layer, name), Steps(**steps)))

    return put


def split_by_view(x: Tensor, heads: int) -> Tensor:
    batch, length, d_model = x.shape
    return x.reshape(batch, heads, length, d_model // heads)


def merge_by_view(x: Tensor) -> Tensor:
    batch, heads, length, d_head = x.shape
    return x.reshape(batch, length, heads * d_head)


def mean_of_heads(x: Tensor) -> Tensor:
    return x.mean(dim=1).repeat(1, 1, x.shape[1])  # (batch, length, d_model)


def softmax_over(axis: int) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda scores, mask: torch.softmax(scores.masked_fill(~mask, HIDDEN), dim=axis)


def mask_after_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-1) * mask


def scores_times_mask(scores: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(scores * mask, dim=-1)


def later_only(mask: Tensor) -> Tensor:
    return mask.transpose(-2, -1)


def one_future_open(mask: Tensor) -> Tensor:
    return mask | torch.ones_like(mask).tril(1)


def diagonal_blocked(mask: Tensor) -> Tensor:
    length = mask.shape[-1]
    return mask & ~torch.eye(length, dtype=torch.bool)[-mask.shape[-2] :]


def all_true(mask: Tensor) -> Tensor:
    return torch.ones_like(mask)


def and_causal(mask: Tensor) -> Tensor:
    return mask & causal_mask(mask.shape[-1])


# --- other parts ----------------------------------------------------------------------------------------------------


def replaced(kind: type[nn.Module], make: Callable[[nn.Module], nn.Module]) -> Callable[[Experiment], None]:
    """Return the fault that puts something made of it in the place of every module of a kind."""

    def put(experiment: Experiment) -> None:
        for module in list(experiment.model.modules()):
            for name, child in module.named_children():
                if isinstance(child, kind):
                    setattr(module, name, make(child))

    return put


class OtherNorm(nn.Module):
    """A layer norm with the weights of a sound one, over another axis or with another variance."""

    def __init__(self, sound: nn.LayerNorm, axis: int = -1, correction: int = 0) -> None:
        super().__init__()
        self.weight, self.bias, self.axis, self.correction = sound.weight, sound.bias, axis, correction

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, length, d_model)."""
        correction = min(self.correction, x.shape[self.axis] - 1)
        variance = x.var(dim=self.axis, keepdim=True, correction=correction)
        return (x - x.mean(dim=self.axis, keepdim=True)) / (variance + 1e-5).sqrt() * self.weight + self.bias


class WithoutResidual(Residual):
    """Forgets the tokens that the sub-layer's output is added to."""

    def __init__(self, sound: Residual) -> None:
        nn.Module.__init__(self)
        self.norm, self.dropout, self.norm_first = sound.norm, sound.dropout, sound.norm_first

    def write(self, x: Tensor, change: Tensor) -> Tensor:
        """Return the change alone."""
        return self.dropout(change)


class OtherPositions(nn.Module):
    """Positions that are not where the tokens stand. of: (tokens, their places) -> places in the table."""

    def __init__(self, sound: SinusoidalPositions, add: Callable[[Tensor, Tensor, int], Tensor]) -> None:
        super().__init__()
        self.register_buffer("table", sound.table, persistent=False)
        self.add = add

    def forward(self, x: Tensor, positions: int = 0) -> Tensor:
        """Return x, (batch, length, d_model), with what `add` makes of it."""
        return self.add(x, self.table, positions)


def positions(add: Callable[[Tensor, Tensor, int], Tensor]) -> Callable[[Experiment], None]:
    """Return the fault that adds positions otherwise."""
    return replaced(SinusoidalPositions, lambda sound: OtherPositions(sound, add))


def unscaled(experiment: Experiment) -> None:
    experiment.model.source_embedding.scale = experiment.model.target_embedding.scale = 1.0


def without_source_mask(experiment: Experiment) -> None:
    opened("encoder cross", mask=all_true)(experiment)


def linear_feed_forward(experiment: Experiment) -> None:
    for layer in [*experiment.model.encoder.layers, *experiment.model.decoder.layers]:
        layer.feed_forward = nn.Sequential(layer.feed_forward.widen, layer.feed_forward.narrow)


def frozen_encoder(experiment: Experiment) -> None:
    """The memory is detached on its way to the decoder."""
    encoder = experiment.model.encoder
    sound = encoder.forward

    def forward(*arguments, **named):
        result = sound(*arguments, **named)
        return result._replace(memory=result.memory.detach())

    encoder.forward = forward


# --- data, loss, step, translation ----------------------------------------------------------------------------------


def batches(change: Callable[[Batch, int, int], Batch]) -> Callable[[Experiment], None]:
    """Return the fault that trains on changed batches. change: (batch, bos, pad) -> batch."""

    def put(experiment: Experiment) -> None:
        config = experiment.model.config
        experiment.batch = lambda batch: change(batch, config.bos, config.pad)

    return put


def not_shifted(batch: Batch, bos: int, pad: int) -> Batch:
    return batch._replace(target_input=batch.target_labels)


def shifted_twice(batch: Batch, bos: int, pad: int) -> Batch:
    return batch._replace(target_input=shift_right(batch.target_input, bos))


def without_end(batch: Batch, bos: int, pad: int) -> Batch:
    labels = batch.target_labels
    last = (labels != pad).sum(dim=1, keepdim=True) - 1
    return batch._replace(target_labels=labels.scatter(1, last, pad))


class PadsCounted(MeanLoss):
    """The mean over all places, pads among them."""

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the loss, a scalar."""
        return F.cross_entropy(model(batch.source, batch.target_input).flatten(0, 1), batch.target_labels.flatten())


class DoubleSoftmax(MeanLoss):
    """A softmax before a loss that takes one itself."""

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the loss, a scalar."""
        shares_of_words = model(batch.source, batch.target_input).softmax(dim=-1)
        return F.cross_entropy(shares_of_words.flatten(0, 1), batch.target_labels.flatten(), ignore_index=self.pad)


def other_loss(kind: type[MeanLoss]) -> Callable[[Experiment], None]:
    def put(experiment: Experiment) -> None:
        experiment.loss = kind(experiment.loss.pad)

    return put


def step_without_zero_grad(experiment: Experiment, batch: Batch, optimizer: torch.optim.Optimizer) -> float:
    experiment.model.train()
    loss = experiment.loss(experiment.model, batch)
    loss.backward()
    nn.utils.clip_grad_norm_(experiment.model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def part(**parts) -> Callable[[Experiment], None]:
    """Return the fault that replaces parts of the experiment itself."""

    def put(experiment: Experiment) -> None:
        for name, value in parts.items():
            setattr(experiment, name, value)

    return put


def with_dropout_on(experiment: Experiment, source_ids: Tensor, max_length: int) -> Tensor:
    """Greedy decoding by a model in training mode."""
    return by_hand(experiment, source_ids, max_length, training=True)


def from_eos(experiment: Experiment, source_ids: Tensor, max_length: int) -> Tensor:
    """Greedy decoding whose first input is the wrong special token."""
    return by_hand(experiment, source_ids, max_length, first=experiment.model.config.eos)


def first_place(experiment: Experiment, source_ids: Tensor, max_length: int) -> Tensor:
    """Greedy decoding that reads the scores at the first place instead of the last."""
    return by_hand(experiment, source_ids, max_length, place=0)


@torch.inference_mode()
def by_hand(
    experiment: Experiment,
    source_ids: Tensor,
    max_length: int,
    training: bool = False,
    first: int | None = None,
    place: int = -1,
) -> Tensor:
    """Return greedy translations, with the whole prefix read at each step; the arguments are the faults."""
    model, config = experiment.model, experiment.model.config
    model.train(training)
    target = torch.full((len(source_ids), 1), config.bos if first is None else first)
    done = torch.zeros(len(source_ids), dtype=torch.bool)
    for _ in range(max_length):
        chosen = model(source_ids, target)[:, place].argmax(dim=-1)  # (batch,)
        target = torch.cat([target, chosen.masked_fill(done, config.pad)[:, None]], dim=1)
        done |= chosen == config.eos
    model.eval()
    return target


FAULTS = (
    Fault("heads split by view", "x.view(B, h, T, d_k)", "x.view(B, T, h, d_k).transpose(1, 2)",
          "later_words_change_nothing", opened(split=split_by_view)),
    Fault("heads merged without transpose", "z.reshape(B, T, h * d_k)", "z.transpose(1, 2).reshape(B, T, h * d_k)",
          "later_words_change_nothing", opened(merge=merge_by_view)),
    Fault("split and merged by view", "x.view(B, h, T, d_k) ... z.view(B, T, h * d_k)", "with transpose(1, 2), both",
          "weights_are_those_of_torch", opened(split=split_by_view, merge=merge_by_view)),
    Fault("mean of the heads", "z.mean(dim=1)", "z.transpose(1, 2).reshape(B, T, h * d_k)",
          "each_head_keeps_its_features", opened(merge=mean_of_heads)),
    Fault("softmax over the queries", "softmax(scores, dim=-2)", "softmax(scores, dim=-1)",
          "shares_of_a_query_sum_to_one", opened(shares=softmax_over(-2))),
    Fault("softmax over the heads", "softmax(scores, dim=1)", "softmax(scores, dim=-1)",
          "shares_of_a_query_sum_to_one", opened(shares=softmax_over(1))),
    Fault("causal mask the wrong way round", "torch.triu(all_true)", "torch.tril(all_true)",
          "later_words_change_nothing", opened("self", mask=later_only)),
    Fault("one word of the future open", "torch.tril(all_true, 1)", "torch.tril(all_true)",
          "later_words_change_nothing", opened("self", mask=one_future_open)),
    Fault("no causal mask", "mask = None", "mask = causal_mask(T)",
          "later_words_change_nothing", opened("self", mask=all_true)),
    Fault("diagonal blocked", "torch.tril(all_true, -1)", "torch.tril(all_true)",
          "a_word_may_see_itself", opened("self", mask=diagonal_blocked)),
    Fault("mask after the softmax", "softmax(scores, -1) * mask", "softmax(scores.masked_fill(~mask, -inf), -1)",
          "shares_of_a_query_sum_to_one", opened(shares=mask_after_softmax)),
    Fault("scores times mask", "softmax(scores * mask, -1)", "softmax(scores.masked_fill(~mask, -inf), -1)",
          "later_words_change_nothing", opened(shares=scores_times_mask)),
    Fault("no padding mask", "mask = None", "mask = padding_mask(source, pad)",
          "padding_changes_nothing", without_source_mask),
    Fault("padding mask the wrong way round", "source == pad", "source != pad",
          "padding_changes_nothing", opened("encoder cross", mask=torch.logical_not)),
    Fault("causal mask in the encoder too", "encoder(x, causal_mask(S))", "encoder(x, padding_mask(source, pad))",
          "the_first_source_word_sees_the_last", opened("encoder", mask=and_causal)),
    Fault("no scaling", "Q @ K.mT", "Q @ K.mT / sqrt(d_k)",
          "weights_are_those_of_torch", opened(scale=lambda d_head: 1.0)),
    Fault("divided by d_k", "Q @ K.mT / d_k", "Q @ K.mT / sqrt(d_k)",
          "weights_are_those_of_torch", opened(scale=float)),
    Fault("cross-attention reads the decoder", "cross(x, x, x)", "cross(x, memory, memory)",
          "another_source_changes_the_answer", opened("cross", keys_from=lambda asking, answering: asking)),
    Fault("encoder detached", "decoder(y, memory.detach())", "decoder(y, memory)",
          "every_weight_gets_a_gradient", frozen_encoder),
    Fault("no residual", "x = sublayer(norm(x))", "x = x + sublayer(norm(x))",
          "a_silent_sublayer_changes_nothing", replaced(Residual, WithoutResidual)),
    Fault("norm over the words", "x.mean(dim=1)", "x.mean(dim=-1)",
          "later_words_change_nothing", replaced(nn.LayerNorm, lambda sound: OtherNorm(sound, axis=1))),
    Fault("norm with n - 1", "x.std(dim=-1)", "x.std(dim=-1, correction=0)",
          "norm_is_that_of_torch", replaced(nn.LayerNorm, lambda sound: OtherNorm(sound, correction=1))),
    Fault("no ReLU", "x @ W1 @ W2", "relu(x @ W1) @ W2",
          "minus_the_input_is_not_minus_the_output", linear_feed_forward),
    Fault("no positions", "embed(ids)", "embed(ids) + pe[:T]",
          "another_order_changes_the_answer", positions(lambda x, table, first: x)),
    Fault("positions from 1", "pe[1 : T + 1]", "pe[:T]",
          "the_first_position_is_zero", positions(lambda x, table, first: x + table[1 : x.shape[1] + 1])),
    Fault("positions by sentence", "x + pe[:B, None]", "x + pe[:T]",
          "a_sentence_alone_gets_the_same_answer", positions(lambda x, table, first: x + table[: len(x), None])),
    Fault("embedding not scaled", "embed(ids)", "embed(ids) * sqrt(d_model)",
          "words_are_as_large_as_positions", unscaled),
    Fault("decoder input not shifted", "model(source, labels)", "model(source, shift_right(labels))",
          "the_decoder_input_is_the_labels_shifted", batches(not_shifted)),
    Fault("decoder input shifted twice", "shift_right(shift_right(labels))", "shift_right(labels)",
          "the_decoder_input_is_the_labels_shifted", batches(shifted_twice)),
    Fault("no <eos> in the labels", "labels = words", "labels = words + [eos]",
          "every_target_ends_in_eos", batches(without_end)),
    Fault("pads counted in the loss", "cross_entropy(logits, labels)",
          "cross_entropy(logits, labels, ignore_index=pad)",
          "pads_cost_nothing", other_loss(PadsCounted)),
    Fault("softmax twice", "cross_entropy(softmax(logits), labels)", "cross_entropy(logits, labels)",
          "certainty_costs_nothing", other_loss(DoubleSoftmax)),
    Fault("no zero_grad", "loss.backward(); step()", "zero_grad(); loss.backward(); step()",
          "the_last_batch_leaves_no_gradient", part(step=step_without_zero_grad)),
    Fault("learning rate thirty times too large", "lr = 0.1", "lr = 0.003",
          "every_step_on_one_batch_lowers_the_loss", part(rate=30.0)),
    Fault("translates with dropout on", "model.train()", "model.eval()",
          "two_translations_agree", part(translate=with_dropout_on)),
    Fault("translation begins with <eos>", "target = [eos]", "target = [bos]",
          "greedy_is_teacher_forcing_on_its_own_words", part(translate=from_eos)),
    Fault("reads the first place's scores", "logits[:, 0].argmax(-1)", "logits[:, -1].argmax(-1)",
          "greedy_is_teacher_forcing_on_its_own_words", part(translate=first_place)),
)  # fmt: skip
