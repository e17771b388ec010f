"""The whole model keeps the laws and agrees with torch's."""

import pytest
import torch
from drawn import generator, seeds, tiny_config, tiny_model
from drawn import ids as draw_ids
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch_oracle import assert_agree, copy_decoder_layer, copy_encoder_layer, shaken

from transformer_ref.config import ModelConfig
from transformer_ref.model.masks import causal_mask, padding_mask
from transformer_ref.model.transformer import Transformer

PAD, OTHER_PAD = 0, 10
both_placements = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
both_precisions = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def padded(seed, batch, length, pad=PAD):
    """Return ids (batch, length) whose rows end in a different number of pads; the first has none."""
    ids = draw_ids(seed, batch, length, high=10)
    for row in range(1, batch):
        ids[row, max(1, length - row) :] = pad
    return ids


@both_precisions
@both_placements
@given(seed=seeds)
def test_the_stacks_agree_with_torch_s_transformer(dtype, norm_first, seed):
    config = tiny_config(norm_first=norm_first)
    sizes = (config.d_model, config.heads, config.d_ff)
    variant = {"batch_first": True, "norm_first": norm_first, "dtype": dtype}
    # torch adds a last norm in both placements; stacks made by hand have it where the paper needs one
    norms = [nn.LayerNorm(config.d_model, dtype=dtype) if norm_first else None for _ in range(2)]
    theirs = shaken(
        nn.Transformer(
            *sizes[:2],
            batch_first=True,
            custom_encoder=nn.TransformerEncoder(
                nn.TransformerEncoderLayer(*sizes, **variant),
                config.encoder_layers,
                norms[0],
                enable_nested_tensor=False,
            ),
            custom_decoder=nn.TransformerDecoder(
                nn.TransformerDecoderLayer(*sizes, **variant), config.decoder_layers, norms[1]
            ),
        ),
        seed,
    ).eval()
    ours = Transformer(config).to(dtype).eval()
    for mine, other in zip(ours.encoder.layers, theirs.encoder.layers, strict=True):
        copy_encoder_layer(mine, other)
    for mine, other in zip(ours.decoder.layers, theirs.decoder.layers, strict=True):
        copy_decoder_layer(mine, other)
    if norm_first:
        ours.encoder.norm.load_state_dict(theirs.encoder.norm.state_dict())
        ours.decoder.norm.load_state_dict(theirs.decoder.norm.state_dict())
    source, target = padded(seed, 3, 6), draw_ids(seed + 1, 3, 4)
    hidden = theirs(
        ours.positions(ours.source_embedding(source)),
        ours.positions(ours.target_embedding(target)),
        tgt_mask=~causal_mask(4),
        src_key_padding_mask=source == PAD,
        memory_key_padding_mask=source == PAD,
    )
    assert_agree(ours.decode(target, ours.encode(source)).hidden, hidden)
    assert_agree(ours(source, target), hidden @ ours.output.weight.T)


@both_placements
@given(seed=seeds, t=st.integers(1, 4))
def test_a_later_target_token_changes_no_earlier_logits(norm_first, seed, t):
    model = tiny_model(seed, norm_first=norm_first)
    source, target = padded(seed, 2, 6), draw_ids(seed, 2, 5)
    changed = target.clone()
    changed[:, t] = target[:, t] % 8 + 3
    before, after = model(source, target), model(source, changed)
    torch.testing.assert_close(before[:, :t], after[:, :t])
    assert not torch.allclose(before[:, t:], after[:, t:])


@both_placements
@given(seed=seeds, extra=st.integers(1, 4), pad=st.sampled_from([PAD, OTHER_PAD]))
def test_padding_a_batch_changes_nothing(norm_first, seed, extra, pad):
    model = tiny_model(seed, norm_first=norm_first, pad=pad)
    source, target = padded(seed, 3, 6, pad), draw_ids(seed + 1, 3, 4, high=10)
    pads = torch.full((3, extra), pad)
    more = model(torch.cat([source, pads], 1), torch.cat([target, pads], 1))[:, :4]
    torch.testing.assert_close(more, model(source, target))
    for row in range(3):
        real = source[row : row + 1, source[row] != pad]
        torch.testing.assert_close(model(real, target[row : row + 1])[0], more[row])


