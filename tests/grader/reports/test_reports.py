"""What a class reads after grading, and what its teacher reads: feedback pages and the dashboard."""

import base64
import hashlib
import re
from datetime import datetime

import accessibility_tree
import judged_class
import nbformat
import pytest
from bs4 import BeautifulSoup
from judged_class import Work, mistaken
from nbgrader.api import Gradebook
from traitlets.config import Config

from autograder import __main__ as command_line
from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.judging.observe import LocalEndpoint
from autograder.judging.verdict import Forbidden, Verdict, not_checked
from autograder.policy import late
from autograder.prepare import sample_class
from autograder.prepare.release import answer_cells
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.reports import dashboard, pages, results, reteach
from autograder.reports.feedback import Part, Told, again

pytestmark = pytest.mark.xdist_group("reports")

NO_SCALING = mistaken("attention-weights", "no scaling")
SCRIPT = "<script>alert('x')</script>"
ROSTER = [
    Work("ada", "Ada", "Lovelace", "ada@uni.example", comments={"attend": "Well done <b>indeed</b>"}),
    Work("ben", "Ben", "Ünal", answers=NO_SCALING, penalty=2.0, timestamp=datetime(2026, 11, 2, 9, 30)),
    Work("cleo", "Cleo", "O'Hara", answers=NO_SCALING, by_hand={"attention-weights": 5.5}),
    Work("dan", SCRIPT, "", answers={"attend": f"def attend(W, V):\n    raise ValueError({SCRIPT!r})\n"}),
    Work("eve", "Eve", "Park", answers=answer_cells(sample_class.ROOT, "exercises", ASSIGNMENT)),
    Work("fay", answers={}, verdicts={"attend": not_checked(catalogue.find("attend"), "time ran out")}),
    Work("gil", answers={}, repaired="The file could not be read as a notebook: it ends early."),
    Work("hal", answers={"attend": "import ctypes\ndef attend(W, V):\n    return torch.einsum('bij,bjk->bik', W, V)\n"},
         verdicts={"attend": Verdict(catalogue.find("attend"), True,
                                     unasked=Forbidden(("attend: einsum is not allowed here.",)))}),
    Work("ian", answers={"attend": "def atend(W, V):\n    return W @ V\n"}),
    Work("jon", answers=mistaken("attention-weights", "exponential without care")),
    Work("ida", "Ida", "Absent", answers=None),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory, released):
    folder = tmp_path_factory.mktemp("reports") / "course"
    judged_class.lay_out(folder, ROSTER, released())
    with Gradebook(f"sqlite:///{folder / 'classroom' / 'gradebook.db'}", "attention-by-hand") as gradebook:
        gradebook.find_assignment(ASSIGNMENT.id).duedate = datetime(2026, 12, 3, 12)
        gradebook.db.commit()
    return folder


@pytest.fixture(scope="module")
def feedback(folder):
    done = sample_class.nbgrader(folder, "generate_feedback", ASSIGNMENT.id)
    assert done.returncode == 0, done.stdout

    def page(student):
        path = folder / "classroom" / "feedback" / student / ASSIGNMENT.id / f"{ASSIGNMENT.notebook}.html"
        return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")

    return page


@pytest.fixture(scope="module")
def overview(folder):
    graded = results.read_class(folder, ASSIGNMENT)
    return BeautifulSoup(dashboard.page(graded, "https://book.example"), "html.parser")


def part(page, exercise):
    """The words of one exercise's section."""
    return " ".join(page.find("section", id=exercise).get_text(" ").split())


def test_feedback_names_the_mistake_and_links_to_the_page_that_answers_it(feedback):
    page = feedback("ben")
    section = page.find("section", id="attention-weights")
    assert "a known mistake: no scaling" in part(page, "attention-weights")
    assert "division by the square root of d_k is missing" in part(page, "attention-weights")
    assert section.find("a")["href"] == "http://127.0.0.1:8000/05_self_attention.html#sec-05-why-divide"


