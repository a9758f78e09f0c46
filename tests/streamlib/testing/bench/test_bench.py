"""`streamlib bench`: figures of the workloads or of a capture, as table, records and chart."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from streamlib.cli import bench, main
from streamlib.testing.bench import chart, feed, growth
from streamlib.testing.bench.records import OURS, BenchRecord, as_json, record, shown, table
from streamlib.testing.bench.workloads import FAST, WORKLOADS, Workload

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


def test_record_has_the_best_and_the_median_round() -> None:
    made = record("feed", "chat", "16 KiB", OURS, "time", "ns", [3.0, 1.0, 2.0])
    assert (made.best, made.median) == (1.0, 2.0)
    assert [shown(value) for value in (1234.5, 12.34, 1.234)] == ["1,234", "12.3", "1.23"]


def test_table_has_the_best_round_and_the_median() -> None:
    key = ("peers", "chat", "16 KiB")
    records = [
        BenchRecord(*key, OURS, "time", "µs", 1.5, 2.0),
        BenchRecord(*key, OURS, "streams", "count", 12, 12),
        BenchRecord(*key, "openai", "time", "µs", 120.0, 120.0),
    ]
    heading, own, peer = (line.split() for line in table(records).splitlines())
    assert heading == ["workload", "chunks", "of", "time", "(µs)", "streams", "(count)"]
    assert own == ["chat", "16", "KiB", OURS, "1.50", "/", "2.00", "12"]
    assert peer == ["chat", "16", "KiB", "openai", "120"]


def test_chart_is_an_svg_with_a_bar_for_each_record() -> None:
    records = [
        BenchRecord("peers", "<chat>", "16 KiB", name, "time", "x", value, value)
        for name, value in ((OURS, 1.5), ("open&ai", 120.0))
    ]
    picture = ET.fromstring(chart.bars("times", records))
    rects = [rect for rect in picture.iter("{http://www.w3.org/2000/svg}rect") if rect.get("x")]
    lengths = [float(rect.get("width") or 0) for rect in rects]
    assert lengths == sorted(lengths)
    assert len(rects) == 2
    # A colour alone tells nobody whose bar it is, and not every screen is white.
    assert [rect.get("fill") for rect in rects] == ["url(#message)", "url(#other)"]
    patterns = {part.get("id") for part in picture.iter("{http://www.w3.org/2000/svg}pattern")}
    assert {"message", "other"} <= patterns
    assert "prefers-color-scheme: dark" in ET.tostring(picture, "unicode")
    assert ET.fromstring(chart.bars("nothing", [])).tag.endswith("svg")


def test_json_has_the_records_and_the_machine() -> None:
    measured = BenchRecord("feed", "chat", "16 KiB", OURS, "time", "ns", 1, 1)
    written = json.loads(as_json([measured], "1.2.3"))
    assert written["machine"]["streamlib"] == "1.2.3"
    assert set(written["machine"]) == {"streamlib", "python", "system", "cpu", "load", "date"}
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
    assert json.loads(Path(out[0]).read_bytes())["records"]
    assert ET.parse(out[1]).getroot().tag.endswith("svg")


@pytest.mark.parametrize(
    "workload", [WORKLOADS["chat-text"], WORKLOADS["aws-frames"]], ids=lambda value: value.name
)
def test_capture_is_timed_by_its_events(
    workload: Workload, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = workload.events()
    path = tmp_path / "capture"
    path.write_bytes(b"".join(events))
    assert feed.capture("capture", path.read_bytes(), workload.wire_api)[0].events == len(events)
    arguments = ["--wire-api", workload.wire_api, "--chunk", "4096", "--rounds", "1"]
    assert main(["bench", str(path), *arguments]) == 0
    printed = capsys.readouterr().out
    assert "4 KiB" in printed
    assert "doubling" not in printed


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["FILE"], 2, "which wire"),
        (["FILE", "--wire-api", "chat"], 1, "is not a complete stream"),
        (["missing", "--wire-api", "chat"], 1, "missing: No such file"),
        (["--workload", "nothing"], 1, "there are messages, responses"),
    ],
    ids=["no wire", "another wire", "no file", "no such workload"],
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