@given(seeds, st.permutations([0, 1, 2]))
def test_permuting_the_batch_permutes_the_logits(seed, order):
    model = tiny_model(seed)
    source, target = padded(seed, 3, 6), draw_ids(seed + 1, 3, 4)
    torch.testing.assert_close(model(source[order], target[order]), model(source, target)[order])


@both_placements
@pytest.mark.parametrize("chunks", [[3, 1, 2], [1] * 6, [6]])
@given(seed=seeds)
def test_decoding_with_a_cache_is_decoding_without(norm_first, chunks, seed):
    model = tiny_model(seed, norm_first=norm_first, decoder_layers=2)
    source, target = padded(seed, 3, 5), draw_ids(seed + 1, 3, 6)
    encoded, cache, hidden = model.encode(source), model.new_cache(), []
    for chunk in target.split(chunks, dim=1):
        hidden.append(model.decode(chunk, encoded, cache).hidden)
    torch.testing.assert_close(torch.cat(hidden, dim=1), model.decode(target, encoded).hidden)


@both_placements
@given(seed=seeds)
def test_targets_side_by_side_are_read_as_each_alone(norm_first, seed):
    """Of two targets the second leaves the first one's beginning at position 2, and the first goes on."""
    model = tiny_model(seed, norm_first=norm_first, decoder_layers=2)
    source, steps = padded(seed, 3, 5), draw_ids(seed + 1, 3, 4, 2)  # (batch, step, branch)
    encoded, cache = model.encode(source), model.new_cache()
    lineages = (
        [[1, 0], [0, 1]],
        [[1, 0, 1, 0], [0, 1, 0, 1]],
        [[1, 0, 1, 0, 1, 0], [1, 0, 1, 0, 0, 1]],
        [[1, 0, 1, 0, 1, 0, 1, 0], [1, 0, 1, 0, 0, 1, 0, 1]],
    )
    for step, lineage in enumerate(lineages):
        own = torch.tensor(lineage, dtype=torch.bool)  # (branch, all so far)
        decoded = model.decode(steps[:, step], encoded, cache, mask=own.expand(3, 1, -1, -1), positions=[step] * 2)
    for branch in range(2):
        alone = steps.flatten(1)[:, own[branch]]  # (batch, target)
        torch.testing.assert_close(decoded.hidden[:, branch], model.decode(alone, encoded).hidden[:, -1])


@given(seeds)
def test_weights_on_request_change_no_logits_and_share_out_one(seed):
    model = tiny_model(seed)
    source, target = padded(seed, 3, 6), draw_ids(seed + 1, 3, 4)
    encoded = model.encode(source, need_weights=True)
    decoded = model.decode(target, encoded, need_weights=True)
    torch.testing.assert_close(model.logits(decoded.hidden), model(source, target))
    for weights in (*encoded.weights, *decoded.self_weights, *decoded.cross_weights):
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
    for weights in (*encoded.weights, *decoded.cross_weights):
        assert (weights.masked_select(~padding_mask(source, PAD)) == 0).all()


def test_a_source_of_pads_alone_gives_finite_logits_and_gradients():
    model = tiny_model()
    logits = model(torch.tensor([[PAD, PAD, PAD], [4, 5, PAD]]), torch.tensor([[1, 4], [1, 5]]))
    logits.sum().backward()
    assert logits.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_positions_tell_two_orders_of_the_same_words_apart():
    model = tiny_model()
    source, target = torch.tensor([[4, 5, 6]]), torch.tensor([[1, 4]])
    assert not torch.allclose(model(source, target), model(source.flip(1), target))


@both_placements
def test_every_parameter_takes_part(norm_first):
    model = tiny_model(norm_first=norm_first)
    model(padded(1, 3, 6), draw_ids(2, 3, 4)).square().sum().backward()
    idle = [name for name, parameter in model.named_parameters() if parameter.grad.abs().max() < 1e-12]
    # a bias of every key adds the same number to each of a query's scores
    assert all(name.endswith("k_proj.bias") for name in idle)


