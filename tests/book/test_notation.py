"""Every symbol in the formulas of chapters 12 to 16, and pages next to them, is explained on the page of notation."""

import re
from pathlib import Path

import pytest

BOOK = Path(__file__).resolve().parents[2] / "book"
PAGES = [*(path.stem for path in sorted(BOOK.glob("1[2-6]_*.md"))), "ladder", "today"]
GREEK = (
    "alpha beta gamma delta varepsilon theta mu pi sigma tau varphi omega ell Delta".split()
)  # commands that are symbols; all others are functions, brackets and signs
WORDS = re.compile(r"\\(?:text|operatorname|mathrm|mathsf|begin|end)\s*\{[^}]*\}|\\mathsf\s*\w|_\\text\{[^}]*\}")


def formulas(text: str) -> list[str]:
    """Return the formulas of a page, inline and displayed, without those in code."""
    text = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`\n]+`", "", text)
    displayed = re.findall(r"\$\$(.+?)\$\$", text, re.DOTALL)
    return displayed + re.findall(r"(?<!\\)\$([^$]+)\$", re.sub(r"\$\$.+?\$\$", "", text, flags=re.DOTALL))


def symbols(formula: str) -> set[str]:
    """Return the letters and Greek letters of a formula."""
    found = re.findall(r"\\([A-Za-z]+)|([A-Za-z])", WORDS.sub(" ", formula))
    return {letter or command for command, letter in found if letter or command in GREEK}


def rows(text: str) -> list[list[str]]:
    """Return the cells of the two tables of symbols."""
    part = text.partition("(notation-colors)=")[0]
    return [line.strip("|").split(" | ") for line in part.splitlines() if line.startswith("| $")]


def explained(text: str, page: str) -> set[str]:
    """Return the symbols that the page of notation explains for a page: everywhere, or there."""
    name = page[:2] if page[0].isdigit() else page
    found = set()
    for cells in rows(text):
        said = re.search(r"\((?:chapters? ([\d, ]+)|\{doc\}`(\w+)`)\)\s*$", cells[0])
        if said is None or name in (said[1] or said[2]):
            found |= {symbol for formula in formulas(cells[0]) for symbol in symbols(formula)}
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_symbol_of_a_page_is_explained_on_the_page_of_notation(page):
    used = set().union(*(symbols(formula) for formula in formulas((BOOK / f"{page}.md").read_text(encoding="utf-8"))))
    known = explained((BOOK / "notation.md").read_text(encoding="utf-8"), page)
    assert sorted(used - known) == []


def test_symbols_are_found_in_formulas_and_not_in_words_or_code():
    text = "`$q$` and $W_O\\,\\text{rows}$, \\$5\n\n$$\n\\alpha^{(h)} = \\ln x^{\\mathsf{T}}\n$$\n```\n$z$\n```\n"
    assert set().union(*map(symbols, formulas(text))) == {"W", "O", "alpha", "h", "x"}


def test_a_symbol_of_one_chapter_is_not_explained_for_another():
    text = "| $B$ | | batch |\n| $\\gamma$ (chapter 14) | | a gate |\n| $r$ ({doc}`today`) | | a rank |\n"
    assert explained(text, "14_vision") == {"B", "gamma"} and explained(text, "today") == {"B", "r"}
