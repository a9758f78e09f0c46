"""`streamlib inspect`: every byte of a capture has its row, whatever broke is named, and nothing in it can act on the terminal."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from streamlib.cli import main
from streamlib.cli.captures import Capture, events_of, opened
from streamlib.cli.findings import findings
from streamlib.cli.frames import steps
from streamlib.cli.progress import Progress
from streamlib.cli.timeline import page, rows
from streamlib.recording import Chunk, Recording, append, from_body, save
from streamlib_parsers import Completed, Failed
from tests.support.shared import ROOT

HOME = ROOT / "tests" / "recordings"
TOOL = HOME / "messages" / "aimock-tool.sse"
OWN = sorted(path for path in HOME.glob("*/*") if path.suffix != ".md")
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")

each_recording = pytest.mark.parametrize(
    "path", OWN, ids=[f"{path.parent.name}-{path.name}" for path in OWN]
)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "130")


def capture(body: bytes, wire_api: Any = "messages") -> Capture:
    return Capture("x", wire_api, from_body(body), ours=False)


def found(body: bytes, wire_api: Any = "messages") -> list[str]:
    one = capture(body, wire_api)
    return findings(one, list(steps(one)))


def frame(event: str, data: str) -> bytes:
    return f"event: {event}\ndata: {data}\n\n".encode()


def test_the_timeline_of_a_cut_answer_says_where_and_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cut.sse").write_bytes(TOOL.read_bytes()[:760])
    assert main(["inspect", str(tmp_path / "cut.sse"), "--wire-api", "messages"]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  messages · 760 bytes · claude-opus-4-8 · msg_XtFedZl30KTASrY2",
        "",
        "  byte  wire                               events",
        "     0  message_start                      Created msg_XtFedZl30KTASrY2 claude-opus-4-8",
        "                                           TokenCount 0 in, 0 out",
        "   253  content_block_start                OutputItemAdded 0 function_call get_weather",
        '   426  content_block_delta x2             FunctionCallArgumentsDelta 0 \'{"city":"Paris\'',
        "   701  content_block_delta, end of input  OutputItemDone 0 function_call get_weather INCOMPLETE",
        "                                           Failed truncated: the stream ended inside a message",
        "",
        '  call: get_weather \'{"city":"Paris\'',
        "  usage: 0 in, 0 out",
        "  ! not whole, truncated: the stream ended inside a message",
        '  ! cut at byte 760, inside the frame that began at byte 701: event: content_block_delta data: {"type":"content_block_del',
        "  ! never came: message_stop",
        '  ! item 0, function_call get_weather, was open: it stops after \'{"city":"Paris\'',
        "",
    ]


@each_recording
def test_each_byte_has_its_step_and_the_steps_say_what_the_parser_says(path: Path) -> None:
    one = capture(path.read_bytes(), path.parent.name)
    walked = list(steps(one))
    assert [event for step in walked for event in step.events] == events_of(one)
    assert [walked[0].start, *(step.end for step in walked[:-1])] == [step.start for step in walked]
    assert all(step.kind for step in walked)
    assert all(line.strip() for line in page(one, walked, 100))


@each_recording
def test_a_capture_that_is_cut_anywhere_is_never_called_whole(path: Path) -> None:
    body, wire_api = path.read_bytes(), path.parent.name
    for at in range(0, len(body), max(1, len(body) // 12)):
        one = capture(body[:at], wire_api)
        walked = list(steps(one))
        terminal = [event for step in walked for event in step.events][-1]
        said = findings(one, walked)
        assert isinstance(terminal, (Completed, Failed))
        assert (said[0] == "the answer is whole") is isinstance(terminal, Completed)
        assert isinstance(terminal, Completed) or any(
            f"byte {n:,}" in " ".join(said) for n in (at, walked[-1].start)
        )


def test_a_long_answer_is_a_few_rows() -> None:
    delta = (
        '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word N "}}'
    )
    deltas = b"".join(
        frame("content_block_delta", delta.replace("N", str(n))) for n in range(20_000)
    )
    start = b"".join(TOOL.read_bytes().partition(b"event: content_block_start")[:1])
    begin = frame(
        "content_block_start",
        '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
    )
    one = capture(start + begin + deltas)
    walked = list(steps(one))
    assert len(walked) == 20_003
    assert len(list(rows(walked))) == 4
    assert any(
        "x20,000" in line and "(208,890 characters)" in line and len(line) <= 110
        for line in page(one, walked, 110)
    )


def test_a_recording_knows_its_wire_and_when_its_bytes_came(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = TOOL.read_bytes()
    chunks = (Chunk(0.25, body[:300]), Chunk(4.5, body[300:500]), Chunk(4.75, body[500:]))
    name = tmp_path / "answer.jsonl"
    save(Recording(200, {}, chunks, wire_api="messages"), name)
    append(Recording(200, {}, chunks[:2], "ReadError", wire_api="messages"), name)
    assert main(["inspect", str(name)]) == 1
    first, second = capsys.readouterr().out.split("answer.jsonl#2")
    assert "     0    +0.250  message_start" in first
    assert "longest silence: 4.2 s, before byte 300" in first
    assert "the answer is whole" in first
    assert "the connection broke here (ReadError)" in second
    assert main(["inspect", str(name), "--json"]) == 0
    assert [json.loads(line)["terminal"] for line in capsys.readouterr().out.splitlines()] == [
        "completed",
        "failed",
    ]


def test_standard_input_is_a_file_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TOOL.read_bytes())))
    assert main(["inspect", "-", "--wire-api", "messages"]) == 0
    assert capsys.readouterr().out.startswith("-: completed (tool_calls)")


@pytest.mark.parametrize(
    "name",
    [
        "messages/aimock-tool.sse",
        "responses/aimock-tool.sse",
        "chat/aimock-tool.sse",
        "ollama/aimock-tool.ndjson",
    ],
)
def test_a_wire_is_never_guessed_but_hinted_at(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["inspect"], ["replay"], ["convert", "--to", "chat"]):
        assert main([*command, str(HOME / name)]) == 2
        assert f"it looks like --wire-api {name.partition('/')[0]}\n" in capsys.readouterr().err


def test_a_recording_that_stops_in_its_middle_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(from_body(b"data"), tmp_path / "r.jsonl")
    (tmp_path / "r.jsonl").write_bytes((tmp_path / "r.jsonl").read_bytes()[:-5])
    assert main(["inspect", str(tmp_path / "r.jsonl"), "--wire-api", "chat"]) == 1
    assert "begins as a recording of ours" in capsys.readouterr().err


def test_what_is_odd_is_named_with_its_place() -> None:
    whole = TOOL.read_bytes()
    unknown = frame("comet", '{"type":"comet"}')
    assert found(whole + unknown)[1:] == [f"unknown to this version, at byte {len(whole):,}: comet"]
    late = (HOME / "messages" / "llama-thinking.sse").read_bytes()
    assert found(late)[1:] == ["late end: item 0 was closed at byte 2,401, after item 1 had begun"]
    responses = (HOME / "responses" / "aimock-tool.sse").read_bytes()
    assert found(responses + b"tail", "responses")[1:] == [
        f"not read, 4 bytes after the end at byte {len(responses):,}: tail"
    ]
    assert found(whole.rstrip())[1:] == [
        f"end_inferred at byte {len(whole.rstrip()) - 49:,}: the stream ended without closing its last message"
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>502</html>",
        b"\x00\xff" * 300,
        b"event: x",
        b"data: {",
        b'{"a":',
        b"[]",
        b"null",
        b"\n\n\n",
    ],
)
@pytest.mark.parametrize(
    "wire_api", ["messages", "responses", "chat", "gemini", "converse", "invoke", "ollama"]
)
def test_any_bytes_have_a_page(body: bytes, wire_api: str) -> None:
    one = capture(body, wire_api)
    walked = list(steps(one))
    text = "\n".join([*page(one, walked, 80), *findings(one, walked)])
    assert not CONTROLS.search(text)
    assert "the answer is whole" not in text


def test_nothing_in_a_capture_can_move_the_cursor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]0;owned\x07\u202e"
    escaped = json.dumps(evil)[1:-1]
    body = (
        TOOL.read_bytes()
        .replace(b"get_weather", escaped.encode())
        .replace(b"Paris", escaped.replace("\\", "\\\\").encode())
    )
    name = tmp_path / "evil.sse"
    name.write_bytes(
        frame(evil.replace("\x07", "\x1b"), "{}")
        + body.replace(b"claude-opus-4-8", escaped.encode())[:-60]
    )
    assert main(["inspect", str(name), "--wire-api", "messages"]) == 1
    shown = capsys.readouterr().out
    assert "owned" in shown
    assert not CONTROLS.search(shown)


@pytest.mark.parametrize("words", [["inspect", "x", "--chunk"], ["replay", "x", "--split"]])
@pytest.mark.parametrize("size", ["0", "-1", "1.5", "x"])
def test_a_size_that_is_none_is_refused_in_words(
    words: list[str], size: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*words, size])
    assert caught.value.code == 2
    assert "1 or more" in capsys.readouterr().err


@pytest.mark.parametrize("speed", ["-1", "nan", "inf", "fast"])
def test_a_speed_that_is_none_is_refused(speed: str) -> None:
    with pytest.raises(SystemExit):
        main(["replay", "x", f"--speed={speed}"])


@pytest.mark.parametrize(
    ("name", "kind"), [("aimock-overloaded.json", "overloaded"), ("cut.sse", "truncated")]
)
def test_convert_writes_what_came_and_says_why_it_is_not_whole(
    name: str, kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cut.sse").write_bytes(TOOL.read_bytes()[:760])
    path = (tmp_path if name == "cut.sse" else HOME / "messages") / name
    assert main(["convert", str(path), "--wire-api", "messages", "--to", "jsonl"]) == 1
    captured = capfd.readouterr()
    assert json.loads(captured.out.splitlines()[-1])["error"]["kind"] == kind
    assert f"not whole, {kind}" in captured.err


# --- long work ---


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("total", "line"), [(1000, "reading x: 50%"), (None, "reading x: 500")])
def test_long_work_says_how_far_it_is_and_leaves_no_trace(total: int | None, line: str) -> None:
    err, now = Terminal(), [0.0]
    with Progress("reading x", total, err, lambda: now[0]) as progress:
        progress.at(100)
        assert err.getvalue() == "", "short work says nothing"
        now[0] = 1.0
        progress.at(500)
        progress.at(600)
        assert err.getvalue() == f"\r\x1b[K{line}", "and never more than ten lines a second"
    assert err.getvalue().endswith("\r\x1b[K")


def test_what_is_no_terminal_is_told_nothing() -> None:
    err = io.StringIO()
    with Progress("x", 10, err, iter(range(0, 1000, 10)).__next__) as progress:
        progress.at(5)
    assert err.getvalue() == ""


def test_a_file_of_one_answer_keeps_its_name(tmp_path: Path) -> None:
    save(from_body(TOOL.read_bytes()), tmp_path / "one.jsonl")
    (one,) = opened(str(tmp_path / "one.jsonl"), "messages")
    assert one.name.endswith("one.jsonl")
    assert one.ours