def test_the_base_model_has_the_parameters_of_the_worked_example():
    with torch.device("meta"):
        model = Transformer(ModelConfig(37_000, 37_000, tie_embeddings=True))
    assert sum(parameter.numel() for parameter in model.parameters()) == 63_082_496


def test_tied_embeddings_are_one_table_and_stay_one_after_a_step_and_a_move():
    model = Transformer(tiny_config(source_vocabulary=13, tie_embeddings=True))
    model.to(torch.float64)
    model(draw_ids(1, 2, 5), draw_ids(2, 2, 4)).sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    tables = (model.source_embedding.weight, model.target_embedding.weight, model.output.weight)
    assert len({table.data_ptr() for table in tables}) == 1
    untied = Transformer(tiny_config(source_vocabulary=13))
    tables = (untied.source_embedding.weight, untied.target_embedding.weight, untied.output.weight)
    assert len({table.data_ptr() for table in tables}) == 3


@pytest.mark.parametrize("tied", [False, True])
def test_the_first_weights_come_from_the_generator_alone(tied):
    config = tiny_config(source_vocabulary=13, tie_embeddings=tied)
    torch.manual_seed(1)
    first = Transformer(config, generator(5)).state_dict()
    torch.manual_seed(2)
    second, other = (Transformer(config, generator(seed)).state_dict() for seed in (5, 6))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["output.weight"], other["output.weight"])


def test_the_first_logits_are_small_enough_for_an_even_guess():
    config = tiny_config(source_vocabulary=997, target_vocabulary=997, d_model=60, tie_embeddings=True)
    model = Transformer(config, generator(1)).eval()
    logits = model(draw_ids(1, 8, 9), draw_ids(2, 8, 9, low=300, high=997))
    assert logits.std().item() == pytest.approx(1, abs=0.2)  # so the first loss is about ln(vocabulary) + 0.5


def test_dropout_acts_while_training_and_never_after():
    model = Transformer(tiny_config())
    source, target = draw_ids(1, 2, 5), draw_ids(2, 2, 4)
    assert not torch.equal(model(source, target), model(source, target))
    model.eval()
    assert torch.equal(model(source, target), model(source, target))


def test_forward_leaves_nothing_behind():
    model = tiny_model()
    before = {name: set(vars(module)) for name, module in model.named_modules()}
    model(draw_ids(1, 2, 5), draw_ids(2, 2, 4))
    assert {name: set(vars(module)) for name, module in model.named_modules()} == before


def test_the_embedding_is_a_row_of_the_table_times_the_root_of_d_model():
    embedding = tiny_model().source_embedding
    ids = draw_ids(1, 2, 5)
    torch.testing.assert_close(embedding(ids), embedding.weight[ids] * 12**0.5)


def test_a_sentence_beyond_the_positions_is_refused():
    model = tiny_model()
    with pytest.raises(ValueError, match="length: expected at most 17 positions, got 18"):
        model(draw_ids(1, 2, 18), draw_ids(2, 2, 4))
    with pytest.raises(ValueError, match="length: expected at most 17 positions, got 18"):
        model(draw_ids(1, 2, 5), draw_ids(2, 2, 18))


def test_ids_of_another_dtype_are_refused():
    with pytest.raises(TypeError, match="ids: expected ids of dtype"):
        tiny_model()(torch.zeros(2, 5), draw_ids(2, 2, 4))


@pytest.mark.parametrize("row", [[0, 4, 5], [4, 0, 5], [0, 0, 5]])
def test_a_source_that_goes_on_after_its_padding_is_refused_by_name(row):
    source, target = torch.tensor([[4, 5, 0], row]), torch.tensor([[1, 6], [1, 7]])
    with pytest.raises(ValueError, match=r"source_ids: expected padding \(id 0\) at the end of a row only"):
        tiny_model()(source, target)
    tiny_model()(source.sort(descending=True).values, target)


def test_a_model_built_without_memory_is_whole_once_its_weights_are_drawn():
    with torch.device("meta"):
        model = Transformer(tiny_config())
    model.to_empty(device="cpu").reset_parameters(generator(1))
    usual = Transformer(tiny_config(), generator(1))
    source, target = draw_ids(1, 2, 5), draw_ids(2, 2, 3)
    assert model.eval()(source, target).equal(usual.eval()(source, target))
