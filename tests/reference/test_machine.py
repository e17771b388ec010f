"""Each choice is measured on this machine, once, and the user can override it."""

import functools
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from drawn import generator, tiny_config
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_ref import machine
from transformer_ref.config import PRECISIONS, TrainingConfig
from transformer_ref.data.batching import BatchStream
from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.decoding.sampling import sample_decode
from transformer_ref.device import choose_device, choose_precision
from transformer_ref.fast import attention as attention_module
from transformer_ref.fast import packed, products
from transformer_ref.fast import top_k as top_k_module
from transformer_ref.fast.attention import attention_kernel
from transformer_ref.fast.loss import PackedLoss
from transformer_ref.fast.top_k import quick_top_k, top_k_length
from transformer_ref.faster import accelerate, measure_machine, top_k
from transformer_ref.machine import (
    VARIABLE,
    choices_made,
    faster_muon_precision,
    faster_precision,
    limit_threads,
    speedup,
)
from transformer_ref.model import positional_encoding
from transformer_ref.model.transformer import Transformer
from transformer_ref.processors import usable_processors
from transformer_ref.training import processes
from transformer_ref.training.average import WeightAverage
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.optimizer import build_optimizer
from transformer_ref.training.processes import Processes
from transformer_ref.training.trainer import Training, fit, validation_loss

CPU = torch.device("cpu")
# An x86 processor held back to AVX2, so without units for bf16.
AVX2 = dict(ATEN_CPU_CAPABILITY="avx2", ONEDNN_MAX_CPU_ISA="AVX2", MKL_ENABLE_INSTRUCTIONS="AVX2")


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch):
    """Begin and end without choices, and restore the threads."""
    monkeypatch.delenv(VARIABLE, raising=False)
    for name in machine.SET_BY_USER:
        monkeypatch.delenv(name, raising=False)
    before = dict(machine._made), torch.get_num_threads()
    machine.forget_choices()
    yield
    machine._made.clear()
    machine._made.update(before[0])
    torch.set_num_threads(before[1])


def busy(seconds: float):
    """Return a function that takes so long of its own processor time."""

    def work() -> torch.Tensor:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass
        return torch.zeros(1)

    return work


# --- the measurement -------------------------------------------------------------------------------------------------


def test_a_function_that_works_half_as_long_is_twice_as_fast():
    assert speedup(busy(0.004), busy(0.002)) == pytest.approx(2, rel=0.1)
    assert speedup(busy(0.002), busy(0.004)) == pytest.approx(1 / 2, rel=0.1)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts a thread's own time finely enough")
def test_time_in_which_something_else_runs_does_not_count():
    def interrupted() -> torch.Tensor:
        time.sleep(0.02)
        return busy(0.002)()

    assert speedup(busy(0.002), interrupted) == pytest.approx(1, rel=0.2)


def test_a_measurement_keeps_the_threads_and_the_random_numbers():
    torch.set_num_threads(2)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    measure_machine(CPU)
    assert torch.get_num_threads() == 2 and torch.get_rng_state().equal(before)


@pytest.mark.parametrize(("times_as_fast", "chosen"), [(2.0, "bf16"), (1.1, "fp32"), (0.04, "fp32")])
@pytest.mark.parametrize("choice", [faster_precision, faster_muon_precision])
def test_bf16_is_chosen_only_where_it_is_clearly_faster(choice, times_as_fast, chosen, monkeypatch):
    monkeypatch.setattr(machine, "speedup", lambda usual, other: times_as_fast)
    made = choice(CPU)
    assert made.value == chosen
    assert str(made).endswith(f"products: {chosen} (bf16 {times_as_fast:.2g} times as fast)")


def test_a_device_without_bf16_computes_in_fp32_and_the_reason_is_kept(monkeypatch):
    def refuses(usual, other):
        raise TypeError("BFloat16 is not supported on MPS")

    monkeypatch.setattr(machine, "speedup", refuses)
    assert str(faster_precision(CPU)) == "matrix products: fp32 (no bf16 on cpu: BFloat16 is not supported on MPS)"
    assert choose_precision("auto", CPU) == torch.float32


