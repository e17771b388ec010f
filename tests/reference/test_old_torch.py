"""What torch did not have in 2.2, the oldest version that a learner may have, is not needed to start.

`make test-oldest` runs the rest on that version.
"""

import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
LATER = ("torch.nn.attention", "torch.optim._muon", "torch.accelerator")
START = f"""
import sys
import torch
del torch.optim.Muon
for name in {LATER}:
    sys.modules[name] = None  # importing it fails
from transformer_ref.__main__ import main
sys.exit(main(["train", "--help"]))
"""


def test_the_command_starts_without_them(tmp_path):
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{START}"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "--muon-rate" in ran.stdout


def test_a_gpu_s_attention_needs_none_of_them(monkeypatch):
    from transformer_ref.fast.attention import without_cudnn

    before = torch.backends.cuda.cudnn_sdp_enabled()
    with without_cudnn():
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.cudnn_sdp_enabled() == before
    monkeypatch.setitem(sys.modules, "torch.nn.attention", None)
    with without_cudnn():  # a version without the module has no such kernel: nothing is switched
        assert torch.backends.cuda.cudnn_sdp_enabled() == before
