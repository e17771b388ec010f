"""A zip as Canvas and Moodle hand it out, collected by nbgrader's own command under this course's configuration."""

import zipfile

from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT

NOTEBOOK = f"{ASSIGNMENT.notebook}.ipynb"
NAMES = {
    f"lovelaceada_501_98765_{NOTEBOOK}": "501",
    f"oneillbob_LATE_502_98766_{NOTEBOOK}": "502",
    f"Ada Lovelace_11_assignsubmission_file_/{NOTEBOOK}": "11",
    f"Зоя Ångström_13_assignsubmission_file_{NOTEBOOK}": "13",
    f"Ann_Lee 2_14_assignsubmission_file_/{NOTEBOOK}": "14",
}


def test_the_students_number_is_found_in_the_name_of_every_file(tmp_path):
    sample_class.lay_out(tmp_path)
    archive = tmp_path / "classroom" / "downloaded" / ASSIGNMENT.id / "archive"
    archive.mkdir(parents=True)
    with zipfile.ZipFile(archive / "submissions.zip", "w") as zipped:
        for name in NAMES:
            zipped.writestr(name, f"handed in as {name}")
    done = sample_class.nbgrader(tmp_path, "zip_collect", ASSIGNMENT.id)
    assert done.returncode == 0, done.stdout
    submitted = tmp_path / "classroom" / "submitted"
    for name, student in NAMES.items():
        collected = submitted / student / ASSIGNMENT.id / NOTEBOOK
        assert collected.read_text(encoding="utf-8") == f"handed in as {name}"
    assert {path.name for path in submitted.iterdir()} == set(NAMES.values())
