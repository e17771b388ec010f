"""Chooses what is fast on this machine: dtypes, kernels, thresholds and threads, each by a short measurement.

A choice is made when it is first needed, never at import, and then kept for the process. It changes how fast something
is computed and at most how a result rounds. A training run saves its choices (`TrainingConfig.precision`,
`muon_precision`), so a resumed run rounds in the same way. The other choices that rounding depends on came out alike
every time on the machines that were measured. Where a ratio is close to its threshold, a resumed run may round
differently, unless the choice is set.

ATTENTION_BY_HAND_MACHINE overrides choices, such as "precision=fp32,top_k=8000"; VALUES lists what it can set.
"""

import os
import platform
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_ref.processors import usable_processors

VARIABLE = "ATTENTION_BY_HAND_MACHINE"
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
VALUES: dict[str, tuple[str, tuple[str, ...]]] = {  # name -> sentence, values; no values: a number, at least 1
    "precision": ("matrix products: {}", ("fp32", "bf16")),
    "muon": ("Muon's matrix products: {}", ("fp32", "bf16")),
    "attention": ("attention in bf16: {}", ("kernel", "products")),
    "top_k": ("top k in pieces: from {} tokens on", ()),
    "linear": ("linear layers while decoding in fp32: {}", ("plain", "packed")),
    "products": ("linear layers while training in fp32: {}", ("plain", "outputs", "all")),
    "int8": ("products in int8: {}", ("fbgemm", "onednn", "qnnpack")),
    "threads": ("threads: {}", ()),
}
SET_BY_USER = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")

MARGIN = 1.3  # bf16, or its kernel, must be this many times as fast: with units for bf16 the ratio is 1.6 or more
MARGIN_OF_LENGTHS = 1.1  # along which the ratio grows slowly: this many times as fast, or noise could decide
SECONDS = 0.02  # of one comparison, once both have warmed up
ROUNDS = 2, 20  # of one comparison: at least so that a single interruption does not decide, and at most

# A product of a training run's size (rows, inner, columns), and how many follow each other before the clock is read:
# a GPU needs more work than the start of a kernel takes, about 10 microseconds.
PRODUCT = {"cpu": (256, 256, 256), "cuda": (2_048, 2_048, 2_048), "mps": (1_024, 1_024, 1_024)}
MUON_PRODUCT = {"cpu": (8, 128, 128), "cuda": (16, 512, 512), "mps": (16, 256, 256)}  # matrices of one shape
NO_FP16 = "fp16 is not offered: its range is so small that training needs a scaled loss"
IN_A_ROW = {"cpu": 1, "cuda": 4, "mps": 4}


class Choice(NamedTuple):
    """A choice for this machine, and the reason for it."""

    name: str  # a name of VALUES
    value: int | str
    why: str  # what was measured, or who decided

    def __str__(self) -> str:
        value = self.value if isinstance(self.value, str) else f"{self.value:,}"
        return f"{VALUES[self.name][0].format(value)} ({self.why})"


_made: dict[tuple[str, str], Choice] = {}


def choices_made() -> list[Choice]:
    """Return the choices made in this process so far."""
    return list(_made.values())


def forget_choices() -> None:
    """Forget all choices, so that each is made again when it is next needed."""
    _made.clear()


def choose(name: str, device: torch.device, measured: Callable[[], tuple[int | str, str]]) -> Choice:
    """Return the choice of this name for a device: as the user set it, as made before, or as `measured` returns it.

    name: a name of VALUES; measured: returns the value and the reason.
    Raises ValueError for an ATTENTION_BY_HAND_MACHINE that cannot be parsed.
    """
    given = _given().get(name)
    if given is not None:
        _made[name, str(device)] = Choice(name, given, f"set by {VARIABLE}")
    elif (name, str(device)) not in _made:
        _made[name, str(device)] = Choice(name, *measured())
    return _made[name, str(device)]


def _given() -> dict[str, int | str]:
    """Return the choices that the user has set."""
    given: dict[str, int | str] = {}
    for entry in filter(None, os.environ.get(VARIABLE, "").replace(" ", "").split(",")):
        name, _, value = entry.partition("=")
        if name not in VALUES:
            raise ValueError(f"{VARIABLE}: expected NAME=VALUE with a name among {', '.join(VALUES)}, got {entry!r}")
        _, values = VALUES[name]
        if not (value in values if values else value.isdecimal() and int(value) > 0):
            expected = " or ".join(values) or "a number from 1 on"
            raise ValueError(f"{VARIABLE}: expected {expected} for {name}, got {value!r}")
        given[name] = value if values else int(value)
    return given


