"""Chooses the file of a submission that is graded: the notebook, whatever its name and whatever archive it is in."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode

from autograder.intake import unpack, untrusted_files
from autograder.intake.rebuild import NO_FILE, Rebuilt
from autograder.intake.untrusted_files import Listing
from autograder.policy import receipts

MOST_READ = 10  # files of one kind that are read; those with the likeliest names come first
NOT_WORK = (receipts.STAMP, receipts.ASIDE, "submission_secret.txt")
# What never holds a notebook is not read in search of one; a learner's pictures and data are often large.
_OTHER = re.compile(
    r"\.(png|jpe?g|gif|svg|webp|mp[34]|mov|wav|pdf|csv|tsv|npy|npz|pt|pth|ckpt|safetensors|pkl|parquet|db|so|exe|pyc)$"
)
MOST_BYTES = 4 * untrusted_files.MAX_BYTES  # that are read of one submission in search of its notebook
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+(\w+)(?:\.[\w.]*)?[ \t]+import\b|import[ \t]+([^\n#;]+))", re.MULTILINE)
_MODULE = re.compile(r"(?:^|,)\s*(\w+)")


@dataclass(frozen=True)
class Read:
    """A file that was read: its name in the submission, the distance of the name from the expected one, and its
    content."""

    name: str
    rank: int
    rebuilt: Rebuilt
    digest: str


@dataclass(frozen=True)
class Chosen:
    """The file that is graded. reasons: sentences for its author. digest: of the file, "" for none. beside: names of
    files next to it in the same archive."""

    rebuilt: Rebuilt
    reasons: list[str]
    digest: str = ""
    beside: list[str] = field(default_factory=list)


def choose(there: Listing, folder: Path, name: str, rebuild: Callable[[bytes | None], Rebuilt]) -> Chosen:
    """The file that is graded: among the files with answers, the one with the nearest name.

    Notebooks are read first, then other files, then hidden ones, until there is an answer. name: the expected one.
    Raises OSError if there are files and none can be read: they changed meanwhile, or this user may not read them.
    """
    tiers, read, beside, closed, left = candidates(there, folder, name), [], [], None, MOST_BYTES
    for tier, paths in enumerate(tiers):
        for path in paths[:MOST_READ]:
            try:
                data = untrusted_files.content_of(path)
            except (untrusted_files.NoPlainFile, PermissionError) as error:  # gone since we looked, or closed to us
                closed = closed or error
                continue
            left -= len(data)
            if left < 0:
                break
            found, others = _read(path.relative_to(folder).as_posix(), data, name, rebuild, must_belong=tier > 0)
            read, beside = read + found, beside + others
        if any(each.rebuilt.answered for each in read):
            break
    if not read and (closed or there.closed):
        raise closed or PermissionError(errno.EACCES, "Permission denied", str(there.closed[0]))
    if not read:
        return Chosen(rebuild(None), [_what_is_there(there, folder), *_passed_over(there, folder)])
    best = max(read, key=lambda each: (bool(each.rebuilt.answered), -each.rank, len(each.rebuilt.answered)))
    others = [each.name for each in read if each is not best]
    others += [path.relative_to(folder).as_posix() for path in tiers[0][MOST_READ:]]
    reasons = [*about_names(best.name, others, name), *best.rebuilt.reasons]
    reasons += [] if best.rebuilt.answered else _passed_over(there, folder)
    return Chosen(best.rebuilt, reasons, best.digest, beside)


def worth_reading(there: Listing, folder: Path, name: str) -> set[Path]:
    """The files whose content may be read to find the notebook; of all others only the names count."""
    return {path for paths in candidates(there, folder, name) for path in paths[:MOST_READ]}


def candidates(there: Listing, folder: Path, name: str) -> tuple[list[Path], list[Path], list[Path]]:
    """The files to read, the best match first: notebooks by name, other files, hidden notebooks."""

    def likely(paths: Iterable[Path]) -> list[Path]:
        return sorted(paths, key=lambda path: (_rank(path.relative_to(folder).as_posix(), name), str(path)))

    notebooks = [path for path in there.files if is_notebook(path.name)]
    others = [path for path in there.files if not is_notebook(path.name) and _may_hold_a_notebook(path.name)]
    hidden = [path for path in there.hidden if is_notebook(path.name) and not path.name.startswith("._")]
    return likely(notebooks), likely(others), likely(hidden)


def is_notebook(name: str) -> bool:
    """Whether a file has the name of a notebook, possibly changed by a browser or a platform."""
    return "ipynb" in folded(name.rpartition("/")[2])


def folded(name: str) -> str:
    """The letters and digits of a name, case-folded and normalized."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).casefold()))


