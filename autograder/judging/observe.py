"""Runs a probe on an answer, in whatever process the answer is, and records everything that it shows.

The other side may be hostile. Only those parts of a reply that have the requested form become part of an observation;
anything else ends the questions (`EndpointGone`), only in our own words.
"""

import contextlib
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch

from autograder.catalogue.exercise import Block, Case, Exercise, Probe
from autograder.inside import parameter_order, recorder, responder, wire
from autograder.inside.escaping import escaped
from autograder.judging import compare
from autograder.judging.callback_limits import memory_limit
from autograder.judging.closeness import distance, same
from autograder.judging.observation import Observation, Part, Raised, Structure
from autograder.judging.parameter_matching import blocks, roles, stacks

MAX_CALLBACKS = 10_000
MAX_CALLBACK_NUMBERS = 100_000  # given to the functions that an exercise hands over, in all of its probes together
MAX_CALLBACK_INT = 1_000_000  # a function may make that many numbers of it
MAX_CALLBACK_SECONDS, MAX_CALLBACK_BYTES = 60.0, 1 << 30  # of processor time in all; of memory, for each call
MAX_RECEIVED = (8 * wire.MAX_HEADER_BYTES, 4 * wire.MAX_BODY_BYTES)  # of one exercise, by headers and bodies
MAX_PARAMETERS, MAX_PARAMETER_NUMBERS = 1_000, 10_000_000
MUCH_NEARER = 0.5  # than the most likely way to read the parameters
MAX_NAME = 100
MAX_SIZE = 10**9  # of an axis that, by a reply, met another
UNNAMED = "Exception"  # said instead of the type of an error whose name cannot be a class's
UNREADABLE = "the notebook's process sent an answer that cannot be read"


class EndpointGone(Exception):
    """The process that holds the answer does not respond; the text says why."""


class Endpoint(Protocol):
    """The process that holds the learner's objects."""

    def ask(self, request: dict[str, Any]) -> dict[str, Any]: ...


class LocalEndpoint:
    """Objects in this process. Values are copied in both directions as if they were sent."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._answerer, self._counted = responder.Responder(namespace), _Counted(memory=None)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        proxies: list[wire.Proxy] = []

        def local(number: int) -> wire.Proxy:
            def call(*arguments: Any) -> Any:
                with recorder.paused():
                    reply = self._counted.call(proxies, {"callback": number, "arguments": wire.copy(arguments)})
                if "error" in reply:
                    raise RuntimeError(reply["error"])
                return wire.copy(reply["value"])

            return call

        arrived = wire.copy(request, proxies, local)
        return wire.copy(self._answerer.answer(arrived))


class RemoteEndpoint:
    """Objects at the other end of a channel, which may be hostile, slow or dead. The channel has a time limit."""

    def __init__(self, channel: wire.Channel) -> None:
        self._channel, self._counted = channel, _Counted()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        proxies: list[wire.Proxy] = []
        try:
            self._channel.send(request, proxies)
            for _ in range(MAX_CALLBACKS):
                reply = self._channel.receive()
                too_much = any(got > most for got, most in zip(self._channel.received, MAX_RECEIVED, strict=True))
                if not isinstance(reply, dict) or too_much:
                    raise EndpointGone(UNREADABLE)
                if "callback" not in reply:
                    return reply
                self._channel.send(self._counted.call(proxies, reply))
        except wire.WireError as error:
            raise EndpointGone(UNREADABLE) from error
        except (EOFError, OSError) as error:
            raise EndpointGone("the notebook's process ended") from error
        raise EndpointGone(f"the function handed over was called more than {MAX_CALLBACKS} times")


class _Counted:
    """Calls functions that were passed to the answer, in this process, with a learner's arguments, which may be
    anything.

    memory: bytes that a call may need; None means no limit, for a learner's own process.
    """

    def __init__(self, memory: int | None = MAX_CALLBACK_BYTES) -> None:
        self._numbers, self._seconds, self._memory = 0, 0.0, memory

    def call(self, proxies: list[wire.Proxy], message: dict[str, Any]) -> dict[str, Any]:
        """The result or the error of one call, as a reply."""
        try:
            arguments = message["arguments"]
            self._numbers += sum(map(_size, arguments))
            if self._numbers > MAX_CALLBACK_NUMBERS:
                raise ValueError(f"expected at most {MAX_CALLBACK_NUMBERS:,} numbers in all")
            if any(type(value) is int and abs(value) > MAX_CALLBACK_INT for value in arguments):
                raise ValueError(f"expected integers of at most {MAX_CALLBACK_INT:,}")
            if self._seconds > MAX_CALLBACK_SECONDS:
                raise ValueError(f"expected calls that take at most {MAX_CALLBACK_SECONDS:g} seconds in all")
            return {"value": self._result(proxies[message["callback"]], arguments)}
        except Exception as error:
            text = f"the function that was passed in stopped with {type(error).__name__}: {error}"
            return {"error": text[: responder.MAX_MESSAGE]}

    def _result(self, function: wire.Proxy, arguments: Sequence[Any]) -> Any:
        began = time.thread_time()
        try:
            with contextlib.nullcontext() if self._memory is None else memory_limit(self._memory):
                return function(*arguments)
        finally:
            self._seconds += time.thread_time() - began


def _size(value: Any) -> int:
    """The size of a function's arguments: numbers, characters, and one for each other object."""
    if isinstance(value, torch.Tensor):
        return 1 + value.numel() + sum(value.shape)  # a function may make numbers of an axis, even of an empty tensor
    if isinstance(value, (list, tuple, dict)):
        return 1 + sum(map(_size, value.values() if isinstance(value, dict) else value))
    return 1 + (len(value) if isinstance(value, (str, bytes)) else 0)


