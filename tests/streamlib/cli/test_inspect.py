"""`streamlib inspect`: every byte of a capture has its row, and every failure is explained.

Nothing in a capture can control the terminal.
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streamlib.cli import main
from streamlib.cli.captures import read_captures
from streamlib.cli.progress import Progress
from streamlib.cli.timeline import page, rows
from streamlib.inspection import inspect_all
from streamlib.inspection.capture import Capture, events_of
from streamlib.inspection.clock import Clock
from streamlib.inspection.event_text import item_label, quote, shorten
from streamlib.inspection.frames import steps
from streamlib.inspection.inspector import read_capture
from streamlib.recording import Chunk, RecordedRequest, Recording, append, from_body, save
from streamlib_parsers import Completed, Failed
from streamlib_parsers.items import FunctionCall
from tests.support.built_in_calls import CALLS
from tests.support.cases import each_case
from tests.support.shared import ROOT

RECORDINGS = ROOT / "tests" / "recordings"
TOOL_CALL = RECORDINGS / "messages" / "aimock-tool.sse"
FILES = sorted(path for path in RECORDINGS.glob("*/*") if path.suffix != ".md")
CITY = """'{"city":"Paris'"""
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")

each_recording = pytest.mark.parametrize(
    "path", FILES, ids=[f"{path.parent.name}-{path.name}" for path in FILES]
)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "130")


def make_capture(body: bytes, wire_api: Any = "messages") -> Capture:
    return Capture("x", wire_api, from_body(body), is_recorded=False)


def findings_of(body: bytes, wire_api: Any = "messages") -> list[str]:
    return lines_of(make_capture(body, wire_api))


def lines_of(capture: Capture) -> list[str]:
    return [f"{finding.text}{finding.detail}" for finding in read_capture(capture).findings]


def frame(event: str, data: str) -> bytes:
    return f"event: {event}\ndata: {data}\n\n".encode()


def test_inspect_shows_where_a_response_was_truncated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "truncated.sse").write_bytes(TOOL_CALL.read_bytes()[:760])
    assert main(["inspect", str(tmp_path / "truncated.sse"), "--wire-api", "messages"]) == 3
    # The column of events starts at character 43.
    events = 43 * " "
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  messages · 760 bytes · model claude-opus-4-8 · msg_XtFedZl30KTASrY2",
        "",
        "  byte  wire                               events",
        "     0  message_start                      Created msg_XtFedZl30KTASrY2 claude-opus-4-8",
        f"{events}TokenCount 0 in, 0 out",
        "   253  content_block_start                OutputItemAdded 0 function_call get_weather",
        f"   426  content_block_delta x2             FunctionCallArgumentsDelta 0 {CITY}",
        (
            "   701  content_block_delta, end of input  "
            "OutputItemDone 0 function_call get_weather INCOMPLETE"
        ),
        f"{events}Failed truncated: the stream ended inside a call",
        "",
        f"  call: get_weather {CITY}",
        "  usage: 0 in, 0 out",
        "  ! failed (truncated): the stream ended inside a call",
        (
            "  ! truncated at byte 760, inside the frame that starts at byte 701: "
            'event: content_block_delta data: {"type":"content_block_del'
        ),
        "  ! not received: message_delta (stop reason and usage), message_stop",
        f"  ! item 0 is incomplete (function_call get_weather): it ends with {CITY}",
        "",
    ]


def test_findings_name_only_what_was_not_received() -> None:
    body = TOOL_CALL.read_bytes()
    end = body.index(b"event: message_stop")
    assert "not received: message_stop" in findings_of(body[:end])
    # Of message_delta only its terminator is missing.
    assert "not received: message_stop" in findings_of(body[: end - 2])
    missing = "not received: message_delta (stop reason and usage), message_stop"
    assert missing in findings_of(body[: end - 20])
    # Of the first frame a part: everything is missing, and it need not be said.
    assert not [text for text in findings_of(body[:100]) if text.startswith("not received")]


@pytest.mark.parametrize("kind", CALLS)
def test_inspect_shows_calls_that_the_caller_answers(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Calls of a computer, a shell … were in the timeline, and not among what it contains."""
    response = {"id": "resp_1", "model": "m", "status": "completed", "output": [CALLS[kind]]}
    (tmp_path / "body.json").write_bytes(msgspec.json.encode(response))
    assert main(["inspect", str(tmp_path / "body.json"), "--wire-api", "responses"]) == 0
    lines = capsys.readouterr().out.splitlines()
    [shown] = [line for line in lines if line.startswith("  call: ")]
    assert shown == f"  call: {CALL_LINES[kind]}"