@pytest.mark.parametrize("kind", ["cpu", "cuda", "mps"])
def test_a_gpu_multiplies_larger_matrices_and_several_before_the_clock_is_read(kind):
    work = 2 * machine.IN_A_ROW[kind]
    for shape in (machine.PRODUCT[kind], machine.MUON_PRODUCT[kind]):
        operations = work * shape[0] * shape[1] * shape[2] * (shape[2] if shape in machine.MUON_PRODUCT.values() else 1)
        assert operations > (1e7 if kind == "cpu" else 1e9)  # 10 microseconds of a launch are 1e8 to 1e9 of a GPU's


def test_a_choice_is_measured_once(monkeypatch):
    calls = []
    monkeypatch.setattr(machine, "speedup", lambda usual, other: calls.append(1) or 3.0)
    assert [faster_precision(CPU).value for _ in range(3)] == ["bf16"] * 3
    assert len(calls) == 1 and [made.name for made in choices_made()] == ["precision"]


def test_importing_and_naming_a_precision_measure_nothing():
    code = (
        "import transformer_ref.translate, transformer_ref.learn, transformer_ref.machine as m; print(m.choices_made())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


WITHOUT_UNITS = """
import torch
from transformer_ref.fast.attention import attention_kernel
from transformer_ref.machine import faster_muon_precision, faster_precision
CPU = torch.device("cpu")
print(faster_precision(CPU).value, faster_muon_precision(CPU).value, attention_kernel().value)
"""


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"), reason="only these can be held back to AVX2"
)
def test_a_processor_without_bf16_units_does_nothing_in_bf16():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_UNITS], env=os.environ | AVX2, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["fp32", "fp32", "kernel"]


# --- what a user sets ------------------------------------------------------------------------------------------------


def test_what_the_user_sets_is_not_measured(monkeypatch):
    monkeypatch.delattr(machine, "speedup")
    for module in (attention_module, products, packed, top_k_module):
        monkeypatch.delattr(module, "speedup")
    monkeypatch.setenv(
        VARIABLE, "precision=bf16, muon=fp32, attention=products, products=all, linear=plain, top_k=7000"
    )
    assert [made.value for made in measure_machine(CPU)] == ["bf16", "fp32", "products", "all", "plain", 7_000]
    assert all(str(made).endswith(f"(set by {VARIABLE})") for made in measure_machine(CPU))
    assert choose_precision("auto", CPU) == torch.bfloat16


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("speed=1", r"expected NAME=VALUE with a name among precision, .*, got 'speed=1'"),
        ("precision=fp8", r"expected fp32 or bf16 for precision, got 'fp8'"),
        ("muon", r"expected fp32 or bf16 for muon, got ''"),
        ("threads=0", r"expected a number from 1 on for threads, got '0'"),
        ("top_k=many", r"expected a number from 1 on for top_k, got 'many'"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(given, message, monkeypatch):
    monkeypatch.setenv(VARIABLE, given)
    with pytest.raises(ValueError, match=f"{VARIABLE}: {message}"):
        faster_precision(CPU)


def test_every_precision_has_a_dtype():
    assert set(machine.DTYPES) == set(PRECISIONS) - {"auto"}


# --- kernels and thresholds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("times_as_fast", "chosen"), [(3.0, "products"), (1.1, "kernel"), (0.1, "kernel")])
def test_attention_in_bf16_is_computed_by_whichever_way_is_clearly_faster(times_as_fast, chosen, monkeypatch):
    monkeypatch.setattr(attention_module, "speedup", lambda usual, other: times_as_fast)
    assert attention_kernel().value == chosen


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_attention_in_bf16_can_be_measured_from_wherever_it_is_needed_first(mode):
    with mode():
        assert "two products" in attention_kernel().why


@pytest.mark.parametrize(("wins_from", "chosen"), [(0, 2_000), (5_000, 8_000), (10**8, top_k_module.NEVER)])
def test_rows_are_searched_in_pieces_from_the_first_length_where_that_is_faster(wins_from, chosen, monkeypatch):
    monkeypatch.setattr(top_k_module, "_speedup_at", lambda length: 2.0 if length >= wins_from else 0.9)
    assert top_k_length().value == chosen


def test_a_row_is_searched_by_whichever_way_was_chosen(monkeypatch):
    searched = []
    monkeypatch.setattr(top_k_module, "in_pieces", lambda x, count: searched.append(x.shape[-1]) or x.topk(count))
    monkeypatch.setenv(VARIABLE, "top_k=3000")
    for length in (2_999, 3_000, 1_100):
        quick_top_k(torch.zeros(2, length), 6)
    assert searched == [3_000]
    quick_top_k(torch.zeros(2, 3_000, device="meta"), 6)  # no processor, no measurement
    assert searched == [3_000]


# --- threads ---------------------------------------------------------------------------------------------------------


def groups(folder, membership: str, **files: str):
    """Return where a made-up Linux tells of its control groups; files: path with __ for / and _ for . -> content."""
    (folder / "cgroup").write_text(membership)
    for name, content in files.items():
        path = folder / "fs" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder / "fs", folder / "cgroup"


@pytest.fixture
def many_processors(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)), raising=False)


