"""Memory that is freed and asked for again comes without new pages, while that is wanted."""

import subprocess
import sys
import types

import pytest
import torch

from transformer_ref.fast import memory

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


def test_afterwards_memory_is_given_back_as_before_even_after_a_failure(monkeypatch):
    options = {}
    library = types.SimpleNamespace(mallopt=options.__setitem__)
    monkeypatch.setattr(memory.sys, "platform", "linux")
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: library)
    with pytest.raises(KeyboardInterrupt), memory.freed_memory_kept():
        assert options[memory.TRIM_THRESHOLD] == memory.KEPT
        raise KeyboardInterrupt
    assert options[memory.TRIM_THRESHOLD] == memory.ADAPTED


@pytest.mark.parametrize(("system", "library"), [("linux", object()), ("darwin", None)])
def test_where_the_c_library_has_no_such_setting_the_work_is_done_all_the_same(system, library, monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", system)
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: library)
    with memory.freed_memory_kept():
        done = torch.ones(3).sum().item()
    assert done == 3
    with pytest.raises(KeyboardInterrupt), memory.freed_memory_kept():
        raise KeyboardInterrupt
