"""Does once what nbgrader repeats for every step of every notebook: opening its gradebook, checking its own schema.

Importing this patches nothing: our commands install the patches, nbgrader's own commands never do.
"""

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import jsonschema
from nbgrader import api, dbutil
from nbgrader.nbgraderformat import common
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker


def install() -> None:
    """Patch nbgrader in this process, once.

    nbgrader creates an engine each time it opens a gradebook; SQLAlchemy compiles every query again for each engine,
    and keeps its type information for good. One engine per address does both once. And nbgrader lets jsonschema check
    its own schema file each time a cell is validated, which takes ten times as long as the validation.
    """
    if api.Gradebook.__init__ is _begin:
        return
    api.create_engine = functools.cache(api.create_engine)
    api.Gradebook.__init__, api.Gradebook.close = _begin, _close
    common.jsonschema = SimpleNamespace(validate=_validate)
    make_gradebooks_here()


def make_gradebooks_here() -> None:
    """Let this process create a gradebook without starting another program.

    To find the version of its tables, nbgrader starts alembic by its bare name, a program that spends seconds on
    imports.
    """
    api.get_alembic_version = _tables_version


@contextmanager
def one_gradebook(address: str, course: str, keep: bool) -> Iterator[None]:
    """In this context, opening the gradebook always returns the same one, with everything stored in it before.

    The database is written at the end, all at once or, after an exception or without `keep`, not at all. nbgrader opens
    a gradebook nine times for a submission, and stores each cell's score separately.
    """
    if address not in _whole:
        with api.Gradebook(address, course):  # makes the tables where there are none
            _whole.add(address)
    engine = api.create_engine(address, echo=False, future=True)
    shared = _Shared(engine)
    _shared[address] = shared
    try:
        yield
        if keep:
            Session.commit(shared.session())
    finally:
        del _shared[address]
        shared.session.remove()
        engine.dispose()


@functools.cache
def _tables_version() -> str:
    from alembic.script import ScriptDirectory  # only for a new gradebook

    return ScriptDirectory(dbutil.ALEMBIC_DIR).get_current_head() or ""


class _Pending(Session):
    """A session whose commits only it can see."""

    def commit(self) -> None:
        self.flush()
        self.expire_all()  # as a commit does: sums of other rows are read anew


class _Shared:
    """A gradebook that is open."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.courses = engine, set()
        self.session = scoped_session(sessionmaker(class_=_Pending, autoflush=True, bind=engine, future=True))


_shared: dict[str, _Shared] = {}
_whole: set[str] = set()  # addresses of databases whose tables were there when they were opened first
_begin_alone, _close_alone = api.Gradebook.__init__, api.Gradebook.close


def _begin(gradebook: api.Gradebook, db_url: str, course_id: str = "default_course", authenticator: Any = None) -> None:
    shared = _shared.get(db_url)
    if shared is None:
        _begin_alone(gradebook, db_url, course_id, authenticator)
        return
    gradebook.engine, gradebook.db = shared.engine, shared.session
    if course_id not in shared.courses:  # half of nbgrader opens it under the name "default_course"
        gradebook.check_course(course_id=course_id)
        shared.courses.add(course_id)
    gradebook.course_id, gradebook.authenticator = course_id, authenticator


def _close(gradebook: api.Gradebook) -> None:
    if all(gradebook.db is not shared.session for shared in _shared.values()):
        _close_alone(gradebook)


def _validate(instance: Any, schema: Mapping[str, Any]) -> None:
    """jsonschema.validate without the check of the schema itself."""
    error = jsonschema.exceptions.best_match(jsonschema.validators.validator_for(schema)(schema).iter_errors(instance))
    if error is not None:
        raise error
