"""Both packages keep what their types say, as pyright reads them; here, next to other tests, it needs one core."""

import subprocess
import sys


def test_pyright_finds_nothing(root):
    done = subprocess.run([sys.executable, "-m", "pyright"], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
