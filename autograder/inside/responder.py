"""Executes the judge's requests where the learner's code runs: in a sandbox, or in the learner's own Jupyter.

It looks up the learner's object by name, does what the judge requests (call it, construct it, load weights into it) and
sends back what it observed. It never decides anything.
"""

import builtins
import contextlib
import io
import linecache
import opcode
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType, ModuleType, TracebackType
from typing import Any

import torch

from autograder.inside import parameter_order, recorder, wire
from autograder.inside.call_arguments import answered
from autograder.inside.fixtures.base import STAGES
from autograder.inside.line_limit import few_lines

MAX_MESSAGE = 400
MAX_SHAPES = 6
MAX_PARAMETERS = 20
WHERE_IMPORTED = re.compile(r" \((?:/|\w:|unknown location)[^()]*\)$")  # the path of a module on this machine
RAISE = opcode.opmap["RAISE_VARARGS"]  # what `raise` and `assert` compile to
SEED = 6_201_703_762
MODE, EARLIER = "the mode of the module", "an earlier result"  # among what a call changed
NO_RESULT = None, wire.encode(None)
VARIED = "<changed answer>"


def serve(channel: wire.Channel, namespace: dict[str, Any]) -> None:
    """Answer the judge's requests about one exercise until the connection is closed, which raises EOFError."""

    def remote(number: int) -> wire.Proxy:
        def call(*arguments: Any) -> Any:
            channel.send({"callback": number, "arguments": arguments})
            reply = channel.receive()
            if "error" in reply:
                raise RuntimeError(reply["error"])
            return reply["value"]

        return call

    answerer = Responder(namespace)
    while True:
        channel.send(answerer.answer(channel.receive(make_proxy=remote)))


