"""What imports what: no circles, and nothing of the grader's inside a sandbox knows what lies outside."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("autograder", "transformer_ref")


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


FILES = {name_of(path): path for package in PACKAGES for path in (ROOT / package).rglob("*.py")}


def imported(name: str) -> set[str]:
    """Our modules that a module imports, inside its functions too. A package counts where only it is named."""
    found = set()
    for node in ast.walk(ast.parse(FILES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports from {node.module} relatively: write the whole name"
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (parts & FILES.keys()) if parts <= FILES.keys() else {*parts, node.module}
    return (found & FILES.keys()) - {name}


IMPORTS = {name: imported(name) for name in FILES}


def circle(graph: dict[str, set[str]]) -> list[str]:
    """A cycle of names, or nothing."""
    done: set[str] = set()

    def walk(name: str, road: list[str]) -> list[str]:
        if name in road:
            return [*road[road.index(name) :], name]
        if name not in done:
            for following in sorted(graph[name]):
                if found := walk(following, [*road, name]):
                    return found
            done.add(name)
        return []

    return next(filter(None, (walk(name, []) for name in sorted(graph))), [])


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c", "b"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_no_module_imports_itself_by_way_of_others():
    assert circle(IMPORTS) == []


@pytest.mark.parametrize("name", sorted(name for name in FILES if name.startswith("autograder.inside")))
def test_what_a_submission_sees_imports_nothing_of_ours_from_outside(name):
    assert all(other.startswith("autograder.inside.") for other in IMPORTS[name])
