"""A certificate: what a learner's notebooks pass now, on one page that anyone can verify."""

import json
import re
import shutil
from pathlib import Path

import accessibility_tree
import pytest
from axe_playwright_python.sync_playwright import Axe

from autograder import __main__ as command_line
from autograder.learn import certificate, print_page

ROOT = Path(__file__).resolve().parents[3]
CHAPTER = "05_self_attention"
RIGHT = {"attend": "def attend(W, V):\n    return W @ V\n", "attention-weights": "def attention_weights(Q, K): ...\n"}


def write(folder: Path, answers: dict[str, str]) -> Path:
    """A learner's folder: one chapter, with these answers in it."""
    path = folder / "mine" / CHAPTER / "self_attention.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    notebook = json.loads((ROOT / "exercises" / CHAPTER / path.name).read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = answers.get(cell["id"], cell["source"])
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return folder / "mine"


@pytest.fixture(scope="module")
def made(tmp_path_factory, request) -> Path:
    """A folder with a learner's notebooks and the certificate of them."""
    folder = tmp_path_factory.mktemp("certificate")
    mine = write(folder, RIGHT)
    arguments = ["--from", str(mine), "--name", "Ada <b>Lovelace</b>", "--output", str(folder / "page.html")]
    assert command_line.main(["certificate", *arguments]) == 0
    return folder


@pytest.fixture
def own(made, tmp_path) -> Path:
    """A copy of it that a test may change."""
    return Path(shutil.copytree(made, tmp_path / "own"))


def verify(folder: Path) -> int:
    return command_line.main(["certificate", "--verify", str(folder / "page.html"), "--from", str(folder / "mine")])


def test_the_page_says_what_passes_now_and_what_does_not(made):
    record = certificate.read(made / "page.html")
    states = {row.exercise: (row.state, row.points) for row in record["exercises"]}
    assert states["attend"] == ("passed", 4) and states["attention-weights"] == ("wrong", 0)
    assert states["project"] == ("blank", 0) and states["softmax"] == ("blank", 0) and len(states) == 87
    page = (made / "page.html").read_text(encoding="utf-8")
    assert (
        "1 of the 87 exercises pass every check" in page
        and "05 Self-attention" in page
        and "Ada &lt;b&gt;Lovelace" in page
    )
    assert certificate.shown(certificate.digest_of(json.loads(certificate.DATA.search(page)[1])["record"])) in page
    assert not re.search(r'(?:src|href)="', page)  # it needs nothing else


def test_the_same_notebooks_agree(made, capsys):
    assert verify(made) == 0
    assert "The notebooks earn what the certificate says." in capsys.readouterr().out


def test_other_code_is_named_and_other_layout_is_not(own, capsys):
    write(own, RIGHT | {"attend": "# as a sum\ndef attend(W,  V):\n    return W @ V\n"})
    assert verify(own) == 0
    write(own, RIGHT | {"attend": "import torch\ndef attend(W, V):\n    return torch.matmul(W, V)\n"})
    assert verify(own) == 1
    assert "05.1 attend: the notebook has other code, which earns the same" in capsys.readouterr().out
    write(own, RIGHT | {"attend": "def attend(W, V):\n    return V\n"})
    assert verify(own) == 1
    assert "05.1 attend: passed, 4 points in the certificate, 0 now" in capsys.readouterr().out


def test_a_number_that_was_changed_in_the_page_is_refused(own, capsys):
    path = own / "page.html"
    page = path.read_text(encoding="utf-8")
    path.write_text(
        page.replace('"state": "blank", "points": 0.0', '"state": "passed", "points": 9.0'), encoding="utf-8"
    )
    assert verify(own) == 2
    assert "was changed" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", [None, "", "<p>a page</p>", '<script type="application/json" id="record">{}</script>']
)
def test_what_is_no_certificate_is_one_sentence(content, own, capsys):
    path = own / "page.html"
    path.unlink() if content is None else path.write_text(content, encoding="utf-8")
    assert verify(own) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and "page.html" in said and "Traceback" not in said


def test_a_folder_without_notebooks_is_one_sentence(tmp_path, capsys):
    assert command_line.main(["certificate", "--from", str(tmp_path)]) == 2
    assert "There is no notebook of this course" in capsys.readouterr().err


def test_a_translator_that_is_not_there_is_one_sentence(made, tmp_path, capsys):
    arguments = ["--from", str(made / "mine"), "--translator", str(tmp_path / "none"), "--output", str(tmp_path / "x")]
    assert command_line.main(["certificate", *arguments]) == 2
    assert "The translator was not scored." in capsys.readouterr().err and not (tmp_path / "x").exists()


def test_a_translator_s_scores_are_written_without_the_seconds_it_took(made, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    out = tmp_path / "run"
    train = ["--d-model", "16", "--heads", "2", "--encoder-layers", "1", "--decoder-layers", "1", "--d-ff", "32"]
    from transformer_ref import __main__ as reference

    assert reference.main(["train", *train, "--steps", "2", "--num-validations", "1", "--output", str(out)]) == 0
    lines = certificate._scores(out, None)
    assert any(line.startswith("BLEU ") for line in lines) and any(line.startswith("exact match ") for line in lines)
    assert not any(re.search(r"in [\d.]+ s", line) for line in lines)


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_and_it_prints_on_one_sheet(made, browser, theme, tmp_path):
    for width in (390, 1280):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        page.goto((made / "page.html").as_uri())
        assert Axe().run(page).response["violations"] == [] and accessibility_tree.faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.close()
    page = browser.new_page()
    page.goto((made / "page.html").as_uri())
    page.pdf(path=tmp_path / "page.pdf", prefer_css_page_size=True)
    page.close()
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", (tmp_path / "page.pdf").read_bytes())) == 1


@pytest.mark.browser
def test_a_pdf_is_printed_beside_the_page(made, browser, tmp_path):
    pdf = tmp_path / "Zoë.pdf"
    print_page.to_pdf(made / "page.html", pdf, print_page.browser())
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf.read_bytes())) == 1


def test_without_a_browser_a_pdf_is_refused_before_anything_is_judged(made, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(print_page, "NAMES", ())
    monkeypatch.setattr(print_page, "PLACES", ())
    output = tmp_path / "page.html"
    assert command_line.main(["certificate", "--from", str(made / "mine"), "--output", str(output), "--pdf"]) == 2
    assert "expected Chrome, Chromium or Edge" in capsys.readouterr().err and not output.exists()


def test_a_browser_that_does_not_print_is_one_sentence(made, tmp_path, monkeypatch):
    with pytest.raises(certificate.course.CourseError, match="did not print"):
        print_page.to_pdf(made / "page.html", tmp_path / "page.pdf", str(tmp_path / "no-browser"))
    assert (made / "page.html").exists()
