"""`streamlib bench`: figures of the workloads or of a capture, as table, records and chart."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from streamlib.cli import bench, main
from streamlib.inspection.capture import Capture
from streamlib.recording import from_body
from streamlib.testing.bench import corpus, feed, growth
from streamlib.testing.bench.records import (
    OURS,
    Figure,
    as_json,
    figure,
    joined,
    make_result,
    read,
    shown,
    table,
)
from streamlib.testing.bench.workloads import FAST, WORKLOADS, Workload
from streamlib_parsers import build_kind

SHORT = WORKLOADS["tiny-chunks"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "WINDOW", 0)


def test_feed_measures_every_case_in_each_chunking() -> None:
    cases = feed.cases([SHORT, WORKLOADS["thinking-then-tools"]])
    records = feed.measure(cases, 1)
    assert [(case.name, case.chunking) for case in cases] == [
        ("tiny-chunks", "3 B"),
        ("thinking-then-tools", "an event"),
        ("thinking-then-tools", "16 KiB"),
    ]
    measures = {"time", "events", "bytes", "first event", "peak memory"}
    assert {entry.measure for entry in records} == measures
    assert len(records) == 5 * len(cases)
    assert all(entry.best > 0 for entry in records)
    assert feed.cases([SHORT], 64)[0].chunks[0] == b"".join(SHORT.events())[:64]


def test_growth_is_for_exactly_twice_the_bytes() -> None:
    single, double = growth.doubled(SHORT, FAST)
    ratio = double.size / single.size
    assert 1.5 < ratio <= 2.05
    factors = growth.factor(single, double, [1.0, 2.0], [ratio, ratio])
    assert factors == pytest.approx((2.0, 1.0))
    (measured,) = growth.measure([SHORT], 1)
    assert (measured.measure, measured.unit) == ("doubling", "x")


def test_figure_has_the_best_and_the_median_round() -> None:
    made = figure("feed", "chat", "16 KiB", OURS, "time", "ns", [3.0, 1.0, 2.00001])
    assert (made.best, made.median, made.spread) == (1.0, 2.0, (1.0, 3.0))
    rate = figure("feed", "chat", "16 KiB", OURS, "bytes", "MB/s", [3.0, 1.0, 2.0])
    assert (rate.best, rate.median) == (3.0, 2.0)
    assert [shown(value) for value in (1234.5, 12.34, 1.234)] == ["1,234", "12.3", "1.23"]


def test_table_has_the_best_round_and_the_median() -> None:
    key = ("peers", "chat", "16 KiB")
    figures = [
        Figure(*key, OURS, "time", "µs", (1.5, 2.0, 2.5)),
        Figure(*key, OURS, "streams", "count", (12,)),
        Figure(*key, "openai", "time", "µs", (120.0,)),
        Figure(*key, "openai", "ratio", "x", (50.0, 60.0, 70.0)),
    ]
    heading, own, peer = (line.split() for line in table(figures).splitlines())
    units = ["time", "(µs)", "streams", "(count)", "ratio", "(x)"]
    assert heading == ["workload", "chunks", "of", *units]
    assert own == ["chat", "16", "KiB", OURS, "1.50", "/", "2.00", "12"]
    assert peer == ["chat", "16", "KiB", "openai", "120", "60.0"]


def test_run_names_its_time_machine_and_build() -> None:
    measured = Figure("feed", "chat", "16 KiB", OURS, "time", "ns", (1, 2))
    made = make_result("x", [measured], "0.1, 0.2")
    date, load, build, cores = made.origin()
    assert "UTC" in date
    assert load.startswith("load 0.1, 0.2 before, ")
    kind = "compiled" if build_kind.compiled else "pure Python"
    assert f"{kind}, Python 3." in build
    assert " cores of " in cores


def test_file_of_a_result_can_be_read_again(tmp_path: Path) -> None:
    measured = Figure("feed", "chat", "16 KiB", OURS, "time", "ns", (1.0, 2.0))
    made = make_result("x", [measured], "0.1, 0.2")
    path = tmp_path / "f.json"
    path.write_text(as_json(made), encoding="utf-8")
    assert read(path) == made
    path.write_text('{"machine": {}, "records": []}', encoding="utf-8")
    with pytest.raises(ValueError, match="not written by `streamlib bench --json`"):
        read(path)


def test_command_prints_a_table_and_writes_json_and_chart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = [str(tmp_path / name) for name in ("f.json", "f.svg")]
    arguments = ["--workload", "tiny-chunks", "--rounds", "1", "--json", out[0], "--chart", out[1]]
    assert main(["bench", *arguments]) == 0
    printed, errors = capsys.readouterr()
    assert "tiny-chunks" in printed
    assert "doubling" in printed
    assert errors == ""
    assert read(Path(out[0])).figures
    assert ET.parse(out[1]).getroot().tag.endswith("svg")


def test_rounds_are_spread_over_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rounds of one process say nothing of the next one: hashes and addresses differ."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("prints_its_process.py").write_text(
        "import os\n\n\ndef read(chunks):\n    print('by', os.getpid())\n    return [*chunks]\n",
        encoding="utf-8",
    )
    Path("body.txt").write_bytes(b"a line\n" * 9)
    arguments = ["body.txt", "--parser", "prints_its_process:read", "--chunk", "100"]
    assert main(["bench", *arguments, "--rounds", "3", "--json", "f.json"]) == 0
    # What the first says is shown, once.
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("by")]
    assert len({*shown}) == 1
    assert shown[0] != f"by {os.getpid()}"
    (time,) = read(Path("f.json")).find(measure="time")
    assert time.processes == len(time.rounds) == len(time.yardstick) == 3
    assert all(value > 0 for value in time.yardstick)


def test_process_that_cannot_measure_is_the_commands_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", str(tmp_path / "missing"), "--rounds", "2"]) == 1
    error = capsys.readouterr().err
    assert error.endswith("missing: No such file or directory\n")
    assert error.count("\n") == 1


def test_more_rounds_than_processes_are_the_same_for_each() -> None:
    of_process = [[figure("feed", "chat", "x", OURS, "time", "µs", [1, 2], [1e-6, 2e-6])]] * 3
    (time,) = joined(of_process)
    assert time.processes == 3
    assert time.by_process(time.rounds) == [(1.0, 2.0)] * 3
    assert time.by_process(time.yardstick) == [(1.0, 2.0)] * 3


@pytest.mark.parametrize(
    "workload", [WORKLOADS["chat-text"], WORKLOADS["aws-frames"]], ids=lambda value: value.name
)
def test_capture_is_timed_by_its_events(
    workload: Workload, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = workload.events()
    path = tmp_path / "capture"
    path.write_bytes(b"".join(events))
    arguments = ["--wire-api", workload.wire_api, "--chunk", "4096", "--rounds", "1"]
    assert main(["bench", str(path), *arguments]) == 0
    printed = capsys.readouterr().out
    assert "4 KiB" in printed
    assert "doubling" not in printed
    capture = Capture("capture", workload.wire_api, from_body(path.read_bytes()), is_recorded=False)
    assert corpus.of_capture(capture).cases(0)[0].events == len(events)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["FILE"], 1, "read as messages, as it looks"),
        (["FILE", "--wire-api", "chat"], 1, "is not a complete stream"),
        (["missing", "--wire-api", "chat"], 1, "missing: No such file"),
        (["--workload", "nothing"], 1, "there are messages, responses"),
    ],
    ids=["a guessed wire", "another wire", "no file", "no such workload"],
)
def test_command_names_what_is_wrong_with_an_argument(
    arguments: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "FILE"
    path.write_bytes(b"".join(SHORT.events())[:-40])
    command = ["bench", *arguments]
    if arguments[0] == "FILE":
        command[1] = str(path)
    assert main(command) == code
    assert message in capsys.readouterr().err


def test_progress_bar_is_drawn_on_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    bar = bench.Bar(4, drawn.append)
    for name in ("first", "second", "third"):
        bar.advance(name)
    bar.done()
    assert [line.count("#") for line in drawn] == [0, 7, 15, 0]
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    quiet = bench.Bar(4, drawn.append)
    quiet.advance("nothing")
    quiet.done()
    assert len(drawn) == 4


# --- the heap ---


def test_frozen_heap_leaves_frozen_what_was() -> None:
    """Else whatever runs after a benchmark in this process would walk all of it again and again."""
    gc.freeze()
    frozen = gc.get_freeze_count()
    with feed.frozen_heap():
        assert gc.get_freeze_count() >= frozen
    assert gc.get_freeze_count() >= frozen
