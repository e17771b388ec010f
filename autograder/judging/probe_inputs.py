"""The inputs of a probe, drawn from a key, with the correct result for them. Visible probes have the same inputs for
everyone."""

import hashlib
import hmac
from typing import Any

import torch

from autograder import catalogue
from autograder.catalogue.exercise import Case, Exercise, Probe
from autograder.inside.responder import Responder
from autograder.judging.observation import Observation
from autograder.judging.observe import Candidate, LocalEndpoint
from transformer_ref.config import ModelConfig

KEPT = 256  # hidden inputs: equal work, such as a blank notebook, gets equal ones
PLAIN = (int, float, str, bool, type(None), ModelConfig)  # arguments of a class that can be distinguished
_VISIBLE: dict[tuple[str, str], tuple[Exercise, tuple]] = {}  # a visible probe asks everybody the same
_HIDDEN: dict[tuple[str, str, bytes], tuple[Exercise, tuple]] = {}
_MADE: dict[str, tuple[Exercise, dict[tuple, tuple[Responder, dict[str, Any]]]]] = {}


def question_of(exercise: Exercise, probe: Probe, key: bytes) -> tuple:
    """The question of a probe under a key."""
    kept, place = (_HIDDEN, (exercise.id, probe.name, key)) if probe.hidden else (_VISIBLE, (exercise.id, probe.name))
    found = kept.get(place)
    if found is not None and found[0] is exercise:
        return found[1]
    drawn = question(exercise, probe, torch.Generator().manual_seed(seed_of(key, exercise, probe)))
    if exercise is catalogue.find(exercise.id):
        if len(_HIDDEN) >= KEPT:
            del _HIDDEN[next(iter(_HIDDEN))]
        kept[place] = exercise, drawn
    return drawn


class _Reference(LocalEndpoint):
    """The reference answer. Its class is constructed once for equal arguments, and loaded again for each question:
    constructing took half of the time for a whole model; its forward keeps no state."""

    def __init__(self, exercise: Exercise) -> None:
        super().__init__(exercise.reference)
        self._reference = exercise.reference
        kept, self._made = _MADE.get(exercise.id, (None, {}))
        if kept is not exercise:
            _, self._made = _MADE[exercise.id] = exercise, {}

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        asked = request["with"]
        if request["do"] != "construct" or not all(isinstance(each, PLAIN) for each in asked["arguments"]):
            return super().ask(request)
        place = (*((type(each), each) for each in asked["arguments"]), asked["dtype"], "traced" in asked)
        if place not in self._made:
            self._answerer = Responder(self._reference)
            reply = super().ask(request)
            if "error" in reply:
                return reply
            if len(self._made) >= KEPT:
                del self._made[next(iter(self._made))]
            self._made[place] = self._answerer, reply
        self._answerer, reply = self._made[place]
        return reply


def question(exercise: Exercise, probe: Probe, generator: torch.Generator) -> tuple:
    """One drawn case with the reference's observation, and the factors under which gradients are compared."""
    case = probe.draw(generator)
    reference = Candidate(exercise, _Reference(exercise))
    expected, cotangent = reference.observe(probe, case, None), None
    if "gradients" in probe.checks:
        cotangent = _cotangent(exercise, expected.result, generator)
        expected = reference.observe(probe, case, None, cotangent)
    return case, expected, cotangent


def _cotangent(exercise: Exercise, result: Any, generator: torch.Generator) -> Any:
    """A random factor for each number of the result; of several results, for those that hold floats. An attribute that
    is kept for inspection may be detached."""
    results = result if isinstance(result, tuple) else (result,)
    results = results[:1] if exercise.kept_attributes else results
    factors = [
        torch.randn(each.shape, generator=generator, dtype=torch.float64).to(each.dtype)
        if isinstance(each, torch.Tensor) and each.is_floating_point()
        else None
        for each in results
    ]
    return tuple(factors) if len(factors) > 1 else factors[0]


def right_answer(exercise: Exercise, probe: Probe, case: Case) -> Observation:
    """The observation of the reference on a case."""
    return Candidate(exercise, _Reference(exercise)).observe(probe, case, None)


def asks_everybody(exercise: Exercise, probe: Probe, case: Case) -> bool:
    """Whether a case is that of a visible probe of the catalogue, the same for everybody."""
    known = _VISIBLE.get((exercise.id, probe.name))
    return known is not None and known[0] is exercise and known[1][0] is case


def seed_of(key: bytes, exercise: Exercise, probe: Probe) -> int:
    """The seed of a probe's inputs; that of a visible probe is the same for everybody."""
    name = f"{exercise.id}|{probe.name}".encode()
    return int.from_bytes(hmac.new(key if probe.hidden else b"", name, hashlib.sha256).digest()[:7], "big")