class Candidate:
    """An answer under test: functions are called; classes are constructed, loaded with weights and called.

    forbidden: functions whose calls are recorded; `called` has those that were called.
    """

    def __init__(self, exercise: Exercise, endpoint: Endpoint, forbidden: Sequence[str] = ()) -> None:
        self._exercise, self._endpoint, self._forbidden = exercise, endpoint, list(forbidden)
        self.called: set[str] = set()
        self._seed = 0
        self._traced: dict[tuple, tuple] = {}  # constructor's arguments -> how its blocks' parameters are used
        self._manners: set[frozenset] | None = None  # in which a class's parameters were read where they agreed

    def turn_to(self, endpoint: Endpoint) -> None:
        """Run the remaining probes on another endpoint with the same answer."""
        self._endpoint = endpoint

    def beside(self, endpoint: Endpoint) -> "Candidate":
        """The same answer on another endpoint, with the parameter matching found so far."""
        other = Candidate(self._exercise, endpoint, self._forbidden)
        other._traced, other._manners = dict(self._traced), self._manners
        return other

    def kinds(self) -> dict[str, str]:
        """name -> "function", "class", "missing", or the type found instead."""
        reply = self._ask("look", names=list(self._exercise.names))
        kinds = reply.get("kinds")
        return {
            name: escaped(str(kinds.get(name, "missing"))[:MAX_NAME]) if isinstance(kinds, dict) else "missing"
            for name in self._exercise.names
        }

    def observe(
        self, probe: Probe, case: Case, expected: Observation | None, cotangent: Any = None, seed: int = 0
    ) -> Observation:
        """The observation of one probe. Raises EndpointGone if the endpoint is lost or its reply is invalid.

        seed: of the global random numbers; the same probe with two seeds shows whether the answer draws any.
        """
        self._seed = seed
        return self._read(case, self._observe(probe, case, expected, cotangent))

    def _read(self, case: Case, seen: Observation) -> Observation:
        """The part of the result that counts."""
        if self._exercise.mutable_args:
            given = (None if place in self._exercise.mutable_args else value for place, value in enumerate(seen.inputs))
            seen = replace(seen, inputs=tuple(given))
        if self._exercise.normalize is None or isinstance(seen.result, (Raised, Structure)):
            return seen
        try:
            result = self._exercise.normalize(case, seen.result)
            return replace(seen, result=result, dictionaries=_dictionaries(seen.result))
        except Exception as error:  # what a stage says has a form, which only forged replies lack
            raise EndpointGone(UNREADABLE) from error

    def _observe(self, probe: Probe, case: Case, expected: Observation | None, cotangent: Any) -> Observation:
        if self._exercise.roles is not None:
            return self._observe_class(probe, case, expected, cotangent)
        called = {"name": case.function or self._exercise.names[0]}
        if self._exercise.methods:
            return self._observation(self._ask("use", **called, arguments=case.arguments), case)
        if self._exercise.harness:
            called["stage"] = self._exercise.harness
        if case.before:
            self._ask("call", **called, arguments=case.before)
        seen = self._observation(self._ask("call", **called, arguments=case.arguments, cotangent=cotangent), case)
        seen = replace(seen, **_generator_use(case.arguments, seen.inputs))
        if expected is None or "generator" not in probe.checks:
            return seen
        # An equal generator gives an equal result, whatever the state of all other random numbers.
        again = self._ask("call", self._seed + 1, **called, arguments=case.arguments)
        return replace(seen, elsewhere="result" in again and not same(seen.result, again["result"]))

    def _observe_class(self, probe: Probe, case: Case, expected: Observation | None, cotangent: Any) -> Observation:
        dtype = wire.DTYPE_NAMES[next(iter(case.weights.values())).dtype]
        wanted = self._wanted(case)
        made = self._ask(
            "construct",
            name=self._exercise.names[0],
            arguments=case.construct,
            example=case.arguments,
            dtype=dtype,
            **({"traced": True} if _are_blocks(wanted) and case.construct not in self._traced else {}),
        )
        if "error" in made:
            return Observation(replace(_raised(made), in_constructor=True))
        if not case.arguments:  # only the constructor was to be checked
            return Observation(None)
        shapes = _shapes(_field(made, "parameters", list))
        said = {role: name for role, name in _field(made, "roles", dict).items() if isinstance(name, str)}
        if _are_blocks(wanted):
            used, ones = self._traced.get(case.construct) or (
                _names(made.get(name), parameter_order.MOST) for name in ("used", "ones")
            )
            if used:  # else it stops with these arguments
                self._traced[case.construct] = used, ones
        else:
            used, ones = (), ()
        parameters = blocks.Parameters(shapes, used, frozenset(ones))
        readings = stacks.readings(parameters, wanted, said)
        if not readings:
            troubles = blocks.troubles(parameters, wanted, said) if _are_blocks(wanted) else ()
            return Observation(self._structure(made, shapes, case, troubles, _unused(shapes, used)))
        manners = [roles.manner(reading.assignment) for reading in readings]
        chosen = [place for place, manner in enumerate(manners) if self._manners is None or manner in self._manners]
        chosen = chosen or range(len(readings))  # with one head, say, two manners are one
        seen = {place: self._forward(probe, case, cotangent, readings[place]) for place in chosen}
        agreeing = [
            place
            for place, one in seen.items()
            if expected is not None and compare.difference(expected, self._read(case, one), probe) is None
        ]
        still = {manners[place] for place in agreeing}
        if still and (self._manners is None or still & self._manners):
            self._manners = still if self._manners is None else still & self._manners
        if agreeing or expected is None:
            return seen[agreeing[0] if agreeing else next(iter(seen))]
        # Where no reading is right, the most likely one shows what else is wrong, or one that is much nearer.
        far = [distance(expected.result, self._read(case, one).result) for one in seen.values()]
        nearest = min(range(len(far)), key=far.__getitem__)
        return list(seen.values())[nearest if far[nearest] < MUCH_NEARER * far[0] else 0]

    def _forward(self, probe: Probe, case: Case, cotangent: Any, reading: stacks.ParameterReading) -> Observation:
        load = blocks.load if _are_blocks(self._wanted(case)) else roles.load
        values = reading.together(load(reading.assignment, reading.shapes, case.weights))
        loaded = self._ask("load", values=values)
        if "error" in loaded:
            return Observation(_raised(loaded))
        training = "training" in probe.checks
        if case.before:
            self._ask("forward", arguments=case.before, training=training)
            self._ask("construct_another", name=self._exercise.names[0], arguments=case.construct)
        kept = {"keeps": list(self._exercise.kept_attributes)} if self._exercise.kept_attributes else {}
        reply = self._ask("forward", arguments=case.arguments, training=training, cotangent=cotangent, **kept)
        return self._observation(reply, case, reading)

    def _wanted(self, case: Case) -> tuple:
        """The roles or blocks that the class must have, for a case's constructor arguments."""
        return self._exercise.roles(*case.construct)

    def _structure(
        self, made: dict[str, Any], shapes: dict[str, tuple], case: Case, troubles: tuple, unused: tuple[str, ...]
    ) -> Structure | Raised:
        replies = [self._ask("forward", seed, arguments=case.arguments, training=False) for seed in (1, 2)]
        if "error" in replies[0]:
            return _raised(replies[0])
        first, second = (reply.get("result") for reply in replies)
        items = first if isinstance(first, tuple) else (first,)
        return Structure(
            module=made.get("module") is True,
            parameters=tuple(shapes.items()),
            shapes=tuple(
                str(tuple(item.shape)) if isinstance(item, torch.Tensor) else type(item).__name__ for item in items
            ),
            repeatable=compare.value_difference(first, second, 1e-6, 1e-6) is None,
            unregistered=_names(_field(made, "unregistered", list)),
            troubles=troubles,
            unused=unused,
        )

    def _observation(
        self, reply: dict[str, Any], case: Case, reading: stacks.ParameterReading | None = None
    ) -> Observation:
        if "error" in reply:
            return Observation(_raised(reply))
        inputs = _field(reply, "inputs", tuple)
        if "result" not in reply or len(inputs) != len(case.arguments):
            raise EndpointGone(UNREADABLE)
        by_input = reply["gradients"] if isinstance(reply.get("gradients"), list) else []
        floats = [place for place, value in enumerate(case.arguments) if _is_float(value)]  # only they have gradients
        gradients = {Part("argument", place): _tensor(each) for place, each in zip(floats, by_input, strict=False)}
        by_parameter = reply.get("parameter_gradients")
        if reading is not None and isinstance(by_parameter, dict) and by_parameter:
            by_parameter = reading.apart(by_parameter)
            for role, slot in reading.assignment.items():
                sent = {name: _tensor(by_parameter.get(name)) for name, _ in slot.matrix.members}
                taken = slot.take(sent) if roles.fits(slot, sent, reading.shapes) else None
                gradients[Part("projection", role)] = taken
        return Observation(reply["result"], inputs, _names(_field(reply, "changed", list)), gradients=gradients)

    def _ask(self, action: str, seed: int | None = None, **details: Any) -> dict[str, Any]:
        seed = self._seed if seed is None else seed
        reply = self._endpoint.ask({"do": action, "seed": seed, "with": details, "forbidden": self._forbidden})
        called = reply.get("called")
        texts = {name for name in called if isinstance(name, str)} if isinstance(called, list) else set()
        self.called |= texts & {*self._forbidden, recorder.OWN_OPERATOR}  # a reply may say anything
        return reply


