"""Without the folder `fast/` everything works and gives the same numbers."""

import json
import os
import subprocess
import sys

import pytest
import torch

from transformer_ref.machine import VARIABLE

PROGRAM = """
import importlib.abc, json, sys

class Blank(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.startswith("transformer_ref.fast."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

if sys.argv[1] == "without":
    sys.meta_path.insert(0, Blank())

import torch
from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.data.batching import BatchStream
from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.faster import TrainingLoss, accelerate, freed_memory_kept, top_k
from transformer_ref.model.transformer import Transformer
from transformer_ref.training.optimizer import build_optimizer
from transformer_ref.training.trainer import Training, fit

drawing = torch.Generator().manual_seed(1)
sides = [[torch.randint(3, 23, (1 + i % 9,), generator=drawing).tolist() for i in range(60)] for _ in range(2)]
model = accelerate(Transformer(ModelConfig(23, 23, d_model=12, heads=3, encoder_layers=2, decoder_layers=2, d_ff=20,
                                           dropout=0.0, tie_embeddings=True, max_length=40), drawing))
config = TrainingConfig(steps=3, warmup_steps=1, tokens_per_batch=150)
training = Training(model, build_optimizer(model, config), BatchStream(*sides, 150, 0, 1, 2, 5), config,
                    TrainingLoss(0, config.label_smoothing))
with freed_memory_kept():
    fit(training)
    model.eval().double()
    source = torch.randint(3, 23, (7, 9), generator=drawing)
    source[2, 4:] = source[5, 1:] = 0
    beams = beam_search(model, source, 3, 11, 1.0, top_k)
    print(json.dumps({
        "fast": "transformer_ref.fast.loss" in sys.modules,
        "muon": training.config.muon_precision,
        "losses": training.losses,
        "weights": [float(p.detach().double().norm()) for p in model.parameters() if p.dim() > 1],
        "greedy": greedy_decode(model, source, 11).tolist(),
        "beams": [[one.ids for one in each] for each in beams],
        "scores": [[one.score for one in each] for each in beams],
    }))
"""


# As this machine is, and as one without bf16 units: held back to AVX2, or, where nothing holds it back, by the choice.
UNITS = {
    "these units": {},
    "no bf16 units": dict(ATEN_CPU_CAPABILITY="avx2", ONEDNN_MAX_CPU_ISA="AVX2", MKL_ENABLE_INSTRUCTIONS="AVX2")
    if torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    else {VARIABLE: "muon=fp32"},
}


def results(how: str, environment: dict[str, str]) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("units", UNITS)
def test_a_training_greedy_and_beam_search_give_the_same_without_the_folder(units):
    there, gone = (results(how, UNITS[units]) for how in ("with", "without"))
    assert there["fast"] and not gone["fast"]
    assert there["muon"] == gone["muon"] and (units == "these units" or there["muon"] == "fp32")
    assert there["losses"] == pytest.approx(gone["losses"], rel=1e-5)  # sums are made in another order
    assert there["weights"] == pytest.approx(gone["weights"], rel=1e-4)  # Muon rounds to bf16
    assert (there["greedy"], there["beams"]) == (gone["greedy"], gone["beams"])
    for one, other in zip(there["scores"], gone["scores"], strict=True):
        assert one == pytest.approx(other, rel=1e-3)