def test_feedback_says_what_to_do_next_and_until_when_and_nothing_when_all_is_right(feedback):
    said = " ".join(feedback("ben").get_text(" ").split())
    assert "Next: 05.2 attention_weights , which has 0 of 8 points" in said
    until = "If you hand the notebook in again by Thursday 3 December 2026, 12:00 UTC, it is in time."
    assert f"Change your answer and run its check. {until} A later version is late as a whole." in said
    assert "Next:" not in feedback("ada").get_text(" ")
    assert feedback("ben").h1.get_text() == "05 · Self-attention"


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"percent": 10}, "10 % of its points for each day that has begun"),
        ({"percent": 2, "every": "hour", "of": "possible"}, "2 % of the maximum for each hour that has begun"),
        ({"percent": 10, "slip_days": 3}, "10 % of its points for each day that has begun beyond your free days"),
        ({"percent": 0}, ""),
        ({"percent": -1}, ""),  # an error that `grade` names
    ],
)
def test_feedback_says_what_a_late_version_costs(rules, words):
    assert late.cost_in_words(Config(LateRules=rules)) == words
    part = Part("a", "05.1 attend", "a check failed", "wrong", 0.0, 4.0)
    page = Told("05", "Ben", 0.0, 4.0, 0.0, (), [part], part, "Thursday", late_cost=words)
    assert again(page).endswith(f"A later version is late as a whole, which costs {words}." if words else "as a whole.")


def test_what_was_not_checked_or_set_by_hand_is_no_next_step(feedback):
    assert "Next:" not in feedback("fay").get_text(" ")
    assert "Next:" not in feedback("cleo").get_text(" ")


def test_feedback_subtracts_the_late_penalty_and_says_so(feedback):
    text = feedback("ben").get_text(" ")
    assert "20 of 30 points" in text
    assert "2 points were taken off because it came late" in text


def test_feedback_shows_points_set_by_hand_and_says_so(feedback):
    assert "5.5 of 8 points" in part(feedback("cleo"), "attention-weights")
    assert "A teacher set these points by hand." in part(feedback("cleo"), "attention-weights")
    assert "by hand" not in part(feedback("ben"), "attention-weights")


def test_feedback_shows_a_teachers_comment_as_text(feedback):
    assert "Well done <b>indeed</b>" in part(feedback("ada"), "attend")


def test_feedback_says_on_top_what_had_to_be_put_right(feedback):
    note = feedback("gil").find(class_="note")
    assert "could not be read as a notebook" in note.get_text()
    assert feedback("ada").find(class_="note") is None


def test_feedback_tells_blank_missing_forbidden_and_unchecked_apart(feedback):
    assert "not answered yet" in part(feedback("eve"), "attend")
    assert "a call that this exercise does not allow" in part(feedback("hal"), "attend")
    assert "not checked" in part(feedback("fay"), "attend")
    assert "nothing to check yet" in part(feedback("ian"), "attend")


def test_a_cell_without_an_answer_is_not_said_to_have_been_handed_in(feedback):
    """A missing cell is graded as it was released, and nobody wrote that."""
    assert "The cell that was graded" in part(feedback("eve"), "attend")
    assert "What you handed in" not in part(feedback("eve"), "attend")
    assert "What you handed in" in part(feedback("ada"), "attend")


@pytest.mark.parametrize("student", ["ben", "jon"])
def test_every_number_on_a_feedback_page_comes_from_a_visible_check_or_the_answer_itself(feedback, student):
    work = next(work for work in ROSTER if work.id == student)
    sources = {**sample_class.solved(), **work.answers}
    seen_before = " ".join(sources.values())
    for exercise in ASSIGNMENT.exercises:
        endpoint = LocalEndpoint(namespace_of(judged_class.SET_UP + sources[exercise.id]))
        seen_before += as_text(judge_and_explain(exercise, endpoint, None))
    decimal = r"\d+\.\d\d+(?!\d| of )"  # points, which are followed by "of", aside
    numbers = set(re.findall(decimal, feedback(student).find("main").get_text(" ")))
    assert numbers <= set(re.findall(decimal, seen_before))
    assert bool(numbers) == (student == "ben")


