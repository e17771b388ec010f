"""The book without Jupyter Book: the same two YAML files, read by Sphinx alone. The way out of Jupyter Book 1."""

import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))

project, author, copyright = settings["title"], settings["author"], settings["copyright"]
extensions = [
    "sphinx_external_toc",
    "myst_nb",
    "sphinx_togglebutton",
    "sphinx_copybutton",
    *settings["sphinx"]["extra_extensions"],
    *settings["sphinx"]["local_extensions"],
]
sys.path += [str(ROOT / folder) for folder in settings["sphinx"]["local_extensions"].values()]
external_toc_path = str(ROOT / "_toc.yml")
external_toc_exclude_missing = settings["only_build_toc_files"]
nb_execution_mode = settings["execute"]["execute_notebooks"]
nb_execution_timeout = settings["execute"]["timeout"]
myst_enable_extensions = settings["parse"]["myst_enable_extensions"]
html_theme, html_title = "sphinx_book_theme", project
globals().update(settings["sphinx"]["config"])
# These are relative to the book's folder; Sphinx alone would look beside this file.
html_static_path = [str(ROOT / "book" / folder) for folder in settings["sphinx"]["config"]["html_static_path"]]
bibtex_bibfiles = [str(ROOT / "book" / file) for file in settings["sphinx"]["config"]["bibtex_bibfiles"]]
html_favicon = str(ROOT / "book" / settings["html"]["favicon"])
