"""How wrong the scores are, averaged over real tokens (chapter 10)."""

import torch
from torch import Tensor

from transformer_ref.shapes import expect_ids, expect_shape, with_spare_rows

CHUNK = 1_024  # rows of logits at a time, in memory that is used again: fresh memory is slow to get


def masked_cross_entropy(logits: Tensor, labels: Tensor, pad: int) -> Tensor:
    """Return the mean of -log p(label) over the labels that are not `pad`, in nats; 0 if there is none.

    logits: (batch, target, vocabulary); labels: (batch, target).
    """
    return label_smoothed_cross_entropy(logits, labels, pad, smoothing=0.0)


def label_smoothed_cross_entropy(logits: Tensor, labels: Tensor, pad: int, smoothing: float) -> Tensor:
    """Return the mean cross-entropy against `smooth_targets`, in nats, without building them.

    logits: (batch, target, vocabulary); labels: (batch, target); smoothing: in [0, 1).
    Source: Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4 (epsilon = 0.1).
    """
    expect_shape("logits", logits, "batch", "target", "vocabulary")
    expect_ids("labels", labels, *logits.shape[:2])
    real = labels != pad  # (batch, target)
    labels = labels[real]  # (real,)
    precise = torch.promote_types(logits.dtype, torch.float32)  # a sum over a vocabulary is not for bf16
    log_p = logits[real].log_softmax(dim=-1, dtype=precise)  # (real, vocabulary)
    of_label = log_p.gather(-1, labels[:, None]).squeeze(-1)  # (real,)
    loss = -of_label
    if smoothing:
        of_others = log_p.sum(dim=-1) - of_label - log_p[:, pad]  # (real,)
        loss = -(1 - smoothing) * of_label - smoothing / (logits.shape[-1] - 2) * of_others
    return loss.sum() / max(len(labels), 1)


def projected_cross_entropy(hidden: Tensor, table: Tensor, labels: Tensor, pad: int, smoothing: float) -> Tensor:
    """Return `label_smoothed_cross_entropy` of the logits hidden @ table.T, which are never all there at once.

    hidden: (real, d_model), of the real tokens; table: (vocabulary, d_model), the output's weights; labels: (real,).
    The gradient of a cross-entropy by its logits is softmax(logits) - targets, so it is found beside the loss, some
    rows at a time. A training step's largest tensor, (batch, target, vocabulary), is never made.
    """
    expect_shape("hidden", hidden, "real", table.shape[1])
    expect_ids("labels", labels, len(hidden))
    return _ProjectedCrossEntropy.apply(hidden, table, labels, pad, smoothing)


class _ProjectedCrossEntropy(torch.autograd.Function):
    """The loss and, in the same pass, its gradients.

    Smoothing gives every token a share, then takes it from label and pad. What all tokens have alike is a sum over
    the table, which needs no (rows, vocabulary) tensor of its own.
    """

    @staticmethod
    def forward(ctx, rows: Tensor, table: Tensor, labels: Tensor, pad: int, smoothing: float) -> Tensor:
        precise = torch.promote_types(rows.dtype, torch.float32)
        share, count = smoothing / (len(table) - 2), max(len(rows), 1)
        table_sum = table.sum(dim=0)  # (d_model,)
        real, rows = len(rows), with_spare_rows(rows)  # a row of zeros adds nothing to a product
        labels = with_spare_rows(labels)
        losses = []
        of_rows, of_table = torch.empty_like(rows), torch.zeros_like(table, dtype=precise)
        room, of_chunk = rows.new_empty(min(CHUNK, len(rows)), len(table)), torch.empty_like(table)
        for chunk, label, gradient in zip(rows.split(CHUNK), labels.split(CHUNK), of_rows.split(CHUNK), strict=True):
            row = torch.arange(len(chunk), device=rows.device)  # (chunk,)
            logits = torch.mm(chunk, table.T, out=room[:len(chunk)])  # (chunk, vocabulary)
            of_label, of_pad = (logits[row, column].to(precise) for column in (label, pad))  # copies   (chunk,)
            p = torch.softmax(logits, dim=-1, out=logits)  # in the same memory   (chunk, vocabulary)
            p_label = p[row, label]  # (chunk,)
            log_p = p_label.to(precise).clamp_min(torch.finfo(precise).tiny).log()  # (chunk,)
            normalizer = of_label - log_p  # log of the sum of exp(logits)   (chunk,)
            of_others = ((chunk @ table_sum).to(precise) - of_label - of_pad
                         - (len(table) - 2) * normalizer)  # the sum of their log p   (chunk,)
            losses.append((smoothing - 1) * log_p - share * of_others)  # (chunk,)
            p[row, label] = p_label + (share - (1 - smoothing))
            p[:, pad] += share  # now p - targets + share   (chunk, vocabulary)
            torch.mm(p, table, out=gradient)  # (chunk, d_model)
            of_table += torch.mm(p.T, chunk, out=of_chunk)  # (vocabulary, d_model)
        of_rows -= share * table_sum
        of_table -= share * rows.sum(dim=0)
        ctx.save_for_backward(of_rows[:real] / count, (of_table / count).to(table.dtype))
        return torch.cat(losses)[:real].sum() / count

    @staticmethod
    def backward(ctx, scale: Tensor) -> tuple[Tensor | None, ...]:
        of_rows, of_table = ctx.saved_tensors
        return of_rows * scale.to(of_rows.dtype), of_table * scale.to(of_table.dtype), None, None, None


def smooth_targets(labels: Tensor, vocabulary: int, smoothing: float, pad: int) -> Tensor:
    """Return the wished-for probabilities: 1 - smoothing for the label, the rest for all others but pad.

    labels: (batch, target). Returns (batch, target, vocabulary); rows whose label is pad are all zero.
    """
    expect_ids("labels", labels, "batch", "target")
    targets = torch.full((*labels.shape, vocabulary), smoothing / (vocabulary - 2), device=labels.device)
    targets.scatter_(-1, labels[..., None], 1 - smoothing)  # (batch, target, vocabulary)
    targets[..., pad] = 0
    return targets.masked_fill(labels[..., None] == pad, 0)
