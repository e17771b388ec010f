"""Which wrong answers behave alike: a fingerprint of what an answer returns to fixed questions.

Two answers that no known mistake explains may show the same misunderstanding in different code. They are compared by
what they return to the visible probes and to the hidden ones under one key of the course (see
`JudgingSession.observe_under`). Results are rounded, because two ways to write one formula differ in their last digits.
A rounded number may still lie next to a border, so a fingerprint has three parts with shifted borders: answers are
alike when one of the three is equal. Nothing can be read from a fingerprint: it is keyed with the course's secret.
"""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from autograder.catalogue.exercise import Exercise
from autograder.diagnosis.evidence import Explained, explained
from autograder.inside import wire
from autograder.judging.judge import JudgingSession
from autograder.judging.observation import Observation, Outcome, Raised, Structure
from autograder.judging.observe import Endpoint, EndpointGone
from autograder.judging.verdict import WRONG

SHIFTS = (0.0, 1 / 3, 2 / 3)  # of the borders between rounded numbers, as shares of their distance
STEPS = 64.0  # rounded numbers differ by one in 64, of the right result's largest number or of a larger number itself
NEAR = 4.0  # ... and by a quarter of that near zero
LETTERS = 24  # of each part
INFINITE, NO_NUMBER = 1e12, 2e12  # for inf and nan: finite results are rounded to smaller numbers


def is_compared(verdict: Explained) -> bool:
    """Whether an answer is wrong and no known mistake explains it. A trained answer is not compared: its weights are
    unique."""
    return verdict.state == WRONG and verdict.misconception is None and not verdict.exercise.trained


def fingerprinted(verdict: Explained, session: JudgingSession, endpoint: Endpoint, secret: bytes) -> Explained:
    """The verdict with a fingerprint; call `is_compared` first.

    endpoint: still holds the answer. An answer that takes too long keeps its verdict and gets no fingerprint.
    """
    try:
        fixed = session.observe_under(key_of(secret, verdict.exercise), endpoint)
    except EndpointGone:
        return verdict
    visible = [outcome for outcome in verdict.outcomes if not outcome.probe.hidden]
    return explained(verdict, alike=fingerprint([*visible, *fixed], secret))


def key_of(secret: bytes, exercise: Exercise) -> bytes:
    """The key of the hidden inputs on which all answers of a course are compared."""
    return hmac.new(secret, f"alike|{exercise.id}".encode(), hashlib.sha256).digest()


def fingerprint(outcomes: Sequence[Outcome], secret: bytes) -> tuple[str, ...]:
    """The three parts of the fingerprint; none if nothing fails, since correct answers are not grouped."""
    if all(outcome.passed for outcome in outcomes) or any(outcome.got is None for outcome in outcomes):
        return ()
    parts = []
    for shift in SHIFTS:
        digest = hmac.new(secret, repr(shift).encode(), hashlib.sha256)
        for outcome in outcomes:
            digest.update(outcome.probe.name.encode())
            for piece in _observed(outcome, shift):
                digest.update(piece)
        parts.append(digest.hexdigest()[:LETTERS])
    return tuple(parts)


def are_alike(first: Iterable[str], second: Iterable[str]) -> bool:
    """Whether two fingerprints belong to answers that behave alike."""
    return not set(first).isdisjoint(second)


def _observed(outcome: Outcome, shift: float) -> Iterable[bytes]:
    expected, got = outcome.expected, outcome.got
    yield from _rounded(got.result, expected.result, shift)
    yield repr((got.changed, got.drawn, got.reseeded, _changed_inputs(expected, got))).encode()
    for place, right in expected.gradients.items():
        yield repr(place).encode()
        yield from _rounded(got.gradients.get(place), right, shift)


def _changed_inputs(expected: Observation, got: Observation) -> list[int]:
    pairs = enumerate(zip(expected.inputs, got.inputs, strict=False))
    return [place for place, (old, new) in pairs if [*_rounded(old, None, 0)] != [*_rounded(new, None, 0)]]


def _rounded(value: Any, right: Any, shift: float) -> Iterable[bytes]:
    """A value as bytes, its numbers rounded relative to the size of the correct ones."""
    if isinstance(value, torch.Tensor):
        yield f"tensor {tuple(value.shape)} {value.dtype}".encode()
        yield from _numbers(value, _size(right), shift)
    elif isinstance(value, float):
        yield b"float"
        yield from _numbers(torch.tensor([value], dtype=torch.float64), _size(right), shift)
    elif isinstance(value, (list, tuple)):
        same = isinstance(right, (list, tuple)) and len(right) == len(value)
        yield f"{len(value)} items".encode()
        for place, item in enumerate(value):
            yield from _rounded(item, right[place] if same else None, shift)
    elif isinstance(value, dict):
        for name in sorted(value, key=repr):
            yield repr(name).encode()
            yield from _rounded(value[name], right.get(name) if isinstance(right, dict) else None, shift)
    elif isinstance(value, Raised):
        yield f"raised {value.type}: {value.message}".encode()
    elif isinstance(value, Structure):
        yield repr(value.outline()).encode()
    elif isinstance(value, torch.Generator):
        yield value.get_state().numpy().tobytes()
    elif isinstance(value, wire.Opaque):
        yield value.description.encode()
    else:
        yield f"{type(value).__name__} {value!r}".encode()


def _size(right: Any) -> float:
    """The largest number of the correct result; 1 if it has none."""
    if isinstance(right, float):
        right = torch.tensor([right], dtype=torch.float64)
    if not isinstance(right, torch.Tensor) or not right.is_floating_point():
        return 1.0
    finite = right[right.isfinite()].double()
    return float(finite.abs().max()) or 1.0 if finite.numel() else 1.0


def _numbers(tensor: torch.Tensor, size: float, shift: float) -> Iterable[bytes]:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if not tensor.is_floating_point():
        yield repr(tensor.tolist()).encode()
        return
    scaled = torch.asinh(tensor.detach().double() * (NEAR / size)) * STEPS + shift
    scaled = scaled.nan_to_num(nan=NO_NUMBER, posinf=INFINITE, neginf=-INFINITE)
    yield scaled.floor().to(torch.int64).contiguous().numpy().tobytes()
