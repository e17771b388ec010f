"""A teacher's clicks in nbgrader's formgrader, in real JupyterLab: grade, look, correct, give feedback."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_server import PATIENCE, ROOT, serving
from playwright.sync_api import Browser, FrameLocator, Page, expect

sys.path.append(str(ROOT / "tests" / "grading"))  # where the sample class lives
import sample_class
from sample_class import ASSIGNMENT

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course with two submissions that wait to be graded."""
    folder = tmp_path_factory.mktemp("formgrader") / "course"
    sample_class.lay_out(folder)
    mathjax = Path("book", "assets", "vendor", "mathjax")
    shutil.copytree(ROOT / mathjax, folder / mathjax)
    answers = sample_class.answers()
    for student in ("no-scaling", "perfect"):
        sample_class.submit(folder, student, answers[student])
    released = sample_class.nbgrader(folder, "generate_assignment", ASSIGNMENT.id)
    assert released.returncode == 0, released.stdout
    return folder


@pytest.fixture(scope="module")
def page(course: Path, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """JupyterLab, started in the course's folder as `make serve` starts it."""
    home = tmp_path_factory.mktemp("lab")
    with serving(home, course) as (address, token):
        opened = browser.new_page(viewport={"width": 1400, "height": 1000})
        opened.goto(f"{address}/lab?token={token}", timeout=PATIENCE)
        yield opened
        opened.close()


def grade(formgrader: FrameLocator, student: str) -> None:
    """Press the lightning of one student's row and close the report of success."""
    formgrader.locator("tr", has_text=student).locator("td.autograde a").click()
    report = formgrader.locator(".modal:visible")
    done = f"Successfully autograded '{ASSIGNMENT.id}' for student '{student}'"
    expect(report).to_contain_text(done, timeout=PATIENCE)
    report.get_by_role("button", name="OK").click()
    expect(report).to_have_count(0)


def test_a_teacher_grades_corrects_and_gives_feedback_by_clicks_alone(page: Page, course: Path) -> None:
    requested, failed = [], []
    page.on("request", lambda request: requested.append(request.url))
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.get_by_role("menuitem", name="Nbgrader").click(timeout=PATIENCE)
    page.get_by_role("menuitem", name="Formgrader", exact=True).click()
    formgrader = page.frame_locator("#jp-main-dock-panel iframe")

    row = formgrader.locator("tbody tr", has_text=ASSIGNMENT.id)
    expect(row.locator("td.num-submissions")).to_have_text("2", timeout=PATIENCE)
    row.locator("td.num-submissions a").click()

    grade(formgrader, "no-scaling")
    grade(formgrader, "perfect")
    expect(formgrader.locator("tr", has_text="no-scaling")).to_contain_text("14 / 30")
    expect(formgrader.locator("tr", has_text="perfect")).to_contain_text("30 / 30")

    formgrader.locator("tr", has_text="no-scaling").locator("td.student-name a").click()
    formgrader.locator("tbody tr a", has_text=ASSIGNMENT.notebook).click()
    shown = formgrader.locator("#notebook-container").first
    expect(shown).to_contain_text("division by the square root of d_k is missing", timeout=PATIENCE)
    expect(shown.locator("mjx-container").nth(4)).to_be_visible(timeout=PATIENCE)
    assert [url for url in requested if not url.startswith(("http://127.0.0.1:", "data:", "blob:"))] == []
    assert failed == []

    place = [exercise.id for exercise in ASSIGNMENT.exercises].index("attention-weights")
    points = formgrader.locator("input.score").nth(place)
    expect(points).to_have_attribute("placeholder", "0")
    points.fill("5.5")
    # The page's sign of saving appears when it begins to save: only the server's answer says that it is done.
    with page.expect_response(lambda answer: answer.request.method == "PUT" and "/api/grade/" in answer.url) as saved:
        points.press("Tab")
    assert saved.value.ok
    assert sample_class.scores(course, "no-scaling")["attention-weights"] == 5.5

    page.locator("#jp-main-dock-panel iframe").evaluate(
        "(frame, path) => { frame.src = path }", f"/formgrader/manage_submissions/{ASSIGNMENT.id}"
    )
    row = formgrader.locator("tr", has_text="no-scaling")
    expect(row).to_contain_text("19.5 / 30", timeout=PATIENCE)
    row.locator("td.generate-feedback a").click()
    expect(formgrader.locator(".modal:visible")).to_contain_text("Successfully generated feedback", timeout=PATIENCE)
    feedback = course / "classroom" / "feedback" / "no-scaling" / ASSIGNMENT.id / f"{ASSIGNMENT.notebook}.html"
    assert "A teacher set these points by hand." in feedback.read_text(encoding="utf-8")
