"""Which weight is moved by which rule, and that an optimizer remembers."""

from functools import partial

import pytest
import torch
from drawn import generator, ids, tiny_config
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_ref import machine
from transformer_ref.config import TrainingConfig
from transformer_ref.fast.muon import BatchedMuon
from transformer_ref.model.transformer import Transformer
from transformer_ref.shapes import expect_padding_last
from transformer_ref.training import optimizer as optimizer_module
from transformer_ref.training.loss import masked_cross_entropy
from transformer_ref.training.optimizer import build_optimizer, hidden_matrices


def model(**changes) -> Transformer:
    return Transformer(tiny_config(**changes), generator(1))


def backward(network: Transformer) -> None:
    logits = network(ids(2, 2, 4), ids(3, 2, 5))
    masked_cross_entropy(logits, ids(4, 2, 5), 0).backward()


@pytest.mark.parametrize("tied", [False, True])
def test_muon_gets_the_matrices_between_hidden_layers_and_adam_all_else(tied):
    network = model(tie_embeddings=tied, **({"target_vocabulary": 11} if tied else {}))
    chosen = {id(matrix) for matrix in hidden_matrices(network)}
    for name, parameter in network.named_parameters():
        is_hidden = parameter.dim() == 2 and name.startswith(("encoder.", "decoder."))
        assert (id(parameter) in chosen) == is_hidden, name
    adam, muon = build_optimizer(network, TrainingConfig()).optimizers
    assert isinstance(muon, torch.optim.Muon)
    moved = [id(parameter) for one in (adam, muon) for group in one.param_groups for parameter in group["params"]]
    assert sorted(moved) == sorted(id(parameter) for parameter in network.parameters())


def test_without_muon_adam_gets_everything():
    optimizer = build_optimizer(model(), TrainingConfig(muon_rate=0.0))
    assert [type(one) for one in optimizer.optimizers] == [torch.optim.AdamW]


def test_a_step_moves_every_weight():
    network = model()
    before = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    backward(network)
    build_optimizer(network, TrainingConfig()).step()
    still = [name for name, parameter in network.named_parameters() if parameter.equal(before[name])]
    assert all("key.bias" in name or name.endswith("key.bias") for name in still), still  # a shift of all scores alike


def test_rates_are_shares_of_their_own_peak():
    optimizer = build_optimizer(model(), TrainingConfig(learning_rate=0.4, muon_rate=0.6))
    for factor in (0.5, 0.25, 1.0):
        optimizer.scale_rates(factor)
        assert [group["lr"] for one in optimizer.optimizers for group in one.param_groups] == [
            0.4 * factor,
            0.6 * factor,
        ]


def test_muon_remembers_as_much_as_the_config_says():
    network = model()
    backward(network)
    optimizer = build_optimizer(network, TrainingConfig(muon_momentum=0.75))
    optimizer.step()
    memories = optimizer.optimizers[1].state
    assert len(memories) == len(list(hidden_matrices(network)))
    for matrix, memory in memories.items():
        torch.testing.assert_close(memory["momentum_buffer"], 0.25 * matrix.grad)


def test_zero_grad_forgets_every_gradient():
    network = model()
    backward(network)
    build_optimizer(network, TrainingConfig()).zero_grad()
    assert all(parameter.grad is None for parameter in network.parameters())