def about_names(graded: str, others: Sequence[str], name: str) -> list[str]:
    """The remark about the name of the graded file; none for a name that a platform made of the expected one."""
    reasons = []
    if folded(name.removesuffix(".ipynb")) not in folded(graded.rpartition("/")[2]):
        reasons.append(f"The notebook should be named `{name}`; {shown(graded)} was graded.")
    elif others and graded != name:
        reasons.append(f"{shown(graded)} was graded.")
    if others:
        reasons.append(f"These notebooks were not graded: {listed(others)}.")
    return reasons


def about_helpers(notebook: NotebookNode, names: Iterable[str]) -> list[str]:
    """A sentence for each module next to the notebook that it imports and that is not used.

    names: of the other files, with their folders.
    """
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    lines = [line for source in code for line in _IMPORT.findall(source)]
    imported = {name for first, several in lines for name in ([first] if first else _MODULE.findall(several))}
    reasons = []
    for name in names:
        *folders, last = name.split("/")
        modules = {last.removesuffix(".py"), *folders} & imported if last.endswith(".py") else set()
        written = any(re.search(rf"^%%(?:write)?file\b.*\b{re.escape(last)}[ \t]*$", source, re.M) for source in code)
        if not written and any(not _is_installed(module) for module in modules):
            reasons.append(
                f"{shown(name)} was handed in next to the notebook; this assignment takes only the notebook, so it was "
                "not used. Copy its functions into a cell."
            )
    return reasons[:5]


def digest_with(digest: str, files: Iterable[Path]) -> str:
    """The digest of a submission: of its notebook and of the other files that count, if any."""
    parts = [digest]
    for path in sorted(files):
        try:
            parts.append(f"{path.name!a} {hashlib.sha256(untrusted_files.content_of(path)).hexdigest()}")
        except untrusted_files.NoPlainFile:
            continue
    return hashlib.sha256("\n".join(parts).encode()).hexdigest() if len(parts) > 1 else digest


def listed(names: Sequence[str]) -> str:
    """File names for a note, the first five of them."""
    return ", ".join(map(shown, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def shown(name: str) -> str:
    """A file name for a note: printable, short, without markup."""
    kept = "".join(letter if letter.isprintable() and letter not in "`<>&" else "?" for letter in name[:80])
    return f"`{kept}`"


def _read(
    name: str, data: bytes, right: str, rebuild: Callable[[bytes | None], Rebuilt], must_belong: bool
) -> tuple[list[Read], list[str]]:
    """Read a file, or the files in an archive; also returns the names of modules in it.

    must_belong: whether a file counts only if it has cells of this assignment.
    """
    inside = list(unpack.members(name, data)) if unpack.is_archive(data) else [(name, data)]
    modules = [inner for inner, _ in inside if inner.endswith(".py") and inner != name]
    inside = [each for each in inside if _may_hold_a_notebook(each[0]) or is_notebook(each[0])]
    inside.sort(key=lambda each: (not is_notebook(each[0]), _rank(each[0], right), each[0]))
    found = []
    for inner, content in inside[:MOST_READ]:
        rebuilt = rebuild(content)
        if rebuilt.belongs or (is_notebook(inner.removeprefix(name)) if inner != name else not must_belong):
            found.append(Read(inner, _rank(inner, right), rebuilt, hashlib.sha256(content).hexdigest()))
    if not found and not must_belong:
        found = [Read(name, _rank(name, right), rebuild(data), hashlib.sha256(data).hexdigest())]
    return found, modules


def _rank(path: str, name: str) -> int:
    """The distance of a file's name from the expected one."""
    place, _, last = path.rpartition("/")
    if last == name:
        return 1 if place else 0
    return 2 if folded(name.removesuffix(".ipynb")) in folded(last) else 3


def _may_hold_a_notebook(name: str) -> bool:
    return name not in NOT_WORK and not _OTHER.search(name.lower().rstrip())


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _what_is_there(there: Listing, folder: Path) -> str:
    names = [path.relative_to(folder).as_posix() for path in there.files]
    names = [name for name in names if name not in NOT_WORK]
    return NO_FILE + (f" There is {listed(names)}." if names else " The folder was empty.")


def _passed_over(there: Listing, folder: Path) -> list[str]:
    """The files that were not read in a folder without an answer."""
    odd = {path.relative_to(folder).as_posix(): kind for path, kind in there.odd.items()}
    reasons = [f"{shown(name)} is {kind}, which cannot be graded." for name, kind in odd.items() if is_notebook(name)]
    closed = [path.relative_to(folder).as_posix() for path in there.closed]
    if closed:
        reasons.append(f"These folders may not be opened: {listed(closed)}.")
    if not there.is_whole:
        reasons.append("Folders in folders in folders, or too many files: not all of them were looked at.")
    return reasons[:5]
