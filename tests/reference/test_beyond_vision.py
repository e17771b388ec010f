"""Images as sentences, pixels that look at pixels, and attention that is a convolution."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from transformer_ref.beyond.convolution import DeepCNN, LocalCNN, PixelAttention
from transformer_ref.beyond.vision import (
    ViT,
    conv_as_attention,
    patchify,
    pixel_attention,
    sagan_attention,
    shift_weights,
    unpatchify,
)

sizes = st.integers(1, 4)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


@given(batch=sizes, channels=sizes, rows=sizes, columns=sizes, p=sizes)
def test_patches_are_what_the_library_unfolds_and_can_be_put_back(batch, channels, rows, columns, p):
    img = drawn(batch, channels, rows * p, columns * p)
    patches = patchify(img, p)
    assert torch.equal(patches, F.unfold(img, p, stride=p).transpose(1, 2))
    assert torch.equal(unpatchify(patches, p, rows * p, columns * p), img)


@pytest.mark.parametrize(("p", "side"), [(4, 6), (0, 6), (7, 6)])
def test_a_side_that_does_not_divide_is_refused(p, side):
    with pytest.raises(ValueError, match="p: expected a divisor"):
        patchify(torch.zeros(1, 1, side, side), p)
    with pytest.raises(ValueError, match="patch: expected a divisor"):
        ViT(side, p, 1, 8, 2, 1, 8, 2)


def test_pieces_of_another_image_are_not_put_together():
    with pytest.raises(ValueError, match="patches"):
        unpatchify(torch.zeros(1, 4, 9), 2, 4, 4)
    with pytest.raises(ValueError, match="patches"):
        unpatchify(torch.zeros(1, 4, 4), 2, 5, 4)


@pytest.fixture
def vit() -> ViT:
    torch.manual_seed(1)
    return ViT(6, 2, 3, 8, 2, 2, 12, 5).double().eval()


def test_the_patch_projection_is_a_convolution_with_that_stride(vit):
    img = drawn(2, 3, 6, 6)
    kernel = vit.project.weight.reshape(8, 3, 2, 2)
    conv = F.conv2d(img, kernel, vit.project.bias, stride=2).flatten(2).transpose(1, 2)
    assert torch.allclose(vit.project(patchify(img, 2)), conv)


def test_each_image_is_answered_by_itself_and_by_every_patch(vit):
    img = drawn(3, 3, 6, 6).requires_grad_()
    logits = vit(img)
    assert logits.shape == (3, 5)
    assert torch.allclose(logits[1:2], vit(img[1:2]))
    logits[0].square().sum().backward()
    assert (patchify(img.grad[:1], 2).abs().sum(-1) > 0).all() and not img.grad[1:].any()


def test_the_order_of_patches_is_known_from_the_positions_alone(vit):
    img = drawn(1, 3, 6, 6)
    turned = img.flip(-2).reshape(1, 3, 3, 2, 6).flip(-2).reshape(1, 3, 6, 6)  # rows of patches exchanged
    assert not torch.allclose(vit(img), vit(turned))
    torch.nn.init.zeros_(vit.positions.table)
    assert torch.allclose(vit(img), vit(turned))


def test_looking_gives_the_same_answer_and_rows_that_sum_to_one(vit):
    img = drawn(2, 3, 6, 6)
    logits, weights = vit.look(img)
    assert torch.allclose(logits, vit(img))
    assert [tuple(each.shape) for each in weights] == [(2, 2, 10, 10)] * 2
    assert torch.allclose(weights[0].sum(-1), torch.ones(2, 2, 10).double())


def test_an_image_of_another_size_is_refused(vit):
    with pytest.raises(ValueError, match="images: expected shape"):
        vit(drawn(1, 3, 8, 8))


def test_the_base_model_of_the_paper_has_its_86_million_numbers():
    with torch.device("meta"):
        base = ViT(224, 16, 3, 768, 12, 12, 3072, 1000)
    assert sum(parameter.numel() for parameter in base.parameters()) == 86_567_656


@given(batch=sizes, channels=sizes, height=sizes, width=sizes, features=sizes)
def test_pixels_gather_what_a_loop_over_pixels_gathers(batch, channels, height, width, features):
    x = drawn(batch, channels, height, width)
    Wq, Wk, Wv = drawn(features, channels), drawn(features, channels) + 1, drawn(channels, channels)
    wanted = torch.empty_like(x)
    for b in range(batch):
        for r in range(height):
            for c in range(width):
                scores = torch.einsum("fc,c,fd,dhw->hw", Wq, x[b, :, r, c], Wk, x[b])
                shares = scores.flatten().softmax(0).reshape(height, width)
                wanted[b, :, r, c] = Wv @ (x[b] * shares).sum((1, 2))
    gathered, weights = pixel_attention(x, Wq, Wk, Wv)
    assert torch.allclose(gathered, wanted)
    assert weights.shape == (batch, height * width, height * width)
    assert torch.allclose(sagan_attention(x, Wq, Wk, Wv, -0.5), x - 0.5 * wanted)


def test_the_door_starts_shut_and_moves_first():
    layer = PixelAttention(6, 2)
    x = torch.randn(2, 6, 3, 4)
    assert torch.equal(layer(x), x)
    layer(x).square().sum().backward()
    assert layer.gamma.grad != 0
    assert not any(weight.grad.any() for weight in (layer.query, layer.key, layer.value))


@given(
    batch=sizes,
    channels=sizes,
    out=sizes,
    height=st.integers(1, 6),
    width=st.integers(1, 6),
    k=st.sampled_from([1, 3, 5]),
)
def test_heads_at_shifts_are_the_convolution(batch, channels, out, height, width, k):
    x, kernel = drawn(batch, channels, height, width), drawn(out, channels, k, k)
    found, weights = conv_as_attention(x, kernel)
    assert torch.allclose(found, F.conv2d(x, kernel, padding=k // 2))
    assert weights.shape == (k * k, height * width, height * width)
    assert set(weights.unique().tolist()) <= {0.0, 1.0} and (weights.sum(-1) <= 1).all()


def test_a_corner_has_four_neighbors_and_nothing_beyond_the_border():
    weights = shift_weights(4, 5, 3)
    assert weights[:, 0].sum(-1).tolist() == [0, 0, 0, 0, 1, 1, 0, 1, 1]
    assert weights[7, 6].nonzero().item() == 11  # head 8 looks one row down


@pytest.mark.parametrize("shape", [(2, 3, 2, 2), (2, 3, 3, 1), (2, 4, 3, 3)])
def test_a_kernel_that_does_not_fit_is_refused(shape):
    with pytest.raises(ValueError, match="k"):
        conv_as_attention(drawn(1, 3, 4, 4), drawn(*shape))


def test_the_local_network_adds_what_its_marks_say_and_cannot_compare_them():
    """Formula 14.1: so at most three of the four cases can be right."""
    from transformer_ref.beyond import images

    def pair(left: int, right: int) -> torch.Tensor:
        pixels = torch.zeros(1, 1, images.SIDE, images.SIDE, dtype=torch.float64)
        pixels[0, 0, 2 : 2 + images.MARK, images.LEFT[1] : images.LEFT[1] + images.MARK] = images.marks()[left]
        pixels[0, 0, 9 : 9 + images.MARK, images.RIGHT[0] : images.RIGHT[0] + images.MARK] = images.marks()[right]
        return pixels

    def gap(model: torch.nn.Module) -> float:
        with torch.no_grad():
            s = {(a, b): model(pair(a, b))[0, 1].item() for a in (0, 1) for b in (0, 1)}
        return abs(s[0, 0] + s[1, 1] - s[0, 1] - s[1, 0])

    for seed in range(5):
        torch.manual_seed(seed)
        assert gap(LocalCNN(1, 16, 2).double()) < 1e-12
        looking = LocalCNN(1, 16, 2, attention=True).double()
        assert gap(looking) < 1e-12
        torch.nn.init.ones_(looking.attention.gamma)
        assert gap(looking) > 1e-9
        assert gap(DeepCNN(1, 12, 2).double()) > 1e-9