def test_an_optimizer_that_was_given_its_memory_back_makes_the_same_step():
    first, second = model(dropout=0.0), model(dropout=0.0)
    one, other = (build_optimizer(network, TrainingConfig()) for network in (first, second))
    backward(first)
    one.step()
    second.load_state_dict(first.state_dict())
    other.load_tensors({name: tensor.clone() for name, tensor in one.tensors().items()})
    for network, optimizer in ((first, one), (second, other)):
        optimizer.zero_grad()
        backward(network)
        optimizer.step()
    assert all(a.equal(b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


SHAPES = [(5, 7), (7, 5), (6, 6), (5, 7), (1, 9), (64, 128), (5, 7)]  # wide, tall, square, some of them several times


def muon_pair(precision="bf16", **changes) -> tuple[tuple[list[torch.Tensor], torch.optim.Optimizer], ...]:
    """Return equal matrices and what moves them, ours and torch's."""
    pairs = []
    for kind in (partial(BatchedMuon, precision=precision), torch.optim.Muon):
        matrices = [
            torch.randn(shape, generator=generator(place)).requires_grad_() for place, shape in enumerate(SHAPES)
        ]
        pairs.append((matrices, kind(matrices, lr=0.02, adjust_lr_fn="match_rms_adamw", **changes)))
    return tuple(pairs)


def one_step(pair) -> list[torch.Tensor]:
    """Return the matrices after a step with gradients of their own."""
    matrices, optimizer = pair
    for place, matrix in enumerate(matrices):
        matrix.grad = torch.randn(matrix.shape, generator=generator(place + 50))
    optimizer.step()
    return [matrix.detach() for matrix in matrices]


@pytest.mark.parametrize("changes", [{}, {"weight_decay": 0.3}, {"nesterov": False}, {"momentum": 0.5, "ns_steps": 3}])
def test_muon_in_batches_is_torch_s_muon(changes):
    ours, theirs = muon_pair(**changes)
    for step in range(3):
        for place, pair in enumerate(zip(ours[0], theirs[0], strict=True)):
            for matrix in pair:  # the second has no gradient at first, the third none that is not zero
                gradient = torch.randn(matrix.shape, generator=generator(100 * step + place)) * (place != 2)
                matrix.grad = None if place == 1 and step == 0 else gradient
        for _, optimizer in (ours, theirs):
            optimizer.step()
        for matrix, other in zip(ours[0], theirs[0], strict=True):
            torch.testing.assert_close(matrix, other, rtol=0, atol=1e-6)


def test_muon_in_batches_goes_on_from_what_torch_s_remembers():
    ours, theirs = muon_pair()
    for matrices, optimizer in (ours, theirs):
        for matrix in matrices:
            matrix.grad = torch.ones_like(matrix)
        optimizer.step()
    ours[1].load_state_dict(theirs[1].state_dict())
    assert ours[1].state_dict()["state"].keys() == theirs[1].state_dict()["state"].keys()
    assert ours[1].step(lambda: 7.5) == 7.5


def test_muon_in_fp32_moves_each_matrix_as_torch_s_does_up_to_the_rounding_of_bf16():
    ours, theirs = muon_pair(precision="fp32")
    before = [matrix.detach().clone() for matrix in ours[0]]
    for matrix, other, start in zip(one_step(ours), one_step(theirs), before, strict=True):
        moved, should = matrix - start, other - start
        assert not moved.equal(should)  # it was not computed in bf16
        assert (moved - should).norm() < 0.05 * should.norm()


@pytest.mark.parametrize(("faster", "dtype"), [("bf16", torch.bfloat16), ("fp32", torch.float32)])
def test_muon_multiplies_in_the_dtype_that_this_machine_multiplies_faster_in(monkeypatch, faster, dtype):
    monkeypatch.setenv(machine.VARIABLE, f"muon={faster}")
    multiplied = set()

    class Products(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if function in (torch.ops.aten.bmm.default, torch.ops.aten.baddbmm.default):
                multiplied.add(args[-1].dtype)
            return function(*args, **(kwargs or {}))

    pair = muon_pair(precision="auto")[0]
    with Products():
        one_step(pair)
    assert multiplied == {dtype}


# --- an older torch --------------------------------------------------------------------------------------------------


def test_without_torch_s_muon_adam_serves_and_muon_is_refused_by_its_setting(monkeypatch):
    monkeypatch.setattr(optimizer_module, "HAS_MUON", False)
    with pytest.raises(ValueError, match=r"muon_rate: expected 0 .*, got 0.006: Muon came with torch 2.9, and this is"):
        build_optimizer(model(), TrainingConfig())
    assert build_optimizer(model(), TrainingConfig(muon_rate=0.0)).optimizers


def test_where_adam_cannot_be_one_kernel_its_steps_are_the_same(monkeypatch):
    fused, plain = model(), model()
    torchs = torch.optim.AdamW

    def on_gpus_alone(parameters, **options):
        if options.pop("fused", False):
            raise RuntimeError("`fused=True` requires all the params to be floating point Tensors of supported devices")
        return torchs(parameters, **options)

    backward(fused)
    for one, other in zip(fused.parameters(), plain.parameters(), strict=True):
        other.grad = one.grad.clone()
    for network in (fused, plain):
        build_optimizer(network, TrainingConfig(muon_rate=0.0)).step()
        monkeypatch.setattr(torch.optim, "AdamW", on_gpus_alone)
    for one, other in zip(fused.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_a_torch_that_cannot_tell_whether_it_compiles_still_checks_the_padding(monkeypatch):
    monkeypatch.delattr(torch.compiler, "is_compiling")
    expect_padding_last("source", torch.tensor([[5, 6, 0]]), 0)
    with pytest.raises(ValueError, match="a token after it"):
        expect_padding_last("source", torch.tensor([[5, 0, 6]]), 0)
