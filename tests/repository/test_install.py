"""`.ci/install.py`: pip's settings in uv's words, and which torch a machine gets."""

import importlib.util
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def install(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("install", root / ".ci" / "install.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pip_says(install, monkeypatch):
    def say(*lines: str) -> None:
        answer = subprocess.CompletedProcess([], 0, stdout="\n".join(lines))
        monkeypatch.setattr(install.subprocess, "run", lambda *a, **k: answer)

    return say


def test_where_pip_looks_is_told_to_uv_the_environment_last(install, pip_says):
    pip_says(
        "global.index-url='https://one.example/simple'",
        "global.extra-index-url='https://two.example/simple file:///three'",
        "global.timeout='60'",
        ":env:.index-url='https://four.example/simple'",
    )
    options = install.as_uv_options(install.pip_settings())
    assert options[options.index("--index-url") + 1] == "https://four.example/simple"
    extra = [options[number + 1] for number, word in enumerate(options) if word == "--extra-index-url"]
    assert extra == ["https://two.example/simple", "file:///three"]
    assert not any("60" in word or "one.example" in word for word in options)


def test_without_settings_uv_is_told_of_no_index(install, pip_says):
    pip_says("")
    assert not any("index-url" in word for word in install.as_uv_options(install.pip_settings()))


@pytest.mark.parametrize(
    ("gpu", "reached", "system", "index"),
    [
        (False, True, "linux", "the small one"),
        (False, False, "linux", None),
        (True, True, "linux", None),
        (False, True, "darwin", None),
    ],
)
def test_the_small_torch_is_for_linux_without_a_gpu_that_reaches_it(install, monkeypatch, gpu, reached, system, index):
    monkeypatch.delenv("TORCH_INDEX", raising=False)
    monkeypatch.setattr(install, "has_nvidia_gpu", lambda: gpu)
    monkeypatch.setattr(install, "can_be_reached", lambda _: reached)
    monkeypatch.setattr(install, "CPU_BUILDS", "the small one")
    monkeypatch.setattr(sys, "platform", system)
    assert install.torch_index() == index
    monkeypatch.setenv("TORCH_INDEX", "https://mine.example")
    assert install.torch_index() == "https://mine.example"


def test_only_an_index_that_has_torch_can_be_reached(install, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    class Index(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/whole/torch/" else 404)
            self.end_headers()

        def log_message(self, *words):
            pass

    with HTTPServer(("127.0.0.1", 0), Index) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert install.can_be_reached(f"{address}/whole")
        assert not install.can_be_reached(f"{address}/empty")
        server.shutdown()
    assert not install.can_be_reached(address)


def test_where_uv_cannot_be_had_pip_installs_all_of_it(install, monkeypatch):
    ran = []

    def run(command, **options):
        ran.append(command)
        failed = any(word.startswith("uv==") for word in command)
        return subprocess.CompletedProcess(command, int(failed), stdout="")

    monkeypatch.setattr(install.subprocess, "run", run)
    monkeypatch.setattr(install, "torch_index", lambda: "https://small.example")
    assert install.main(["torch==2.13.0"]) == 0
    assert not any("uv" in command for command in ran)
    assert ran[-1][-3:] == ["--index-url", "https://small.example", "torch==2.13.0"]
    assert install.main(["-r", "requirements.txt"]) == 0
    assert "https://small.example" not in ran[-1]


@pytest.mark.parametrize("fails", [False, True])
def test_while_uv_installs_its_progress_is_shown_and_the_rest_only_if_it_fails(install, monkeypatch, capsys, fails):
    progress = ["Resolved 2 packages in 1s", "Downloading torch (178.0MiB)", "Bytecode compiled 364 files in 1s"]
    others = ["warning: Failed to hardlink files", " + attrs==26.1.0"]
    said = "\n".join([progress[0], others[0], *progress[1:], others[1]])
    program = f"import sys; print({said!r}, file=sys.stderr); sys.exit({int(fails)})"
    popen = subprocess.Popen
    monkeypatch.setattr(install.subprocess, "Popen", lambda _, **how: popen([sys.executable, "-c", program], **how))
    monkeypatch.setattr(install.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0))
    assert install.by_uv(["torch"], {}) is not fails
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [f"  {line}" for line in progress]
    assert shown.err.splitlines() == (others if fails else [])
