"""Chapter 14's exercises agree with torch and with the numbers of their tasks."""

import pytest
import torch
import torch.nn.functional as F

from autograder import catalogue
from autograder.catalogue.ch14_vision import conv_as_attention, patchify, sagan_attention, vit
from autograder.catalogue.known_answers import answer
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])


def draw(exercise_id, name):
    probe = next(probe for probe in catalogue.find(exercise_id).probes if probe.name == name)
    return probe.draw(torch.Generator().manual_seed(3))


def test_a_patch_is_what_unfold_cuts():
    img = torch.randn(2, 3, 6, 4)
    torch.testing.assert_close(patchify.patchify(img, 2), F.unfold(img, 2, stride=2).mT)


@pytest.mark.parametrize("name", [probe.name for probe in catalogue.find("patchify").probes if "rows," in probe.name])
def test_no_image_that_is_to_be_refused_can_be_cut(name):
    img, p = draw("patchify", name).arguments
    with pytest.raises(ValueError, match="expected a divisor"):
        patchify.patchify(img, p)


def test_the_two_pixels_of_the_task_come_out_as_by_hand():
    out = sagan_attention.sagan_attention(*sagan_attention.by_hand(0.5).arguments)
    torch.testing.assert_close(out.flatten(2)[0].T, torch.tensor([[1.5, 0.75], [1.0, 1.5]]))


