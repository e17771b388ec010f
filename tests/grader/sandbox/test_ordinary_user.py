"""The sandboxes hold for an ordinary user too, where machines that run these tests often run them as root."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

AS_A_USER = ["unshare", "--user", "--map-user=12345", "--map-group=12345"]
TESTS = Path(__file__).with_name("test_sandbox.py")


@pytest.mark.slow
def test_what_holds_for_root_holds_for_a_user_without_rights(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("all tests here are run by an ordinary user")
    if not shutil.which("unshare") or subprocess.run([*AS_A_USER, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespace can be made here in which root is an ordinary user")
    options = ["-q", "-p", "no:cacheprovider", "-n", "0", "--basetemp", str(tmp_path / "run")]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [*AS_A_USER, sys.executable, "-m", "pytest", *options, str(TESTS)],
        env=alone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout, done.stdout
