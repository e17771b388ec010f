"""Answers whose lines are known, as in the cells of a notebook."""

import linecache

from autograder import catalogue
from autograder.diagnosis.evidence import Explained
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.judging.observe import LocalEndpoint

IN_FRONT = "import math\nimport torch\nimport torch.nn.functional as F\n"
IN_FRONT += "from collections import Counter\nfrom torch import nn\n"


def checked(exercise_id: str, body: str) -> Explained:
    """A learner's own check of a cell, whose lines are known, as in a notebook."""
    source = IN_FRONT + body
    name = f"<cell {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace = namespace_of("import torch")
    exec(compile(source, name, "exec"), namespace)
    exercise = catalogue.find(exercise_id)
    return judge_and_explain(exercise, LocalEndpoint(namespace), b"key", disclosed=True, source=source)
