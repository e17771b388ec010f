"""What an explanation claims holds: recomputed for random mutations of the correct answers (`mutants`, `claims`)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

MUTANTS = Path(__file__).with_name("mutants.py")


def examined(count: int, seed: int) -> list[dict]:
    """The results for this many mutations, each judged in a child with limits."""
    command = [sys.executable, str(MUTANTS), "--count", str(count), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def false_claims(found: list[dict]) -> list[str]:
    return [f"{each['exercise']}, {each['change']}: {claim}" for each in found for claim in each.get("false", ())]


def test_no_claim_about_a_few_drawn_mutations_is_false():
    found = examined(count=20, seed=11)
    assert len(found) == 20 and not [each["crash"] for each in found if "crash" in each]
    assert sum(each.get("state") == "wrong" for each in found) > 12
    assert false_claims(found) == []


@pytest.mark.xdist_group("drawn-claims")
def test_no_claim_about_many_drawn_mutations_is_false(part):
    found = [each for seed in part(range(21, 27), 6) for each in examined(count=100, seed=seed)]
    assert not [each["crash"] for each in found if "crash" in each]
    assert sum(each.get("claims", 0) for each in found) > 20
    assert false_claims(found) == []