def _dictionaries(result: Any) -> frozenset[str]:
    """See `Observation`."""
    if not isinstance(result, dict):
        return frozenset()
    places = ("", *(str(key) for key, part in result.items() if isinstance(part, dict)))
    return frozenset(places)


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _generator_use(before: tuple, after: tuple) -> dict[str, bool]:
    """Whether a generator among the arguments has been drawn from, and whether it has been seeded."""
    pairs = [(a, b) for a, b in zip(before, after, strict=False) if isinstance(a, torch.Generator)]
    pairs = [(a, b) for a, b in pairs if isinstance(b, torch.Generator)]
    return {
        "drawn": any(not torch.equal(a.get_state(), b.get_state()) for a, b in pairs),
        "reseeded": any(a.initial_seed() != b.initial_seed() for a, b in pairs),
    }


def _field(reply: dict[str, Any], name: str, kind: type) -> Any:
    """A field of a reply, which must have the given type. Raises EndpointGone if it does not."""
    if not isinstance(reply.get(name), kind):
        raise EndpointGone(UNREADABLE)
    return reply[name]


def _tensor(sent: Any) -> torch.Tensor | None:
    return sent if isinstance(sent, torch.Tensor) else None


def _shapes(parameters: list) -> dict[str, tuple[int, ...]]:
    """Parameter name -> shape, validated from an endpoint's reply; tensors of these shapes are made here."""
    if len(parameters) > MAX_PARAMETERS:
        raise EndpointGone(f"the answer has more than {MAX_PARAMETERS:,} parameters")
    shapes: dict[str, tuple[int, ...]] = {}
    for said in parameters:
        name, shape, *_ = said if isinstance(said, list) and len(said) == 3 else (None, None)
        if not isinstance(name, str) or not isinstance(shape, list) or not all(type(size) is int for size in shape):
            raise EndpointGone(UNREADABLE)
        if len(shape) > wire.MAX_AXES or any(not 0 <= size <= MAX_PARAMETER_NUMBERS for size in shape):
            raise EndpointGone(f"a parameter has more than {wire.MAX_AXES} axes, or an axis that is too long")
        if not name.isprintable():  # reports show it, and it names the parameter when values are loaded
            raise EndpointGone("a parameter's name has characters that cannot be printed")
        shapes[name[:MAX_NAME]] = tuple(shape)
    if sum(map(math.prod, shapes.values())) > MAX_PARAMETER_NUMBERS:
        raise EndpointGone(f"the answer's parameters hold more than {MAX_PARAMETER_NUMBERS:,} numbers")
    return shapes


