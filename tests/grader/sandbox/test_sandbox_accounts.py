"""Every resource that a submission uses is counted, forbidden actions fail, and allowed ones work."""

import os
import resource
import signal
from dataclasses import replace

import nbformat
import psutil
import pytest
from graded_course import SANDBOXES, need_isolation

from autograder.grade import execute
from autograder.inside import memory_and_disk, shell
from autograder.inside.limits import Limits
from autograder.prepare import sample_class
from autograder.prepare.sample_class import ASSIGNMENT
from autograder.sandbox import backends, runner
from autograder.sandbox.runner import Ended, files_beside

LIMITS = Limits(cell_seconds=1.0, notebook_seconds=4.0, memory_bytes=1 << 30, notebook_output_bytes=2 << 20)

pytestmark = pytest.mark.xdist_group("sandbox")


def shown(submission, source: str) -> str:
    """All outputs of a cell, as text."""
    outputs = submission.run(source).outputs
    return "".join(str(o.get("text") or o.get("evalue") or o.get("data", {}).get("text/plain", "")) for o in outputs)


def processes_of(warm) -> list[psutil.Process]:
    """All processes of a sandbox; the last is the submission's own."""
    return sorted(psutil.Process(warm._process.pid).children(recursive=True), key=lambda process: process.create_time())


FILL = "def fill(block):\n    block[::4096] = b'x' * len(block[::4096])\n    return block\n"


@pytest.fixture
def patient(warm, monkeypatch):
    """A cell's second is for tests about time; filling memory or starting processes may take a slow machine longer."""
    monkeypatch.setattr(warm, "limits", replace(LIMITS, cell_seconds=60.0, notebook_seconds=120.0))


def test_many_small_children_together_count_as_much_as_a_large_one(submission, patient):
    children = (
        f"{FILL}import os, time\nfor _ in range(9):\n"
        "    if os.fork() == 0:\n        held = fill(bytearray(130 << 20))\n        time.sleep(3600)\ntime.sleep(3600)"
    )
    with pytest.raises(Ended, match="more than 1 GiB of memory"):
        submission.run(children)


def test_children_that_only_share_what_they_were_lent_cost_nothing(submission, patient):
    children = (
        "import os, time\nfor _ in range(12):\n    if os.fork() == 0:\n        time.sleep(0.5)\n        os._exit(0)\n"
        "'all'"
    )
    assert shown(submission, children) == "'all'"
    assert shown(submission, "1 + 1") == "2"


def test_shared_memory_that_is_out_of_sight_counts(warm, patient):
    if warm.backend not in ("bubblewrap", "landlock"):
        pytest.skip("a container's own limit ends it first")
    hidden = (
        f"{FILL}import mmap, os, time\nkept = []\nfor _ in range(3):\n    if os.fork() == 0:\n"
        f"        for _ in range(3):\n"
        "            kept.append(fill(mmap.mmap(-1, 200 << 20)))\n            kept[-1].madvise(mmap.MADV_DONTNEED)\n"
        "        time.sleep(3600)\ntime.sleep(3600)"
    )
    with warm.submission() as submission, pytest.raises(Ended, match="more than 1 GiB of memory"):
        submission.run(hidden)


def test_what_may_lie_in_the_buffers_of_sockets_counts(warm):
    with warm.submission() as submission:
        before = warm.order("usage")["memory"]
        submission.run("import socket\nheld = [socket.socketpair() for _ in range(100)]")
        assert warm.order("usage")["memory"] - before >= 200 * memory_and_disk.OF_A_SOCKET


def test_the_buffer_of_a_socket_cannot_be_made_larger(submission):
    ask = (
        "import socket\nfor one in socket.socketpair():\n    for kind in (socket.SO_SNDBUF, socket.SO_RCVBUF):\n"
        "        one.setsockopt(socket.SOL_SOCKET, kind, 1 << 22)\n"
        "        print(one.getsockopt(socket.SOL_SOCKET, kind) <= 256 << 10)"
    )
    assert shown(submission, ask).split() == ["True"] * 4


