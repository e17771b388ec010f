"""Which of an exercise's forbidden functions run while the judge's questions are answered, however they are spelled.

A name can be hidden in source in endless ways, and is there in honest ones; a call can be neither. torch tells what
is called in Python (function mode) and what it ends in (dispatch mode); a few functions in plain Python, of which it
knows nothing, are watched by patching their code. None of this changes what an answer computes.

This runs where the learner's code runs and can be switched off by code that means to; it decides nothing.
"""

import _thread
import mmap
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass(frozen=True)
class Meaning:
    """The meaning of a forbidden name, in addition to the function and the kernel with that name.

    functions: other names in Python; kernels: names in torch's dispatcher; plain: Python functions that bypass torch's
    modes, as (module, function in it).
    """

    functions: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    plain: tuple[tuple[str, str], ...] = ()


FUSED_KERNELS = (
    "_safe_softmax",  # only the unfused way through scaled_dot_product_attention ends in it
    "_scaled_dot_product_attention_math",
    "_scaled_dot_product_attention_math_for_mps",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
    "_flash_attention_forward",
    "_flash_attention_forward_no_dropout_inplace",
    "_efficient_attention_forward",
    "_cudnn_attention_forward",
    "_triton_scaled_dot_attention",
    "_fused_sdp_choice",
)
MEANINGS = {
    "softmax": Meaning(
        functions=("special_softmax",),
        kernels=(
            "special_softmax",
            "_safe_softmax",
            "_sparse_softmax",
            "_masked_softmax",
            "_nested_tensor_softmax_with_shape",
        ),
        plain=(
            ("torch._refs", "softmax"),
            ("torch._decomp.decompositions", "_softmax"),
            ("torch.distributions.transforms", "SoftmaxTransform._call"),
            ("scipy.special", "softmax"),
        ),
    ),
    "log_softmax": Meaning(
        functions=("special_log_softmax",),
        kernels=("special_log_softmax", "_sparse_log_softmax"),
        plain=(
            ("torch._refs", "log_softmax"),
            ("torch._decomp.decompositions", "_log_softmax"),
            ("scipy.special", "log_softmax"),
        ),
    ),
    "cross_entropy": Meaning(kernels=("cross_entropy_loss",)),
    "Categorical": Meaning(plain=(("torch.distributions.categorical", "Categorical.__init__"),)),
    "scaled_dot_product_attention": Meaning(kernels=FUSED_KERNELS),
    "MultiheadAttention": Meaning(
        functions=("multi_head_attention_forward",),
        kernels=("_native_multi_head_attention", "_triton_multi_head_attention", "_transformer_encoder_layer_fwd"),
        plain=(("torch.nn", "MultiheadAttention.forward"),),
    ),
    "sacrebleu": Meaning(
        plain=(
            ("sacrebleu.metrics.base", "Metric.corpus_score"),
            ("sacrebleu.metrics.base", "Metric.sentence_score"),
            ("sacrebleu.metrics.bleu", "BLEU.sentence_score"),
            ("sacrebleu.metrics.bleu", "BLEU.compute_bleu"),
        ),
    ),
    "nltk": Meaning(
        plain=(
            ("nltk.translate.bleu_score", "corpus_bleu"),
            ("nltk.translate.bleu_score", "sentence_bleu"),
            ("nltk.translate.bleu_score", "modified_precision"),
        ),
    ),
    "torchtext": Meaning(plain=(("torchtext.data.metrics", "bleu_score"),)),
    "torchmetrics": Meaning(plain=(("torchmetrics.functional.text.bleu", "_bleu_score_compute"),)),
    "layer_norm": Meaning(
        functions=("native_layer_norm",),
        kernels=("_layer_norm", "native_layer_norm", "native_layer_norm_backward"),
        plain=(("torch._refs", "native_layer_norm"),),
    ),
    "conv2d": Meaning(  # not the kernel "convolution", in which a product with a matrix may end, written as conv1d
        functions=("convolution", "_convolution", "conv3d", "conv_transpose2d", "conv_transpose3d"),
        kernels=("thnn_conv2d", "_slow_conv2d_forward", "slow_conv3d", "slow_conv_transpose2d", "mkldnn_convolution"),
    ),
    "TransformerEncoderLayer": Meaning(
        kernels=("_transformer_encoder_layer_fwd",),
        plain=(("torch.nn", "TransformerEncoderLayer.forward"),),
    ),
    "TransformerDecoderLayer": Meaning(plain=(("torch.nn", "TransformerDecoderLayer.forward"),)),
    "TransformerEncoder": Meaning(plain=(("torch.nn", "TransformerEncoder.forward"),)),
    "TransformerDecoder": Meaning(plain=(("torch.nn", "TransformerDecoder.forward"),)),
    "Transformer": Meaning(plain=(("torch.nn", "Transformer.forward"),)),
}

