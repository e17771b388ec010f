"""Damage that leaves everything that a student wrote in the notebook: a reasonable person would find every answer."""

import copy
import json

from damage.kinds import HONEST, a_cell, answer_ids, has_role, is_whole, kind, new_cell


@kind(HONEST)
def untouched(notebook, draw):
    pass


@kind(HONEST)
def cell_ids_gone(notebook, draw):
    notebook["nbformat_minor"] = 2
    for cell in notebook["cells"]:
        cell.pop("id")


@kind(HONEST)
def metadata_gone(notebook, draw):
    for cell in notebook["cells"]:
        cell["metadata"] = {}


@kind(HONEST)
def names_gone(notebook, draw):
    cell_ids_gone(notebook, draw)
    metadata_gone(notebook, draw)


@kind(HONEST)
def grade_ids_renamed(notebook, draw):
    for number, cell in enumerate(notebook["cells"]):
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["grade_id"] = f"cell-{number}"


@kind(HONEST)
def cell_ids_drawn(notebook, draw):
    for cell in notebook["cells"]:
        cell["id"] = f"{draw.getrandbits(32):08x}"


@kind(HONEST)
def points_and_roles_forged(notebook, draw):
    for cell in notebook["cells"]:
        cell["metadata"].get("nbgrader", {}).update(points=100, grade=False, solution=True, locked=False)


@kind(HONEST)
def tags_added(notebook, draw):
    for cell in notebook["cells"]:
        cell["metadata"]["tags"] = ["skip-execution", "raises-exception"]


@kind(HONEST)
def check_deleted(notebook, draw):
    notebook["cells"].remove(a_cell(notebook, draw, "-check"))


@kind(HONEST)
def every_given_cell_deleted(notebook, draw):
    notebook["cells"] = [
        cell
        for cell in notebook["cells"]
        if has_role(cell, "solution")
        or cell.get("id") in answer_ids(notebook)
        or cell.get("id") not in notebook["blank"]
    ]


@kind(HONEST)
def check_edited(notebook, draw):
    a_cell(notebook, draw, "-check")["source"] = "note = 1\nprint('15 points')"


@kind(HONEST)
def check_made_text(notebook, draw):
    a_cell(notebook, draw, "-check")["cell_type"] = "markdown"


@kind(HONEST)
def check_moved_up(notebook, draw):
    check = a_cell(notebook, draw, "-check")
    notebook["cells"].remove(check)
    notebook["cells"].insert(0, check)


@kind(HONEST)
def check_copied(notebook, draw):
    notebook["cells"].insert(draw.randrange(len(notebook["cells"])), copy.deepcopy(a_cell(notebook, draw, "-check")))


@kind(HONEST)
def answer_copied(notebook, draw):
    answer = a_cell(notebook, draw)
    if is_whole(answer):
        notebook["cells"].insert(notebook["cells"].index(answer) + 1, copy.deepcopy(answer))


@kind(HONEST)
def answer_split_after_a_statement(notebook, draw):
    answer = a_cell(notebook, draw)
    second = copy.deepcopy(answer) | {"id": "second-half"}
    second["source"], answer["source"] = answer["source"], "import math\nready = True"
    notebook["cells"].insert(notebook["cells"].index(answer) + 1, second)


@kind(HONEST)
def answer_split_inside_a_function(notebook, draw):
    answer = a_cell(notebook, draw)
    lines = "".join(answer["source"]).splitlines(keepends=True)
    cut = len(lines) - 1
    if lines[-1].startswith(">>>>>>>"):  # nobody's knife meets the end of a conflict
        return
    second = copy.deepcopy(answer) | {"id": "second-half", "source": "".join(lines[cut:])}
    answer["source"] = "".join(lines[:cut]).rstrip("\n")
    notebook["cells"].insert(notebook["cells"].index(answer) + 1, second)