def test_nobody_can_be_made_to_wait_for_a_file(submission):
    lease = "import fcntl\nopen('own', 'w').close()\nfcntl.fcntl(open('own'), fcntl.F_SETLEASE, fcntl.F_WRLCK)"
    assert shown(submission, lease).startswith("[Errno 1]")


def test_no_program_of_the_machine_is_handed_a_core(submission):
    core = "import resource\nresource.getrlimit(resource.RLIMIT_CORE)"
    allowed = resource.getrlimit(resource.RLIMIT_CORE)[1]
    assert shown(submission, core) == str((min(allowed, 1) if allowed >= 0 else 1,) * 2)


def test_a_file_without_a_name_counts_as_written(warm, patient):
    if warm.backend != "landlock":
        pytest.skip("elsewhere a file system of its own limits it")
    write = (
        "import os, time\nkept = []\nfor number in range(6):\n    kept.append(open(f'{number}', 'wb'))\n"
        "    os.unlink(f'{number}')\n    kept[-1].write(bytes(60 << 20))\n    kept[-1].flush()\ntime.sleep(3600)"
    )
    with warm.submission() as submission, pytest.raises(Ended, match="more than 256 MiB"):
        submission.run(write)


def test_memory_of_no_process_is_refused(submission):
    assert "not implemented" in shown(submission, "import os\nos.memfd_create('x')")
    assert "-1" in shown(submission, "import ctypes\nctypes.CDLL(None).shmget(0, 1 << 20, 0o1777)")


def test_it_stays_the_first_to_end_where_memory_is_short(submission):
    assert shown(submission, "open('/proc/self/oom_score_adj').read()") == "'1000\\n'"
    assert shown(submission, "open('/proc/self/oom_score_adj', 'w').write('0')").startswith("[Errno")


def test_only_private_folders_can_be_written(warm):
    look = (
        "import os\ndef writable(place):\n    try:\n        os.utime(place)\n        return True\n"
        "    except OSError:\n        return False\n"
        "places = {line.split()[4] for line in open('/proc/self/mountinfo')} | {'/', '/dev/pts', '/tmp', '/var/tmp', "
        "'/run'}\n"
        "print(*sorted(filter(writable, places)))"
    )
    with warm.submission() as submission:
        assert set(shown(submission, look).split()) <= {"/tmp", "/dev/shm", "/home/learner"}


def test_no_namespace_can_be_made_and_none_of_its_rights_be_had(submission):
    make = "import ctypes\nctypes.CDLL(None, use_errno=True).syscall({}, {}, 0, 0, 0, 0)"
    number = 220 if os.uname().machine == "aarch64" else 56
    assert shown(submission, make.format(number, 0x10000000 | signal.SIGCHLD)) == "-1"
    assert shown(submission, make.format(435, 0)) == "-1"
    assert "1" not in shown(submission, "open('/proc/self/status').read().split('CapEff:')[1].split()[0]")


def test_threads_processes_and_data_loaders_work(submission, patient):
    threads = "import threading\nt = threading.Thread(target=print, args=('in a thread',)); t.start(); t.join()"
    assert "in a thread" in shown(submission, threads)
    assert "ok" in shown(
        submission, "import subprocess, os\nos.system('true')\nsubprocess.check_output(['echo', 'ok'])"
    )
    pool = "import multiprocessing\nwith multiprocessing.Pool(2) as pool:\n    print(pool.map(abs, [-1, 2]))"
    loader = (
        "import torch\nfrom torch.utils.data import DataLoader\n"
        "print(sum(batch.sum().item() for batch in DataLoader(torch.arange(6.0), batch_size=2, num_workers=1)))"
    )
    if submission._runner.backend == "bubblewrap":  # Landlock takes the semaphores of /dev/shm away
        assert "[1, 2]" in shown(submission, pool)
        assert "15.0" in shown(submission, loader)


def test_children_that_nobody_waits_for_leave_their_account(submission):
    burn = (
        "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n    while time.process_time() < 0.7:\n        pass\n    os._exit(0)\ntime.sleep(0.01)"
    )
    with pytest.raises(Ended, match="more than 4 seconds"):
        for _ in range(100):
            submission.run(burn)
            submission.run("import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass")


