"""The images that chapter 14 draws have the answers that they say."""

import pytest
import torch

from transformer_ref.beyond import images


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(14)


def found(pixels: torch.Tensor, columns: slice) -> int:
    """The mark that fits best anywhere in these columns."""
    part = (pixels[None, None, :, columns] - 0.5).double()
    kernels = (images.marks()[:, None] - 0.5).double()
    return int(torch.nn.functional.conv2d(part, kernels).amax(dim=(0, 2, 3)).argmax())


@pytest.mark.parametrize("columns", [(0, images.SIDE - images.MARK), (9, 13)])
def test_the_mark_that_is_said_stands_there(columns):
    data = images.shapes(50, seeded(), columns)
    assert data.pixels.shape == (50, 1, images.SIDE, images.SIDE)
    for pixels, answer in zip(data.pixels[:, 0], data.answers, strict=True):
        assert found(pixels, slice(columns[0], columns[1] + images.MARK)) == answer


def test_as_many_dots_as_are_said_and_none_touches_another():
    data = images.counts(60, seeded())
    ink = (data.pixels[:, 0] > 0.5).sum(dim=(1, 2))
    assert torch.equal(ink, 4 * (data.answers + 1))
    assert set(data.answers.tolist()) == set(range(images.MOST_DOTS))


def test_the_same_means_the_same_and_no_window_of_the_local_network_holds_both():
    data = images.relations(60, seeded())
    for pixels, answer in zip(data.pixels[:, 0], data.answers, strict=True):
        left, right = found(pixels[:, :9], slice(0, 9)), found(pixels[:, 9:], slice(0, 9))
        assert (left == right) == bool(answer)
    window = 7
    assert images.RIGHT[0] - (images.LEFT[1] + images.MARK - 1) + 1 > window
    assert 20 < data.answers.sum() < 40


def test_a_seed_draws_the_same_images_again():
    for task in (images.shapes, images.counts, images.relations):
        assert torch.equal(task(5, seeded()).pixels, task(5, seeded()).pixels)
