"""The tests that find the faults of `transformer_ref/faults`, as chapter 08 shows them: a few lines each.

Each takes an `Experiment` before its training and a padded batch; it passes for the sound one and fails for the faults
that name it.
"""

import torch
import torch.nn.functional as F

from transformer_ref.data.batching import Batch
from transformer_ref.faults.experiment import Experiment
from transformer_ref.special_tokens import BOS, EOS, PAD


def later_words_change_nothing(experiment: Experiment, batch: Batch) -> None:
    model, changed = experiment.model.eval(), batch.target_input.clone()
    changed[:, 3:] = 9
    before, after = model(batch.source, batch.target_input), model(batch.source, changed)
    assert torch.allclose(before[:, :3], after[:, :3], atol=1e-4)


def padding_changes_nothing(experiment: Experiment, batch: Batch) -> None:
    model = experiment.model.eval()
    before, after = (model(F.pad(batch.source, (0, n), value=PAD), batch.target_input) for n in (0, 3))
    assert torch.allclose(before, after, atol=1e-4)


def a_sentence_alone_gets_the_same_answer(experiment: Experiment, batch: Batch) -> None:
    model = experiment.model.eval()
    together, alone = model(batch.source, batch.target_input), model(batch.source[1:2], batch.target_input[1:2])
    assert torch.allclose(together[1:2], alone, atol=1e-4)


def another_source_changes_the_answer(experiment: Experiment, batch: Batch) -> None:
    model = experiment.model.eval()
    before, after = (model(source, batch.target_input) for source in (batch.source, batch.source.roll(1, dims=0)))
    assert not torch.allclose(before, after, atol=1e-4)


def another_order_changes_the_answer(experiment: Experiment, batch: Batch) -> None:
    model, one = experiment.model.eval(), batch.source[:1, batch.source[0] != PAD]
    before, after = (model(source, batch.target_input[:1]) for source in (one, one.flip(1)))
    assert not torch.allclose(before, after, atol=1e-4)


def the_first_source_word_sees_the_last(experiment: Experiment, batch: Batch) -> None:
    model, one = experiment.model.eval(), batch.source[:1, batch.source[0] != PAD]
    other = one.clone()
    other[0, -1] = 9
    assert not torch.allclose(model.encode(one).memory[:, 0], model.encode(other).memory[:, 0], atol=1e-4)


def shares_of_a_query_sum_to_one(experiment: Experiment, batch: Batch) -> None:
    seen = experiment.model.eval().decode(batch.target_input, experiment.model.encode(batch.source), need_weights=True)
    totals = seen.self_weights[0].sum(dim=-1)  # (batch, heads, query)
    assert torch.allclose(totals, torch.ones_like(totals))


def a_word_may_see_itself(experiment: Experiment, batch: Batch) -> None:
    seen = experiment.model.eval().decode(batch.target_input, experiment.model.encode(batch.source), need_weights=True)
    assert (seen.self_weights[0].diagonal(dim1=-2, dim2=-1) > 1e-6).all()


def each_head_keeps_its_features(experiment: Experiment, batch: Batch) -> None:
    attention = experiment.model.encoder.layers[0].self_attention
    attention.out_proj = torch.nn.Identity()  # what leaves the heads
    first, *others = attention(experiment.model.source_embedding(batch.source)).output.chunk(attention.heads, dim=-1)
    assert not any(torch.allclose(first, other) for other in others)


def weights_are_those_of_torch(experiment: Experiment, batch: Batch) -> None:
    x, layer = experiment.model.source_embedding(batch.source), experiment.model.encoder.layers[0].self_attention
    q, k, v = (project(x) for project in (layer.q_proj, layer.k_proj, layer.v_proj))
    heads = [part.unflatten(-1, (layer.heads, -1)).transpose(1, 2) for part in (q, k, v)]
    wanted = layer.out_proj(F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2))
    everybody = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
    assert torch.allclose(layer(x, mask=everybody).output, wanted, atol=1e-4)


def every_weight_gets_a_gradient(experiment: Experiment, batch: Batch) -> None:
    experiment.loss(experiment.model.train(), experiment.batch(batch)).backward()
    without = [name for name, weight in experiment.model.named_parameters() if weight.grad is None]
    assert not without, f"no gradient reaches {without}"


