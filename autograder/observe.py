"""Putting a probe's question to an answer, wherever the answer lives, and noting everything that it shows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch

from autograder import check, compare, recorder, roles, wire
from autograder.exercise import Case, Exercise, Probe
from autograder.observation import Observation, Raised, Structure

MAX_CALLBACKS = 10_000
MAX_CALLBACK_NUMBERS = 100_000
MAX_PARAMETERS, MAX_PARAMETER_NUMBERS = 1_000, 10_000_000
MAX_NAME = 100


class PeerGone(Exception):
    """The side that holds the answer stopped answering; the text says how."""


class Peer(Protocol):
    """The side that holds the learner's objects."""

    def ask(self, request: dict[str, Any]) -> dict[str, Any]: ...


class LocalPeer:
    """Objects in this process. Values are copied both ways as if they travelled."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._answerer = check.Answerer(namespace)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        proxies: list[wire.Proxy] = []

        def local(number: int) -> wire.Proxy:
            def call(*arguments: Any) -> Any:
                with recorder.paused():
                    reply = _call_back(proxies, {"callback": number, "arguments": wire.copy(arguments)})
                if "error" in reply:
                    raise RuntimeError(reply["error"])
                return wire.copy(reply["value"])

            return call

        arrived = wire.copy(request, proxies, local)
        return wire.copy(self._answerer.answer(arrived))


class RemotePeer:
    """Objects at the other end of a channel, which may be hostile, slow or dead. The channel limits the time."""

    def __init__(self, channel: wire.Channel) -> None:
        self._channel = channel

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        proxies: list[wire.Proxy] = []
        try:
            self._channel.send(request, proxies)
            for _ in range(MAX_CALLBACKS):
                reply = self._channel.receive()
                if not isinstance(reply, dict):
                    raise wire.WireError("reply: expected a dictionary")
                if "callback" not in reply:
                    return reply
                self._channel.send(_call_back(proxies, reply))
        except wire.WireError as error:
            raise PeerGone(f"your notebook sent an answer that cannot be read ({error})") from error
        except (EOFError, OSError) as error:
            raise PeerGone("the notebook's process ended") from error
        raise PeerGone(f"the function handed over was called more than {MAX_CALLBACKS} times")


def _call_back(proxies: list[wire.Proxy], message: dict[str, Any]) -> dict[str, Any]:
    """Call a function that was handed over, with a learner's arguments, which may be anything."""
    try:
        arguments = message["arguments"]
        if sum(a.numel() for a in arguments if isinstance(a, torch.Tensor)) > MAX_CALLBACK_NUMBERS:
            raise ValueError(f"expected at most {MAX_CALLBACK_NUMBERS:,} numbers")
        return {"value": proxies[message["callback"]](*arguments)}
    except Exception as error:
        text = f"the function that was passed in stopped with {type(error).__name__}: {error}"
        return {"error": text[: check.MAX_MESSAGE]}