def _names(sent: Any, most: int = MAX_PARAMETERS) -> tuple[str, ...]:
    sent = sent if isinstance(sent, list) else []
    return tuple(escaped(name[:MAX_NAME]) for name in sent[:most] if isinstance(name, str))


def _unused(shapes: Mapping[str, tuple], used: Sequence[str]) -> tuple[str, ...]:
    """The parameters that forward did not use; none where the record is missing, or may be cut off."""
    if not used or len(used) >= parameter_order.MOST:
        return ()
    return tuple(name for name in shapes if name not in used)


def _are_blocks(wanted: tuple) -> bool:
    return isinstance(wanted[0], Block)


def _raised(reply: dict[str, Any]) -> Raised:
    error = _field(reply, "error", dict)
    kind, message, source = (
        escaped(_field(error, name, str)[: responder.MAX_MESSAGE]) for name in ("type", "message", "source")
    )
    kind = kind if kind.isidentifier() else UNNAMED
    line = error.get("line")
    kinds, about = (_names(error.get(name)) for name in ("kinds", "about"))
    parameters = _names(error.get("parameters"), responder.MAX_PARAMETERS)
    kinds = tuple(name for name in kinds if name.isidentifier())
    if not all(map(str.isidentifier, parameters)):  # a report shows them, and no function has such names
        parameters = ()
    line = line if type(line) is int else 0
    return Raised(kind, message, line, source, kinds, about, _named_shapes(error.get("shapes")), parameters)


def _named_shapes(sent: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The valid names and shapes in an endpoint's reply."""
    pairs = [pair for pair in sent if isinstance(pair, list) and len(pair) == 2] if isinstance(sent, list) else []
    return tuple(
        (name[:MAX_NAME], tuple(shape))
        for name, shape in pairs[: responder.MAX_SHAPES]
        if isinstance(name, str) and name.isidentifier() and isinstance(shape, list) and len(shape) <= wire.MAX_AXES
        if all(type(size) is int and 0 <= size <= MAX_SIZE for size in shape)
    )