def a_silent_sublayer_changes_nothing(experiment: Experiment, batch: Batch) -> None:
    residual = experiment.model.eval().encoder.layers[0].feed_forward_residual
    x = experiment.model.source_embedding(batch.source)
    assert torch.allclose(residual.write(x, torch.zeros_like(x)), x)


def norm_is_that_of_torch(experiment: Experiment, batch: Batch) -> None:
    x = experiment.model.source_embedding(batch.source)
    assert torch.allclose(experiment.model.encoder.norm(x), F.layer_norm(x, x.shape[-1:]), atol=1e-4)


def minus_the_input_is_not_minus_the_output(experiment: Experiment, batch: Batch) -> None:
    layer, x = experiment.model.encoder.layers[0], experiment.model.source_embedding(batch.source)
    one, other = layer.feed_forward(x), layer.feed_forward(-x)  # the biases begin at 0
    assert not torch.allclose(other, -one, atol=1e-4)


def the_first_position_is_zero(experiment: Experiment, batch: Batch) -> None:
    added = experiment.model.positions(torch.zeros(1, 1, experiment.model.config.d_model))
    assert added[0, 0].tolist() == [0, 1] * (experiment.model.config.d_model // 2)  # sin 0, cos 0, ...


def words_are_as_large_as_positions(experiment: Experiment, batch: Batch) -> None:
    words = experiment.model.source_embedding(batch.source)
    assert 0.5 < words.std() < 2  # a sine and a cosine are between -1 and 1


def the_decoder_input_is_the_labels_shifted(experiment: Experiment, batch: Batch) -> None:
    used = experiment.batch(batch)
    assert (used.target_input[:, 0] == BOS).all()
    assert (used.target_input[:, 1:] == used.target_labels[:, :-1]).all()


def every_target_ends_in_eos(experiment: Experiment, batch: Batch) -> None:
    labels = experiment.batch(batch).target_labels
    assert ((labels == EOS).sum(dim=1) == 1).all()


def pads_cost_nothing(experiment: Experiment, batch: Batch) -> None:
    model = experiment.model.eval()
    longer = Batch(*(F.pad(part, (0, 3), value=PAD) for part in batch))
    assert torch.allclose(experiment.loss(model, batch), experiment.loss(model, longer), atol=1e-4)


def certainty_costs_nothing(experiment: Experiment, batch: Batch) -> None:
    certain = 100 * F.one_hot(batch.target_labels, experiment.model.config.target_vocabulary).float()
    assert experiment.loss(lambda source, target_input: certain, batch) < 1e-3


def the_last_batch_leaves_no_gradient(experiment: Experiment, batch: Batch) -> None:
    experiment.model.register_forward_pre_hook(lambda *_: torch.manual_seed(1) and None)  # the same dropout
    standing, gradients = torch.optim.SGD(experiment.model.parameters(), lr=0.0), []
    for last in (batch, batch.rows(1, 3)):
        for each in (last, batch):
            experiment.step(experiment, each, standing)
        gradients.append(experiment.model.output.weight.grad.clone())
    assert torch.allclose(*gradients, atol=1e-5)


def every_step_on_one_batch_lowers_the_loss(experiment: Experiment, batch: Batch) -> None:
    optimizer = torch.optim.Adam(experiment.model.parameters(), lr=3e-3 * experiment.rate)
    losses = [experiment.step(experiment, batch, optimizer) for _ in range(10)]
    assert losses == sorted(losses, reverse=True), losses


def two_translations_agree(experiment: Experiment, batch: Batch) -> None:
    first, second = (experiment.translate(experiment, batch.source, 8) for _ in range(2))
    assert first.shape == second.shape and (first == second).all()


def greedy_is_teacher_forcing_on_its_own_words(experiment: Experiment, batch: Batch) -> None:
    words = experiment.translate(experiment, batch.source[:1], 8)[:, 1:]
    begun = torch.cat([torch.full_like(words[:, :1], BOS), words[:, :-1]], dim=1)
    wanted = experiment.model.eval()(batch.source[:1], begun).argmax(dim=-1)
    assert words[0].tolist() == wanted[0].tolist()
