"""Matches a platform's numbers to students on the roster.

Moodle's number is a person's *in one assignment*, so each assignment needs the grading worksheet that belongs to it;
Canvas's number stays. A person is found by what only they have (the platform's ID number or login as id here, the
e-mail address), else by a full name that only they have. The matches are kept in
`classroom/collected/ASSIGNMENT.json`, so that feedback and grades find the way back.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder.platforms.downloads import CANVAS, MOODLE, Owner
from autograder.platforms.tables import Person, folded
from autograder.policy import collected
from autograder.reports.results import Student

NO_WORKSHEET = {
    MOODLE: "its number is on no roster: give Moodle's grading worksheet with --worksheet",
    CANVAS: "the number is on no roster: give Canvas's gradebook with --worksheet",
}


MOST_NAMED = 20  # students in one line


def listed(students: Sequence[str]) -> str:
    """The first students of a list, and how many more there are."""
    more = f" and {len(students) - MOST_NAMED} more" if len(students) > MOST_NAMED else ""
    return ", ".join(students[:MOST_NAMED]) + more


@dataclass(frozen=True)
class Roster:
    """The data for identifying people.

    students: of the gradebook. system, people: of the given worksheet or gradebook, if any. known: (system, number) ->
    (student's id, name there), from earlier collections.
    """

    students: tuple[Student, ...]
    system: str = ""
    people: tuple[Person, ...] = ()
    known: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    @property
    def is_real(self) -> bool:
        """Whether the list comes from a teacher: nbgrader itself only adds ids."""
        return any(student.first_name or student.last_name or student.email for student in self.students)

    def confirms(self, owner: Owner, sure: Mapping[str, str]) -> bool:
        """Whether an ambiguous name of Canvas's belongs to this number. sure: number -> name, of unambiguous ones."""
        names = {sure[owner.number]} if owner.number in sure else set()
        theirs = [person for person in self.people if person.number == owner.number and self.system == CANVAS]
        names |= {name for person in theirs for name in (person.name, person.group)}
        for student in self.students:
            if owner.number in (student.id, student.lms_user_id):
                names |= {f"{student.last_name}{student.first_name}"}
        return _letters(owner.name) in set(map(_letters, names)) - {""}


def earlier(root: Path, assignment: str) -> dict[tuple[str, str], tuple[str, str]]:
    """(system, number) -> (student, name) of earlier collections: for Moodle of this assignment, for Canvas of all."""
    found = {}
    for path in sorted((root / "classroom" / "collected").glob("*.json")):
        for student, each in collected.read(path).students.items():
            if each.system == CANVAS or path.stem == assignment:
                found[each.system, each.number] = (student, each.name)
    return found


def with_groups(people: Sequence[Person], members: Sequence[Person]) -> list[Person]:
    """Canvas's people with their groups; those who are only in the table of groups come last."""
    groups, known = {person.number: person.group for person in members}, {person.number for person in people}
    found = [replace(person, group=groups.get(person.number, "")) for person in people]
    return found + [person for person in members if person.number not in known]


def match(roster: Roster) -> tuple[dict[str, Student], dict[str, str]]:
    """The platform's numbers of known people -> student; and the others -> why they are unknown."""
    found: dict[str, Student] = {}
    why: dict[str, str] = {}
    left: list[Person] = []
    by_key = _by_key(roster)
    for person in roster.people:
        given = [*person.keys, person.email, *([person.number] if roster.system == CANVAS else [])]
        students = {student.id: student for key in given if key for student in by_key[key.casefold()]}
        if len(students) == 1:
            (found[person.number],) = students.values()
        elif students:
            why[person.number] = f"{person.name} fits {' and '.join(sorted(students))}"
        else:
            left.append(person)
    taken = {student.id for student in found.values()}
    namesakes = Counter(folded(person.name) for person in roster.people)
    by_name = defaultdict(list)
    for student in roster.students:
        if student.id not in taken:
            by_name[folded(student.name)].append(student)
    for person in left:
        alike = by_name[folded(person.name)]
        if len(alike) == 1 and namesakes[folded(person.name)] == 1:
            found[person.number] = alike[0]
        else:
            why[person.number] = f"{person.name or person.number} is not on the roster, by id, e-mail address or name"
    return _without_doubles(found, why)


def decide(roster: Roster, owner: Owner, matched: Mapping[str, Student], why: Mapping[str, str]) -> list[Student] | str:
    """The owners of a submission: one student, or all of a group; or the reason why they are unknown."""
    if roster.system == owner.system and roster.people:
        return _by_people(roster, owner, matched, why)
    by_id = {student.id: student for student in roster.students}
    if (owner.system, owner.number) in roster.known:
        student, name = roster.known[owner.system, owner.number]
        if owner.system == CANVAS or folded(name) == folded(owner.name):
            return [by_id.get(student, Student(student))]
    if owner.system == CANVAS:
        by_id |= {student.lms_user_id: student for student in roster.students if student.lms_user_id}
    if owner.number in by_id:
        student = by_id[owner.number]
        named = student.first_name or student.last_name
        if owner.system == MOODLE and named and not _same(owner.name, student.name):
            return f"Moodle's number {owner.number} is {student.name} on the roster, and the folder says {owner.name}"
        return [student]
    if roster.is_real or not owner.number:
        return NO_WORKSHEET[owner.system]
    return [Student(owner.number)]


def _letters(name: str) -> str:
    """A name as in Canvas's file names: only letters and digits."""
    return "".join(filter(str.isalnum, name.casefold()))


def _by_people(
    roster: Roster, owner: Owner, matched: Mapping[str, Student], why: Mapping[str, str]
) -> list[Student] | str:
    person = next((each for each in roster.people if each.number == owner.number), None)
    if owner.system == CANVAS and person is not None and person.group and _is_of_group(owner, person):
        group = [each for each in roster.people if each.group == person.group]
        return [matched[each.number] for each in group if each.number in matched] or why[person.number]
    if person is not None and (owner.system == CANVAS or _same(owner.name, person.name)):
        return [matched[person.number]] if person.number in matched else why[person.number]
    group = [each for each in roster.people if each.group and folded(each.group) == folded(owner.name)]
    if group and owner.system == MOODLE:
        members = [matched[each.number] for each in group if each.number in matched]
        return members or f"nobody of the group {owner.name} is on the roster"
    if person is not None:
        return (
            f"number {owner.number} is {person.name} in the worksheet, and the folder says {owner.name}: "
            "it may be the worksheet of another assignment"
        )
    return f"number {owner.number} is not in the worksheet"


def _is_of_group(owner: Owner, person: Person) -> bool:
    """Whether this is Canvas's name for a group's submission: the group, and the number of one member."""
    return _letters(owner.name) == _letters(person.group) != _letters(person.name)


def is_someone_elses(owner: Owner, student: Student) -> bool:
    """Whether Canvas uses another name than the student's, as for a group's submission."""
    here = {_letters(f"{student.last_name}{student.first_name}"), _letters(f"{student.first_name}{student.last_name}")}
    named = student.first_name and student.last_name
    return bool(owner.system == CANVAS and owner.name and named and _letters(owner.name) not in here)


def _same(there: str, here: str) -> bool:
    """Whether a folder's name is this person's; a group's name may come before it (Moodle before 4.1)."""
    return folded(there) == folded(here) or folded(there.partition("-")[2]) == folded(here)


def _by_key(roster: Roster) -> defaultdict[str, list[Student]]:
    """Keys that only one student has -> that student."""
    by_key = defaultdict(list)
    for student in roster.students:
        theirs = {student.id.casefold(), student.email.casefold()}
        if roster.system == CANVAS:
            theirs.add(student.lms_user_id.casefold())
        for key in theirs - {""}:
            by_key[key].append(student)
    return by_key


def _without_doubles(found: dict[str, Student], why: dict[str, str]) -> tuple[dict[str, Student], dict[str, str]]:
    """Two people of the platform cannot be one student."""
    times = Counter(student.id for student in found.values())
    for number, student in list(found.items()):
        if times[student.id] > 1:
            why[number] = f"{times[student.id]} people of the table fit {student.id}"
            del found[number]
    return found, why


def gone(
    roster: Roster, register: collected.Register, owners: Sequence[Owner], taken: Collection[str]
) -> list[Student]:
    """The students with work collected earlier from the same system, of whom a download has nothing.

    owners: of the download's files. taken: the students whose work was found in it.
    """
    students = {student.id: student for student in roster.students}
    systems = {owner.system for owner in owners}
    here = {(owner.system, known) for owner in owners for known in (owner.number, owner.name) if known}
    found = []
    for student, each in sorted(register.students.items()):
        is_here = student in taken or bool(here & {(each.system, each.number), (each.system, each.name)})
        if each.system in systems and not is_here:
            found.append(students.get(student, Student(student)))
    return found


def numbers_of(found: Mapping[str, Student]) -> dict[str, str]:
    """Student's id -> the platform's number."""
    return {student.id: number for number, student in found.items()}