@kind(HONEST)
def answer_made_text(notebook, draw):
    answer = a_cell(notebook, draw)
    answer["cell_type"] = "markdown"
    answer["source"] = draw.choice(["{}", "Mine:\n```python\n{}\n```\n"]).format("".join(answer["source"]))


@kind(HONEST)
def answer_in_a_new_cell(notebook, draw):
    answer = a_cell(notebook, draw)
    place = draw.choice([notebook["cells"].index(answer) + 1, len(notebook["cells"])])
    notebook["cells"].insert(place, new_cell("".join(answer["source"])))
    answer["source"] = notebook["blank"][answer["id"]]


@kind(HONEST)
def answer_cell_replaced(notebook, draw):
    answer = a_cell(notebook, draw)
    notebook["cells"][notebook["cells"].index(answer)] = new_cell("".join(answer["source"]))


@kind(HONEST)
def own_cells_added(notebook, draw):
    for number in range(draw.randint(1, 5)):
        kind = draw.choice(["code", "markdown", "raw"])
        notebook["cells"].insert(draw.randrange(len(notebook["cells"])), new_cell(f"own_{number} = {number}", kind))


@kind(HONEST)
def text_edited(notebook, draw):
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown" and not has_role(cell, "solution"):
            cell["source"] += "\n\nmy notes"


@kind(HONEST)
def sources_as_lines(notebook, draw):
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"]).splitlines(keepends=True)


@kind(HONEST)
def windows_lines(notebook, draw):
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"]).replace("\n", "\r\n")


@kind(HONEST)
def from_the_future(notebook, draw):
    notebook.update(nbformat=5, nbformat_minor=99, shape="new")


@kind(HONEST)
def flood_of_output(notebook, draw):
    output = {"output_type": "stream", "name": "stdout", "text": "y\n" * 50_000}
    notebook["cells"].insert(2, {**new_cell("print(1)"), "outputs": [output] * 4, "execution_count": 1})


@kind(HONEST)
def pictures_attached(notebook, draw):
    for cell in notebook["cells"]:
        cell["attachments"] = {"a.png": {"image/png": "A" * 1000}}


# What the machine around a notebook does to it


@kind(HONEST)
def old_mac_lines(notebook, draw):
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"]).replace("\n", "\r")


@kind(HONEST)
def blanks_at_the_ends_of_lines(notebook, draw):
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"]).replace("\n", "  \n") + "\n\n\n"


@kind(HONEST)
def a_mark_before_each_cell(notebook, draw):
    for cell in notebook["cells"]:
        cell["source"] = "\ufeff" + "".join(cell["source"])


@kind(HONEST)
def blanks_that_do_not_break(notebook, draw):
    answer = a_cell(notebook, draw)
    answer["source"] = "".join(answer["source"]).replace("    ", "\u00a0 \u00a0 ")


@kind(HONEST)
def nothing_wide_between_letters(notebook, draw):
    answer = a_cell(notebook, draw)
    answer["source"] = "".join(answer["source"]).replace("    return", "    \u200breturn")


@kind(HONEST)
def control_characters(notebook, draw):
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"]) + "\x00\x1b\x0c"


@kind(HONEST)
def kinds_in_capitals(notebook, draw):
    for cell in notebook["cells"]:
        cell["cell_type"] = cell["cell_type"].capitalize()


@kind(HONEST)
def kinds_gone(notebook, draw):
    for cell in notebook["cells"]:
        if cell.pop("cell_type") == "code":
            cell.setdefault("outputs", [])


@kind(HONEST)
def markdown_gone(notebook, draw):
    notebook["cells"] = [
        cell for cell in notebook["cells"] if cell["cell_type"] != "markdown" or "def " in "".join(cell["source"])
    ]


@kind(HONEST)
def headings_of_nbformat_3(notebook, draw):
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell.update(cell_type="heading", level=2)


