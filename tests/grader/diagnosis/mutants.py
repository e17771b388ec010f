"""Random mutations of the correct answers, judged and explained; each claim of an explanation is recomputed.

    python tests/grader/diagnosis/mutants.py --count 500 --seed 1 [--only EXERCISE] > mutants.jsonl

One line of JSON for each mutation that runs: what was changed, what it earned, and which claims are false. Each runs in
a process of its own with limits on time and memory, since a mutation may loop without end.
"""

import argparse
import json
import random
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import claims
import torch
import torch._dynamo  # which the first optimizer of a process imports, here once for all children

from autograder import catalogue
from autograder.catalogue.exercise import Exercise
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.diagnosis.mutations import mutations
from autograder.feedback.messages import explanation
from autograder.judging.observe import LocalEndpoint
from autograder.sandbox import limited_process

MEMORY = 4 << 30  # bytes


def _exercises() -> list[Exercise]:
    return [exercise for assignment in catalogue.ASSIGNMENTS for exercise in assignment.exercises]


def drawn(seed: int, count: int, only: str = "") -> Iterator[tuple[Exercise, str, str]]:
    """(exercise, what was changed, the source): the same number for each exercise, in turns."""
    generator = random.Random(seed)
    exercises = [each for each in _exercises() if not each.trained and only in ("", each.id)]
    generator.shuffle(exercises)
    pools = {each.id: [mutations(known.source, generator) for known in each.correct] for each in exercises}
    given = 0
    while given < count and any(pools.values()):
        for exercise in exercises:
            if pools[exercise.id] and given < count:
                pool = pools[exercise.id].pop(0)
                if (mutation := next(pool, None)) is not None:
                    pools[exercise.id].append(pool)
                    yield exercise, *mutation
                    given += 1


def examine(exercise: Exercise, change: str, source: str) -> dict:
    """The points of one mutation, its explanation, and the false claims."""
    found = {"exercise": exercise.id, "number": exercise.number, "change": change, "source": source}
    begun = time.process_time()
    endpoint = LocalEndpoint(namespace_of(source))
    verdict = judge_and_explain(exercise, endpoint, b"key", disclosed=True)
    made, false = claims.check(verdict, endpoint)
    if verdict.failed_explanation:
        false = [*false, f"no explanation: {verdict.failed_explanation.splitlines()[-1]}"]
    return found | {
        "state": verdict.state,
        "named": verdict.misconception.name if verdict.misconception else "",
        "noticed": [each.name for each in verdict.noticed],
        "claims": made,
        "false": false,
        "said": explanation(verdict) if false else "",
        "seconds": round(time.process_time() - begun, 2),
    }


def in_own_process(work, seconds: float) -> dict:
    """The result of a function, or the reason for none: it takes too long, ends its process or raises."""
    try:
        return limited_process.run(work, seconds, MEMORY, quiet=True)
    except limited_process.Stopped as stopped:
        raised = re.match(r"\w+: ", str(stopped))
        return {"crash": str(stopped)} if raised else {"timeout": True}


def warm(exercise: Exercise) -> None:
    """Cache the known mistakes' results for an exercise, so that each child starts with them."""
    source = exercise.correct[0].source
    for _, wrong in mutations(source, random.Random(0)):
        result = in_own_process(lambda wrong=wrong: examine(exercise, "", wrong), 60)
        if result.get("state") == "wrong" and not result["named"] and result["seconds"] < 20:
            examine(exercise, "", wrong)
            return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="the id of one exercise")
    parser.add_argument("--seconds", type=float, default=30, help="limit for one mutation")
    parser.add_argument("--part", default="1/1", help="such as 2/3: the second third of the exercises")
    options = parser.parse_args()
    torch.set_num_threads(1)
    part, parts = map(int, options.part.split("/"))
    chosen = [
        each for place, each in enumerate(drawn(options.seed, options.count, options.only)) if place % parts == part - 1
    ]
    chosen.sort(key=lambda each: each[0].number)
    last = None
    for exercise, change, source in chosen:
        if exercise is not last and options.count > 2 * len(_exercises()):
            warm(exercise)
        last = exercise
        result = in_own_process(lambda e=exercise, c=change, s=source: examine(e, c, s), options.seconds)
        print(json.dumps({"exercise": exercise.id, "change": change, "source": source, **result}), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
