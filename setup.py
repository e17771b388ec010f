"""What pyproject.toml cannot say: the notebooks of exercises/ are packed into the wheel, for `autograder learn`."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

NOTEBOOKS = "[0-9][0-9]_*/*.ipynb"
PACKED = Path("autograder", "learn", "packed")


class WithNotebooks(build_py):
    """Builds the packages, and puts the learner's notebooks beside the module that copies them."""

    def run(self):
        super().run()
        for notebook in [] if self.editable_mode else self._notebooks():
            target = Path(self.build_lib, PACKED, notebook.parent.name, notebook.name)
            self.mkpath(str(target.parent))
            self.copy_file(str(notebook), str(target))

    def get_source_files(self):
        return [*super().get_source_files(), *map(str, self._notebooks())]

    def get_outputs(self, include_bytecode=True):
        packed = [Path(self.build_lib, PACKED, each.parent.name, each.name) for each in self._notebooks()]
        return [*super().get_outputs(include_bytecode), *map(str, packed)]

    def _notebooks(self):
        found = sorted(Path("exercises").glob(NOTEBOOKS))
        if not found:
            raise SystemExit("exercises/ holds no notebooks to pack: run `make release` first")
        return found


setup(cmdclass={"build_py": WithNotebooks})