def test_waiting_for_a_disk_is_not_believed_for_ever(warm, monkeypatch):
    order = warm.order
    with warm.submission() as submission:
        monkeypatch.setattr(warm, "order", lambda what, *rest: order(what, *rest) | {"doing": runner.DISK})
        before = submission.spent()
        assert submission.spent(0.5) == pytest.approx(before, abs=0.3)
        assert submission.spent(2.0) >= before + 2.0
        monkeypatch.setattr(warm, "order", order)


def test_a_notebook_ends_by_the_clock_whatever_it_is_counted(warm, patient, monkeypatch):
    with warm.submission() as submission:
        monkeypatch.setattr(runner, "_longest", lambda limits: 0.2)  # from here on: to start may take longer
        with pytest.raises(Ended, match="minutes on the clock"):
            submission.run("import time\ntime.sleep(20)")


def test_the_longest_a_notebook_may_take_lies_between_its_budget_and_what_grade_waits():
    from autograder.grade.pool import LONGEST_SECONDS

    assert Limits().notebook_seconds < runner._longest(Limits()) < LONGEST_SECONDS
    assert runner._longest(Limits(notebook_seconds=5000)) > 5000


def test_a_kill_from_outside_is_told_from_what_it_did_itself(warm):
    for do, killed in (("os._exit(9)", False), ("os.kill(os.getpid(), signal.SIGSEGV); ctypes.string_at(0)", False)):
        with warm.submission() as submission, pytest.raises(Ended) as ended:
            submission.run(f"import os, signal, ctypes\n{do}")
        assert ended.value.killed is killed, do
    with warm.submission() as submission:
        submission.run("1")
        os.kill(processes_of(warm)[-1].pid, signal.SIGKILL)
        with pytest.raises(Ended) as ended:
            submission.run("1")
        assert ended.value.killed


BY_ITSELF = {  # ways to end a process with a signal that looks like one from outside
    "its own signal": "os.kill(os.getpid(), signal.SIGKILL)",
    "its group": "os.killpg(0, signal.SIGTERM)",
    "all that it may signal": "os.kill(-1, signal.SIGKILL)",
    "its thread": "libc.syscall(200 if x86 else 130, os.getpid(), signal.SIGKILL)",
    "its thread by group": "libc.syscall(234 if x86 else 131, os.getpid(), os.getpid(), signal.SIGHUP)",
    "a queued signal": "libc.syscall(129 if x86 else 138, os.getpid(), signal.SIGKILL, bytes(128))",
    "a descriptor of itself": "signal.pidfd_send_signal(os.pidfd_open(os.getpid()), signal.SIGKILL)",
    "a child": "p = os.getpid()\nif os.fork() == 0:\n    os.kill(p, signal.SIGKILL)\n    os._exit(0)\nos.wait()",
    "a limit of processor time": "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass",
    "the same by the older call": "libc.syscall(160 if x86 else 164, 0, struct.pack('QQ', 1, 1))\nwhile True: pass",
    "the end of a child": "p = libc.syscall(56 if x86 else 220, signal.SIGKILL, 0, 0, 0, 0)\nif p == 0:\n"
    "    libc.syscall(231 if x86 else 94, 0)\ntime.sleep(0.5)",
    "a timer": "event = struct.pack('QiI', 0, signal.SIGKILL, 0) + bytes(48)\ntimer = ctypes.c_int()\n"
    "libc.syscall(222 if x86 else 107, 1, event, ctypes.byref(timer))\n"
    "libc.syscall(223 if x86 else 110, timer, 0, struct.pack('4q', 0, 0, 0, 10**8), None)\ntime.sleep(0.5)",
}
AROUND = (
    "import os, signal, ctypes, resource, struct, time, platform\nlibc = ctypes.CDLL(None)\n"
    "x86 = platform.machine() == 'x86_64'\n"
)