CALL_LINES = {
    "computer_call": (
        'computer [{"type":"click","button":"left","x":10,"y":20},{"type":"screenshot"}]'
    ),
    "computer_call-of-one-action": 'computer [{"type":"type","text":"hi"}]',
    "shell_call": "shell ls -l; pwd",
    "local_shell_call": "shell echo 'a b'",
    "apply_patch_call": (
        'apply_patch {"type":"update_file","path":"a.py","diff":"@@\\n-1\\n+2\\n"}'
    ),
    "mcp_approval_request": 'approval of files read {"path": "a.txt", "n": 1.0}',
    "tool_search_call": 'tool_search {"goal":"weather"}',
}


@each_recording
def test_steps_cover_each_byte_and_hold_the_parsed_events(path: Path) -> None:
    capture = make_capture(path.read_bytes(), path.parent.name)
    walked = list(steps(capture))
    assert [event for step in walked for event in step.events] == events_of(capture)
    assert [walked[0].start, *(step.end for step in walked[:-1])] == [step.start for step in walked]
    assert all(step.kind for step in walked)
    assert all(line.strip() for line in page(capture, Clock(capture), walked, 100))


@each_recording
def test_findings_never_call_a_truncated_capture_complete(path: Path) -> None:
    body, wire_api = path.read_bytes(), path.parent.name
    for size in range(0, len(body), max(1, len(body) // 12)):
        capture = make_capture(body[:size], wire_api)
        walked = list(steps(capture))
        terminal = [event for step in walked for event in step.events][-1]
        lines = lines_of(capture)
        assert isinstance(terminal, (Completed, Failed))
        is_complete = lines[0].startswith(("the response is complete", "received to its end"))
        assert is_complete is isinstance(terminal, Completed)
        assert isinstance(terminal, Completed) or any(
            f"byte {n:,}" in " ".join(lines) for n in (size, walked[-1].start)
        )


@pytest.mark.parametrize("width", [24, 40, 80])
def test_quote_keeps_to_its_width(width: int) -> None:
    for text in ("word " * 80, "line\n" * 80):
        assert width / 2 <= len(quote(text, width)) <= width


def test_line_is_shortened_only_above_its_width() -> None:
    assert [shorten("a \n line", width) for width in (7, 6, 5)] == ["a line", "a line", "a li…"]


def test_page_shows_a_long_text_in_few_rows() -> None:
    delta = (
        '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word N "}}'
    )
    deltas = b"".join(
        frame("content_block_delta", delta.replace("N", str(n))) for n in range(20_000)
    )
    start = b"".join(TOOL_CALL.read_bytes().partition(b"event: content_block_start")[:1])
    begin = frame(
        "content_block_start",
        '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
    )
    capture = make_capture(start + begin + deltas)
    walked = list(steps(capture))
    assert len(walked) == 20_003
    assert len(list(rows(walked))) == 4
    assert any(
        "x20,000" in line and "(208,890 characters)" in line and len(line) <= 110
        for line in page(capture, Clock(capture), walked, 110)
    )


def test_inspect_shows_the_times_and_the_end_of_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = TOOL_CALL.read_bytes()
    chunks = (Chunk(0.25, body[:300]), Chunk(4.5, body[300:500]), Chunk(4.75, body[500:]))
    name = tmp_path / "response.jsonl"
    save(Recording(200, {}, chunks, wire_api="messages"), name)
    append(Recording(200, {}, chunks[:2], "ReadError", wire_api="messages"), name)
    assert main(["inspect", str(name)]) == 3
    first, second = capsys.readouterr().out.split("response.jsonl#2")
    assert "     0    +0.250  message_start" in first
    assert "longest gap: 4.2 s, before byte 300" in first
    assert "the response is complete" in first
    assert "the connection was lost here (ReadError)" in second
    assert main(["inspect", str(name), "--json"]) == 0
    assert [json.loads(line)["terminal"] for line in capsys.readouterr().out.splitlines()] == [
        "completed",
        "failed",
    ]


NO_ANSWER = Recording(0, {}, (), "ConnectError", url="http://dead/v1", wire_api="chat")


def test_target_that_never_answered_has_no_response(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `gateway --record` writes it; it was an empty, malformed stream with HTTP 0."""
    name = tmp_path / "response.jsonl"
    save(NO_ANSWER, name)
    assert main(["inspect", str(name)]) == 5
    header, about, *rest = capsys.readouterr().out.splitlines()
    assert header == f"{name}: failed (connection)"
    assert about == "  chat · 0 bytes · no response · http://dead/v1"
    reason = "no response was received (ConnectError)"
    row, finding = (line for line in rest[2:] if line)
    assert row.endswith(f"end of input  Failed connection: {reason}")
    assert finding == f"  ! failed (connection): {reason}"
    assert main(["inspect", str(name), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["error_kind"], shown["error"]) == ("connection", reason)
    assert [each["code"] for each in shown["findings"]] == ["failed"]


@pytest.mark.parametrize("end", ["CancelledError", "unread"])
def test_request_that_was_given_up_has_no_response(end: str) -> None:
    recording = msgspec.structs.replace(NO_ANSWER, end=end)
    text = "the recording program stopped waiting for it"
    assert lines_of(Capture("x", "chat", recording, is_recorded=True)) == [
        f"failed (cancelled): no response was received: {text}"
    ]


def test_replay_and_convert_know_that_no_response_was_received(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    name = tmp_path / "response.jsonl"
    save(NO_ANSWER, name)
    for command in (["replay"], ["convert", "--to", "chat"]):
        assert main([*command, str(name)]) == 5
        assert "no response was received (ConnectError)" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("finish_reason", "code", "said"),
    [
        ("length", 3, "the model stopped at its token limit"),
        ("content_filter", 4, "a content filter stopped the model"),
    ],
)
def test_response_that_its_model_did_not_finish_is_not_complete(
    finish_reason: str, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was "= the response is complete", below "incomplete (length)"."""
    name = tmp_path / "body.json"
    choice = {"index": 0, "message": {"content": "Hel"}, "finish_reason": finish_reason}
    name.write_bytes(msgspec.json.encode({"choices": [choice]}))
    assert main(["inspect", str(name), "--wire-api", "chat"]) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{name}: incomplete ({finish_reason})"
    assert lines[-2] == f"  ! received to its end, but incomplete: {said}"
    [inspection] = inspect_all(name.read_bytes(), "chat")
    assert [(each.level, each.code) for each in inspection.findings] == [("warning", "incomplete")]


def test_choice_that_its_model_did_not_finish_is_named() -> None:
    """Only the first choice was looked at."""
    choices: list[dict[str, Any]] = []
    for index, finish_reason in enumerate(["stop", "length", "content_filter"]):
        message = {"role": "assistant", "content": "Hel"}
        choices.append({"index": index, "message": message, "finish_reason": finish_reason})
    [inspection] = inspect_all(msgspec.json.encode({"choices": choices}), "chat")
    [finding] = inspection.findings
    assert finding.code == "incomplete"
    assert finding.text == (
        "received to its end, but incomplete: the model stopped at its token limit (choice 1), "
        "a content filter stopped the model (choice 2)"
    )


def test_inspect_reads_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TOOL_CALL.read_bytes())))
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
def test_commands_guess_the_wire_and_say_so(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """They knew it, said "it looks like --wire-api …", and did nothing."""
    wire = name.partition("/")[0]
    for command in (["inspect"], ["replay", "--speed", "0"], ["convert", "--to", "chat"]):
        assert main([*command, str(RECORDINGS / name)]) == 0
        captured = capfd.readouterr()
        guess = f"{RECORDINGS / name}: read as {wire}, as it looks (--wire-api names another)\n"
        assert captured.err.count(guess) == 1
        assert captured.out


def test_inspect_reports_a_truncated_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(from_body(b"data"), tmp_path / "r.jsonl")
    (tmp_path / "r.jsonl").write_bytes((tmp_path / "r.jsonl").read_bytes()[:-5])
    assert main(["inspect", str(tmp_path / "r.jsonl"), "--wire-api", "chat"]) == 3
    assert "the recording itself is truncated at line 3" in capsys.readouterr().out
    (tmp_path / "r.jsonl").write_bytes(b'{"streamlib_recording":1,"me')
    assert main(["inspect", str(tmp_path / "r.jsonl"), "--wire-api", "chat"]) == 1
    assert "starts as a streamlib recording" in capsys.readouterr().err


def test_findings_list_anomalies_with_their_offsets() -> None:
    body = TOOL_CALL.read_bytes()
    unknown = frame("comet", '{"type":"comet"}')
    assert findings_of(body + unknown)[1:] == [f"unknown event at byte {len(body):,}: comet"]
    late = (RECORDINGS / "messages" / "llama-thinking.sse").read_bytes()
    assert findings_of(late)[1:] == [
        "late end: item 0 was closed at byte 2,401, after item 1 had started"
    ]
    responses = (RECORDINGS / "responses" / "aimock-tool.sse").read_bytes()
    assert findings_of(responses + b"tail", "responses")[1:] == [
        f"not read: 4 bytes after the end at byte {len(responses):,}: tail"
    ]
    assert findings_of(body.rstrip())[1:] == [
        (
            f"end_inferred at byte {len(body.rstrip()) - 49:,}: "
            "the stream ended without closing its last message"
        )
    ]


@each_case(
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
@each_case(
    "wire_api",
    [
        "messages",
        "responses",
        "chat",
        "gemini",
        "interactions",
        "converse",
        "invoke",
        "ollama",
        "cohere",
    ],
)
def test_page_accepts_any_bytes(body: bytes, wire_api: str) -> None:
    capture = make_capture(body, wire_api)
    walked = list(steps(capture))
    text = "\n".join([*page(capture, Clock(capture), walked, 80), *lines_of(capture)])
    assert not CONTROLS.search(text)
    assert "the response is complete" not in text


def test_inspect_escapes_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unsafe = "\x1b]0;owned\x07\u202e"
    escaped = json.dumps(unsafe)[1:-1]
    body = (
        TOOL_CALL.read_bytes()
        .replace(b"get_weather", escaped.encode())
        .replace(b"Paris", escaped.replace("\\", "\\\\").encode())
    )
    name = tmp_path / "unsafe.sse"
    name.write_bytes(
        frame(unsafe.replace("\x07", "\x1b"), "{}")
        + body.replace(b"claude-opus-4-8", escaped.encode())[:-60]
    )
    assert main(["inspect", str(name), "--wire-api", "messages"]) == 3
    shown = capsys.readouterr().out
    assert "owned" in shown
    assert not CONTROLS.search(shown)


@pytest.mark.parametrize("arguments", [["inspect", "x", "--chunk"], ["replay", "x", "--split"]])
@pytest.mark.parametrize("size", ["0", "-1", "1.5", "x"])
def test_commands_reject_an_invalid_size(
    arguments: list[str], size: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*arguments, size])
    assert caught.value.code == 2
    assert "1 or more" in capsys.readouterr().err


@pytest.mark.parametrize("speed", ["-1", "nan", "inf", "fast"])
def test_replay_rejects_an_invalid_speed(speed: str) -> None:
    with pytest.raises(SystemExit):
        main(["replay", "x", f"--speed={speed}"])


@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [("aimock-overloaded.json", "overloaded", 5), ("truncated.sse", "truncated", 3)],
)
def test_convert_writes_a_partial_response_with_its_error(
    name: str, kind: str, code: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "truncated.sse").write_bytes(TOOL_CALL.read_bytes()[:760])
    path = (tmp_path if name == "truncated.sse" else RECORDINGS / "messages") / name
    assert main(["convert", str(path), "--wire-api", "messages", "--to", "jsonl"]) == code
    captured = capfd.readouterr()
    assert json.loads(captured.out.splitlines()[-1])["error"]["kind"] == kind
    assert f"failed ({kind}): " in captured.err