OWN_OPERATOR = "torch.library"  # noted like a forbidden name where the notebook has registered an operator with torch
REGISTERING = ("torch.library", "torch._library", "torch._custom_op")  # modules of torch that register operators
_has_own_operator = False
_watch: "_Watch | None" = None  # of the question that is being answered; threads that it starts look here too


@contextmanager
def watching(names: Sequence[str], ran: list[str]) -> Iterator[None]:
    """Add to `ran` the names whose functions run inside the `with`; without names, nothing is watched.

    Compiled functions run uncompiled, since calls in compiled code cannot be seen and no compiler is available.
    """
    global _watch
    if not names:
        with eager():
            yield
        return
    before, _watch = _watch, _Watch(names)
    watch, follow = _watch, threading.getprofile()
    threading.setprofile(_follow)
    try:
        with ExitStack() as stack:
            for name in names:
                for place in MEANINGS.get(name, Meaning()).plain:
                    stack.enter_context(_lent(*place, name))
            stack.enter_context(eager())
            for mode in _modes():
                stack.enter_context(mode)
            yield
    finally:
        _watch = before
        threading.setprofile(follow)
        ran += [*watch.ran(), *([OWN_OPERATOR] if _has_own_operator else [])]


def eager() -> AbstractContextManager:
    """Inside the `with`, functions compiled by torch.compile run uncompiled, since they refuse to run under modes."""
    if "torch._dynamo" in sys.modules and hasattr(torch.compiler, "set_stance"):  # torch 2.6 has it
        return torch.compiler.set_stance("force_eager")
    return nullcontext()


@contextmanager
def paused() -> Iterator[None]:
    """Inside the `with` nothing is recorded: functions that the judge passes to an answer may call anything."""
    global _watch
    before, _watch = _watch, None
    try:
        yield
    finally:
        _watch = before