def faster_precision(device: torch.device) -> Choice:
    """Return whether matrices are multiplied faster in "fp32" or in "bf16", which without bf16 units is slow.

    fp32 follows torch's setting: on a GPU without TF32, unless `torch.set_float32_matmul_precision` allowed it.
    """
    rows, inner, columns = PRODUCT.get(device.type, PRODUCT["cuda"])

    def measured() -> tuple[str, str]:
        chosen, why = _faster_dtype(device, (rows, inner), (inner, columns))
        return chosen, why + (f"; {NO_FP16}" if chosen == "fp32" and device.type == "cuda" else "")

    return choose("precision", device, measured)


def faster_muon_precision(device: torch.device) -> Choice:
    """Return whether small matrices, several at once, are multiplied faster in "fp32" or in "bf16"."""
    count, rows, columns = MUON_PRODUCT.get(device.type, MUON_PRODUCT["cuda"])
    return choose("muon", device, lambda: _faster_dtype(device, (count, rows, columns), (count, columns, rows)))


def _faster_dtype(device: torch.device, *shapes: tuple[int, ...]) -> tuple[str, str]:
    first, second = ({name: torch.ones(shape, dtype=dtype) for name, dtype in DTYPES.items()} for shape in shapes)

    def products(name: str) -> Callable[[], Tensor]:
        one, other = first[name].to(device), second[name].to(device)

        def multiply() -> Tensor:
            return [one @ other for _ in range(IN_A_ROW.get(device.type, 1))][-1]

        return multiply

    try:
        times_as_fast = speedup(products("fp32"), products("bf16"))
    except (RuntimeError, TypeError) as error:  # a device may not know bf16 at all
        return "fp32", f"no bf16 on {device.type}: {str(error).splitlines()[0]}"
    return "bf16" if times_as_fast > MARGIN else "fp32", f"bf16 {times_as_fast:.2g} times as fast"


@torch.no_grad()
def speedup(usual: Callable[[], Tensor], other: Callable[[], Tensor]) -> float:
    """Return how many times as fast `other` is as `usual`.

    Both are called in turn, and the fastest call of each counts: other programs can only make a call slower. The first
    call of each is a warm-up. On a CPU one thread computes, and where possible only its own processor time is measured,
    so that a busy machine gives the same result as an idle one.
    """
    fastest = [float("inf"), float("inf")]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for function in (usual, other):
            _seconds(function)
        begin = time.perf_counter()
        for number in range(ROUNDS[1]):
            for place, function in enumerate((usual, other)):
                fastest[place] = min(fastest[place], _seconds(function))
            if number + 1 >= ROUNDS[0] and time.perf_counter() - begin > SECONDS:
                break
    finally:
        torch.set_num_threads(threads)
    return fastest[0] / fastest[1]


def _seconds(function: Callable[[], Tensor]) -> float:
    on_the_clock, of_this_thread = time.perf_counter(), time.thread_time()
    last = function().flatten()[-1]
    last.item()  # waits for a GPU
    if last.device.type == "cpu" and sys.platform == "linux":  # elsewhere it is coarse, or the library has own threads
        return time.thread_time() - of_this_thread
    return time.perf_counter() - on_the_clock


def limit_threads() -> Choice:
    """Limit torch to as many threads as this process may keep busy, and return their number.

    In a container torch starts a thread for each processor of the host, and they wait for each other. A number that the
    user set, by OMP_NUM_THREADS, MKL_NUM_THREADS or ATTENTION_BY_HAND_MACHINE, stays. Only commands call this: a
    library does not change the threads of the program that imports it.
    """
    given, before, usable = _given().get("threads"), torch.get_num_threads(), usable_processors()
    if given is not None:
        threads, why = int(given), f"set by {VARIABLE}"
    elif named := [name for name in SET_BY_USER if name in os.environ]:
        threads, why = before, f"set by {named[0]}"
    else:
        threads, why = min(before, usable), f"{usable} of {os.cpu_count()} processors may be used"
    if threads != before:
        torch.set_num_threads(threads)
    _made["threads", "cpu"] = Choice("threads", threads, why)
    return _made["threads", "cpu"]


def kind_of_machine(device: torch.device) -> str:
    """Return a name shared by machines that make the same choices, such as "x86_64 AVX2" or a GPU's name."""
    if device.type == "cuda" and torch.cuda.is_available():
        return torch.cuda.get_device_name(device)
    if device.type != "cpu":
        return device.type
    return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
