"""The pretended device finds what would fail, wait or copy on a GPU, and computes what the CPU computes."""

import copy

import pytest
import torch
import torch.nn.functional as F
from drawn import generator, ids, tiny_config
from pretended_device import DEVICE, DeviceTensor, pretended_device
from torch import nn

from transformer_ref.data.batching import Batch
from transformer_ref.model import transformer as transformer_module
from transformer_ref.model.transformer import Transformer

CPU_MEETS_DEVICE = "Expected all tensors to be on the same device, but found cuda:0 and cpu"


@pytest.fixture
def log():
    with pretended_device() as log:
        yield log


@pytest.fixture
def x(log):
    made = torch.arange(6.0).view(2, 3).to("cuda")
    log.clear()
    return made


@pytest.mark.parametrize(
    "meet",
    [
        lambda x: x + torch.ones(3),
        lambda x: torch.ones(2, 3) * x,
        lambda x: torch.cat([x, torch.zeros(2, 3)]),
        lambda x: torch.where(torch.ones(2, 3, dtype=torch.bool), x, 0.0),
        lambda x: x.masked_fill(torch.ones(2, 3, dtype=torch.bool), 0.0),
        lambda x: x.index_select(0, torch.tensor([1])),
        lambda x: torch.ones(2, 3)[x.long()[0]],
        lambda x: F.linear(x, torch.ones(4, 3)),
        lambda x: x + torch.arange(x.shape[1]),  # a factory that was given no device
        lambda x: x + torch.zeros_like(torch.ones(2, 3)),
        lambda x: nn.LayerNorm(3)(x),  # a module that was not moved
    ],
)
def test_an_ordinary_tensor_that_meets_one_of_the_device_is_refused(x, meet):
    with pytest.raises(RuntimeError, match=CPU_MEETS_DEVICE):
        meet(x)


@pytest.mark.parametrize(
    "allowed",
    [
        lambda x: x + torch.tensor(1.0),  # a tensor without axes is a number
        lambda x: x + torch.arange(x.shape[1], device=x.device),
        lambda x: x + torch.ones_like(x) + x.new_ones(3) + 2,
        lambda x: x[torch.tensor([1, 0])],
        lambda x: torch.zeros(2, 3).copy_(x),
    ],
)
def test_what_cuda_allows_is_allowed(x, allowed):
    assert allowed(x).shape == x.shape


@pytest.mark.parametrize(
    "wait",
    [
        lambda x: x[0, 0].item(),
        lambda x: float(x.sum()),
        lambda x: int(x.sum()),
        lambda x: bool((x > 2).all()),
        lambda x: x.tolist(),
        lambda x: x.cpu(),
        lambda x: x.to("cpu"),
        lambda x: x.nonzero(),
        lambda x: x[x > 2],
        lambda x: (x / 15).multinomial(1),
        lambda x: torch.equal(x, x),
        lambda x: torch.zeros(2, 3).copy_(x),
        lambda x: torch.cuda.synchronize(),
    ],
)
def test_every_way_to_wait_for_the_device_is_counted(x, log, wait):
    wait(x)
    assert (log.count("wait"), log.count("copy")) == (1, 0)
    assert "1 x wait:" in str(log)


def test_the_backward_pass_of_an_index_by_a_mask_waits_as_well(x, log):
    x.requires_grad_()
    x[x > 2].sum().backward()
    assert log.count("wait") == 2


@pytest.mark.parametrize(
    "copied",
    [
        lambda x: torch.ones(3).to("cuda"),
        lambda x: torch.ones(3).cuda(),
        lambda x: torch.ones(3).to(x),
        lambda x: torch.ones(3).to("cuda", non_blocking=True),  # from pageable memory it blocks all the same
        lambda x: torch.ones(3).pin_memory().to("cuda"),
        lambda x: torch.tensor([1.0, 2.0], device="cuda"),
        lambda x: x[[1, 0]],
        lambda x: x[torch.tensor([1, 0])],
        lambda x: x.copy_(torch.ones(2, 3)),
    ],
)
def test_every_copy_that_waits_is_counted(x, log, copied):
    copied(x)
    assert (log.count("wait"), log.count("copy")) == (0, 1)


def test_a_copy_from_page_locked_memory_does_not_wait(x, log):
    memory = torch.ones(2, 3).pin_memory()
    assert memory.is_pinned() and not torch.ones(2).is_pinned()
    memory.to("cuda", non_blocking=True)
    x.copy_(memory, non_blocking=True)
    assert log.waits() == 0