class Responder:
    """Executes the judge's requests on a learner's objects, and returns the observations."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = self._original = namespace
        self._begin()

    def _begin(self) -> None:
        self._module: Any = None
        self._stages: dict[str, Any] = {}
        self._earlier: tuple[Any, bytes] = NO_RESULT  # of the last call with these weights, and as it was then

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply to one request; an exception in the learner's code is part of the reply, never raised.

        "called" has the forbidden functions that ran.
        """
        called: list[str] = []
        return {**self._answered(request, called), "called": called}

    def _answered(self, request: dict[str, Any], called: list[str]) -> dict[str, Any]:
        actions = {
            "look": self._look,
            "call": self._call,
            "use": self._use,
            "construct": self._construct,
            "construct_another": self._construct_another,
            "load": self._load,
            "forward": self._forward,
            "vary": self._vary,
        }
        state = _GlobalState()
        try:
            with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a learner's warning is not an error
                # Not a seed that an answer would set itself; torch.manual_seed would walk every device.
                torch.default_generator.manual_seed(SEED + request.get("seed", 0))
                forbidden = request.get("forbidden", ())
                with recorder.watching(forbidden, called), self._limits():
                    seen = actions[request["do"]](**request["with"])
                    # A result may be computed when it is looked at: that too is watched, and nothing is left for later.
                    return wire.copy(seen) if forbidden else seen
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return {"error": describe(error, self._namespace)}
        finally:
            state.restore()

    @contextlib.contextmanager
    def _limits(self) -> Iterator[None]:
        """Those of a changed answer: nobody wrote it, so it may loop and print without end."""
        if self._namespace is self._original:
            yield
            return
        unread = io.StringIO()
        with few_lines(), contextlib.redirect_stdout(unread), contextlib.redirect_stderr(unread):
            yield

    def _vary(self, source: str) -> dict[str, Any]:
        """Ask a changed answer from now on: run this source in a copy of the namespace. Without a source, ask the
        original again."""
        self._begin()
        self._namespace = dict(self._original) if source else self._original
        if source:
            with self._limits():
                exec(compile(source, VARIED, "exec"), self._namespace)
        return {}

    def _look(self, names: list[str]) -> dict[str, Any]:
        return {"kinds": {name: _kind(self._namespace, name) for name in names}}

    def _call(self, name: str, arguments: tuple, cotangent: Any = None, stage: str = "") -> dict[str, Any]:
        function = self._namespace[name]
        if stage:
            function = self._stages.setdefault(stage, STAGES[stage]()).around(function)
        return self._observe(function, arguments, cotangent, {})

    def _use(self, name: str, arguments: tuple) -> dict[str, Any]:
        """Construct objects and call their methods, step by step; returns the result of each step."""

        def used(steps: list[dict[str, Any]]) -> tuple:
            made: dict[str, Any] = {}
            results: list[Any] = []
            for step in steps:
                given = list(step["with"])
                if step["given"] is not None:
                    before, after = step["around"]
                    given.append([*before, *results[step["given"]], *after])
                if step["by"] not in made:
                    made[step["by"]] = self._namespace[name]()
                results.append(getattr(made[step["by"]], step["method"])(*given))
            return tuple(results)

        return self._observe(used, arguments, None, {})

    def _construct(
        self, name: str, arguments: tuple, example: tuple, dtype: str, traced: bool = False
    ) -> dict[str, Any]:
        self._module = self._namespace[name](*arguments)
        if not isinstance(self._module, torch.nn.Module):
            return {"module": False, "parameters": [], "roles": {}, "unregistered": []}
        if any(isinstance(p, torch.nn.parameter.UninitializedParameter) for p in self._module.parameters()):
            self._module(*map(_in_default_dtype, example))  # lazy layers learn their sizes
        self._module.to(wire.DTYPES[dtype])
        parameters = [
            [name, list(parameter.shape), parameter.requires_grad]
            for name, parameter in self._module.named_parameters()
        ]
        roles = getattr(type(self._module), "roles", None)
        unregistered = sorted({kind for value in vars(self._module).values() for kind in _unregistered(value)})
        return {
            "module": True,
            "parameters": parameters,
            "roles": roles if isinstance(roles, dict) else {},
            "unregistered": unregistered,
            **(
                {"used": parameter_order.in_order(self._module, example), "ones": parameter_order.ones(self._module)}
                if traced
                else {}
            ),
        }

    def _construct_another(self, name: str, arguments: tuple) -> dict[str, Any]:
        """Construct one more object and draw its parameters anew; those of the first belong to the first."""
        with torch.no_grad():
            for parameter in self._namespace[name](*arguments).parameters():
                parameter.normal_()
        return {}

    def _load(self, values: dict[str, torch.Tensor]) -> dict[str, Any]:
        parameters, self._earlier = dict(self._module.named_parameters()), NO_RESULT
        with torch.no_grad():
            for name, value in values.items():
                parameters[name].copy_(value)
        return {"loaded": True}

    def _forward(
        self, arguments: tuple, training: bool, cotangent: Any = None, keeps: Sequence[str] = ()
    ) -> dict[str, Any]:
        parameters, modes = {}, []
        if isinstance(self._module, torch.nn.Module):
            self._module.train(training)
            modes = [(module, module.training) for module in self._module.modules()]
            parameters = {name: p for name, p in self._module.named_parameters() if p.requires_grad}
        seen = self._observe(self._module, arguments, cotangent, parameters, keeps)
        if any(module.training != before for module, before in modes):
            seen["changed"].append(MODE)
        return seen

    def _observe(
        self,
        function: Callable,
        arguments: tuple,
        cotangent: Any,
        parameters: dict[str, torch.Tensor],
        keeps: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Call a function. keeps: attributes that it has afterwards, as further results."""
        floats = (
            [a for a in arguments if isinstance(a, torch.Tensor) and a.is_floating_point()]
            if cotangent is not None
            else []
        )
        for argument in floats:
            argument.requires_grad_(True)
        state = _GlobalState()
        result = function(*arguments)
        seen = {"changed": state.changes()}
        state.restore()
        earlier, before = self._earlier
        if wire.encode(earlier) != before:
            seen["changed"].append(EARLIER)
        self._earlier = result, wire.encode(result)
        if keeps:
            result = (result, *(getattr(function, name, None) for name in keeps))
        if cotangent is not None:
            seen["gradients"], seen["parameter_gradients"] = _gradients(result, cotangent, floats, parameters)
        return {"inputs": arguments, **seen, "result": result}  # the result last: it may be larger than a message


def _in_default_dtype(value: Any) -> Any:
    """A float tensor in the default dtype, which the layers of a new module have; anything else unchanged."""
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.to(torch.get_default_dtype()) if is_float else value


def _kind(namespace: Mapping[str, Any], name: str) -> str:
    if name not in namespace:
        return "missing"
    found = namespace[name]
    return "class" if isinstance(found, type) else "function" if callable(found) else type(found).__name__


class _GlobalState:
    """The process-wide settings of torch that an answer must not change."""

    def __init__(self) -> None:
        self._dtype, self._grad, self._random = (
            torch.get_default_dtype(),
            torch.is_grad_enabled(),
            torch.get_rng_state(),
        )

    def changes(self) -> list[str]:
        seen = []
        if torch.get_default_dtype() != self._dtype:
            seen.append("the default dtype")
        if torch.is_grad_enabled() != self._grad:
            seen.append("the gradient mode")
        if not torch.equal(torch.get_rng_state(), self._random):
            seen.append("the global random state")
        return seen

    def restore(self) -> None:
        torch.set_default_dtype(self._dtype)
        torch.set_grad_enabled(self._grad)


def _unregistered(value: Any) -> Iterator[str]:
    """What a module's attribute hides from an optimizer: a tensor that is not a parameter, or layers in a Python
    collection."""
    if isinstance(value, torch.Tensor):
        yield "tensor"
    elif isinstance(value, (list, tuple)) and any(isinstance(item, (torch.nn.Module, torch.Tensor)) for item in value):
        yield "collection"


def _gradients(result: Any, cotangent: Any, inputs: list, parameters: dict[str, torch.Tensor]) -> tuple[list, dict]:
    """Gradients of sum(result * cotangent); None where no gradient arrives or the shapes differ."""
    results = result if isinstance(result, (list, tuple)) else (result,)
    factors = cotangent if isinstance(cotangent, (list, tuple)) else (cotangent,)
    total = None
    for value, factor in zip(results, factors, strict=False):
        if (
            isinstance(value, torch.Tensor)
            and isinstance(factor, torch.Tensor)
            and value.requires_grad
            and value.shape == factor.shape
        ):
            total = (value * factor).sum() + (0 if total is None else total)
    leaves = [*inputs, *parameters.values()]
    if total is None or not leaves:
        return [None] * len(inputs), dict.fromkeys(parameters)
    found = torch.autograd.grad(total, leaves, allow_unused=True)
    # F.embedding(..., sparse=True) gives the same gradient in another layout, which is not serialized.
    found = [each if each is None or each.layout == torch.strided else each.to_dense() for each in found]
    return found[: len(inputs)], dict(zip(parameters, found[len(inputs) :], strict=True))


def describe(error: BaseException, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The error's type and text, with the last line of the learner's own code in its traceback.

    "about" is ["raised"] if a `raise` or `assert` of the learner's own stopped it; else see `_about`. "shapes" has
    [name, shape] of the tensors in this line; "parameters" the names of the arguments of the learner's function or
    method that was called, in its order; none for a constructor.
    """
    line, source, trace, last, own, first, raised = 0, "", error.__traceback__, None, None, None, False
    while trace is not None:
        last, raised = trace.tb_frame, _is_raise(trace)
        if last.f_globals is namespace:
            own, line = last, trace.tb_lineno
            first = first or last
            source = linecache.getline(trace.tb_frame.f_code.co_filename, line, trace.tb_frame.f_globals).strip()
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and not line:  # the cell could not be begun
        line, source = error.lineno or 0, (error.text or "").strip()
    try:
        message = str(error)
    except Exception:
        message = "(its message could not be printed)"
    if isinstance(error, ImportError):
        message = WHERE_IMPORTED.sub("", message)
    return {
        "type": next(kind.__name__ for kind in type(error).__mro__ if not kind.__name__.startswith("_")),
        "kinds": [kind.__name__ for kind in type(error).__mro__],
        "about": ["raised"] if raised and own is last else _about(error, last, own, source),
        "message": message[:MAX_MESSAGE],
        "line": line,
        "source": source[:MAX_MESSAGE],
        "shapes": _shapes(own, source) if own is not None else [],
        "parameters": _parameters(first) if first is not None else [],
    }


def _is_raise(trace: TracebackType) -> bool:
    """Whether a `raise` or `assert` stopped there. A learner can construct a traceback with any position."""
    code = trace.tb_frame.f_code.co_code
    return 0 <= trace.tb_lasti < len(code) and code[trace.tb_lasti] == RAISE


def _parameters(frame: FrameType) -> list[str]:
    if frame.f_code.co_name == "__init__":
        return []
    names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    return [name for name in names[:MAX_PARAMETERS] if name != "self"]


def _shapes(frame: FrameType, line: str) -> list[list[Any]]:
    """Name and shape of the tensors in a line of a frame; subclasses of Tensor are left out, since they may return
    anything."""
    names = dict.fromkeys(re.findall(r"[^\W\d]\w*", line))
    values = ((name, frame.f_locals.get(name)) for name in names)
    found = [[name, list(value.shape)] for name, value in values if type(value) in (torch.Tensor, torch.nn.Parameter)]
    return found[:MAX_SHAPES]


def _about(error: BaseException, last: FrameType | None, own: FrameType | None, line: str) -> list[str]:
    """Facts about an error that do not depend on its text, for the explanation.

    ["forward"]: a module has none. ["handed over"]: what stopped is a function that the check handed to the learner's
    own. ["arguments"]: the call did not fit the function. ["attribute", type, name]: a value
    of that type has no such attribute. ["name", name]: nothing of that name is known. ["hidden", name]: what was called
    is no longer Python's own function, because the learner gave its name to a value. ["numpy"]: the learner's own
    function holds a value of NumPy's. Else nothing.
    last: the frame that the error comes from; own: the last one of the learner's, which stopped at `line`.
    """
    if last is not None and last.f_code is torch.nn.Module.forward.__code__:
        return ["forward"]
    if own is not None and last is not own and _is_ours(last):
        return ["handed over"]
    callers = (Responder._observe, Responder._construct, answered, torch.nn.Module._call_impl)
    calling = [caller.__code__ for caller in callers]
    if isinstance(error, TypeError) and own is None and last is not None and last.f_code in calling:
        return ["arguments"]
    if isinstance(error, AttributeError) and isinstance(error.name, str):
        return [] if isinstance(error.obj, (type, ModuleType)) else ["attribute", type(error.obj).__name__, error.name]
    if isinstance(error, NameError) and isinstance(error.name, str):
        return ["name", error.name]
    if isinstance(error, TypeError) and own is not None and own is last and (hidden := _hidden(own, line)):
        return ["hidden", hidden]
    values = [error, *(own.f_locals.values() if own is not None else ())]
    return ["numpy"] if any(str(type(value).__module__).partition(".")[0] == "numpy" for value in values) else []


def _hidden(frame: FrameType, line: str) -> str:
    """The first built-in function that a line calls although its name was assigned a value that cannot be called."""
    for name in re.findall(r"(?<![\w.])([a-z]\w*)\(", line):
        value = frame.f_locals.get(name, frame.f_globals.get(name, callable))
        if callable(getattr(builtins, name, None)) and not callable(value):
            return name
    return ""


def _is_ours(frame: FrameType) -> bool:
    """Whether a frame runs a function that was passed in: in the sandbox this module requests it from the other
    side."""
    name = str(frame.f_globals.get("__name__"))
    return frame.f_globals is globals() or name.startswith(("autograder.catalogue.", "autograder.judging.observe"))