class Subject:
    """An answer under questions: functions are called; classes are constructed, given weights and called.

    forbidden: functions whose calls are to be noticed; `called` holds those that were.
    """

    def __init__(self, exercise: Exercise, peer: Peer, forbidden: Sequence[str] = ()) -> None:
        self._exercise, self._peer, self._forbidden = exercise, peer, list(forbidden)
        self.called: set[str] = set()
        self._reading: int | None = None  # which reading of a class's parameters agreed first

    def kinds(self) -> dict[str, str]:
        """name -> "function", "class", "missing", or the type found instead."""
        reply = self._ask("look", names=list(self._exercise.names))
        kinds = reply.get("kinds")
        return {
            name: str(kinds.get(name, "missing"))[:MAX_NAME] if isinstance(kinds, dict) else "missing"
            for name in self._exercise.names
        }

    def observe(self, probe: Probe, case: Case, expected: Observation | None, cotangent: Any = None) -> Observation:
        """What the answer shows. Raises PeerGone when the other side is lost or answers nonsense."""
        try:
            if self._exercise.roles is not None:
                return self._observe_class(probe, case, expected, cotangent)
            name = case.function or self._exercise.names[0]
            seen = self._observation(self._ask("call", name=name, arguments=case.arguments, cotangent=cotangent), {})
            return replace(seen, **_generator_use(case.arguments, seen.inputs))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
            raise PeerGone(f"the notebook's process sent an answer that cannot be read ({error})") from error

    def _observe_class(self, probe: Probe, case: Case, expected: Observation | None, cotangent: Any) -> Observation:
        dtype = wire.DTYPE_NAMES[case.arguments[0].dtype]
        made = self._ask(
            "construct",
            name=self._exercise.names[0],
            arguments=case.construct,
            example=case.arguments,
            dtype=dtype,
        )
        if "error" in made:
            return Observation(_raised(made))
        shapes = _shapes(made["parameters"])
        readings = roles.assign(shapes, self._exercise.roles(*case.construct), made["roles"])
        if not readings:
            return Observation(self._structure(made, shapes, case))
        chosen = range(len(readings)) if self._reading is None else [min(self._reading, len(readings) - 1)]
        seen = [self._forward(probe, case, cotangent, shapes, readings[index]) for index in chosen]
        agreeing = [expected is not None and compare.difference(expected, one, probe) is None for one in seen]
        best = agreeing.index(True) if True in agreeing else 0
        if self._reading is None and True in agreeing:
            self._reading = best
        return seen[best]

    def _forward(
        self, probe: Probe, case: Case, cotangent: Any, shapes: dict[str, tuple], reading: roles.Assignment
    ) -> Observation:
        loaded = self._ask("load", values=roles.load(reading, shapes, case.weights))
        if "error" in loaded:
            return Observation(_raised(loaded))
        reply = self._ask("forward", arguments=case.arguments, training="training" in probe.also, cotangent=cotangent)
        return self._observation(reply, reading)

    def _structure(self, made: dict[str, Any], shapes: dict[str, tuple], case: Case) -> Structure | Raised:
        replies = [self._ask("forward", seed, arguments=case.arguments, training=False) for seed in (1, 2)]
        if "error" in replies[0]:
            return _raised(replies[0])
        first, second = (reply.get("result") for reply in replies)
        items = first if isinstance(first, tuple) else (first,)
        return Structure(
            module=bool(made["module"]),
            parameters=tuple(shapes.items()),
            shapes=tuple(
                str(tuple(item.shape)) if isinstance(item, torch.Tensor) else type(item).__name__ for item in items
            ),
            repeatable=compare.value_difference(first, second, 1e-6, 1e-6) is None,
            unregistered=_names(made["unregistered"]),
        )

    def _observation(self, reply: dict[str, Any], reading: roles.Assignment) -> Observation:
        if "error" in reply:
            return Observation(_raised(reply))
        gradients = {f"input {index}": gradient for index, gradient in enumerate(reply.get("gradients", ()))}
        by_parameter = reply.get("parameter_gradients", {})
        for role, slot in reading.items() if by_parameter else ():
            gradient = by_parameter.get(slot.parameter)
            gradients[role] = None if gradient is None else slot.take(gradient.reshape(roles.squeeze(gradient.shape)))
        changed = _names(reply["changed"])
        return Observation(reply["result"], tuple(reply["inputs"]), changed, gradients=gradients)

    def _ask(self, action: str, seed: int = 0, **details: Any) -> dict[str, Any]:
        reply = self._peer.ask({"do": action, "seed": seed, "with": details, "forbidden": self._forbidden})
        called = reply.get("called")
        texts = {name for name in called if isinstance(name, str)} if isinstance(called, list) else set()
        self.called |= texts & set(self._forbidden)  # a reply may say anything
        return reply


def _generator_use(before: tuple, after: tuple) -> dict[str, bool]:
    """Whether a generator among the arguments has been drawn from, and whether it was given another seed."""
    pairs = [(a, b) for a, b in zip(before, after, strict=False) if isinstance(a, torch.Generator)]
    pairs = [(a, b) for a, b in pairs if isinstance(b, torch.Generator)]
    return {
        "drawn": any(not torch.equal(a.get_state(), b.get_state()) for a, b in pairs),
        "reseeded": any(a.initial_seed() != b.initial_seed() for a, b in pairs),
    }


def _shapes(parameters: list) -> dict[str, tuple[int, ...]]:
    """Parameter name -> shape, as a peer said them; tensors of these shapes are made here."""
    shapes = {str(name)[:MAX_NAME]: tuple(shape) for name, shape, _ in parameters}
    if any(type(size) is not int or size < 0 for shape in shapes.values() for size in shape):
        raise ValueError("shapes that are none")
    if len(shapes) > MAX_PARAMETERS or sum(map(math.prod, shapes.values())) > MAX_PARAMETER_NUMBERS:
        raise ValueError(f"more than {MAX_PARAMETERS:,} parameters or {MAX_PARAMETER_NUMBERS:,} numbers in them")
    return shapes


def _names(sent: list) -> tuple[str, ...]:
    return tuple(str(name)[:MAX_NAME] for name in sent[:MAX_PARAMETERS])


def _raised(reply: dict[str, Any]) -> Raised:
    error = reply["error"]
    kind, message, source = (str(error[name])[: check.MAX_MESSAGE] for name in ("type", "message", "source"))
    return Raised(kind, message, int(error["line"]), source, _names(error.get("kinds", ())))