# --- long work ---


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("total", "done", "line"),
    [
        (1000, 500, "reading x: 50%"),
        (None, 500, "reading x: 500"),
        (1, 1, "reading x: 100%"),
        (0, 0, "reading x: 0%"),
    ],
)
def test_progress_shows_long_work_and_erases_its_line(
    total: int | None, done: int, line: str
) -> None:
    err, now = Terminal(), [0.0]
    with Progress("reading x", total, err, lambda: now[0]) as progress:
        progress.update(100)
        assert err.getvalue() == "", "short work shows nothing"
        now[0] = 1.0
        progress.update(done)
        progress.update(600)
        assert err.getvalue() == f"\r\x1b[K{line}", "at most ten lines a second"
    assert err.getvalue().endswith("\r\x1b[K")


def test_progress_is_silent_without_a_terminal() -> None:
    err = io.StringIO()
    with Progress("x", 10, err, iter(range(0, 1000, 10)).__next__) as progress:
        progress.update(5)
    assert err.getvalue() == ""


def test_read_captures_keeps_the_name_of_a_single_recording(tmp_path: Path) -> None:
    save(from_body(TOOL_CALL.read_bytes()), tmp_path / "single.jsonl")
    (capture,) = read_captures(str(tmp_path / "single.jsonl"), "messages")
    assert capture.name.endswith("single.jsonl")
    assert capture.is_recorded