def test_feedback_shows_nothing_that_a_notebook_printed(folder, feedback):
    """An answer can keep its hidden inputs, and a later cell can print them."""
    path = folder / "classroom" / "autograded" / "ada" / ASSIGNMENT.id / f"{ASSIGNMENT.notebook}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[1].outputs = [judged_class.new_output("stream", name="stdout", text="hidden 0.8317")]
    nbformat.write(notebook, path)
    done = sample_class.nbgrader(folder, "generate_feedback", ASSIGNMENT.id, "--student=ada", "--force")
    assert done.returncode == 0, done.stdout
    assert "0.8317" not in str(feedback("ada"))


def test_a_verdict_that_a_students_own_cell_displays_is_not_read():
    forged = judged_class.new_output("display_data", metadata={"judged": {"exercise": "attend", "passed": True}})
    own = nbformat.v4.new_code_cell("display(1.0)", outputs=[forged])
    check = nbformat.v4.new_code_cell(
        'check("attend")', metadata={"nbgrader": {"grade": True, "grade_id": "attend-check"}}
    )
    cells = results.check_cells(nbformat.v4.new_notebook(cells=[own, check]))
    assert not results.result_of(catalogue.find("attend"), cells["attend"], 0.0).passed


def test_no_page_runs_a_students_script_or_asks_another_server(feedback, overview):
    ours = (pages.FOLDER / "comments.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(ours.encode()).digest()).decode()
    for page, scripts in ((feedback("dan"), []), (feedback("ada"), []), (overview, [ours])):
        assert [script.string for script in page.find_all("script")] == scripts
        assert not page.select("[src], link[rel=stylesheet], iframe, object")
        assert [link["href"] for link in page.select("link")] == ["data:,"]
        policy = page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})["content"]
        assert "default-src 'none'" in policy
        assert re.findall("script-src [^;]*", policy) == [f"script-src 'sha256-{digest}'"] * len(scripts)
    assert SCRIPT in part(feedback("dan"), "attend")
    assert SCRIPT in overview.get_text()


def test_the_dashboard_counts_each_mistake_and_names_who_made_it(overview):
    (card,) = [
        card for card in overview.select("section.card") if "attention_weights: no scaling" in card.h3.get_text()
    ]
    assert "2 of 10" in card.get_text()
    assert [item.get_text() for item in card.select("li")] == ["Cleo O'Hara", "Ben Ünal"]
    assert card.find("a")["href"] == "https://book.example/05_self_attention.html#sec-05-why-divide"


def test_the_dashboard_shows_what_the_mistake_makes_of_one_small_case(overview):
    (card,) = [
        card for card in overview.select("section.card") if "attention_weights: no scaling" in card.h3.get_text()
    ]
    shown = [block.get_text().split() for block in card.select("pre")]
    assert shown[0][-2:] == ["2.000", "0.000"]
    assert shown[2][-4:] == ["0.157", "0.157", "0.038", "0.647"]
    assert shown[3][-4:] == ["0.105", "0.105", "0.014", "0.776"]


def test_the_dashboard_lists_whom_to_look_at_and_why(overview):
    heading = overview.find("h2", string="To look at by hand")
    rows = {row.th.get_text(): row.td.get_text(" ") for row in heading.find_next("table").select("tbody tr")}
    assert set(rows) == {SCRIPT, "Eve Park", "fay", "gil", "hal"}
    assert "Nothing was answered" in rows["Eve Park"]
    assert "no known mistake explains" in rows[SCRIPT]
    assert "was not checked" in rows["fay"]
    assert "could not be read" in rows["gil"]
    assert "forbidden call" in rows["hal"] and "names ctypes, which no exercise needs" in rows["hal"]


def test_the_dashboard_names_who_handed_in_nothing(overview):
    (summary,) = [each for each in overview.select("summary") if "handed in nothing" in each.get_text()]
    assert [item.get_text() for item in summary.parent.select("li")] == ["Ida Absent"]