@pytest.mark.usefixtures("many_processors")
@pytest.mark.parametrize(
    ("membership", "files", "usable"),
    [
        ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),  # one and a half keep two busy
        ("0::/\n", {"cpu.max": "10000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 64),
        ("0::/\n", {"cpu.max": "9900000 100000\n"}, 64),
        ("0::/a/b\n", {"a__cpu.max": "300000 100000\n", "a__b__cpu.max": "max 100000\n"}, 3),
        ("0::/a/b\n", {"cpu.max": "400000 100000\n"}, 4),  # a container that sees its own group as the root
        (
            "4:cpu,cpuacct:/x\n3:memory:/x\n",
            {"cpu,cpuacct__cpu.cfs_quota_us": "500000", "cpu,cpuacct__cpu.cfs_period_us": "100000"},
            5,
        ),
        ("4:cpu,cpuacct:/\n", {"cpu,cpuacct__cpu.cfs_quota_us": "-1", "cpu,cpuacct__cpu.cfs_period_us": "100000"}, 64),
        ("3:memory:/\n", {"memory__cpu.max": "100000 100000"}, 64),
        ("", {}, 64),
        ("what is this\n", {"cpu.max": ""}, 64),
    ],
)
def test_a_container_s_limit_of_processor_time_counts(membership, files, usable, tmp_path):
    assert usable_processors(*groups(tmp_path, membership, **files)) == usable


def test_where_there_are_no_control_groups_the_processors_of_the_process_count(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5, 8}, raising=False)
    assert usable_processors(tmp_path / "none", tmp_path / "neither") == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert usable_processors(tmp_path / "none", tmp_path / "neither") == 6


def test_nobody_else_counts_processors():
    root = Path(machine.__file__).parents[1]
    counting = {
        path.relative_to(root).as_posix()
        for folder in ("transformer_ref", "autograder", "book")
        for path in (root / folder).rglob("*.py")
        if re.search(r"sched_getaffinity|cpu_count", path.read_text(encoding="utf-8"))
    }
    assert counting == {"transformer_ref/processors.py", "transformer_ref/machine.py"}


def test_torch_uses_no_more_threads_than_may_run_and_never_more_than_before(monkeypatch):
    torch.set_num_threads(3)
    monkeypatch.setattr(machine, "usable_processors", lambda: 2)
    made = limit_threads()
    assert torch.get_num_threads() == made.value == 2
    assert str(made) == f"threads: 2 (2 of {os.cpu_count()} processors may be used)"
    monkeypatch.setattr(machine, "usable_processors", lambda: 8)
    assert limit_threads().value == torch.get_num_threads() == 2


@pytest.mark.parametrize(
    ("variable", "value", "threads"),
    [("OMP_NUM_THREADS", "3", 3), ("MKL_NUM_THREADS", "9", 3), (VARIABLE, "threads=4", 4)],
)
def test_threads_that_the_user_set_stay(variable, value, threads, monkeypatch):
    torch.set_num_threads(3)
    monkeypatch.setattr(machine, "usable_processors", lambda: 1)
    monkeypatch.setenv(variable, value)
    assert limit_threads().value == torch.get_num_threads() == threads
    assert str(limit_threads()) == f"threads: {threads} (set by {variable})"


def test_the_command_limits_the_threads(monkeypatch, tmp_path):
    from transformer_ref.__main__ import main

    torch.set_num_threads(2)
    monkeypatch.setattr(machine, "usable_processors", lambda: 1)
    assert main(["translate", "--checkpoint", str(tmp_path), "Hello."]) == 2  # there is no checkpoint
    assert torch.get_num_threads() == 1


