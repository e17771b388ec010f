"""The loss of a training step without padding, and without the logits of a whole batch at once.

`training/loss.py` and `model/transformer.py` say what is computed.
"""

import torch
from torch import Tensor, nn

from transformer_ref.data.batching import Batch
from transformer_ref.fast.packing import PackedMask, Packing, can_pack, packed_multi_head, with_spare_rows
from transformer_ref.fast.products import is_quick, of_weight, product
from transformer_ref.model.residual import Residual
from transformer_ref.model.transformer import Transformer
from transformer_ref.shapes import expect_ids, expect_shape
from transformer_ref.training.loss import MeanLoss

CHUNK = 1_024  # rows of logits at a time, in memory that is used again: fresh memory is slow to get


class PackedLoss(MeanLoss):
    """The loss of `MeanLoss` for a `Transformer`, computed only at real tokens."""

    def __call__(self, model: Transformer, batch: Batch) -> Tensor:
        """Return the mean loss, a scalar."""
        if model.output.bias is not None:
            return super().__call__(model, batch)
        batch = batch.counted(self.pad)
        wanted = batch.target_labels != self.pad  # (batch, target)
        hidden = hidden_at(model, batch.source, batch.target_input, wanted, batch.real)  # (real, d_model)
        labels = batch.target_labels.flatten().index_select(0, batch.real)  # (real,)
        return projected_cross_entropy(hidden, model.output.weight, labels, self.pad, self.smoothing)


def hidden_at(
    model: Transformer, source_ids: Tensor, target_input_ids: Tensor, wanted: Tensor, indices: Tensor | None = None
) -> Tensor:
    """Return the rows of `model.hidden` at the wanted target tokens, (wanted, d_model), without computing others.

    wanted: boolean, (batch, target), True at the tokens that the loss reads, the first ones of each row; indices: of
    the True entries of `wanted.flatten()`, if known.
    """
    real = source_ids != model.config.pad  # (batch, source)
    if real.device.type != "cpu" or not (can_pack(real) and can_pack(wanted)):
        indices = wanted.flatten().nonzero().squeeze(1) if indices is None else indices
        hidden = model.hidden(source_ids, target_input_ids)  # on a GPU the library's kernel is the fast path
        return hidden.flatten(0, 1).index_select(0, indices)
    source, target = Packing(real), Packing(wanted)
    among_source, among_target = PackedMask(source, source), PackedMask(target, target, causal=True)
    x = model.dropout(source.pack(model.positions(model.source_embedding(source_ids))))  # (source rows, d_model)
    for layer in model.encoder.layers:
        x = _attended(layer.self_attention_residual, layer.self_attention, x, None, among_source)
        x = _changed(layer.feed_forward_residual, layer.feed_forward, x)
    memory, across = model.encoder.norm(x), PackedMask(target, source)
    x = model.dropout(target.pack(model.positions(model.target_embedding(target_input_ids))))  # (target rows, d_model)
    for layer in model.decoder.layers:
        x = _attended(layer.self_attention_residual, layer.self_attention, x, None, among_target)
        x = _attended(layer.cross_attention_residual, layer.cross_attention, x, memory, across)
        x = _changed(layer.feed_forward_residual, layer.feed_forward, x)
    return model.decoder.norm(x)[: target.tokens]


def _attended(residual: Residual, attention: nn.Module, x: Tensor, memory: Tensor | None, mask: PackedMask) -> Tensor:
    return residual.write(x, packed_multi_head(attention, residual.read(x), memory, mask))


def _changed(residual: Residual, feed_forward: nn.Module, x: Tensor) -> Tensor:
    return residual.write(x, feed_forward(residual.read(x)))


