"""Recorded streams of a folder: which are read, in which chunks, and the figures of each length."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamlib.cli import main
from streamlib.recording import from_body
from streamlib.recording.files import dump
from streamlib.testing.bench import bodies, corpus, feed
from streamlib.testing.bench.responses import SampleText, short
from streamlib_parsers import WIRE_APIS, WireApi
from tests.support.shared import ROOT


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "WINDOW", 0)


def body(wire: WireApi, deltas: int) -> list[bytes]:
    """The events of a text of so many deltas."""
    return bodies.body(wire, (SampleText(("word ",) * deltas),))


def write(folder: Path, name: str, events: list[bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(b"".join(events))
    return path


@pytest.mark.parametrize("wire", WIRE_APIS)
def test_load_splits_a_body_at_the_events_of_its_wire(wire: WireApi, tmp_path: Path) -> None:
    events = bodies.body(wire, short(1))
    path = write(tmp_path, "a.sse", events)
    (stream,), left_out = corpus.load([path])
    assert (stream.wire_api, stream.name) == (wire, "a.sse")
    assert stream.events == events
    assert not left_out


def test_load_splits_events_that_end_in_crlf(tmp_path: Path) -> None:
    events = [event.replace(b"\n", b"\r\n") for event in body("gemini", 3)]
    (stream,), _ = corpus.load([write(tmp_path, "a.sse", events)])
    assert stream.events == events


def test_load_counts_what_it_leaves_out_by_reason(tmp_path: Path) -> None:
    events = body("messages", 3)
    files = [
        write(tmp_path, "whole.sse", events),
        write(tmp_path, "again.sse", events),
        write(tmp_path, "cut.sse", events[:-2]),
        write(tmp_path, "other.sse", [b"data: {}\n\n"]),
        write(tmp_path, "payloads.jsonl", [b'{"type":"message_start"}\n']),
    ]
    streams, left_out = corpus.load(files)
    assert [stream.name for stream in streams] == ["whole.sse"]
    assert corpus.described(left_out) == (
        "1 equal to another, 1 of no known wire API, 1 without a complete response"
    )
    assert corpus.load(files, "chat")[0] == []


def test_load_reads_recordings_of_streamlib(tmp_path: Path) -> None:
    events = body("chat", 3)
    path = write(tmp_path, "a.jsonl", [dump(from_body(b"".join(events)))])
    (stream,), _ = corpus.load([path])
    assert stream.events == events


def test_files_in_reads_folders_below_and_refuses_a_file(tmp_path: Path) -> None:
    path = write(tmp_path / "below", "a.ndjson", body("ollama", 1))
    write(tmp_path, "notes.txt", [b"x"])
    assert corpus.files_in(tmp_path) == [path]
    with pytest.raises(ValueError, match="is not a folder"):
        corpus.files_in(path)


def test_measure_divides_by_events_and_by_responses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [write(tmp_path, f"{n}.sse", body("chat", n)) for n in (2, 3, 100)]
    streams, _ = corpus.load(files)
    lengths = [len(stream.events) for stream in streams]
    monkeypatch.setattr(corpus, "seconds", lambda case: 6e-6 * case.events)
    records = corpus.measure(streams, 2)
    found = {(entry.workload, entry.chunks, entry.measure): entry.best for entry in records}
    assert {name for name, _, _ in found} == {
        "chat, all",
        "chat, 1-12 events",
        "chat, over 50 events",
    }
    for chunks in ("an event", "16 KiB"):
        assert found["chat, all", chunks, "streams"] == 3
        assert found["chat, 1-12 events", chunks, "streams"] == 2
        assert found["chat, all", chunks, "an event"] == pytest.approx(6)
        mean = sum(lengths) / 3
        assert found["chat, all", chunks, "a response"] == pytest.approx(6 * mean)


def test_share_of_events_that_are_read_at_once() -> None:
    usual = [b": comment\n\n", *body("messages", 7)]
    several_lines = [b"data: {\ndata: }\n\n"] * len(usual)
    stream = corpus.Stream("a", "messages", usual + several_lines)
    # The first chunk of a stream may begin with a mark of the byte order.
    at_once = (len(usual) - 1) / (2 * len(usual))
    assert corpus.read_at_once([stream]) == pytest.approx(at_once)


def test_command_times_the_recordings_of_this_repository(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = str(ROOT / "tests" / "recordings"), str(tmp_path / "f.json")
    chart = tmp_path / "f.svg"
    arguments = ["--rounds", "1", "--wire-api", "chat", "--json", out, "--chart", str(chart)]
    assert main(["bench", "--corpus", folder, *arguments]) == 0
    printed = capsys.readouterr().out
    assert "chat, 1-12 events" in printed
    assert "messages" not in printed
    assert "load" in printed.splitlines()[0]
    records = json.loads(Path(out).read_bytes())["figures"]
    measures = {"streams", "read at once", "an event", "a response"}
    assert {entry["measure"] for entry in records} == measures
    assert "chat, all" in chart.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--chunk", "0"], 2, "--corpus takes no --chunk"),
        (["--workload", "chat"], 2, "--corpus takes no --workload"),
        (["FILE"], 2, "--corpus takes no FILE"),
        ([], 1, "no complete recorded stream in"),
    ],
)
def test_command_refuses_options_that_a_corpus_lacks(
    arguments: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["bench", "--corpus", str(tmp_path), *arguments]) == code
    assert message in capsys.readouterr().err
