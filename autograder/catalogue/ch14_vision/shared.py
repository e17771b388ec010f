"""What the exercises of chapter 14 share."""

import torch
from torch import Tensor

from autograder.catalogue.exercise import Evidence
from autograder.catalogue.numbers import number
from autograder.catalogue.quotes import row, sizes, wrong_row
from autograder.catalogue.sections import of_chapter

sections = of_chapter("14")


def labeled(B: int, C: int, H: int, W: int) -> Tensor:
    """Numbers that say where they were: 1234 is image 1, channel 2, row 3, column 4."""
    image, channel = torch.arange(B)[:, None, None, None], torch.arange(C)[:, None, None]
    return (1000.0 * image + 100.0 * channel + 10.0 * torch.arange(H)[:, None] + torch.arange(W)).float()


def counted(H: int, W: int) -> Tensor:
    """One image of one channel whose pixels are counted as they are read, from 1: (1, 1, H, W)."""
    return torch.arange(1.0, H * W + 1).reshape(1, 1, H, W)


def wrong_patch(evidence: Evidence) -> str:
    """The first patch that differs, as it is and as it should be."""
    return wrong_row(evidence, "patch")


def wrong_pixel(evidence: Evidence) -> str:
    """The first pixel that differs, all of its channels."""
    got, wanted = _image(evidence.got), _image(evidence.expected)
    if not isinstance(got, Tensor) or got.shape != wanted.shape:
        return sizes(evidence) if isinstance(evidence.got, Tensor) else ""
    far = ~torch.isclose(got.double(), wanted.double(), rtol=1e-3, atol=1e-5)
    if not bool(far.any()):
        return ""
    image, _, line, column = map(int, far.nonzero()[0])
    yours, right = (row(table[image, :4, line, column]) for table in (got, wanted))
    # not "row 0": in a report that is a row of the returned tensor
    where = f"(h, w) = ({line}, {column})" + (f" of image {image}" if len(wanted) > 1 else "")
    each = ", channel by channel" if wanted.shape[1] > 1 else ""
    return f"The pixel at {where} came back as {yours}{each}; it should be {right}."


def first_logit(evidence: Evidence) -> str:
    """The first logit that is off, as it is and as it should be."""
    if tuple(evidence.got.shape) != tuple(evidence.expected.shape):
        return sizes(evidence)
    got, wanted = evidence.got.flatten(), evidence.expected.flatten()
    place = int((got - wanted).abs().nan_to_num(nan=1e9).argmax())
    return f"A logit came back as {number(got[place])}; {number(wanted[place])} belongs there."


def _image(value: object) -> Tensor:
    return value[0] if isinstance(value, tuple) else value
