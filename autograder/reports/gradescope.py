"""Grades for Gradescope, which imports no scores: an autograder that holds them and hands each out to its owner.

The specification is https://gradescope-autograders.readthedocs.io (the archive, results.json and
submission_metadata.json). Nothing of a submission is run there: the verdict was reached here.
"""

import io
import json
import zipfile
from collections.abc import Mapping

from autograder.reports.results import Class, Graded

SET_UP = "#!/usr/bin/env bash\n# Nothing to install: Python's own library is all that run_autograder needs.\n"
HAND_OUT = '''#!/usr/bin/env python3
"""Hands out the results that were reached before this archive was made; runs nothing of the submission."""

import json
import sys

with open("/autograder/source/grades.json", encoding="utf-8") as file:
    grades = json.load(file)
with open("/autograder/submission_metadata.json", encoding="utf-8") as file:
    users = json.load(file)["users"]

found = [grades[user["email"].casefold()] for user in users if user["email"].casefold() in grades]
if not found:  # no result at all is better than a 0 that nobody earned
    sys.exit("There is no grade for %s in this archive." % ", ".join(user["email"] for user in users))
with open("/autograder/results/results.json", "w", encoding="utf-8") as file:
    json.dump(found[0], file)
'''
EXECUTABLE = 0o100755  # a regular file that everyone may run
MOMENT = (1980, 1, 1, 0, 0, 0)  # of every file in a zip


def archive(graded: Class) -> bytes:
    """The zip file to upload as the autograder of a programming assignment."""
    grades = {each.student.email.casefold(): _result(each) for each in graded.graded if each.student.email}
    files = {
        "setup.sh": SET_UP,
        "run_autograder": HAND_OUT,
        "grades.json": json.dumps(grades, ensure_ascii=False, indent=1),
    }
    return zipped({name: text.encode() for name, text in files.items()}, EXECUTABLE)


def zipped(files: Mapping[str, bytes], mode: int = 0) -> bytes:
    """A zip of these files, all with this mode; equal files give equal zips."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, MOMENT)
            entry.external_attr = mode << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def _result(each: Graded) -> dict:
    """One student's results.json: the sum after the late penalty, and a line for each exercise with its report."""
    late = (f"{each.penalty:g} points were taken off because it came late.",) if each.penalty else ()
    return {
        "score": round(each.score, 4),
        "output": "\n".join(each.notes + late),
        "tests": [
            {
                "name": f"{result.exercise.number} {result.exercise.names[0]}",
                "score": round(result.points, 4),
                "max_score": result.exercise.points,
                "output": result.report,
                "output_format": "text",
            }
            for result in each.results
        ],
    }
