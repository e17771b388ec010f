"""A warm sandbox of each kind that this machine allows, and a submission in it."""

import pytest
from graded_course import SANDBOXES, need_isolation

from autograder.prepare.sample_class import ASSIGNMENT
from autograder.sandbox.backends import BACKENDS
from autograder.sandbox.runner import Runner


@pytest.fixture(scope="module", params=SANDBOXES)
def warm(request):
    """A warm sandbox for the assignment of chapter 05, within the limits that the test's module calls LIMITS."""
    need_isolation(request.param)
    started = Runner(ASSIGNMENT, BACKENDS[request.param], request.module.LIMITS)
    started.backend = request.param
    yield started
    started.close()


@pytest.fixture
def submission(warm):
    """One submission's process in it."""
    with warm.submission() as started:
        yield started