def test_tool_name_cannot_write_to_the_terminal() -> None:
    """C7: a tool's name with an OSC sequence went out raw in the findings."""
    name = "f\x1b]0;title\x07\n\x9b2J\u202e" + "x" * 10_000
    label = item_label(FunctionCall("call_0", name, ""))
    assert label.isprintable()
    assert len(label) < 120


# --- two exchanges: the prompt cache ---


def exchange(text: str, url: str = "https://api.anthropic.com/v1/messages") -> Recording:
    """A recording with its request, whose system prompt is cached."""
    body = {
        "model": "claude-opus-5",
        "system": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": "hi"}],
    }
    request = RecordedRequest({}, json.dumps(body).encode())
    response = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn",
        "diagnostics": {"cache_miss_reason": {"type": "unavailable"}},
    }
    chunks = (Chunk(0.1, json.dumps(response).encode()),)
    return Recording(200, {}, chunks, url=url, wire_api="messages", request=request)


@pytest.mark.parametrize(
    ("text", "url", "elapsed", "expected"),
    [
        ("a " * 4000, "https://api.anthropic.com/v1/messages", "400", "an expired mark"),
        (
            "b " * 4000,
            "https://api.anthropic.com/v1/messages",
            "10",
            "system text (system_changed)",
        ),
        (
            "a " * 4000,
            "https://other.example/v1/messages",
            "10",
            "not explained: after: it goes to",
        ),
    ],
)
def test_inspect_explains_the_cache_of_two_exchanges(
    text: str, url: str, elapsed: str, expected: str, tmp_path: Path, capsys: Any
) -> None:
    names = [str(tmp_path / name) for name in ("a.jsonl", "b.jsonl")]
    save(exchange("a " * 4000), names[0])
    save(exchange(text, url), names[1])
    assert main(["inspect", *names, "--elapsed", elapsed]) == 0
    page, _, shown = capsys.readouterr().out.partition("prompt cache:")
    assert expected in shown
    assert page.count("cache, by the provider: unavailable") == 2
    assert main(["inspect", names[0]]) == 0
    assert "prompt cache" not in capsys.readouterr().out


def test_inspect_names_a_request_that_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [str(tmp_path / name) for name in ("a.jsonl", "b.jsonl")]
    save(exchange("a"), names[0])
    save(msgspec.structs.replace(exchange("a"), request=None), names[1])
    assert main(["inspect", *names]) == 0
    assert "b.jsonl holds no request: it cannot be explained" in capsys.readouterr().out
    save(msgspec.structs.replace(exchange("a"), request=None), names[0])
    assert main(["inspect", *names]) == 0
    assert "prompt cache" not in capsys.readouterr().out
