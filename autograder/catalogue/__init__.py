"""The catalogue: a folder for each chapter with one file for each exercise, and a teacher's own exercises.

- An entry is read when it is first needed and checked when it is made. A mistake is a change of the correct answer
  that must apply exactly once.
- Each submission gets its own hidden numbers, so an entry must hold for everything that its probes may draw. A
  mistake that shows on certain numbers only needs a probe that draws until it does (`unlike` in 11.3); a share is
  compared with five times what chance does to it.
- `defaults` lists what the hidden probes of every exercise ask (a batch of one, a second call, precision, ...); an
  entry that cannot ask one says why in `omits`.
- Where sound programs differ, the cases are drawn so that all agree, or `normalize` keeps what they agree on.
- An exercise that passes or returns a model names a `harness` (`inside.fixtures`), which builds it next to the
  answer and reports plain values; it decides nothing. 10.7 and 12.3 are judged by what the trained model outputs,
  never by its loss.
- A teacher's own assignments are called `own_...`, are ignored by git, and cannot break the course's.
- Titles of sections are in `sections.json`, since an installed package has no book; a test compares the two.
"""

from autograder.catalogue import (
    ch00_start_here,
    ch01_why_attention,
    ch02_text_to_vectors,
    ch03_similarity,
    ch04_softmax,
    ch05_self_attention,
    ch06_multi_head_attention,
    ch07_positional_encoding,
    ch08_masks,
    ch09_blocks,
    ch10_training,
    ch11_inference,
    ch12_capstone,
    ch13_gpt,
    ch14_vision,
    ch15_pretrained,
    ch16_efficient,
    own,
)
from autograder.catalogue.exercise import Assignment, Exercise
from autograder.course import CourseError

ASSIGNMENTS: tuple[Assignment, ...] = (  # the course's
    ch00_start_here.ASSIGNMENT,
    ch01_why_attention.ASSIGNMENT,
    ch02_text_to_vectors.ASSIGNMENT,
    ch03_similarity.ASSIGNMENT,
    ch04_softmax.ASSIGNMENT,
    ch05_self_attention.ASSIGNMENT,
    ch06_multi_head_attention.ASSIGNMENT,
    ch07_positional_encoding.ASSIGNMENT,
    ch08_masks.ASSIGNMENT,
    ch09_blocks.ASSIGNMENT,
    ch10_training.ASSIGNMENT,
    ch11_inference.ASSIGNMENT,
    ch12_capstone.ASSIGNMENT,
    ch13_gpt.ASSIGNMENT,
    ch14_vision.ASSIGNMENT,
    ch15_pretrained.ASSIGNMENT,
    ch16_efficient.ASSIGNMENT,
)


def assignments() -> tuple[Assignment, ...]:
    """The course's assignments, then a teacher's own; those that cannot be read are in `troubles`."""
    return (*ASSIGNMENTS, *own.read(ASSIGNMENTS).assignments)


def troubles() -> list[str]:
    """Why own assignments cannot be read, with file and line; usually none."""
    return list(own.read(ASSIGNMENTS).troubles.values())


def exercises() -> dict[str, Exercise]:
    """Every exercise by its id, in the order of the book, own ones last. This reads every entry; `find` reads one."""
    return {exercise.id: exercise for assignment in assignments() for exercise in assignment.exercises}


def exercise_ids() -> list[str]:
    """The ids of all exercises, in the order of the book, own ones last."""
    return list(dict.fromkeys(name for assignment in assignments() for name in assignment.exercise_ids))


def find(exercise_id: str) -> Exercise | None:
    """The exercise of that id, or None. Raises CourseError for an own one that cannot be read.

    The course's exercises are found without reading own ones, so that an error there does not affect them.
    """
    for assignment in ASSIGNMENTS:
        if exercise_id in assignment.exercise_ids:
            return assignment.load(exercise_id)
    owned = own.read(ASSIGNMENTS)
    for assignment in owned.assignments:
        if exercise_id in assignment.exercise_ids:
            return assignment.load(exercise_id)
    for name, trouble in owned.troubles.items():
        if any(path.stem == exercise_id.replace("-", "_") for path in own.sources(name)):
            raise CourseError(trouble)
    return None


def assignment_of(exercise: Exercise) -> Assignment:
    """The assignment that an exercise belongs to; the chapter's, where an own assignment holds it too."""
    course = (assignment for assignment in ASSIGNMENTS if exercise.id in assignment.exercise_ids)
    return next(course, None) or next(each for each in assignments() if exercise.id in each.exercise_ids)


def find_assignment(assignment_id: str) -> Assignment | None:
    """The assignment of that id (its folder's name), or None. Raises CourseError for an own one that cannot be read."""
    for assignment in ASSIGNMENTS:
        if assignment.id == assignment_id:
            return assignment
    owned = own.read(ASSIGNMENTS)
    if assignment_id in owned.troubles:
        raise CourseError(owned.troubles[assignment_id])
    return next((assignment for assignment in owned.assignments if assignment.id == assignment_id), None)