@kind(HONEST)
def of_google_colab(notebook, draw):
    """Cells' ids become metadata, outputs get a name, and widgets are kept without the key `state`, at which nbconvert
    stops."""
    notebook["nbformat_minor"] = 0
    notebook["metadata"].update(
        colab={"provenance": [], "name": "self_attention.ipynb", "toc_visible": True},
        accelerator="GPU",
        widgets={"application/vnd.jupyter.widget-state+json": {"5f0e": {"model_name": "HTMLModel", "state": {}}}},
    )
    for cell in notebook["cells"]:
        cell["metadata"]["id"] = cell.pop("id", "")
        cell["metadata"]["colab"] = {"base_uri": "https://localhost:8080/"}
        if cell["cell_type"] == "code":
            cell["metadata"]["outputId"] = "0a1b2c3d"
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["Ready\n"], "metadata": {}}]


@kind(HONEST)
def of_vs_code(notebook, draw):
    for cell in notebook["cells"]:
        cell["metadata"]["vscode"] = {"languageId": "python"}
        cell["id"] = f"{draw.getrandbits(32):08x}"


@kind(HONEST)
def of_deepnote(notebook, draw):
    for cell in notebook["cells"]:
        cell["metadata"].update(cell_id="a" * 32, deepnote_cell_type=cell["cell_type"], source_hash=None)
    notebook["metadata"]["deepnote"] = {}


@kind(HONEST)
def of_kaggle(notebook, draw):
    cell_ids_gone(notebook, draw)
    notebook["cells"].insert(
        0, new_cell("import os\nfor place, _, names in os.walk('/kaggle/input'):\n    print(names)")
    )
    for cell in notebook["cells"]:
        cell["metadata"].update(_uuid="8f2839f2", trusted=True, execution={"shell.execute_reply": "2026-01-01T00:00Z"})


@kind(HONEST)
def worked_through_twice(notebook, draw):
    notebook["cells"] += copy.deepcopy(notebook["cells"])


@kind(HONEST)
def the_blank_one_below_it(notebook, draw):
    blank = copy.deepcopy(notebook["cells"])
    for cell in blank:
        cell["source"] = notebook["blank"][cell["id"]]
    notebook["cells"] += blank


@kind(HONEST)
def the_blank_one_above_it(notebook, draw):
    blank = copy.deepcopy(notebook["cells"])
    for cell in blank:
        cell["source"] = notebook["blank"][cell["id"]]
    notebook["cells"][:0] = blank


@kind(HONEST)
def all_in_one_cell(notebook, draw):
    blank, answers = notebook["blank"], []
    for cell in notebook["cells"]:
        text, name = "".join(cell["source"]), cell.get("id")
        if name in answer_ids(notebook) and str(cell.get("cell_type")).lower() == "code" and text != blank[name]:
            answers.append(text)
            cell["source"] = blank[name]
    notebook["cells"].insert(3, new_cell("\n\n\n".join(answers)))


@kind(HONEST)
def all_at_the_end(notebook, draw):
    answers = [copy.deepcopy(cell) for cell in notebook["cells"] if cell.get("id") in answer_ids(notebook)]
    for cell in notebook["cells"]:
        cell["source"] = notebook["blank"][cell["id"]]
    notebook["cells"] += [new_cell("".join(cell["source"]), cell["cell_type"]) for cell in answers]


@kind(HONEST)
def every_check_deleted(notebook, draw):
    notebook["cells"] = [cell for cell in notebook["cells"] if not has_role(cell, "grade")]


@kind(HONEST)
def every_check_emptied(notebook, draw):
    for cell in notebook["cells"]:
        if has_role(cell, "grade"):
            cell["source"] = ""


@kind(HONEST)
def every_answer_copied(notebook, draw):
    for cell in [cell for cell in notebook["cells"] if has_role(cell, "solution") and is_whole(cell)]:
        notebook["cells"].insert(notebook["cells"].index(cell) + 1, copy.deepcopy(cell))


