"""JupyterLab without what is not for a learner, for one server: no setting of anybody's is changed.

Settings are read from a folder that goes before a person's own; it lies in a temporary place and ends with the server.
"""

import json
import os
from pathlib import Path

TEACHERS = (  # nbgrader's, where it is installed
    "nbgrader.server_extensions.formgrader",
    "nbgrader.server_extensions.validate_assignment",
    "nbgrader.server_extensions.assignment_list",
    "nbgrader.server_extensions.course_list",
)
IN_THE_PAGE = ("@jupyter/nbgrader", "@jupyterlab/apputils-extension:announcements")
FOLDERS = "JUPYTER_CONFIG_PATH"


def settings(folder: Path) -> None:
    """Write the settings into an empty folder, which this process and its kernels read first."""
    (folder / "labconfig").mkdir()
    page = {"disabledExtensions": dict.fromkeys(IN_THE_PAGE, True)}
    (folder / "labconfig" / "page_config.json").write_text(json.dumps(page), encoding="utf-8")
    server = {"ServerApp": {"jpserver_extensions": dict.fromkeys(TEACHERS, False)}}
    (folder / "jupyter_server_config.json").write_text(json.dumps(server), encoding="utf-8")
    before = os.environ.get(FOLDERS)
    os.environ[FOLDERS] = os.pathsep.join([str(folder), *([before] if before else [])])
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # this Python's kernel, not another one of the same name
