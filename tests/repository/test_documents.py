"""What the README and the other front pages claim: commands, files, links."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "book/measured.md"]
MADE_BY_COMMANDS = ("build/", "classroom/", ".venv", "my_transformer.py")
CHAPTER = "NN"  # stands for a number in the names CONTRIBUTING.md gives as patterns


def text(root: Path, document: str) -> str:
    return (root / document).read_text(encoding="utf-8")


def shell_blocks(root: Path, document: str) -> str:
    return "\n".join(re.findall(r"```bash\n(.*?)```", text(root, document), flags=re.DOTALL))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_make_command_named_is_a_target(root: Path, document: str) -> None:
    targets = set(re.findall(r"^([\w-]+):", text(root, "Makefile"), flags=re.MULTILINE))
    in_code = shell_blocks(root, document) + "\n".join(re.findall(r"`(make [^`]+)`", text(root, document)))
    named = set(re.findall(r"\bmake ([a-z][a-z-]*)", in_code))
    assert named or document == "SECURITY.md"
    assert named <= targets


@pytest.mark.parametrize("program", ["transformer_ref", "autograder"])
def test_every_command_of_the_package_named_is_one_it_has(root: Path, program: str) -> None:
    named = {command for document in DOCUMENTS for command in re.findall(rf"-m {program} (\w+)", text(root, document))}
    run = subprocess.run(
        [sys.executable, "-m", program, "--help"], cwd=root, capture_output=True, text=True, check=True
    )
    assert named <= set(re.findall(r"^ {2,}(\w+)", run.stdout, flags=re.MULTILINE))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_named_exists(root: Path, document: str) -> None:
    quoted = re.findall(r"`([\w./-]+/[\w./-]*|[\w-]+\.(?:py|md|txt|toml|yml|ipynb))`", text(root, document))
    named = {name for name in quoted if not name.startswith(MADE_BY_COMMANDS) and CHAPTER not in name}
    folders = [root, root / "exercises"]
    missing = {name for name in named if not any((folder / name).exists() for folder in folders)}
    assert missing == set()


def test_readme_s_first_screen_names_five_files_and_the_two_commands(root: Path) -> None:
    first_screen = text(root, "README.md").split("\n## ")[0]
    assert len(first_screen.splitlines()) <= 40
    assert re.findall(r"^(make \w+)", first_screen, flags=re.MULTILINE) == ["make course", "make test"]
    files = re.findall(r"^\d\. `([\w/.]+)`: ", first_screen, flags=re.MULTILINE)
    assert len(files) == 5
    assert [name for name in files if not (root / name).is_file()] == []


def test_readme_s_table_of_folders_is_the_repository_s(root: Path, repository_files: list[Path]) -> None:
    rows = re.findall(r"^\| `([\w_]+)/` \|", text(root, "README.md"), flags=re.MULTILINE)
    folders = {path.parts[0] for path in repository_files if len(path.parts) > 1}
    assert set(rows) == {name for name in folders if not name.startswith(".")}


def test_readme_is_read_in_minutes_and_pastes_no_output(root: Path) -> None:
    readme = text(root, "README.md")
    assert len(readme.splitlines()) <= 175
    assert set(re.findall(r"^```(\w*)\n", readme, flags=re.MULTILINE)) - {""} <= {"bash", "python", "bibtex"}


def test_the_book_shows_what_make_course_printed(root: Path) -> None:
    shown = re.search(
        r"<!-- make course: begin -->\n```text\n(.*?)\n```\n<!-- make course: end -->",
        text(root, "book/measured.md"),
        re.DOTALL,
    )
    assert shown is not None
    steps = {f"[{number}/6]" for number in re.findall(r"\b(\d)/6\b", text(root, "Makefile"))}
    assert len(steps) == 6 and steps <= set(re.findall(r"^\[\d/6\]", shown.group(1), flags=re.MULTILINE))


def test_readme_says_the_scores_that_the_book_records(root: Path) -> None:
    rows = re.findall(r"\| \d+ min \|([\d. ]*)\|([\d. ]*)\|", text(root, "book/measured.md"))
    older, newer = ([score.strip() for score in column if score.strip()] for column in zip(*rows, strict=True))
    readme = " ".join(text(root, "README.md").split())
    said = re.search(
        r"it reaches BLEU ([\d.]+) .*? ten minutes and ([\d.]+) .*? AVX2 only, ([\d.]+) and ([\d.]+)\. ", readme
    )
    assert [*newer, *older] == [*said.groups()]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_inside_the_repository_leads_somewhere(root: Path, document: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([\w-]+))?\)", text(root, document))
    broken = []
    for file, anchor in links:
        target = ((root / document).parent / file) if file else root / document
        headings = re.findall(
            r"^#+ (.+)$", target.read_text(encoding="utf-8") if target.is_file() else "", re.MULTILINE
        )
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        if not target.exists() or (anchor and anchor not in anchors):
            broken.append(f"{file}#{anchor}")
    assert broken == []


def test_readme_and_project_agree_on_python_and_version(root: Path) -> None:
    project = text(root, "pyproject.toml")
    oldest = re.search(r'requires-python = ">=([\d.]+)"', project)
    version = re.search(r'^version = "([\d.]+)"', project, flags=re.MULTILINE)
    assert oldest is not None and version is not None
    assert f"Python {oldest.group(1)} or newer" in text(root, "README.md")
    assert f"Version {version.group(1)}" in text(root, "README.md")
    assert f"## [{version.group(1)}]" in text(root, "CHANGELOG.md")


def test_the_citation_is_valid_and_of_this_version(root: Path) -> None:
    citation = yaml.safe_load(text(root, "CITATION.cff"))
    assert {"cff-version", "message", "title", "authors", "version"} <= citation.keys()
    assert citation["cff-version"] == "1.2.0" and citation["type"] in ("software", "dataset")
    assert all({"name"} == author.keys() or "family-names" in author for author in citation["authors"])
    project = text(root, "pyproject.toml")
    assert f'version = "{citation["version"]}"' in project
    assert f'license = "{" AND ".join(citation["license"])}"' in project


def test_the_changelog_has_one_unreleased_section_and_one_list_of_a_kind(root: Path) -> None:
    changelog = text(root, "CHANGELOG.md")
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    assert len([section for section in sections if "unreleased" in section.splitlines()[0].lower()]) == 1
    for section in sections:
        kinds = re.findall(r"^### (\w+)", section, flags=re.MULTILINE)
        assert len(kinds) == len(set(kinds)) and set(kinds) <= {"Added", "Changed", "Removed", "Fixed", "Security"}


def test_contributing_states_the_line_length_that_ruff_enforces(root: Path) -> None:
    enforced = re.search(r"^line-length = (\d+)", text(root, "pyproject.toml"), flags=re.MULTILINE)
    assert enforced is not None
    assert f"lines up to {enforced.group(1)} characters" in text(root, "CONTRIBUTING.md")


def test_the_license_holds_both_licenses(root: Path) -> None:
    license_text = text(root, "LICENSE")
    assert "Apache License" in license_text and "END OF TERMS AND CONDITIONS" in license_text
    assert "https://creativecommons.org/licenses/by/4.0/legalcode" in license_text