@kind(HONEST)
def answers_with_their_checks_moved(notebook, draw):
    named = [cell for cell in notebook["cells"] if has_role(cell, "solution") or has_role(cell, "grade")]
    notebook["cells"] = [cell for cell in notebook["cells"] if cell not in named] + named


@kind(HONEST)
def answer_made_raw(notebook, draw):
    a_cell(notebook, draw)["cell_type"] = "raw"


@kind(HONEST)
def comments_added(notebook, draw):
    answer = a_cell(notebook, draw)
    answer["source"] = "# mine, übrigens\n" + "".join(answer["source"]) + "\n# end"


@kind(HONEST)
def timed_in_its_cell(notebook, draw):
    answer = a_cell(notebook, draw)
    answer["source"] = "%%time\n" + "".join(answer["source"])


@kind(HONEST)
def magic_in_its_cell(notebook, draw):
    answer = a_cell(notebook, draw)
    answer["source"] = "%matplotlib inline\n!ls\n" + "".join(answer["source"])


@kind(HONEST)
def conflict_inside_a_cell(notebook, draw):
    answer = a_cell(notebook, draw)
    sides = ["".join(answer["source"]), notebook["blank"][answer["id"]]]
    draw.shuffle(sides)
    answer["source"] = f"<<<<<<< local\n{sides[0]}\n=======\n{sides[1]}\n>>>>>>> remote\n"


@kind(HONEST)
def a_cell_that_does_not_end(notebook, draw):
    notebook["cells"].append(new_cell("def later(x):\n    return ("))


@kind(HONEST)
def metadata_without_end(notebook, draw):
    for cell in notebook["cells"]:
        cell["metadata"]["mine"] = {"a": [list(range(50))] * 20}


@kind(HONEST)
def a_notebook_printed_in_an_output(notebook, draw):
    text = json.dumps({"cells": [{"cell_type": "code", "source": "attend = None", "metadata": {}}]})
    notebook["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text}]


@kind(HONEST)
def keys_in_another_order(notebook, draw):
    notebook["cells"] = [dict(sorted(cell.items(), reverse=True)) for cell in notebook["cells"]]


@kind(HONEST)
def roles_and_points_gone(notebook, draw):
    for cell in notebook["cells"]:
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"] = {"grade_id": cell["metadata"]["nbgrader"]["grade_id"]}


@kind(HONEST)
def schema_of_long_ago(notebook, draw):
    for cell in notebook["cells"]:
        cell["metadata"].get("nbgrader", {}).update(schema_version=1, checksum="0" * 32)


@kind(HONEST)
def no_metadata_at_all(notebook, draw):
    for name in ("metadata", "nbformat", "nbformat_minor"):
        notebook.pop(name)
    for cell in notebook["cells"]:
        cell.pop("outputs", None)
        cell.pop("execution_count", None)


@kind(HONEST)
def a_null_here_and_there(notebook, draw):
    notebook["cells"] = [each for cell in notebook["cells"] for each in (cell, None, 3)]


@kind(HONEST)
def another_kernel(notebook, draw):
    notebook["metadata"]["kernelspec"] = {"name": "my-env", "display_name": "Python (mine)", "language": "julia"}


@kind(HONEST)
def blank_cells_between(notebook, draw):
    notebook["cells"] = [each for cell in notebook["cells"] for each in (new_cell(""), cell, new_cell("   \n"))]


@kind(HONEST)
def own_text_between(notebook, draw):
    notebook["cells"] = [each for cell in notebook["cells"] for each in (cell, new_cell("I think so.", "markdown"))]


@kind(HONEST)
def five_hundred_own_cells(notebook, draw):
    notebook["cells"][4:4] = [new_cell(f"x_{number} = {number}") for number in range(400)]


@kind(HONEST)
def numbers_of_lines_in_all_checks(notebook, draw):
    for cell in notebook["cells"]:
        if has_role(cell, "grade"):
            cell["source"] = "".join(cell["source"]) + "\n# done"
