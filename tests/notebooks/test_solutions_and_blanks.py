"""Every solution earns everything and every blank nothing: `release` checks both, and refuses otherwise."""

import pytest

from autograder import catalogue
from autograder.prepare import check_cache


@pytest.mark.parametrize("assignment", catalogue.ASSIGNMENTS, ids=lambda a: a.id)
def test_a_release_checks_the_solutions_and_the_blanks_of_an_assignment(assignment, released):
    folder = released(assignment)
    record = check_cache.CheckCache(folder)
    now = check_cache.inputs(folder, assignment)
    assert record.reason(assignment, now) == ""  # it is stored when all checks have passed
    now[check_cache.BLANKS] = check_cache.digest_folder(folder / "exercises" / assignment.id)
    assert record.reason(assignment, now) == ""
