"""The report names those who share what neither the task nor the usual answers explain, and nobody else."""

import accessibility_tree
import pytest

from autograder import catalogue
from autograder.__main__ import main
from autograder.course import CourseError
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.reports import similar

UNUSUAL = """def attend(W, V):
    # every query's own mixture
    pieces = []
    for batch_number in range(W.shape[0]):
        rows = []
        for query_number in range(W.shape[1]):
            total = torch.zeros(V.shape[-1], dtype=V.dtype)
            for key_number in range(W.shape[2]):
                total = total + W[batch_number, query_number, key_number] * V[batch_number, key_number]
            rows.append(total)
        pieces.append(torch.stack(rows))
    return torch.stack(pieces)
"""
RENAMED = UNUSUAL.replace("pieces", "out").replace("rows", "lines").replace("every query's", "<b>my</b>")


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Right answers in several styles, each known mistake, blanks, and one unusual answer handed in twice."""
    sample_class.write_course(tmp_path)
    solution = sample_class.solved()
    for number, known in enumerate(catalogue.find("self-attention").mistakes):
        sample_class.submit(tmp_path, f"mistaken-{number}", {**solution, "self-attention": known.source})
    sample_class.submit(tmp_path, "ada", {**solution, "attend": UNUSUAL})
    sample_class.submit(tmp_path, "bob", {"attend": RENAMED})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(course, share: float = similar.SHARE) -> list[similar.Pair]:
    works = similar.read_works(course, ASSIGNMENT)
    return similar.pairs(works, similar.known_code(course, ASSIGNMENT), share)


def test_an_unusual_answer_in_two_submissions_is_found_under_other_names(course):
    (pair,) = found(course)
    assert pair.students == ("ada", "bob")
    assert pair.share == 1
    assert set(pair.passages) == {"attend"}


def test_what_the_catalogue_explains_is_similar_to_nothing(course):
    (pair,) = found(course, share=0.01)
    assert pair.students == ("ada", "bob")


def test_the_same_pair_would_be_many_if_known_answers_counted(course):
    works = similar.read_works(course, ASSIGNMENT)
    assert len(similar.pairs(works, [])) > 20


def test_own_cells_are_compared_too(course):
    work = {similar.OWN: UNUSUAL}
    (pair,) = similar.pairs({"ada": work, "bob": {**work, "attend": "def attend(W, V):\n    return W @ V"}}, [])
    assert set(pair.passages) == {similar.OWN}


def test_a_line_in_common_says_nothing():
    one = "weights = torch.softmax(scores / math.sqrt(d_k), dim=-1)\n"
    assert similar.pairs({"ada": {"attend": one}, "bob": {"attend": one}}, []) == []


def test_blank_submissions_are_not_compared(course):
    assert "blank" not in similar.read_works(course, ASSIGNMENT)


def test_the_page_names_the_pair_marks_the_code_and_shows_it_as_text(course, capsys):
    assert main(["similar", ASSIGNMENT.id]) == 0
    path = course / "classroom" / "similar" / f"{ASSIGNMENT.id}.html"
    assert str(path) in capsys.readouterr().out
    page = path.read_text(encoding="utf-8")
    assert "ada and bob" in page
    assert "<mark>def attend(W, V):" in page
    assert "<b>my</b>" not in page and "&lt;b&gt;my&lt;/b&gt;" in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_class_without_a_similar_pair_is_told_so(course):
    assert main(["similar", ASSIGNMENT.id, "--share=1", "--output=none.html"]) == 0
    works = similar.read_works(course, ASSIGNMENT)
    assert "No two share" in similar.page(ASSIGNMENT, works, [], 0.3)


@pytest.mark.parametrize("share", ["0", "1.5", "many"])
def test_a_share_is_a_fraction(share):
    with pytest.raises(SystemExit):
        main(["similar", ASSIGNMENT.id, f"--share={share}"])


def test_nothing_handed_in_is_said(tmp_path):
    sample_class.lay_out(tmp_path)
    with pytest.raises(CourseError, match="Nobody has handed in"):
        similar.read_works(tmp_path, ASSIGNMENT)


@pytest.mark.browser
def test_by_ear_nothing_of_the_page_of_pairs_is_missed(course, browser):
    works = similar.read_works(course, ASSIGNMENT)
    page = browser.new_page()
    for pairs in (found(course), []):
        page.set_content(similar.page(ASSIGNMENT, works, pairs, 0.3))
        page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
        assert accessibility_tree.faults(page) == []
    page.close()
