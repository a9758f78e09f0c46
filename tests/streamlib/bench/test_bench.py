"""`streamlib bench`: figures of the workloads or of one's own capture, as a table, as records and as a chart."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from streamlib.bench import chart, feed, growth
from streamlib.bench.records import OURS, Record, as_json, record, shown, table
from streamlib.bench.workloads import FAST, WORKLOADS, Workload
from streamlib.cli import bench, main

SHORT = WORKLOADS["tiny-chunks"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "WINDOW", 0)


def test_every_case_is_measured_in_each_of_its_chunkings() -> None:
    found = feed.cases([SHORT, WORKLOADS["thinking-then-tools"]])
    records = feed.measure(found, 1)
    assert [(case.name, case.chunking) for case in found] == [
        ("tiny-chunks", "3 B"),
        ("thinking-then-tools", "an event"),
        ("thinking-then-tools", "16 KiB"),
    ]
    assert {one.measure for one in records} == {
        "time",
        "events",
        "bytes",
        "first event",
        "peak memory",
    }
    assert len(records) == 5 * len(found)
    assert all(one.best > 0 for one in records)
    assert feed.cases([SHORT], 64)[0].chunks[0] == b"".join(SHORT.events())[:64]


def test_growth_is_that_of_exactly_twice_the_bytes() -> None:
    once, twice = growth.doubled(SHORT, FAST)
    assert 1.5 < twice.size / once.size <= 2.05
    assert growth.factor(once, twice, [1.0, 2.0], [twice.size / once.size] * 2) == pytest.approx(
        (2.0, 1.0)
    )
    assert [(one.measure, one.unit) for one in growth.measure([SHORT], 1)] == [("doubling", "x")]


def test_a_record_has_the_best_round_and_the_middle_one() -> None:
    one = record("feed", "chat", "16 KiB", OURS, "time", "ns", [3.0, 1.0, 2.0])
    assert (one.best, one.median) == (1.0, 2.0)
    assert [shown(value) for value in (1234.5, 12.34, 1.234)] == ["1,234", "12.3", "1.23"]


def test_a_table_has_a_column_for_each_measure_or_each_contestant() -> None:
    records = [
        Record("peers", "chat", "an event", name, "time", "µs", value, value)
        for name, value in ((OURS, 1.5), ("openai", 120.0))
    ]
    assert table(records, "contestant").splitlines()[1].split() == [
        "chat",
        "an",
        "event",
        "time",
        "(µs)",
        "1.50",
        "120",
    ]
    assert table(records).splitlines()[0].split() == ["workload", "chunks", "of", "time", "(µs)"]


def test_a_chart_is_a_picture_with_a_bar_for_each_record() -> None:
    records = [
        Record("peers", "<chat>", "16 KiB", name, "time", "x", value, value)
        for name, value in ((OURS, 1.5), ("open&ai", 120.0))
    ]
    picture = ET.fromstring(chart.bars("times", records))
    rects = [rect for rect in picture.iter("{http://www.w3.org/2000/svg}rect") if rect.get("x")]
    assert [float(rect.get("width") or 0) for rect in rects] == sorted(
        float(rect.get("width") or 0) for rect in rects
    )
    assert len(rects) == 2
    assert ET.fromstring(chart.bars("nothing", [])).tag.endswith("svg")


def test_records_are_written_with_the_machine_they_were_taken_on() -> None:
    written = json.loads(as_json([Record("feed", "chat", "16 KiB", OURS, "time", "ns", 1, 1)]))
    assert set(written["machine"]) == {"streamlib", "python", "system", "cpu"}
    assert set(written["records"][0]) == {
        "bench",
        "workload",
        "chunks",
        "contestant",
        "measure",
        "unit",
        "best",
        "median",
    }


def test_the_command_prints_a_table_and_writes_records_and_a_chart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = [str(tmp_path / name) for name in ("f.json", "f.svg")]
    assert (
        main(
            [
                "bench",
                "--workload",
                "tiny-chunks",
                "--rounds",
                "1",
                "--json",
                out[0],
                "--chart",
                out[1],
            ]
        )
        == 0
    )
    printed, told = capsys.readouterr()
    assert "tiny-chunks" in printed
    assert "doubling" in printed
    assert told == ""
    assert json.loads(Path(out[0]).read_bytes())["records"]
    assert ET.parse(out[1]).getroot().tag.endswith("svg")


@pytest.mark.parametrize(
    "workload", [WORKLOADS["chat-text"], WORKLOADS["aws-frames"]], ids=lambda one: one.name
)
def test_a_capture_of_ones_own_is_timed_by_its_events(
    workload: Workload, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = workload.events()
    path = tmp_path / "capture"
    path.write_bytes(b"".join(events))
    assert feed.capture("capture", path.read_bytes(), workload.wire_api)[0].events == len(events)
    assert (
        main(
            [
                "bench",
                str(path),
                "--wire-api",
                workload.wire_api,
                "--chunk",
                "4096",
                "--rounds",
                "1",
            ]
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert "4 KiB" in printed
    assert "doubling" not in printed


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["FILE"], 2, "which wire"),
        (["FILE", "--wire-api", "chat"], 1, "no whole stream"),
        (["missing", "--wire-api", "chat"], 1, "missing: No such file"),
        (["--workload", "nothing"], 1, "there are messages, chat"),
    ],
    ids=["no wire", "another wire", "no file", "no such workload"],
)
def test_wrong_words_are_answered_with_what_to_do(
    words: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "FILE"
    path.write_bytes(b"".join(SHORT.events())[:-40])
    assert main(["bench", *(str(path) if word == "FILE" else word for word in words)]) == code
    assert said in capsys.readouterr().err


def test_the_bar_is_drawn_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
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
