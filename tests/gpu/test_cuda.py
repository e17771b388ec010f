"""On a CUDA device the model and its decoding give what they give on the CPU."""

import warnings
from contextlib import contextmanager

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.data.batching import Batch
from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.decoding.sampling import sample_decode
from transformer_ref.device import choose_device, choose_precision
from transformer_ref.fast.dropout import PooledDropout
from transformer_ref.model.attention import explicit_attention, fused_attention
from transformer_ref.model.masks import causal_mask
from transformer_ref.model.transformer import Transformer
from transformer_ref.training.bf16_copy import BF16Copy
from transformer_ref.training.gradients import Gradients
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.optimizer import build_optimizer
from transformer_ref.training.trainer import train_step

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")]


@pytest.fixture(params=[False, True], ids=["post-norm", "pre-norm"])
def models(request):
    """Return one model twice, on the CPU and on the GPU, in float64, where no two tokens are nearly tied."""
    config = ModelConfig(
        11, 7, d_model=12, heads=3, encoder_layers=2, decoder_layers=2, d_ff=20, norm_first=request.param, max_length=17
    )
    pair = [Transformer(config, torch.Generator().manual_seed(3)).double().eval() for _ in range(2)]
    return pair[0], pair[1].to(choose_device("cuda"))


@pytest.fixture
def source():
    ids = torch.randint(3, 11, (5, 6), generator=torch.Generator().manual_seed(4))
    ids[1, 4:] = ids[3, 2:] = 0
    return ids


def test_the_logits_agree(models, source):
    on_cpu, on_gpu = models
    target = torch.randint(3, 7, (5, 4), generator=torch.Generator().manual_seed(5))
    logits = on_gpu(source.cuda(), target.cuda())
    torch.testing.assert_close(logits.cpu(), on_cpu(source, target), rtol=0, atol=1e-10)


def test_greedy_decoding_agrees(models, source):
    on_cpu, on_gpu = models
    assert torch.equal(greedy_decode(on_gpu, source.cuda(), 12).cpu(), greedy_decode(on_cpu, source, 12))


def test_beam_search_agrees(models, source):
    on_cpu, on_gpu = models
    from_gpu = beam_search(on_gpu, source.cuda(), 3, 12, 1.0)
    from_cpu = beam_search(on_cpu, source, 3, 12, 1.0)
    for theirs, ours in zip(from_gpu, from_cpu, strict=True):
        assert [one.ids for one in theirs] == [one.ids for one in ours]
        assert [one.score for one in theirs] == pytest.approx([one.score for one in ours])


@contextmanager
def waits_counted():
    """Yield the list of the times that the CPU waited for the GPU within the block, as torch's warnings."""
    with warnings.catch_warnings(record=True) as waits:
        warnings.filterwarnings("always", message=".*called a synchronizing CUDA operation.*")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield waits
        finally:
            torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize(
    "decode",
    [
        lambda model, source, length: greedy_decode(model, source, length),
        lambda model, source, length: beam_search(model, source, 3, length, 1.0),
        lambda model, source, length: sample_decode(model, source, length, torch.Generator("cuda").manual_seed(1)),
    ],
    ids=["greedy", "beam", "drawn"],
)
def test_a_token_more_makes_the_cpu_wait_once_more_at_most(models, source, decode):
    counts = []
    for length in (4, 12):
        with waits_counted() as waits:
            decode(models[1], source.cuda(), length)
        counts.append(len(waits))
    assert counts[1] - counts[0] <= 12 - 4


def test_a_causal_mask_is_described_to_the_kernel():
    if torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("the flash kernel needs a GPU of compute capability 8.0 or higher")
    query, key, value = torch.randn(3, 2, 3, 6, 8, generator=torch.Generator().manual_seed(6)).cuda()
    mask = causal_mask(6, device=query.device)
    expected = explicit_attention(query, key, value, mask).output
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):  # takes no mask
        found = fused_attention(*(each.bfloat16() for each in (query, key, value)), mask).output
    torch.testing.assert_close(found.float(), expected, rtol=0, atol=5e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_every_kernel_gives_zeros_to_a_query_without_keys(dtype):
    drawing = torch.Generator().manual_seed(6)
    query, key, value = (
        torch.randn(2, 3, length, 8, generator=drawing).to("cuda", dtype).requires_grad_() for length in (4, 6, 6)
    )
    mask = torch.rand(2, 3, 4, 6, generator=drawing).cuda() < 0.6
    mask[1, 2, 3] = False
    explicit, fused = (path(query, key, value, mask).output for path in (explicit_attention, fused_attention))
    assert (fused[1, 2, 3] == 0).all() and (explicit[1, 2, 3] == 0).all()
    # a kernel may multiply float32 in TF32; the others have 10 and 7 bits
    tolerance = {torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 5e-2}[dtype]
    torch.testing.assert_close(fused, explicit, rtol=0, atol=tolerance)
    for output in (explicit, fused):
        gradients = torch.autograd.grad(output.sum(), (query, key, value))
        assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("in_bf16", [False, True])
def test_a_training_step_moves_the_weights_as_on_the_cpu(in_bf16):
    config = ModelConfig(
        11,
        11,
        d_model=12,
        heads=3,
        encoder_layers=2,
        decoder_layers=1,
        d_ff=20,
        dropout=0.0,
        tie_embeddings=True,
        max_length=17,
    )
    ids = torch.randint(3, 11, (3, 4, 5), generator=torch.Generator().manual_seed(7))
    results, gradients = [], []
    for device in ("cpu", "cuda"):
        model = Transformer(config, torch.Generator().manual_seed(3)).to(device)
        optimizer = build_optimizer(model, TrainingConfig(muon_rate=0.0))
        bf16_copy = BF16Copy(model) if in_bf16 else None
        results.append(
            train_step(
                model, Batch(*ids).to(torch.device(device)), optimizer, MeanLoss(0, 0.1), 1.0, Gradients(bf16_copy)
            )
        )
        gradients.append(torch.cat([parameter.grad.flatten().cpu() for parameter in model.parameters()]))
    assert results[0].loss == pytest.approx(results[1].loss, rel=0.02 if in_bf16 else 1e-4)
    assert torch.cosine_similarity(*gradients, dim=0) > (0.999 if in_bf16 else 0.999999)


def test_bf16_is_chosen_where_the_gpu_is_fast_in_it():
    major, _ = torch.cuda.get_device_capability()
    assert choose_precision("auto", torch.device("cuda")) == (torch.bfloat16 if major >= 8 else torch.float32)


def test_dropout_zeroes_the_share_that_was_asked_for():
    share = (PooledDropout(0.25)(torch.ones(1_000, 1_000, device="cuda")) == 0).float().mean().item()
    assert share == pytest.approx(0.25, abs=0.003)


def test_the_benchmark_s_training_runs_on_the_gpu(tmp_path, monkeypatch):
    from transformer_ref.benchmark import run, training

    monkeypatch.setattr(training, "GPU_TOKENS", 256)
    piece = run.Piece("CUDA", "training", "d128")
    rows = run.measure(tmp_path, torch.device("cuda"), piece, repeats=1, say=lambda words: None)
    assert {row.name for row in rows} >= {"torch.nn.Transformer"} and all(row.speed > 0 for row in rows)
