"""Random mutations of the correct answers, judged and explained; each claim of an explanation is recomputed.

    python tests/grader/diagnosis/mutants.py --count 500 --seed 1 [--only EXERCISE] > mutants.jsonl

One line of JSON for each mutation that runs: what was changed, what it earned, and which claims are false. Each runs in
a process of its own with limits on time and memory, since a mutation may loop without end.
"""

import argparse
import ast
import copy
import json
import os
import random
import resource
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import claims
import torch

from autograder import catalogue
from autograder.catalogue.exercise import Exercise
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.messages import explanation
from autograder.judging.observe import LocalEndpoint

MEMORY = 6 * 2**30  # bytes of address space
OPERATORS = {
    ast.Add: (ast.Sub, ast.Mult), ast.Sub: (ast.Add,), ast.Mult: (ast.Div, ast.Add), ast.Div: (ast.Mult, ast.FloorDiv),
    ast.Pow: (ast.Mult,), ast.FloorDiv: (ast.Div,), ast.Mod: (ast.FloorDiv,), ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,), ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.And: (ast.Or,), ast.Or: (ast.And,),
}  # fmt: skip
NAMES = {
    "sum": ("mean", "amax"), "mean": ("sum",), "softmax": ("log_softmax", "sigmoid"), "tril": ("triu",),
    "triu": ("tril",), "max": ("min",), "min": ("max",), "argmax": ("argmin",), "sin": ("cos",), "cos": ("sin",),
    "zeros": ("ones",), "ones": ("zeros",), "amax": ("amin",), "exp": ("log1p",), "append": ("extend",),
    "var": ("std",), "sqrt": ("square",), "any": ("all",), "all": ("any",), "relu": ("tanh",), "sorted": ("list",),
}  # fmt: skip


def mutations(source: str, generator: random.Random) -> Iterator[tuple[str, str]]:
    """All mutations of a source by one change, in a drawn order: (what was changed, the new source)."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    places = [(number, which) for number, node in enumerate(nodes) for which, _ in enumerate(_changes(node, tree))]
    generator.shuffle(places)
    for number, which in places:
        kind, change = list(_changes(nodes[number], tree))[which]
        twin = copy.deepcopy(tree)
        try:
            change(list(ast.walk(twin))[number])
            text = ast.unparse(ast.fix_missing_locations(twin))
            compile(text, "<mutation>", "exec")
        except (SyntaxError, ValueError, AttributeError, TypeError):
            continue
        if text != ast.unparse(tree):
            yield f"line {getattr(nodes[number], 'lineno', 0)}: {kind}", text


def _changes(node: ast.AST, tree: ast.AST) -> Iterator[tuple]:
    """(what it is, a function that makes it in a copy of the node)."""

    def put(**values):
        return lambda target: [setattr(target, name, copy.deepcopy(value)) for name, value in values.items()]

    def first(items, value):
        return [value, *items[1:]]

    if isinstance(node, (ast.BinOp, ast.AugAssign, ast.BoolOp)):
        for other in OPERATORS.get(type(node.op), ()):
            yield f"{type(node.op).__name__} to {other.__name__}", put(op=other())
    if isinstance(node, ast.BinOp):
        yield "the operands exchanged", put(left=node.right, right=node.left)
        yield "the left operand alone", put(right=ast.Constant(1), op=ast.Mult())
    if isinstance(node, ast.Compare):
        for other in OPERATORS.get(type(node.ops[0]), ()):
            yield f"{type(node.ops[0]).__name__} to {other.__name__}", put(ops=first(node.ops, other()))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Invert, ast.Not)):
        yield "a sign dropped", put(op=ast.UAdd()) if isinstance(node.op, ast.USub) else put(op=ast.Not())
    if isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        value = node.value
        others = (not value,) if type(value) is bool else (value + 1, value - 1) if type(value) is int else (2 * value,)
        for other in others:
            yield f"{value} to {other}", put(value=other)
    if isinstance(node, ast.Call):
        for place in range(len(node.args) - 1):
            swapped = [*node.args[:place], node.args[place + 1], node.args[place], *node.args[place + 2 :]]
            yield "arguments exchanged", put(args=swapped)
        for place in range(len(node.keywords)):
            yield "a keyword dropped", put(keywords=[*node.keywords[:place], *node.keywords[place + 1 :]])
        if len(node.args) > 1:
            yield "the last argument dropped", put(args=node.args[:-1])
    if isinstance(node, ast.Attribute):
        for other in NAMES.get(node.attr, ()):
            yield f"{node.attr} to {other}", put(attr=other)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for other in NAMES.get(node.id, ()):
            yield f"{node.id} to {other}", put(id=other)
        for other in sorted(_arguments(tree) - {node.id}) if node.id in _arguments(tree) else ():
            yield f"{node.id} to {other}", put(id=other)
    if isinstance(node, ast.Slice):
        for end in ("lower", "upper"):
            if getattr(node, end) is not None:
                yield f"no {end} end", put(**{end: None})
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield "the condition negated", put(test=ast.UnaryOp(ast.Not(), node.test))
    for name in ("body", "orelse"):
        body = getattr(node, name, None)
        if isinstance(body, list) and not isinstance(node, (ast.Module, ast.ClassDef)):
            for place in range(len(body)):
                if len(body) > 1:
                    yield "a statement dropped", put(**{name: [*body[:place], *body[place + 1 :]]})
                if place + 1 < len(body):
                    turned = [*body[:place], body[place + 1], body[place], *body[place + 2 :]]
                    yield "statements exchanged", put(**{name: turned})


def _arguments(tree: ast.AST) -> set[str]:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {each.arg for function in functions for each in function.args.args} - {"self"}


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
    """What one mutation earned, its explanation, and which of its claims are false."""
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
        "noticed": [each.kind for each in verdict.noticed],
        "claims": made,
        "false": false,
        "said": explanation(verdict) if false else "",
        "seconds": round(time.process_time() - begun, 2),
    }


def in_own_process(work, limit: float) -> dict | None:
    """What a function returns, computed in a child; None where it takes too long or ends the child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            with open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), 1)
            os.write(writer, json.dumps(work()).encode())
        except BaseException as error:
            os.write(writer, json.dumps({"crash": f"{type(error).__name__}: {error}"[:500]}).encode())
        finally:
            os._exit(0)
    os.close(writer)
    received, until = b"", time.monotonic() + limit
    while (left := until - time.monotonic()) > 0 and select.select([reader], [], [], left)[0]:
        piece = os.read(reader, 2**16)
        if not piece:
            break
        received += piece
    os.close(reader)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return json.loads(received) if received else None


def warm(exercise: Exercise) -> None:
    """Keep what the known mistakes of an exercise show, so that each child begins with it."""
    source = exercise.correct[0].source
    for _, wrong in mutations(source, random.Random(0)):
        result = in_own_process(lambda wrong=wrong: examine(exercise, "", wrong), 60)
        if result and result.get("state") == "wrong" and not result["named"] and result["seconds"] < 20:
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
        result = result or {"timeout": True}
        print(json.dumps({"exercise": exercise.id, "change": change, "source": source, **result}), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
