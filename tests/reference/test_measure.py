"""The command of chapter 16 measures what it says."""

import json

import pytest
import torch

from transformer_ref.beyond.measure import (
    WAYS,
    ahead_from,
    calls_of,
    fastest,
    figures,
    least_seconds,
    main,
    measure,
    peak_bytes,
    steps_of,
)

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def record():
    return measure(130, CPU, repeats=1)


def test_the_most_bytes_at_once_are_counted_and_not_their_sum():
    def one_after_the_other():
        for _ in range(5):
            torch.ones(1000).add_(1)

    assert 4000 <= peak_bytes(one_after_the_other) < 8000
    assert peak_bytes(lambda: (torch.ones(1000), torch.ones(500))) >= 6000


def test_nothing_is_said_while_memory_is_measured(capfd):
    peak_bytes(lambda: torch.ones(3))
    assert capfd.readouterr() == ("", "")


def test_the_least_of_the_samples_counts_and_neither_the_first_call_nor_the_trial():
    now, takes = [0.0], {"one": iter([9, 1, 3, 2, 5]), "other": iter([1, 1, 8, 8, 7])}

    def call(name):
        return lambda: now.__setitem__(0, now[0] + next(takes[name]))

    assert least_seconds({name: call(name) for name in takes}, 3, CPU, clock=lambda: now[0]) == {"one": 2, "other": 7}


def test_a_quick_call_is_made_often_enough_for_a_coarse_clock():
    now, made = [0.0], []

    def call():
        made.append(1)
        now[0] += 0.001

    assert least_seconds({"one": call}, 1, CPU, clock=lambda: now[0])["one"] == pytest.approx(0.001)
    assert len(made) == 2 + 10


@pytest.mark.parametrize("causal", [False, True])
def test_all_ways_that_give_the_softmax_agree(causal):
    results = {way: call() for way, call in calls_of(70, causal, CPU).items()}
    assert list(results) == list(WAYS)
    for way in ("tiles", "fused"):
        torch.testing.assert_close(results[way], results["table"], atol=1e-5, rtol=1e-4)
    assert results["linear"].shape == results["table"].shape


def test_a_table_without_room_is_left_out():
    assert list(calls_of(512, False, CPU, room=0.01)) == ["tiles", "fused", "linear"]
    record = measure(64, CPU, repeats=1, room=0.0)
    assert record["all"]["table"] == {"seconds": [None], "bytes": [None]}
    assert "table" not in fastest(record, "all")


def test_lengths_double_and_every_way_has_a_number_for_each(record):
    assert record["lengths"] == [64, 128]
    for read in ("all", "earlier", "step"):
        for found in record[read].values():
            assert [len(values) for values in found.values()] == [2, 2]
            assert all(value > 0 for values in found.values() for value in values)


def test_a_cache_grows_with_its_tokens_and_a_state_does_not(record):
    assert record["step"]["8 groups"]["bytes"] == [2 * 8 * 64 * n * 4 for n in (64, 128)]
    assert record["step"]["1 group"]["bytes"] == [2 * 64 * n * 4 for n in (64, 128)]
    assert record["step"]["linear"]["bytes"] == [8 * (64 * 64 + 64) * 4] * 2


def test_a_step_of_each_kind_gives_a_row_for_each_head():
    found = {name: call() for name, (call, _) in steps_of(9, CPU).items()}
    assert {tuple(found[name].shape) for name in found if name != "linear"} == {(1, 8, 1, 64)}
    assert found["linear"][1].shape == (1, 8, 64)


def test_who_is_ahead_is_read_off_all_lengths():
    seconds = {"a": [1, 5, 3, 1], "b": [2, 4, 4, 4], "c": [None, 1, None, 9]}
    record = {"lengths": [64, 128, 256, 512], "all": {name: {"seconds": each} for name, each in seconds.items()}}
    assert fastest(record, "all") == ["a", "c", "a", "a"]
    assert ahead_from(record, "all", "a", "b") == 256
    assert ahead_from(record, "all", "b", "a") is None
    assert ahead_from(record, "all", "c", "a") is None
    assert ahead_from(record, "all", "a", "c") == 512


def test_figures_say_their_numbers_and_need_a_known_reading(record):
    time_figure, memory = figures(record, "all")
    assert "at 128" in time_figure.alt and "MB at 128" in memory.alt
    with pytest.raises(ValueError, match="read: expected one of all, earlier, step"):
        figures(record, "none")


def test_the_command_writes_numbers_and_figures_that_need_nothing_beside_them(tmp_path, capsys):
    output = tmp_path / "new" / "here.json"
    threads = torch.get_num_threads()
    words = ["--longest", "64", "--output", str(output), "--repeats", "1", "--device", "cpu"]
    assert main([*words, "--threads", "1", "--processor-time"]) == 0
    told = capsys.readouterr().out
    written = json.loads(output.read_text(encoding="utf-8"))
    assert written["machine"]["threads"] == 1 and written["machine"]["torch"] == torch.__version__
    assert "--longest 64" in written["command"] and "every token sees all" in told
    html = output.with_suffix(".html").read_text(encoding="utf-8")
    assert html.count("<svg") == 6 and "http" not in html.replace("http://www.w3.org/2000/svg", "")
    assert torch.get_num_threads() == threads
    assert sorted(path.name for path in output.parent.iterdir()) == ["here.html", "here.json"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--longest", "63"], "longest: expected at least 64 tokens, got 63"),
        (["--repeats", "0"], "expected at least 1"),
        (["--device", "tpu"], "device: expected"),
        (["--processor-time"], "--processor-time: expected --device cpu --threads 1"),
    ],
)
def test_what_cannot_be_measured_is_a_sentence(tmp_path, capsys, words, said):
    with pytest.raises(SystemExit):
        main([*words, "--output", str(tmp_path / "x.json")])
    assert said in capsys.readouterr().err


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_on_a_cuda_device_the_same_is_measured(tmp_path):
    output = tmp_path / "gpu.json"
    assert main(["--longest", "512", "--output", str(output), "--repeats", "2", "--device", "cuda"]) == 0
    written = json.loads(output.read_text(encoding="utf-8"))
    table, linear = (written["all"][way]["bytes"] for way in ("table", "linear"))
    assert written["machine"]["name"] == torch.cuda.get_device_name() and table[-1] > 8 * 512 * 512 * 4 > linear[-1]
    device = torch.device("cuda")
    for causal in (False, True):
        results = {way: call() for way, call in calls_of(300, causal, device).items()}
        for way in ("tiles", "fused"):
            torch.testing.assert_close(results[way], results["table"], atol=1e-3, rtol=1e-3)
        on_cpu = calls_of(300, causal, CPU)["linear"]()
        torch.testing.assert_close(results["linear"].cpu(), on_cpu, atol=1e-3, rtol=1e-3)
