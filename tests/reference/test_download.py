"""A download goes on where it was dropped, knows a wrong file, and tries the next mirror."""

import hashlib
import io
import random

import pytest
from file_server import FileServer

from transformer_ref.data.download import DownloadError, download

CONTENT = random.Random(5).randbytes(200_003)
NAME = "train.en.gz"


@pytest.fixture
def server():
    with FileServer({NAME: CONTENT}).running() as running:
        yield running


@pytest.fixture
def fetch(tmp_path, server):
    """Return a function that downloads the file and returns its path."""

    def run(*mirrors: str, stream: io.StringIO | None = None):
        path = tmp_path / "deep" / NAME
        download(
            path,
            mirrors or [server.address],
            len(CONTENT),
            hashlib.sha256(CONTENT).hexdigest(),
            stream or io.StringIO(),
        )
        assert path.read_bytes() == CONTENT
        return path

    return run


def test_a_file_arrives_whole_with_nothing_left_beside_it(fetch):
    path = fetch()
    assert [each.name for each in path.parent.iterdir()] == [NAME]


def test_a_file_that_is_there_is_not_fetched_again(fetch, server):
    fetch()
    fetch()
    assert server.requests == [(NAME, 0)]


def test_a_dropped_connection_goes_on_where_it_was_dropped(fetch, server):
    server.breaks_after = [70_001, 50_000]
    fetch()
    assert server.requests == [(NAME, 0), (NAME, 70_001), (NAME, 120_001)]


def test_a_download_begun_yesterday_goes_on_today(fetch, server):
    server.breaks_after = [90_000, 0]
    with pytest.raises(DownloadError, match="expected 200,003 bytes, got 90,000"):
        fetch()
    server.requests.clear()
    fetch()
    assert server.requests == [(NAME, 90_000)]


def test_a_server_that_cannot_send_a_part_sends_the_whole(fetch, server):
    server.breaks_after, server.ranges = [70_001], False
    fetch()
    assert server.requests == [(NAME, 0), (NAME, 70_001)]


def test_a_corrupted_file_is_refused_and_removed(fetch, server, tmp_path):
    server.files[NAME] = CONTENT[:1_000] + b"?" + CONTENT[1_001:]
    with pytest.raises(DownloadError, match=r"127.0.0.1:\d+: expected the SHA-256 \w{12}..., got \w{12}"):
        fetch()
    assert list((tmp_path / "deep").iterdir()) == []


@pytest.mark.parametrize("wrong", [CONTENT[:-1], CONTENT + b"?", b""])
def test_a_file_of_another_size_is_refused(fetch, server, wrong):
    server.files[NAME] = wrong
    with pytest.raises(DownloadError, match="expected 200,003 bytes, got"):
        fetch()


def test_the_next_mirror_is_tried_when_one_is_down_or_lacks_the_file_or_has_a_wrong_one(fetch, server):
    wrong = FileServer({NAME: CONTENT[::-1]})
    with FileServer({}).running() as empty, wrong.running():
        fetch("http://127.0.0.1:9/nobody", empty.address, wrong.address, server.address)
    assert server.requests == [(NAME, 0)]


def test_a_wrong_beginning_is_not_blamed_on_the_mirror_that_only_added_the_end(fetch, server, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / f"{NAME}.part").write_bytes(b"?" * 1_000)
    fetch()
    assert server.requests == [(NAME, 1_000), (NAME, 0)]


def test_when_no_mirror_has_it_each_one_s_reason_is_told(fetch):
    with FileServer({}).running() as empty, pytest.raises(DownloadError) as caught:
        fetch("http://127.0.0.1:9/nobody", empty.address)
    assert "Connection refused" in str(caught.value) and "Not Found" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_bar_is_one_line_in_a_log_and_is_rewritten_in_a_terminal(fetch):
    log, terminal = io.StringIO(), io.StringIO()
    terminal.isatty = lambda: True
    path = fetch(stream=log)
    path.unlink()
    fetch(stream=terminal)
    assert log.getvalue() == f"{NAME}  [{'#' * 24}]  195 of 195 KiB\n"
    assert terminal.getvalue().count("\r") > 1 and terminal.getvalue().count("\n") == 1
