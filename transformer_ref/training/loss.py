"""The loss of the logits, averaged over real tokens (chapter 10)."""

import torch
from torch import Tensor, nn

from transformer_ref.data.batching import Batch, real_indices
from transformer_ref.shapes import expect_ids, expect_shape


def masked_cross_entropy(logits: Tensor, labels: Tensor, pad: int, real: Tensor | None = None) -> Tensor:
    """Return the mean of -log p(label) over the labels that are not `pad`, in nats; 0 if there is none.

    logits: (batch, target, vocabulary); labels: (batch, target); real: see `label_smoothed_cross_entropy`.
    """
    return label_smoothed_cross_entropy(logits, labels, pad, smoothing=0.0, real=real)


def label_smoothed_cross_entropy(
    logits: Tensor, labels: Tensor, pad: int, smoothing: float, real: Tensor | None = None
) -> Tensor:
    """Return the mean cross-entropy against `smooth_targets`, in nats, without building them.

    logits: (batch, target, vocabulary); labels: (batch, target); smoothing: in [0, 1). Raises ValueError for another
    value, or if the vocabulary has no third token to spread it over. real: `real_indices(labels, pad)`, if known.
    Source: Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4 (epsilon = 0.1). Szegedy et al. spread over
    all tokens, the label among them, and so does torch's `cross_entropy(label_smoothing=...)`. Ours spreads over all
    but the label and the padding, as in Rush 2018, "The Annotated Transformer". At 50 tokens the two losses differ by
    some thousandths, at thousands of tokens by less than rounding.
    """
    expect_shape("logits", logits, "batch", "target", "vocabulary")
    expect_ids("labels", labels, *logits.shape[:2])
    _expect_smoothing(smoothing, logits.shape[-1])
    real = real_indices(labels, pad) if real is None else real  # (real,)
    labels = labels.flatten().index_select(0, real)  # (real,)
    precise = torch.promote_types(logits.dtype, torch.float32)  # a sum over a vocabulary is not for bf16
    log_p = logits.flatten(0, 1).index_select(0, real).log_softmax(dim=-1, dtype=precise)  # (real, vocabulary)
    of_label = log_p.gather(-1, labels[:, None]).squeeze(-1)  # (real,)
    loss = -of_label
    if smoothing:
        of_others = log_p.sum(dim=-1) - of_label - log_p[:, pad]  # (real,)
        loss = -(1 - smoothing) * of_label - smoothing / (logits.shape[-1] - 2) * of_others
    return loss.sum() / max(len(labels), 1)


def smooth_targets(labels: Tensor, vocabulary: int, smoothing: float, pad: int) -> Tensor:
    """Return the target probabilities: 1 - smoothing for the label, the rest for all others but pad.

    labels: (batch, target). Returns (batch, target, vocabulary); rows whose label is pad are all zero.
    Raises as `label_smoothed_cross_entropy` does.
    """
    expect_ids("labels", labels, "batch", "target")
    _expect_smoothing(smoothing, vocabulary)
    targets = torch.full((*labels.shape, vocabulary), smoothing / max(vocabulary - 2, 1), device=labels.device)
    targets.scatter_(-1, labels[..., None], 1 - smoothing)  # (batch, target, vocabulary)
    targets[..., pad] = 0
    return targets.masked_fill(labels[..., None] == pad, 0)


def _expect_smoothing(smoothing: float, vocabulary: int) -> None:
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing: expected at least 0 and below 1, got {smoothing}")
    if smoothing and vocabulary < 3:
        raise ValueError(f"vocabulary: expected at least 3 tokens to smooth over, got {vocabulary}")


class MeanLoss:
    """The loss of a training run: the mean cross-entropy, in nats per real token.

    pad: the padding id; smoothing: see `label_smoothed_cross_entropy`.
    """

    def __init__(self, pad: int, smoothing: float = 0.0) -> None:
        self.pad, self.smoothing = pad, smoothing

    def tokens(self, batch: Batch) -> int:
        """Return the number of real target tokens."""
        return len(batch.counted(self.pad).real)

    def cross_entropy(self, logits: Tensor, labels: Tensor, pad: int, real: Tensor | None = None) -> Tensor:
        """Return the validation loss, without smoothing; see `masked_cross_entropy`."""
        return masked_cross_entropy(logits, labels, pad, real)

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean loss, a scalar; model(source, target_input) gives logits, (batch, target, vocabulary)."""
        logits = model(batch.source, batch.target_input)  # (batch, target, vocabulary)
        return label_smoothed_cross_entropy(logits, batch.target_labels, self.pad, self.smoothing, batch.real)