class _Watch:
    """The names that are watched during one probe, and those that were seen."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self.functions, self.kernels = _meant(self._names)
        self._seen = _shared(self._names)

    def note(self, name: str, frame: types.FrameType | None) -> None:
        """Note the call of a forbidden function, unless one that was noted before makes it: then the answer calls only
        that one. frame: of the caller."""
        homes = self._homes(but=name)
        while homes and frame is not None and str(frame.f_globals.get("__name__")) not in homes:
            frame = frame.f_back
        if not homes or frame is None:
            self._seen[self._names.index(name)] = 1

    def _homes(self, but: str) -> set[str]:
        """The modules of the Python functions that were noted under another name."""
        noted = (name for name, seen in zip(self._names, self._seen, strict=True) if seen != b"\0" and name != but)
        places = (place for name in noted for place in MEANINGS.get(name, Meaning()).plain)
        return {str(function.__module__) for place in places if (function := _found(*place)) is not None}

    def ran(self) -> list[str]:
        ran = [name for name, seen in zip(self._names, self._seen, strict=True) if seen != b"\0"]
        self._seen[:] = bytes(len(self._names))
        return ran


@cache
def _shared(names: tuple[str, ...]) -> mmap.mmap:
    """A byte for each name, one memory for all questions: a process that was forked in one may run it in another."""
    return mmap.mmap(-1, len(names))


@cache
def _meant(names: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """Functions and kernels -> the forbidden name that they belong to, the first one if there are several."""
    functions: dict[str, str] = {}
    kernels: dict[str, str] = {}
    for name in names:
        meaning = MEANINGS.get(name, Meaning())
        for function in (name, *meaning.functions):
            functions.setdefault(function, name)
        for kernel in (name, f"_{name}", *meaning.kernels):
            kernels.setdefault(f"aten::{kernel}", name)
            kernels.setdefault(f"quantized::{kernel}", name)
        kernels.setdefault(name, name)  # an operator of higher order, which has no namespace
    return functions, kernels


class _Functions(TorchFunctionMode):
    """Sees calls in Python, including methods and properties of tensors, and forwards them."""

    inside = False  # a function that was noted, whose kernels go without saying

    def __torch_function__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        watch = _watch
        name = watch and watch.functions.get(getattr(function, "__name__", "").partition(".")[0])
        if not name:
            return function(*args, **(kwargs or {}))
        watch.note(name, sys._getframe(1))
        self.inside = True
        try:
            return function(*args, **(kwargs or {}))
        finally:
            self.inside = False


class _Kernels(TorchDispatchMode):
    """Sees the kernels that calls end in, also those of scripts and of backward, and forwards them."""

    supports_higher_order_operators = True

    def __init__(self, functions: _Functions) -> None:
        super().__init__()
        self._functions = functions

    def _pass_on(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        watch = _watch
        if watch and not self._functions.inside:
            name = watch.kernels.get(function.name().partition(".")[0])
            if name:
                watch.note(name, sys._getframe(1))
        if any(kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ for kind in types):
            return NotImplemented  # a subclass does it by code of its own, which is seen only outside of this method
        return function(*args, **(kwargs or {}))


# Given a class that has it already, torch wraps this method so that its first call imports the compiler: a second.
_Kernels.__torch_dispatch__ = _Kernels._pass_on


def _modes() -> tuple[_Functions, _Kernels]:
    functions = _Functions()
    return functions, _Kernels(functions)


def follow_threads() -> None:
    """From here on every new thread of this process has its own modes: a thread that a cell has started may compute for
    an answer later. For a process that belongs to one notebook only."""
    threading.setprofile(_follow)
    for name in ("start_new_thread", "start_new", "start_joinable_thread"):  # past the module threading
        if start := getattr(_thread, name, None):
            setattr(_thread, name, partial(_started, start))


def follow_operators() -> None:
    """From here on an operator that the notebook registers with torch is noticed: its code runs below the modes, where
    no call is seen. For a process that belongs to one notebook only."""
    register = torch._C._dispatch_library

    def registered(*arguments: Any) -> Any:
        global _has_own_operator
        _has_own_operator |= not _is_a_package(sys._getframe(1))
        return register(*arguments)

    torch._C._dispatch_library = registered


def _is_a_package(frame: types.FrameType | None) -> bool:
    """Whether a package, torch itself among them, calls what registers an operator."""
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(REGISTERING):
        frame = frame.f_back
    return frame is None or any(part in frame.f_code.co_filename for part in ("<frozen ", "site-packages"))


def _started(start: Callable, function: Callable, *arguments: Any, **options: Any) -> Any:
    def followed(*given: Any, **named: Any) -> Any:
        _enter_modes()
        return function(*given, **named)

    return start(followed, *arguments, **options)


def _follow(frame: types.FrameType, event: str, argument: Any) -> None:
    """Runs first in a thread that an answer starts: modes apply to one thread only, so it gets its own."""
    sys.setprofile(None)
    _enter_modes()


def _enter_modes() -> None:
    for mode in _modes():
        mode.__enter__()


@contextmanager
def _lent(module: str, place: str, name: str) -> Iterator[None]:
    """Inside the `with`, calls of this Python function, and of what it wraps, are recorded under a name.

    Its code object is replaced, since other names may refer to it. Nothing happens if it does not exist or is not a
    Python function.
    """
    with ExitStack() as stack:
        function = _found(module, place)
        while isinstance(function, types.FunctionType):
            stack.enter_context(_noting(function, name))
            function = getattr(function, "__wrapped__", None)
        yield


def _found(module: str, place: str) -> Any:
    """What a module that was imported has under a dotted name; None if there is nothing."""
    try:
        return attrgetter(place)(sys.modules[module])
    except (KeyError, AttributeError):
        return None


@contextmanager
def _noting(function: types.FunctionType, name: str) -> Iterator[None]:
    """Inside the `with`, calls of a function are recorded under a name."""
    own = function.__code__
    copy = types.FunctionType(own, function.__globals__, function.__name__, None, function.__closure__)
    copy.__defaults__, copy.__kwdefaults__ = function.__defaults__, function.__kwdefaults__

    def noted(*arguments: Any, **options: Any) -> Any:
        if _watch:
            _watch.note(name, sys._getframe(2))  # the first is the function itself
        return copy(*arguments, **options)

    function.__code__ = _calling(noted, own.co_freevars)
    try:
        yield
    finally:
        function.__code__ = own


def _calling(noted: Callable, free: tuple[str, ...]) -> types.CodeType:
    """A code object that calls `noted` with its arguments, for a function with these free variables."""
    code = _template(free)
    return code.replace(co_consts=tuple(noted if constant == "noted" else constant for constant in code.co_consts))


@cache
def _template(free: tuple[str, ...]) -> types.CodeType:
    namespace: dict[str, Any] = {}
    exec(
        f"def outer({', '.join(free)}):\n"
        " def lent(*arguments, **options):\n"
        f"  if 0: {', '.join(free) or 'pass'}\n"
        "  noted = 'noted'\n"
        "  return noted(*arguments, **options)\n"
        " return lent.__code__\n",
        namespace,
    )
    return namespace["outer"](*free)