# --- GPUs, as far as they can be tried without one -------------------------------------------------------------------


def test_a_gpu_without_bf16_units_computes_in_fp32_and_fp16_is_explained(monkeypatch):
    monkeypatch.setattr(machine, "_faster_dtype", lambda device, *shapes: ("fp32", "bf16 0.3 times as fast"))
    assert "0.3 times as fast; fp16 is not offered: its range" in str(faster_precision(torch.device("cuda")))
    assert "fp16" not in str(faster_muon_precision(torch.device("cuda")))


@pytest.mark.parametrize(
    ("has_cuda", "has_mps", "chosen"), [(False, True, "mps"), (True, True, "cuda"), (False, False, "cpu")]
)
def test_auto_is_a_cuda_device_then_a_mac_s_gpu_then_the_processor(has_cuda, has_mps, chosen, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: has_mps)
    assert choose_device("auto") == torch.device(chosen)


def test_a_mac_s_gpu_is_taken_by_name_where_there_is_one_and_refused_elsewhere(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device("mps") == choose_device(torch.device("mps")) == torch.device("mps")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(ValueError, match='device: expected one that this machine has, got "mps", the GPU of a Mac'):
        choose_device("mps")


class WithoutFloat64(TorchDispatchMode):
    """Refuse to compute in float64, as a Mac's GPU does, except where the processor may."""

    def __init__(self) -> None:
        super().__init__()
        self.operations, self.on_the_processor = 0, False

    def may(self, function):
        """Return the function, which computes on the processor whatever the device is."""

        @functools.wraps(function)
        def computed(*arguments):
            self.on_the_processor = True
            try:
                return function(*arguments)
            finally:
                self.on_the_processor = False

        return computed

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        results = function(*args, **(kwargs or {}))
        self.operations += 1
        for tensor in pytree.tree_leaves((args, kwargs, results)):
            is_float64 = isinstance(tensor, torch.Tensor) and tensor.dtype == torch.float64
            if is_float64 and not self.on_the_processor:
                raise TypeError(f"{function} got or gave float64, which MPS does not have")
        return results


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("loss", [MeanLoss, PackedLoss])
def test_nothing_that_runs_on_a_device_needs_float64_which_a_mac_s_gpu_does_not_have(precision, loss, monkeypatch):
    refusing = WithoutFloat64()
    table = refusing.may(positional_encoding.sinusoidal_table)  # which is then copied to the device
    monkeypatch.setattr(positional_encoding, "sinusoidal_table", table)
    config = tiny_config(source_vocabulary=23, target_vocabulary=23, tie_embeddings=True)
    model = accelerate(Transformer(config, generator(1)))
    recipe = TrainingConfig(precision=precision, muon_precision="fp32", ema_decay=0.9, steps=2, warmup_steps=1)
    sides = [[[3 + (i + j) % 20 for j in range(1 + i % 6)] for i in range(20)] for _ in range(2)]
    stream = BatchStream(*sides, 40, config.pad, config.bos, config.eos, 1)
    run = Training(
        model, build_optimizer(model, recipe), stream, recipe, loss(config.pad, 0.1), WeightAverage(model, 0.9)
    )
    source = torch.tensor([[5, 6, 7, 2], [8, 9, 2, 0]])
    with refusing:
        fit(run)
        judged = run.average.of(model)
        assert validation_loss(judged, stream.one_epoch(), config.pad) > 0
        judged.eval()
        greedy_decode(judged, source, 6)
        beam_search(judged, source, 3, 6, 1.0, top_k)
        sample_decode(judged, source, 6, generator=generator(2))
    assert refusing.operations > 1_000


def test_processes_on_a_mac_compute_on_its_processor(monkeypatch):
    started = []
    for name in processes.STARTED_BY_TORCHRUN:
        monkeypatch.setenv(name, "0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(processes.distributed, "init_process_group", started.append)
    monkeypatch.setattr(processes.distributed, "get_rank", lambda: 0)
    monkeypatch.setattr(processes.distributed, "get_world_size", lambda: 2)
    assert processes.join_processes("auto") == (Processes(0, 2), "cpu") and started == ["gloo"]
    with pytest.raises(ValueError, match="device: expected one on which processes can exchange tensors, .* got 'mps'"):
        processes.join_processes("mps")