def projected_cross_entropy(hidden: Tensor, table: Tensor, labels: Tensor, pad: int, smoothing: float) -> Tensor:
    """Return `label_smoothed_cross_entropy` of the logits hidden @ table.T, without storing all logits at once.

    hidden: (real, d_model), of the real tokens; table: (vocabulary, d_model), the output weights; labels: (real,). The
    gradient of a cross-entropy with respect to the logits is softmax(logits) - targets, so it is computed along with
    the loss, some rows at a time. The largest tensor of a training step, (batch, target, vocabulary), is never stored.
    """
    expect_shape("hidden", hidden, "real", table.shape[1])
    expect_ids("labels", labels, len(hidden))
    return _ProjectedCrossEntropy.apply(hidden, table, labels, pad, smoothing)


class _ProjectedCrossEntropy(torch.autograd.Function):
    """The loss and, in the same pass, its gradients.

    Smoothing gives every token the same probability, then takes it from label and pad. The part that all tokens have in
    common is a sum over the table, which needs no (rows, vocabulary) tensor.
    """

    @staticmethod
    def forward(ctx, rows: Tensor, table: Tensor, labels: Tensor, pad: int, smoothing: float) -> Tensor:
        precise = torch.promote_types(rows.dtype, torch.float32)
        share, count = smoothing / (len(table) - 2), max(len(rows), 1)
        table_sum = table.sum(dim=0)  # (d_model,)
        real, rows = len(rows), with_spare_rows(rows)  # a row of zeros adds nothing to a product
        labels = with_spare_rows(labels)
        losses = []
        of_rows = torch.empty_like(rows)
        of_table = (rows.sum(dim=0, dtype=precise) * (-share / count)).repeat(len(table), 1)  # (vocabulary, d_model)
        quick = is_quick(rows, table)
        room, of_chunk = rows.new_empty(min(CHUNK, len(rows)), len(table)), None
        for chunk, label, gradient in zip(rows.split(CHUNK), labels.split(CHUNK), of_rows.split(CHUNK), strict=True):
            row = torch.arange(len(chunk), device=rows.device)  # (chunk,)
            logits = product(chunk, table) if quick else torch.mm(chunk, table.T, out=room[: len(chunk)])
            of_label, of_pad = (logits[row, column].to(precise) for column in (label, pad))  # copies   (chunk,)
            p = torch.softmax(logits, dim=-1, out=logits)  # in the same memory   (chunk, vocabulary)
            p_label = p[row, label]  # (chunk,)
            log_p = p_label.to(precise).clamp_min(torch.finfo(precise).tiny).log()  # (chunk,)
            normalizer = of_label - log_p  # log of the sum of exp(logits)   (chunk,)
            of_others = (
                (chunk @ table_sum).to(precise) - of_label - of_pad - (len(table) - 2) * normalizer
            )  # the sum of their log p   (chunk,)
            losses.append((smoothing - 1) * log_p - share * of_others)  # (chunk,)
            p[row, label] = p_label + (share - (1 - smoothing))
            p[:, pad] += share  # now p - targets + share   (chunk, vocabulary)
            gradient.copy_(product(p, table.T)) if quick else torch.mm(p, table, out=gradient)  # (chunk, d_model)
            if quick:
                of_table.add_(of_weight(p, chunk), alpha=1 / count)
            elif table.dtype == precise:
                of_table.addmm_(p.T, chunk, alpha=1 / count)  # (vocabulary, d_model)
            else:  # a sum of many chunks needs more digits than each of them
                of_chunk = torch.mm(p.T, chunk) if of_chunk is None else torch.mm(p.T, chunk, out=of_chunk)
                of_table.add_(of_chunk, alpha=1 / count)
        of_rows.sub_(share * table_sum).div_(count)
        ctx.save_for_backward(of_rows[:real], of_table.to(table.dtype))
        return torch.cat(losses)[:real].sum() / count

    @staticmethod
    def backward(ctx, scale: Tensor) -> tuple[Tensor | None, ...]:
        of_rows, of_table = ctx.saved_tensors
        return of_rows * scale.to(of_rows.dtype), of_table * scale.to(of_table.dtype), None, None, None