def test_kernels_are_counted_and_views_are_not(x, log):
    (x.T[1:].unsqueeze(0) + 1).relu()
    assert log.kernels == {"add": 1, "relu": 1}
    log.clear()
    torch._foreach_add_([x, x.clone(), x.clone()], 1.0)
    assert log.kernels == {"clone": 2, "_foreach_add_": 1}


def test_attention_with_a_mask_is_counted(x, log):
    q = x[None, None]
    F.scaled_dot_product_attention(q, q, q)
    F.scaled_dot_product_attention(q, q, q, is_causal=True)
    assert log.count("mask") == 0
    F.scaled_dot_product_attention(q, q, q, attn_mask=q[0, 0] @ q[0, 0].T > 0)
    assert log.count("mask") == 1


def test_numpy_and_a_generator_of_the_cpu_are_refused(x):
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator"):
        torch.rand(3, device="cuda", generator=torch.Generator())
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator"):
        torch.empty_like(x).exponential_(generator=torch.Generator())
    drawn = [torch.rand(3, device="cuda", generator=torch.Generator("cuda").manual_seed(1)).tolist() for _ in "12"]
    assert drawn[0] == drawn[1]


def test_a_moved_model_keeps_its_tied_table_its_buffers_and_its_results(log):
    model = Transformer(tiny_config(source_vocabulary=13, target_vocabulary=13, tie_embeddings=True), generator(1))
    source, target = ids(2, 3, 5, high=13), ids(3, 3, 4, high=13)
    expected = model.eval()(source, target)
    moved = copy.deepcopy(model).to("cuda")
    assert moved.output.weight is moved.source_embedding.weight is moved.target_embedding.weight
    assert all(each.device == DEVICE for each in [*moved.parameters(), *moved.buffers()])
    assert all(isinstance(each, nn.Parameter) for each in moved.parameters())
    assert not any(isinstance(each, DeviceTensor) for each in model.parameters())
    assert moved(source.to("cuda"), target.to("cuda")).cpu().equal(expected)


def test_gradients_on_the_device_are_those_on_the_cpu(log):
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    moved, x = copy.deepcopy(model).to("cuda"), torch.randn(5, 3, generator=generator(1))
    for each, given in ((model, x), (moved, x.to("cuda"))):
        each(given).square().sum().backward()
    for expected, found in zip(model.parameters(), moved.parameters(), strict=True):
        assert found.grad.device == DEVICE and found.grad.cpu().equal(expected.grad)


def test_outside_the_context_there_is_no_such_device(monkeypatch):
    with pretended_device():
        assert torch.cuda.is_available() and torch.cuda.device_count() == 1
    monkeypatch.undo()
    assert not isinstance(torch.ones(2).to("cpu"), DeviceTensor)
    with torch.inference_mode():
        assert torch.ones(2).is_inference()


# ---- mistakes planted in the package, none of which can be seen on a CPU ------------------------------------------


def batch() -> Batch:
    return Batch(*(ids(seed, 3, 5, high=11) for seed in (1, 2, 3)))


def model() -> Transformer:
    return Transformer(tiny_config(source_vocabulary=11, target_vocabulary=11), generator(1)).to("cuda").eval()


def test_a_mask_made_without_its_device_is_found(log, monkeypatch):
    given = batch()  # and a mask without `is_causal`: one that has it is described to the kernel, and never read

    def on_cpu(length, offset, device):
        return torch.ones(length, offset + length, dtype=torch.bool).tril(offset)

    monkeypatch.setattr(transformer_module, "causal_mask", on_cpu)
    with pytest.raises(RuntimeError, match=rf"{CPU_MEETS_DEVICE}: .* in model.attention\.py:"):
        model()(given.source.to("cuda"), given.target_input.to("cuda"))


def test_a_batch_left_on_the_cpu_is_found(log):
    with pytest.raises(RuntimeError, match=rf"{CPU_MEETS_DEVICE}: embedding .* in model.embedding\.py:"):
        model()(*batch()[:2])


def test_a_hidden_wait_is_found_with_its_line(log, monkeypatch):
    given = batch().to(DEVICE)
    network = model()
    right = network.decoder.forward
    monkeypatch.setattr(network.decoder, "forward", lambda x, *rest: right(x, *rest) if x.isfinite().all() else None)
    log.clear()
    network(given.source, given.target_input)
    assert "wait: _local_scalar_dense in model" in str(log)
