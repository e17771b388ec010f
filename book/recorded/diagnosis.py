"""Draw what a check says about a wrong answer: diagnosis.svg, which README shows, and diagnosis_narrow.svg for phones.

    python -m book.recorded.diagnosis

The answer is run and judged as in a learner's notebook; the picture is its code and the report, word for word, on a
card of its own, so that it reads on a light page and on a dark one. On the narrow picture long lines are broken.
"""

import html
import re
import textwrap
from pathlib import Path

from autograder.notebook.own_check import judge_in_notebook

PICTURE = Path(__file__).resolve().parents[1] / "assets" / "diagnosis.svg"
NARROW = PICTURE.with_name("diagnosis_narrow.svg")
COLUMNS = 49  # of the narrow picture: on a phone its letters are as large as those of the page's code
EXERCISE = "attention-weights"
ANSWER = """\
def attention_weights(Q, K):
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1])
    return torch.softmax(scores, dim=-2)

check("attention-weights")
"""
CHARACTER, LINE, MARGIN = 8.0, 20, 18  # pixels: the width of a character, the height of a line, the card's margin
PAPER, SHADE, BORDER = "#ffffff", "#eef1f5", "#8c959f"
INK, RIGHT, WRONG = "#1f2328", "#116329", "#a40e26"


def report() -> str:
    """Return what the check prints about ANSWER."""
    namespace: dict = {}
    setting = "import math\nimport torch\n"
    exec(setting + ANSWER.split("\n\n")[0], namespace)
    return judge_in_notebook(EXERCISE, namespace)["text"].rstrip()


def narrow(text: str) -> str:
    """Return the text with no line longer than COLUMNS; what lines have in columns stays in columns."""
    text = re.sub(r"^ {20,}(yours is )", r"    \1", text, flags=re.MULTILINE)
    text = re.sub(r"(should be) ((?:[\d.]+ ?)+)$", rf"\1\n{' ' * len('    yours is ')}\2", text, flags=re.MULTILINE)
    text = re.sub(r"(?<=[^\s]) {5,}(?=\S)", "   ", text)  # between the name and the points
    text = re.sub(r"(?<=[\w.*])\n  (?=[\w*])(?!Reread|Your)", " ", text)  # sentences, in one line each
    in_brackets = r"^( +)(.{40,}\()([^()]+)\)$"  # a long line of code
    text = re.sub(in_brackets, r"\1\2\n\1    \3\n\1)", text, flags=re.MULTILINE)
    lines = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()))
        further = indent + ("  " if line.lstrip()[:1] in "✓✗" else "")
        lines += textwrap.wrap(line.strip(), COLUMNS, initial_indent=indent, subsequent_indent=further) or [""]
    return "\n".join(lines)


def svg(code: str, said: str) -> str:
    """Return the picture of a cell and of the report below it."""
    above, below = code.rstrip().splitlines(), said.splitlines()
    columns = max(map(len, above + below))
    width = round(columns * CHARACTER + 2 * MARGIN)
    cell = len(above) * LINE + 2 * MARGIN
    height = cell + len(below) * LINE + 2 * MARGIN
    rows = [(MARGIN + LINE * number, INK, line) for number, line in enumerate(above)]
    rows += [(cell + MARGIN + LINE * number, ink(line), line) for number, line in enumerate(below)]
    texts = "\n".join(
        f'<text x="{MARGIN}" y="{y + 14}" fill="{color}" textLength="{round(len(line) * CHARACTER)}">'
        f"{html.escape(line, quote=False)}</text>"
        for y, color, line in rows
        if line
    )
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" \
font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13">
<title>A wrong answer and what its check says</title>
<style>text {{ white-space: pre; }}</style>
<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="{PAPER}" stroke="{BORDER}"/>
<path d="M 1 {cell} V 8 Q 1 1 8 1 H {width - 8} Q {width - 1} 1 {width - 1} 8 V {cell} Z" fill="{SHADE}"/>
{texts}
</svg>
"""


def ink(line: str) -> str:
    """Return the color of a line of a report: green for a passed check, red for a failed one."""
    return {"✓": RIGHT, "✗": WRONG}.get(line.strip()[:1], INK)


if __name__ == "__main__":
    PICTURE.write_text(svg(ANSWER, report()), encoding="utf-8")
    NARROW.write_text(svg(narrow(ANSWER), narrow(report())), encoding="utf-8")
    for picture in (PICTURE, NARROW):
        print(f"{picture}: {picture.stat().st_size:,} bytes")
