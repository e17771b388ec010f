"""Keep a result as the recorded one, whose tables the book and README show."""

import re
from pathlib import Path

from transformer_ref.benchmark.result import place_of, read, write
from transformer_ref.benchmark.tables import full_table, short_table

RECORDED = Path(__file__).parent / "recorded.json"
BEGIN, END = "<!-- benchmark: begin -->", "<!-- benchmark: end -->"
SHORT_BEGIN, SHORT_END = "<!-- benchmark in short: begin -->", "<!-- benchmark in short: end -->"


def record(result: Path, page: Path, readme: Path) -> None:
    """Add a result to the recorded one, and write its tables between the marks of the page and of README.

    An entry replaces the recorded one of the same device and instruction set; the others stay.
    Raises FileNotFoundError where there is no result yet, ValueError where a file lacks the marks.
    """
    if not result.is_file():
        raise FileNotFoundError(f"benchmark: expected the file {result}, got nothing; run the benchmark first")
    for name, file, begin, end in (("page", page, BEGIN, END), ("readme", readme, SHORT_BEGIN, SHORT_END)):
        text = file.read_text(encoding="utf-8")
        if begin not in text or end not in text:
            raise ValueError(f"{name}: expected the marks {begin} and {end} in {file}, got neither or one")
    new = read(result)
    places = {place_of(entry) for entry in new}
    write(RECORDED, [*(entry for entry in read(RECORDED) if place_of(entry) not in places), *new])
    for file in (page, readme):
        file.write_text(with_table(file.read_text(encoding="utf-8")), encoding="utf-8")


def with_table(page: str) -> str:
    """Return the page with the tables of the recorded result between its marks."""
    entries = read(RECORDED)
    for begin, end, table in ((BEGIN, END, full_table), (SHORT_BEGIN, SHORT_END, short_table)):
        if begin in page:
            shown = table(entries) if entries else "No result is recorded yet: `make bench` measures this machine."
            page = re.sub(f"{begin}.*{end}", lambda _, text=f"{begin}\n{shown}\n{end}": text, page, flags=re.DOTALL)
    return page