WITHOUT_FIRST_THREAD = (  # a child of which only a later thread lives, so that the kernel calls it a zombie
    "import ctypes, os, platform, threading, time\nif os.fork() == 0:\n    threading.Thread(target=work).start()\n"
    "    ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)\n"
)


def test_memory_of_a_process_whose_first_thread_has_ended_counts(warm, patient):
    hold = f"{FILL}def work():\n    held = fill(bytearray(300 << 20))\n    time.sleep(3600)\n"
    with warm.submission() as submission, pytest.raises(Ended, match="more than 1 GiB of memory"):
        for _ in range(5):
            submission.run(f"{hold}{WITHOUT_FIRST_THREAD}time.sleep(1)")


def test_a_file_without_a_name_counts_though_the_first_thread_of_its_process_has_ended(warm, patient):
    if warm.backend != "landlock":
        pytest.skip("elsewhere a file system of its own limits it")
    write = (
        "kept = []\ndef work():\n    for number in range(6):\n        kept.append(open(f'{number}', 'wb'))\n"
        "        os.unlink(f'{number}')\n        kept[-1].write(bytes(60 << 20))\n        kept[-1].flush()\n"
        f"    time.sleep(3600)\n{WITHOUT_FIRST_THREAD}time.sleep(10)"
    )
    with warm.submission() as submission, pytest.raises(Ended, match="more than 256 MiB"):
        submission.run(write)


def test_a_process_whose_first_thread_has_ended_ends_before_a_check(warm):
    with warm.submission() as submission:
        work = "r, w = os.pipe()\ndef work():\n    time.sleep(3600)\n"
        submission.run(f"import os\n{work}{WITHOUT_FIRST_THREAD}os.close(w)\nos.set_blocking(r, False)")
        assert shown(submission, "os.read(r, 1)").startswith("[Errno 11]")  # another process holds the other end
        warm.order("alone")
        assert shown(submission, "os.read(r, 1)") == "b''"


@pytest.mark.parametrize("way", BY_ITSELF)
def test_no_process_can_make_its_end_look_like_a_kill_from_outside(warm, way, monkeypatch):
    """Else an answer that is worth nothing would become one that was not checked and waits for a person."""
    with warm.submission() as submission:
        try:
            submission.run(
                f"{AROUND}{BY_ITSELF[way].replace('while True: pass', 'began = time.process_time()')}\n"
                "while time.process_time() < 2.5: pass"
            )
            submission.run("1")
        except Ended as ended:
            assert not ended.killed, way


def test_limits_and_signals_of_honest_code_work(warm):
    honest = (
        "import resource, subprocess, sys, signal, os\n"
        "assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 0\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "child.terminate()\nassert child.wait() == -signal.SIGTERM\n"
        "os.kill(os.getpid(), 0)\nsignal.setitimer(signal.ITIMER_REAL, 0)\n"
    )
    with warm.submission() as submission:
        assert submission.run(honest).error is None


def test_what_we_end_ourselves_was_not_killed_from_outside(submission):
    with pytest.raises(Ended) as ended:
        submission.end("enough")
    with pytest.raises(Ended, match="enough") as again:
        submission.run("1")
    assert not ended.value.killed and not again.value.killed


def graded_while_killed(times: int, tmp_path, monkeypatch) -> list[dict]:
    """The records of an honest notebook whose process is killed from outside the first few times it runs."""
    name = next((name for name in SANDBOXES if not backends.why_not(name)), None)
    need_isolation(name or "bubblewrap")
    sample_class.lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    notebook = nbformat.read(sample_class.submit(tmp_path, "honest", sample_class.solved()), as_version=4)
    left, enter = [times], runner.Submission.questioned

    def killed(submission, seconds, moment=""):
        if left[0]:
            left[0] -= 1
            os.kill(processes_of(submission._runner)[-1].pid, signal.SIGKILL)
        return enter(submission, seconds, moment)

    monkeypatch.setattr(runner.Submission, "questioned", killed)
    step = execute.JudgedExecute(sandbox=name)
    graded, _ = step.preprocess(notebook, {"nbgrader": {"assignment": ASSIGNMENT.id, "student": "honest"}})
    outputs = [output for cell in graded.cells for output in cell.get("outputs", [])]
    return [output.metadata.judged for output in outputs if output.get("metadata", {}).get("judged")]


