"""`streamlib inspect` and `replay` of a recording whose own file was truncated or damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamlib.cli import main
from streamlib.inspection.capture import Capture
from streamlib.inspection.inspector import read_capture
from streamlib.recording import Chunk, Recording, dump, load
from streamlib.recording.files import read, read_rest
from streamlib.wires.frame_offsets import frame_offsets
from streamlib_parsers.items import WireApi
from tests.support.awkward_captures import GEMINI, entry, har
from tests.support.inspections import body_of, paced
from tests.support.shared import ROOT

BODY = body_of("messages/aimock-tool.sse")

GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta/models/g:streamGenerateContent"

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def in_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "130")


def write_truncated(name: str = "r.jsonl", complete: int = 0) -> None:
    """Complete recordings, then the first line, three chunks, and half of a fourth."""
    whole = dump(paced(BODY, "messages"))
    lines = whole.splitlines(keepends=True)
    Path(name).write_bytes(whole * complete + b"".join(lines[:4]) + lines[4][:30])


def test_inspect_shows_the_chunks_that_can_be_read(capsys: Output) -> None:
    write_truncated()
    assert main(["inspect", "r.jsonl"]) == 3
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert lines[0] == "r.jsonl: failed (truncated)"
    assert lines[1].startswith("  messages · 600 bytes · model claude-opus-4-8")
    assert "  ! the recording itself is truncated at line 5" in lines
    assert output.err == ""


def test_truncation_at_a_line_names_the_last_one(capsys: Output) -> None:
    lines = dump(paced(BODY, "messages")).splitlines(keepends=True)
    Path("r.jsonl").write_bytes(b"".join(lines[:3]))
    assert main(["inspect", "r.jsonl"]) == 3
    assert "  ! the recording itself is truncated at line 3\n" in capsys.readouterr().out


def test_damage_in_the_middle_is_not_called_truncation(capsys: Output) -> None:
    lines = dump(paced(BODY, "messages")).splitlines(keepends=True)
    lines[2] = b'{"at":0.1,"data":"%%%"}\n'
    Path("r.jsonl").write_bytes(b"".join(lines))
    assert main(["inspect", "r.jsonl"]) == 3
    assert "the recording itself cannot be read from line 3 on" in capsys.readouterr().out


def test_complete_recordings_are_shown_first(capsys: Output) -> None:
    write_truncated(complete=2)
    assert main(["inspect", "r.jsonl", "--json"]) == 0
    shown: list[dict[str, Any]] = [
        json.loads(line) for line in capsys.readouterr().out.splitlines()
    ]
    assert [(each["file"], each["terminal"]) for each in shown] == [
        ("r.jsonl#1", "completed"),
        ("r.jsonl#2", "completed"),
        ("r.jsonl#3", "failed"),
    ]
    assert [finding["code"] for finding in shown[2]["findings"]][-1] == "recording_truncated"


@pytest.mark.parametrize("command", [["inspect", "--html", "o.html"], ["inspect", "--json"]])
def test_documents_are_made_of_a_truncated_recording(command: list[str]) -> None:
    write_truncated()
    assert main([*command, "r.jsonl"]) == 0


def test_diff_compares_a_truncated_recording(capsys: Output) -> None:
    write_truncated()
    Path("whole.jsonl").write_bytes(dump(paced(BODY, "messages")))
    assert main(["inspect", "whole.jsonl", "r.jsonl", "--diff"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("different: ")
    failed = next(number for number, line in enumerate(lines) if line.endswith("  failed"))
    assert lines[failed + 1].strip() == "B 'the recording itself is truncated at line 5'"


def test_replay_plays_a_truncated_recording_as_truncated(capsys: Output) -> None:
    write_truncated()
    assert main(["replay", "r.jsonl", "--speed", "0"]) == 3
    assert capsys.readouterr().err.endswith("the recording itself is truncated at line 5\n")


def test_replay_never_ends_a_truncated_recording_well(capsys: Output) -> None:
    body = body_of("gemini/aimock-tool.sse")
    lines = dump(paced(body, "gemini")).splitlines(keepends=True)
    Path("r.jsonl").write_bytes(b"".join(lines[:-1]))
    assert main(["replay", "r.jsonl", "--speed", "0"]) == 3
    assert "the recording itself is truncated" in capsys.readouterr().err


def test_response_is_whole_though_its_har_is_cut_behind_it(capsys: Output) -> None:
    """It was incomplete, with exit code 3; also when the document of it is opened again."""
    data = har(entry(GEMINI.decode(), GEMINI_URL), entry("<p>", "https://chat.example/"))
    Path("cut.har").write_bytes(data[:-100])
    assert main(["inspect", "cut.har"]) == 0
    assert "behind this response the HAR file is cut" in capsys.readouterr().out
    assert main(["inspect", "cut.har", "--json", "--full"]) == 0
    Path("document.json").write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["inspect", "document.json"]) == 0
    assert "behind this response the HAR file is cut" in capsys.readouterr().out


def test_load_still_refuses_a_truncated_recording() -> None:
    write_truncated()
    with pytest.raises(ValueError, match="line 5 cannot be read"):
        load("r.jsonl")
    recordings, problem = read(Path("r.jsonl").read_bytes())
    assert recordings == []
    assert problem is not None


@pytest.mark.parametrize(
    ("wire_api", "name", "is_final"),
    [
        ("chat", "aimock-tool.sse", True),  # [DONE] is the last that the wire knows
        ("converse", "aimock-tool.eventstream", True),
        ("gemini", "aimock-thinking.sse", False),  # a finishReason may be repeated
        ("messages", "aimock-tool.sse", True),
        ("ollama", "aimock-thinking.ndjson", True),
        ("responses", "aimock-tool.sse", True),
    ],
)
def test_truncated_recording_is_never_taken_for_complete(
    wire_api: WireApi, name: str, *, is_final: bool
) -> None:
    body = (ROOT / "tests" / "recordings" / wire_api / name).read_bytes()
    frames = [body[start:end] for start, end in frame_offsets(wire_api, body)]
    chunks = tuple(Chunk(0.1, frame) for frame in frames)
    lines = dump(Recording(200, {}, chunks, wire_api=wire_api)).splitlines(keepends=True)
    for count in range(1, len(lines)):
        rest = read_rest(b"".join(lines[:count]), [])
        assert rest is not None
        capture = Capture("r", wire_api, rest.recording, is_recorded=True, truncation=rest.reason)
        reading = read_capture(capture)
        assert "recording_truncated" in [finding.code for finding in reading.findings]
        is_whole = count == len(lines) - 1
        assert reading.positions.is_completed == (is_whole and is_final)