@pytest.mark.parametrize("k", [1, 3, 5, 7])
def test_the_heads_are_the_convolution(k):
    x, kernel = torch.randn(2, 3, 4, 6, dtype=torch.float64), torch.randn(5, 3, k, k, dtype=torch.float64)
    out, weights = conv_as_attention.conv_as_attention(x, kernel)
    torch.testing.assert_close(out, F.conv2d(x, kernel, padding=k // 2))
    assert conv_as_attention.looks_somewhere_once((out, weights)) and weights.shape == (k * k, 24, 24)


def test_the_nine_pixels_of_the_task_come_out_as_by_hand():
    out, weights = conv_as_attention.conv_as_attention(*draw("conv-as-attention", "9 pixels, by hand").arguments)
    assert out.flatten()[[0, 2]].tolist() == [5.0, 3.0]
    assert weights[5, 0].tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0] and not weights[5, 2].any()


@pytest.mark.parametrize("spelling", ["F.conv2d(x, kernel, padding=r)", "torch.conv2d(x, kernel, padding=r)"])
def test_a_library_that_convolves_earns_nothing(spelling):
    source = answer("""
        def conv_as_attention(x, kernel):
            r, n = kernel.shape[-1] // 2, x.shape[2] * x.shape[3]
            return CALL, torch.zeros(kernel.shape[-1] ** 2, n, n)
    """).replace("CALL", spelling)
    verdict = judge_and_explain(catalogue.find("conv-as-attention"), LocalEndpoint(namespace_of(source)), KEY)
    assert verdict.points == 0 and "conv2d does the whole exercise" in " ".join(as_text(verdict).split())


def test_sizes_of_a_vit_are_told_apart_by_their_shapes():
    """No projection, row of positions or matrix of a layer may be taken for another by its shape."""
    for probe in catalogue.find("vit").probes:
        made = probe.draw(torch.Generator().manual_seed(1)).construct
        d_model, h, d_ff = made[3], made[4], made[6]
        pixels, _, places = (block.sizes[0] for block in vit.parts(*made)[:3])
        sizes = [pixels, places, d_ff, made[7]]
        in_attention = {d_model, 2 * d_model, 3 * d_model, h, *(n * d_model // h for n in (1, 2, 3))} - {1}
        assert len(set(sizes)) == len(sizes) and not in_attention & set(sizes), (probe.name, sizes)


VIT = catalogue.find("vit").correct[0].source


def said_of(exercise_id, source):
    verdict = judge_and_explain(catalogue.find(exercise_id), LocalEndpoint(namespace_of(source)), KEY)
    return " ".join(as_text(verdict).split())


def test_a_class_token_that_is_not_dropped_is_not_called_words_that_are_not():
    source = (
        VIT.but(
            "x = torch.cat([first, words], dim=1)",
            "x = torch.cat([first + self.positions[:, :1], self.drop(words + self.positions[:, 1:])], dim=1)",
        )
        .without("x = x + self.positions")
        .without("x = self.drop(x)")
    )
    said = said_of("vit", source)
    assert "only on the patches, before the class token is joined" in said and "words are not dropped" not in said


@pytest.mark.parametrize(
    "old, new, used",
    [
        ("torch.randn(1, 1 + N, d_model)", "torch.randn(d_model, 1 + N)", "x = x + self.positions.T"),
        ("torch.randn(1, 1 + N, d_model)", "torch.randn(1, 1 + N, 1)", "x = x + self.positions"),
    ],
    ids=["transposed", "one number each"],
)
def test_positions_of_a_different_layout_are_told_which_one_is_expected(old, new, used):
    said = said_of("vit", VIT.but(old, new).but("x = x + self.positions", used))
    assert "1 + N rows of d_model values" in said and "a different layout" in said


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("x = layer(x)\n", "out = layer(x)\n        x = out\n", "Only the last layer counts"),
        ("nn.LayerNorm(d_model)", "nn.LayerNorm(d_model, eps=1e-6)", "the last one too"),
        ("N = (image // patch) ** 2", "N = image // patch", "along one side only"),
    ],
    ids=["the last layer", "eps of the last norm", "positions of one side"],
)
def test_slips_in_a_vit_are_named(old, new, words):
    assert words in said_of("vit", VIT.but(old, new))


def test_pixels_read_down_the_columns_and_gamma_in_the_softmax_are_one_mistake_each():
    sagan = catalogue.find("sagan-attention").correct[0].source
    columns = sagan.but("pixels = x.reshape(B, C, H * W)", "pixels = x.transpose(2, 3).reshape(B, C, H * W)")
    assert "read down the columns of the image and put back row by row" in said_of("sagan-attention", columns)
    inside = sagan.but("scores = q @", "scores = gamma * q @").but("x + gamma * gathered", "x + gathered")
    assert "gamma multiplies the scores" in said_of("sagan-attention", inside)


def test_weights_with_rows_and_columns_exchanged_are_not_only_called_a_wrong_offset():
    conv = catalogue.find("conv-as-attention").correct[0].source
    there = "(row * W + column)[inside]"
    source = conv.but(f"pixel[inside], {there}] = 1", f"{there}, pixel[inside]] = 1")
    assert "rows and columns of the weights are exchanged" in said_of("conv-as-attention", source)
    sides = conv.but("B, C, H, W = x.shape", "B, C, W, H = x.shape")
    assert "Height and width were read from the shape in the wrong order" in said_of("conv-as-attention", sides)


def test_a_large_patch_with_many_channels_is_not_refused():
    patchify_ = catalogue.find("patchify").correct[0].source
    source = patchify_.but("if H % p != 0 or W % p != 0:", "if H % p != 0 or W % p != 0 or p > 8 or C > 4:")
    assert judge_and_explain(catalogue.find("patchify"), LocalEndpoint(namespace_of(source)), KEY).points < 5


def test_the_cell_that_is_on_the_pixel_itself_is_named():
    right = catalogue.find("conv-as-attention").correct[0].source
    fixed = said_of("conv-as-attention", right.but("r = k // 2", "r = 1"))
    assert "With k = 5 cell (1, 1) of your kernel is on the pixel itself; (2, 2) should be" in fixed
    late = said_of("conv-as-attention", right.but("r = k // 2", "r = k // 2 + 1"))
    assert "With k = 3 cell (2, 2) of your kernel is on the pixel itself; (1, 1) should be" in late


def test_a_dropout_in_the_wrong_place_is_not_called_one_too_many():
    right = catalogue.find("vit").correct[0].source
    moved = right.without("x = self.drop(x)").but("self.head(x[:, 0])", "self.head(self.drop(x[:, 0]))")
    assert "is it there, or did it get into the wrong place?" in said_of("vit", moved)
    assert not any("one dropout too many" in known.message for known in catalogue.find("vit").mistakes)