def test_a_process_that_is_killed_from_outside_once_costs_nobody_a_point(tmp_path, monkeypatch):
    records = graded_while_killed(1, tmp_path, monkeypatch)
    assert sum(record["points"] for record in records) == ASSIGNMENT.points


def test_a_process_killed_twice_leaves_what_it_was_asked_then_unchecked_and_nothing_else(tmp_path, monkeypatch):
    first, *others = graded_while_killed(2, tmp_path, monkeypatch)
    assert (first["checked"], first["excused"], first["points"]) == (False, True, 0)
    assert [record["points"] for record in others] == [exercise.points for exercise in ASSIGNMENT.exercises[1:]]


def test_files_beside_the_notebook_are_there_and_can_be_imported(warm):
    files = {"my_helpers.py": b"value = 6", "numbers.txt": b"7"}
    with warm.submission(files) as submission:
        assert shown(submission, "import my_helpers\nmy_helpers.value * int(open('numbers.txt').read())") == "42"
        submission.run("%%writefile later.py\nvalue = 8")
        assert shown(submission, "import later\nlater.value") == "8"
    with warm.submission() as submission:
        assert "No module named" in shown(submission, "import my_helpers")


@pytest.mark.parametrize("name", ["torch", "json", "autograder", "transformer_ref"])
def test_files_beside_the_notebook_never_hide_a_package(warm, name):
    with warm.submission({f"{name}.py": b"raise SystemExit('forged')"}) as submission:
        source = f"import importlib, sys\nsys.modules.pop('{name}', 0)\nimportlib.util.find_spec('{name}').origin"
        assert f"{name}/__init__.py" in shown(submission, source)


def test_only_plain_files_of_the_wanted_names_are_handed_over(tmp_path):
    (tmp_path / "own.py").write_text("x", encoding="utf-8")
    (tmp_path / "other.py").write_text("x", encoding="utf-8")
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "fifo.py")
    names = ["own.py", "link.py", "fifo.py", "missing.py", "../own.py", "."]
    assert files_beside(tmp_path, names) == {"own.py": b"x"}


def test_an_installer_does_not_wait_for_a_network(submission):
    assert shown(submission, "import os\nos.environ['PIP_NO_INDEX'], os.environ['PIP_RETRIES']") == "('1', '0')"


def test_what_is_written_beyond_the_limit_costs_nothing(monkeypatch):
    recorder, measured = shell.CellOutputs(), []
    recorder.begin(1000, "the rest was too long")
    monkeypatch.setattr(shell.json, "dumps", lambda output, dumps=shell.json.dumps: measured.append(1) or dumps(output))
    for number in range(100_000):
        recorder.write("stdout", f"{number}\n")
    assert len(measured) <= 2
    text = "".join(output["text"] for output in recorder.outputs())
    assert text.startswith("0\n1\n") and text.endswith("the rest was too long") and len(text) < 1100


def test_outputs_of_all_cells_together_have_a_limit_that_is_said_where_they_are_cut(submission):
    outputs = [submission.run("print('x' * 900_000)").outputs for _ in range(4)]
    texts = ["".join(output.text for output in of_cell) for of_cell in outputs]
    assert sum(map(len, texts)) < LIMITS.notebook_output_bytes + 1000
    assert "too long" not in texts[1] and "all outputs of a notebook together may take 2 MiB" in texts[3]


def test_a_tree_that_no_path_reaches_leaves_nothing_and_the_next_one_runs(warm):
    deep = "import os\nfor _ in range(1500):\n    os.mkdir('d'); os.chdir('d')\nos.mkdir('locked', 0)\n'made'"
    with warm.submission() as submission:
        try:
            shown(submission, deep)
        except Ended as ended:
            assert "nested" in str(ended)
    assert not os.listdir(warm._folder.path / "homes")
    with warm.submission() as submission:
        assert shown(submission, "1 + 1") == "2"
