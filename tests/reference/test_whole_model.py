"""The listing of the whole model on one page computes what the package computes."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import torch

from transformer_ref.config import ModelConfig
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.model.transformer import Transformer
from transformer_ref.training.loss import masked_cross_entropy

LISTING = Path(__file__).resolve().parents[2] / "book" / "reference" / "whole_model.py"
VOCABULARY, D, HEADS, LAYERS, D_FF = 11, 12, 3, 2, 20


@pytest.fixture(scope="module")
def listing():
    spec = spec_from_file_location("whole_model", LISTING)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=[False, True], ids=["post-norm", "pre-norm"])
def models(request, listing):
    config = ModelConfig(
        VOCABULARY, VOCABULARY, D, HEADS, LAYERS, LAYERS, D_FF, dropout=0.0, norm_first=request.param, max_length=32
    )
    packages = Transformer(config, torch.Generator().manual_seed(1)).eval()
    for parameter in packages.parameters():  # biases and norms too, which begin as zeros and ones
        torch.nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(parameter.numel()))
    listed = listing.Transformer(VOCABULARY, D, HEADS, LAYERS, D_FF, 0.0, request.param).eval()
    listed.load_state_dict(packages.state_dict())  # strict: the same names and shapes
    return packages, listed


SOURCE = torch.tensor([[5, 6, 7, 8, 2], [9, 3, 2, 0, 0], [4, 2, 0, 0, 0]])
LABELS = torch.tensor([[7, 5, 4, 2], [6, 2, 0, 0], [3, 8, 2, 0]])


def test_the_logits_are_the_same(models, listing):
    packages, listed = models
    target = torch.cat([torch.full((3, 1), listing.BOS), LABELS[:, :-1]], dim=1)
    expected = packages(SOURCE, target)
    real = LABELS != listing.PAD
    torch.testing.assert_close(listed(SOURCE, target)[real], expected[real], rtol=1e-4, atol=1e-5)


def test_the_loss_and_its_gradients_are_the_same(models, listing):
    packages, listed = models
    target = torch.cat([torch.full((3, 1), listing.BOS), LABELS[:, :-1]], dim=1)
    expected = masked_cross_entropy(packages(SOURCE, target), LABELS, listing.PAD)
    got = listing.loss(listed, SOURCE, LABELS)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    got.backward()
    expected.backward()
    theirs = dict(listed.named_parameters())
    for name, parameter in packages.named_parameters():
        torch.testing.assert_close(theirs[name].grad, parameter.grad, rtol=1e-3, atol=1e-5)


def test_greedy_decoding_says_the_same(models, listing):
    packages, listed = models
    expected = greedy_decode(packages, SOURCE, 9)
    got = listing.greedy(listed, SOURCE, 9)
    width = min(got.shape[1], expected.shape[1])
    assert torch.equal(got[:, :width], expected[:, :width])
    assert not got[:, width:].any() and not expected[:, width:].any()


def test_the_listing_needs_torch_alone_and_fits_on_a_page():
    text = LISTING.read_text(encoding="utf-8")
    assert "transformer_ref import" not in text and "from transformer_ref" not in text
    assert len(text.splitlines()) < 200
