"""A teacher's clicks in nbgrader's formgrader, in real JupyterLab: grade, look, correct, give feedback."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_server import PATIENCE, ROOT, serving
from playwright.sync_api import Browser, FrameLocator, Page, expect

from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT

STRANGERS = (  # what `test_strangers_pages` tries one by one, here on nbgrader's own page
    'mine: <img src=x onerror="window.struck=1"> <script>window.struck=1</script> '
    '$\\mmlToken{mi}[href="javascript:window.struck=1"]{click}$ $\\href{javascript:window.struck=1}{click}$'
)

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, released) -> Path:
    """A course with two submissions that wait to be graded."""
    folder = tmp_path_factory.mktemp("formgrader") / "course"
    shutil.copytree(released(), folder)
    mathjax = Path("book", "assets", "vendor", "mathjax")
    shutil.copytree(ROOT / mathjax, folder / mathjax)
    answers = sample_class.answers()
    for student in ("no-scaling", "perfect"):
        path = sample_class.submit(folder, student, answers[student])
        notebook = json.loads(path.read_text(encoding="utf-8"))
        notebook["cells"].append({"cell_type": "markdown", "id": f"own-{student}", "metadata": {}, "source": STRANGERS})
        path.write_text(json.dumps(notebook), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def lab(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """JupyterLab, started in the course's folder as `make serve` starts it: its address and its token."""
    with serving(tmp_path_factory.mktemp("lab"), course) as running:
        yield running


@pytest.fixture
def page(lab: tuple[str, str], browser: Browser) -> Iterator[Page]:
    address, token = lab
    opened = browser.new_page(viewport={"width": 1400, "height": 1000})
    opened.goto(f"{address}/lab?token={token}", timeout=PATIENCE)
    yield opened
    opened.close()


def test_the_address_of_formgrader_that_make_serve_prints_logs_in_to_all_of_jupyter(
    lab: tuple[str, str], browser: Browser
) -> None:
    address, token = lab
    printed = re.search(r"^.*formgrader +\$\$at(/\S+token=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    fresh = browser.new_context()
    opened = fresh.new_page()
    opened.goto(f"{address}{printed[1]}{token}", timeout=PATIENCE)
    expect(opened.locator("tbody tr", has_text=ASSIGNMENT.id)).to_be_visible(timeout=PATIENCE)
    asked = "fetch('/files/book/assets/vendor/mathjax/tex-chtml.js').then(reply => [reply.status, reply.redirected])"
    assert opened.evaluate(asked) == [200, False]
    fresh.close()


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
    expect(formgrader.locator("tr", has_text="no-scaling")).to_contain_text("14.86 / 30")
    expect(formgrader.locator("tr", has_text="perfect")).to_contain_text("30 / 30")

    formgrader.locator("tr", has_text="no-scaling").locator("td.student-name a").click()
    formgrader.locator("tbody tr a", has_text=ASSIGNMENT.notebook).click()
    shown = formgrader.locator("#notebook-container").first
    expect(shown).to_contain_text("division by the square root of d_k is missing", timeout=PATIENCE)
    expect(shown.locator("mjx-container").nth(4)).to_be_visible(timeout=PATIENCE)
    mine = shown.locator(".text_cell", has_text="mine:")
    expect(mine.locator("mjx-container").first).to_be_visible(timeout=PATIENCE)
    assert mine.locator("a, script, [onerror]").count() == 0
    assert mine.evaluate("() => window.struck") is None
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
    expect(row).to_contain_text("20.36 / 30", timeout=PATIENCE)
    row.locator("td.generate-feedback a").click()
    expect(formgrader.locator(".modal:visible")).to_contain_text("Successfully generated feedback", timeout=PATIENCE)
    feedback = course / "classroom" / "feedback" / "no-scaling" / ASSIGNMENT.id / f"{ASSIGNMENT.notebook}.html"
    assert "A teacher set these points by hand." in feedback.read_text(encoding="utf-8")
