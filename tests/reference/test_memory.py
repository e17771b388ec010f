"""Memory that is freed and allocated again comes without new pages, while that is switched on."""

import subprocess
import sys
import types

import pytest
import torch

from transformer_ref.fast import memory
from transformer_ref.learn import learn

FAULTS = """
import resource, torch
from transformer_ref.fast.memory import freed_memory_kept

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        blocks = [torch.ones(2 ** 22) for _ in range(6)]  # 96 MiB
        del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

with freed_memory_kept():
    faults()
    print(faults())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is the C library of Linux")
def test_pages_that_were_asked_for_once_stay():
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1_000  # 480,000 pages of 4 KiB come and go


@pytest.fixture
def options(monkeypatch):
    """Return the options last set in the C library, by name, instead of setting them."""
    told = {}
    monkeypatch.setattr(memory.sys, "platform", "linux")
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: types.SimpleNamespace(mallopt=told.__setitem__))
    return told


def test_afterwards_memory_is_given_back_as_before_even_after_a_failure(options):
    with pytest.raises(KeyboardInterrupt), memory.freed_memory_kept():
        assert options[memory.TRIM_THRESHOLD] == memory.KEPT
        raise KeyboardInterrupt
    assert options[memory.TRIM_THRESHOLD] == memory.ADAPTED


def test_the_outermost_of_several_contexts_gives_memory_back(options):
    with memory.freed_memory_kept():
        with memory.freed_memory_kept():
            pass
        assert options[memory.TRIM_THRESHOLD] == memory.KEPT
    assert options[memory.TRIM_THRESHOLD] == memory.ADAPTED


def test_learn_and_a_translator_keep_freed_memory_while_they_compute(options, tmp_path):
    seen = []

    class Watching:
        def __call__(self, progress):
            seen.append(options[memory.TRIM_THRESHOLD])

        def validated(self, progress, loss):
            pass

    sizes = dict(d_model=8, heads=2, encoder_layers=1, decoder_layers=1, d_ff=8)
    translator = learn(["a b"] * 9, ["c d"] * 9, tmp_path, 300, sizes, device="cpu", steps=2, watchers=[Watching()])
    assert seen == [memory.KEPT] * 2 and options[memory.TRIM_THRESHOLD] == memory.ADAPTED
    translator.model.encoder.register_forward_pre_hook(lambda *_: seen.append(options[memory.TRIM_THRESHOLD]))
    for answer in (
        lambda: translator.translate(["a b"], beam_size=1),
        lambda: translator.n_best(["a b"], 1, beam_size=2),
    ):
        seen.clear()
        answer()
        assert seen == [memory.KEPT] and options[memory.TRIM_THRESHOLD] == memory.ADAPTED


@pytest.mark.parametrize(("system", "library"), [("linux", object()), ("darwin", None)])
def test_where_the_c_library_has_no_such_setting_the_work_is_done_all_the_same(system, library, monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", system)
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: library)
    with memory.freed_memory_kept():
        done = torch.ones(3).sum().item()
    assert done == 3
    with pytest.raises(KeyboardInterrupt), memory.freed_memory_kept():
        raise KeyboardInterrupt
