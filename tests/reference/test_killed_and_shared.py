"""Real processes: one that is killed and goes on, and two that train as one."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from transformer_ref.training.resume import TRAINING_FILE

STEPS, KILLED_AT = 8, 4
TRAIN = f"""
import os, signal, sys
from transformer_ref.__main__ import main
from transformer_ref.training import recipes, run

build, replace, saves = recipes.build_corpus, os.replace, []

def replace_or_die(old, new):
    saves.append(new)
    if len(saves) == int(os.environ.get("KILLED_AT", 0)):
        os.kill(os.getpid(), signal.SIGKILL)
    replace(old, new)

recipes.build_corpus = lambda: build(train=200, validation=10, test=5, held_out=5)
run.SECONDS_BETWEEN_SAVES, os.replace = 0.0, replace_or_die
arguments = ["--steps", "{STEPS}", "--tokens-per-batch", "256", "--device", "cpu", "--output", *sys.argv[1:]]
sys.exit(main(["train", *arguments]))
"""
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("script") / "train.py"
    path.write_text(TRAIN, encoding="utf-8")
    return path


def run(*command: str | Path, expected: int = 0, **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, *command], env={**ONE_THREAD, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == expected, done.stderr


def saved(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / TRAINING_FILE)


@pytest.fixture(scope="module")
def uninterrupted(script, tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    run(script, folder)
    return saved(folder)


def test_a_training_killed_while_it_saves_goes_on_with_the_losses_of_an_uninterrupted_one(
    script, uninterrupted, tmp_path
):
    run(script, tmp_path, expected=-signal.SIGKILL, KILLED_AT=str(KILLED_AT))
    assert len(saved(tmp_path)["losses"]) == KILLED_AT - 1 and list(tmp_path.glob("*.tmp"))
    run(script, tmp_path, "--resume")
    resumed = saved(tmp_path)
    assert resumed["losses"].tolist() == uninterrupted["losses"].tolist() and len(resumed["losses"]) == STEPS
    assert all(resumed[name].equal(tensor) for name, tensor in uninterrupted.items())
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch was built without torch.distributed")
def test_two_processes_have_the_losses_of_one_with_the_same_batches(script, uninterrupted, tmp_path):
    run("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script, tmp_path)
    # The sums are rounded in another order, and Muon lifts such differences from step to step.
    shared, alone = saved(tmp_path)["losses"], uninterrupted["losses"]
    torch.testing.assert_close(shared[:1], alone[:1], rtol=1e-6, atol=0)
    torch.testing.assert_close(shared, alone, rtol=1e-3, atol=0)
    assert len(uninterrupted["losses"]) == STEPS


SIGNALED = """
import os, signal, sys
from transformer_ref.training import run

train, real = run.train, []

def train_and_signal(training_run, output, watchers):
    class Signal:
        def __call__(self, progress):
            if progress.step == 3 and os.environ["RANK"] == os.environ["WHO"]:
                os.kill(os.getpid(), signal.SIGTERM)
        def validated(self, progress, loss):
            pass
    return train(training_run, output, [*watchers, Signal()])

run.train = train_and_signal
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch was built without torch.distributed")
@pytest.mark.parametrize("who", ["0", "1"])
def test_a_signal_to_one_of_two_processes_ends_and_saves_both(who, script, uninterrupted, tmp_path):
    program = tmp_path / "signaled.py"
    program.write_text(SIGNALED + script.read_text(encoding="utf-8"), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    group = {**ONE_THREAD, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "WHO": who}
    processes = [
        subprocess.Popen(
            [sys.executable, program, tmp_path / "out"],
            env={**group, "RANK": rank, "LOCAL_RANK": rank},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for rank in ("0", "1")
    ]
    errors = [process.communicate()[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [130, 130], errors
    # The signal of step 3 came after the processes had told each other of theirs: it takes effect one step later.
    assert len(saved(tmp_path / "out")["losses"]) == 4
    run(script, tmp_path / "out", "--resume")
    torch.testing.assert_close(saved(tmp_path / "out")["losses"], uninterrupted["losses"], rtol=1e-3, atol=0)