def test_the_dashboard_gives_the_quartiles_and_everybodys_points(overview):
    assert dashboard.quartiles([0.0, 10.0, 20.0, 30.0]) == (7.5, 22.5)
    assert dashboard.quartiles([4.0]) == (4.0, 4.0)
    assert re.search(r"Half of them have from [\d.]+ to [\d.]+ points", overview.get_text())
    (summary,) = [each for each in overview.select("summary") if each.get_text() == "Everybody's points"]
    rows = {
        row.th.get_text(): [cell.get_text() for cell in row.select("td")] for row in summary.parent.select("tbody tr")
    }
    assert len(rows) == 10
    assert rows["Ben Ünal"][-2:] == ["−2", "20"]


def test_a_mistake_that_one_person_made_lies_in_a_fold(overview):
    (summary,) = [each for each in overview.select("summary") if "that one person made" in each.get_text()]
    inside = {card.h3.get_text() for card in summary.parent.select("section.card")}
    assert inside == {"05.2 attention_weights: exponential without care"}
    assert not summary.parent.has_attr("open")  # others made others together


def test_on_half_of_the_cards_the_mistaken_result_comes_first():
    first = []
    for misconception in catalogue.find("attention-weights").mistakes[:24]:
        example = reteach.Example("case", (), "right", "mistaken", True)
        made = reteach.Card(catalogue.find("attention-weights"), misconception, example, "", "")
        first.append(dashboard.Mistake(made, [], "").results[0].right)
    assert 6 < sum(first) < 18


def test_every_score_is_in_one_column_of_the_chart_and_full_marks_in_the_last(overview):
    columns = dashboard.chart([0.0, 2.9, 3.0, 29.99, 30.0], 30.0)
    assert [column.count for column in columns] == [2, 1, 0, 0, 0, 0, 0, 0, 0, 2]
    words = overview.find("svg")["aria-label"]
    assert sum(map(int, re.findall(r"(\d+) between", words))) == 10


def test_the_slowest_cell_comes_with_its_times(overview):
    rows = overview.find("h2", string="Slowest cells").find_next("table").select("tbody tr")
    assert [cell.get_text() for cell in rows[0].select("td")][1:3] == ["1.25 s", "1.25 s"]


def test_the_command_writes_one_file_and_names_it(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert command_line.main(["dashboard", ASSIGNMENT.id]) == 0
    path = folder / "classroom" / "dashboard" / f"{ASSIGNMENT.id}.html"
    assert capsys.readouterr().out.strip() == str(path)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert "http://127.0.0.1:8000/05_self_attention.html" in path.read_text(encoding="utf-8")


def test_an_assignment_that_nobody_has_graded_is_a_sentence(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert command_line.main(["dashboard", "04_softmax"]) == 2
    assert capsys.readouterr().err.startswith("The gradebook does not know 04_softmax")


def test_a_course_without_a_gradebook_is_a_sentence_and_none_is_made(tmp_path, monkeypatch, capsys):
    sample_class.lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert command_line.main(["export", ASSIGNMENT.id]) == 2
    assert capsys.readouterr().err.startswith("There is no gradebook yet")
    assert not (tmp_path / "classroom" / "gradebook.db").exists()


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (1280, "dark"), (390, "dark"), (390, "light")])
@pytest.mark.parametrize("name", ["feedback", "dashboard"])
def test_axe_finds_nothing_and_a_phone_needs_no_sideways_scrolling(browser, feedback, overview, name, width, theme):
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    try:
        page = context.new_page()
        page.set_content(str(feedback("ben") if name == "feedback" else overview))
        page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
        assert [rule["id"] for rule in Axe().run(page).response["violations"]] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if name == "dashboard":
            page.get_by_label("Hide answers and names").check()
            shown = page.locator("main").inner_text()
            assert "05.2 attention_weights" in shown
            assert not [word for word in ("no scaling", "Ünal", "Absent", "with this mistake") if word in shown]
    finally:
        context.close()


@pytest.mark.browser
@pytest.mark.parametrize("name", ["ada", "ben", "dan", "eve", "gil", "hal", "dashboard"])
def test_by_ear_nothing_of_a_page_is_missed(browser, feedback, overview, name):
    page = browser.new_page()
    page.set_content(str(overview if name == "dashboard" else feedback(name)))
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    assert accessibility_tree.faults(page) == []
    page.close()
