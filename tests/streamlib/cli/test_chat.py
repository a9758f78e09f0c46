"""`streamlib chat`: histories, tools, images, recordings, and a terminal that no model controls."""

from __future__ import annotations

import io
import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streamlib import History, OutputItemAdded, OutputItemDone, ReasoningContentDelta, user
from streamlib.cli import main, parse
from streamlib.cli.chat_files import save_history
from streamlib.cli.conversation import Conversation
from streamlib.cli.screen import Screen
from streamlib.recording import load_all
from streamlib.testing import Behaviour, running
from streamlib_parsers import (
    FunctionCall,
    FunctionCallArgumentsDelta,
    FunctionCallOutput,
    Message,
    Reasoning,
)
from tests.support.shared import each_vector
from tests.support.terminals import terminal

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")
WEATHER = [
    {
        "name": "get_weather",
        "schema": {"type": "object", "properties": {"city": {"type": "string", "default": "Rome"}}},
    }
]
COLOURS = re.compile(r"\x1b\[(?:0|2|31|36)m")
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def type_lines(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """Sets the input of the program."""
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO("".join(f"{line}\n" for line in lines).encode()))
    )


def chat(*arguments: str) -> int:
    return main(["chat", *arguments])


# --- history ---


def test_chat_saves_each_turn_and_continues_a_history(
    tmp_path: Path,
) -> None:
    name = tmp_path / "talk.json"
    conversation = Conversation(parse(["chat", "--history", str(name)]))
    assert [conversation.ask("one"), conversation.ask("two")] == [0, 0]
    items = History.loads(name.read_bytes())
    assert [item.text for item in items if isinstance(item, Message) and item.role == "user"] == [
        "one",
        "two",
    ]
    assert chat("three", "--history", str(name)) == 0
    assert History.loads(name.read_bytes())[:-2] == items
    assert [path.name for path in tmp_path.iterdir()] == ["talk.json"]
    assert name.stat().st_mode & 0o077 == 0, "only its owner may read a conversation"


def test_save_history_keeps_the_old_file_when_it_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = tmp_path / "talk.json"
    save_history(str(name), [user("before")])

    def crash(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", crash)
    with pytest.raises(OSError, match="disk full"):
        save_history(str(name), [user("after")])
    assert History.loads(name.read_bytes()) == [user("before")]
    assert list(tmp_path.iterdir()) == [name]


def test_chat_reports_a_history_that_cannot_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device", "talk.json")

    monkeypatch.setattr("os.fsync", fail)
    assert chat("hi", "--history", str(tmp_path / "talk.json")) == 1
    assert capsys.readouterr().err.endswith("talk.json: No space left on device\n")


def test_chat_leaves_a_file_that_is_not_a_history_unchanged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("my notes")
    assert chat("hi", "--history", str(tmp_path / "notes.txt")) == 1
    assert "not a saved history" in capsys.readouterr().err
    assert (tmp_path / "notes.txt").read_text() == "my notes"


def test_chat_drops_a_message_without_a_response(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        chat(
            "hi",
            "--history",
            str(tmp_path / "h.json"),
            "--base-url",
            "http://127.0.0.1:9",
            "--model",
            "loopback:x",
        )
        == 5
    )
    assert "cannot reach http://127.0.0.1:9: connection" in capsys.readouterr().err
    assert History.loads((tmp_path / "h.json").read_bytes()) == []


# --- tools, images, recordings ---


def test_chat_shows_calls_and_reads_their_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(WEATHER))
    type_lines(monkeypatch, "18C and $(touch owned)")
    monkeypatch.chdir(tmp_path)
    assert chat("Weather?", "--tools", "tools.json", "--history", "h.json") == 0
    shown = capsys.readouterr().out
    assert '→ get_weather {"city":"Rome"}\n' in shown
    assert shown.endswith("The tool says: 18C and $(touch owned)\n")
    outputs = [
        item.output
        for item in History.loads(Path("h.json").read_bytes())
        if isinstance(item, FunctionCallOutput)
    ]
    assert outputs == ["18C and $(touch owned)"]
    assert not (tmp_path / "owned").exists(), "nothing is ever run"


def test_chat_leaves_a_call_without_output_at_the_end_of_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(WEATHER))
    type_lines(monkeypatch)
    assert chat("Weather?", "--tools", str(tmp_path / "tools.json")) == 0
    assert "get_weather was left without an output" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ("{", "a JSON list of tools"),
        ("[{}]", "name"),
        ('[{"name": "f", "parameters": {}}]', "unknown key 'parameters'"),
        (None, "No such file"),
    ],
)
def test_chat_rejects_an_invalid_file_of_tools(
    tools: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if tools is not None:
        (tmp_path / "tools.json").write_text(tools)
    assert chat("hi", "--tools", str(tmp_path / "tools.json")) == 1
    assert message in capsys.readouterr().err


def test_chat_sends_an_image_only_with_the_first_message(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    arguments = ["--image", str(tmp_path / "a.png"), "--history", str(tmp_path / "h.json")]
    conversation = Conversation(parse(["chat", *arguments]))
    assert [conversation.ask("what is this?"), conversation.ask("and this?")] == [0, 0]
    messages = [
        item
        for item in History.loads((tmp_path / "h.json").read_bytes())
        if isinstance(item, Message) and item.role == "user"
    ]
    kinds = [[getattr(part, "media_type", "text") for part in item.content] for item in messages]
    assert kinds == [["text", "image/png"], ["text"]]


def test_chat_replaces_arguments_that_are_not_utf8(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert chat("h\udcff", "--system", "s\udcff") == 0
    assert capsys.readouterr().out.startswith("You said: h?")


def test_chat_rejects_a_file_that_is_not_an_image(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.png").write_text("no image")
    assert chat("hi", "--image", str(tmp_path / "a.png")) == 1
    assert "not an image" in capsys.readouterr().err


def test_chat_records_every_response_with_its_wire(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = str(tmp_path / "responses.jsonl")
    assert [chat("one", "--record", name), chat("two", "--record", name, "--wire-api", "chat")] == [
        0,
        0,
    ]
    assert [recording.wire_api for recording in load_all(name)] == ["messages", "chat"]
    first = capsys.readouterr().out
    assert main(["replay", name, "--speed", "0"]) == 0
    assert capsys.readouterr().out == first


def test_chat_never_overwrites_a_file_with_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert chat("hi", "--record", str(tmp_path / "thesis.txt")) == 1
    assert "not a recording" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


# --- the terminal ---


@each_vector("terminal_vectors")
def test_chat_output_is_safe_at_any_split_of_the_deltas(
    vector: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One response whose deltas are all splits: from a server through the client to the screen."""
    text = vector["t"]
    deltas: list[str] = []
    for index in range(len(text) + 1):
        deltas += [text[:index], text[index:], "|"]
    frames = [
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": delta}}]}
        for delta in deltas
    ]
    body = (
        "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames).encode() + b"data: [DONE]\n\n"
    )
    monkeypatch.setattr("streamlib.testing.running", partial(running, Behaviour((body,))))
    assert chat("hi", "--wire-api", "chat") == 0
    assert capsys.readouterr().out == (vector["o"] + "|") * (len(text) + 1) + "\n"


@each_vector("terminal_vectors")
def test_screen_is_safe_in_reasoning_calls_and_notes(
    vector: dict[str, Any],
) -> None:
    text = vector["t"]
    for index in range(len(text) + 1):
        out, err = Tty(), Tty()
        parts = (text[:index], text[index:])
        screen = Screen(out, err)
        call = FunctionCall("c", text, text)
        for event in (
            OutputItemAdded(0, Reasoning(status="incomplete")),
            *(ReasoningContentDelta(0, 0, part) for part in parts),
            OutputItemDone(0, Reasoning(text)),
            OutputItemAdded(1, FunctionCall("c", text, status="incomplete")),
            *(FunctionCallArgumentsDelta(1, part) for part in parts),
            OutputItemDone(1, call),
            OutputItemDone(2, call),
        ):
            screen.show(event)
        screen.end()
        screen.note(text)
        assert vector["o"] in out.getvalue()
        for shown in (out.getvalue(), err.getvalue()):
            assert not CONTROLS.search(COLOURS.sub("", shown))


def test_screen_shows_overlapping_calls_on_two_lines() -> None:
    out = io.StringIO()
    screen = Screen(out, io.StringIO())
    for event in (
        OutputItemAdded(0, FunctionCall("a", "first", status="incomplete")),
        OutputItemAdded(1, FunctionCall("b", "second", status="incomplete")),
        FunctionCallArgumentsDelta(0, '{"x":'),
        FunctionCallArgumentsDelta(1, '{"y":'),
        FunctionCallArgumentsDelta(0, "1}"),
        FunctionCallArgumentsDelta(1, "2}"),
        OutputItemDone(0, FunctionCall("a", "first", '{"x":1}')),
        OutputItemDone(1, FunctionCall("b", "second", '{"y":2}')),
    ):
        screen.show(event)
    screen.end()
    assert out.getvalue() == '→ first {"x":1}\n→ second {"y":2}\n'


def test_chat_ends_with_ctrl_c_at_the_prompt(tmp_path: Path) -> None:
    command = (
        sys.executable,
        "-m",
        "streamlib",
        "chat",
        "--history",
        str(tmp_path / "h.json"),
        "--reasoning",
        "low",
    )
    with terminal(*command) as screen:
        end = screen.wait_for("> ")
        screen.type("Hello there\r")
        end = screen.wait_for("first token", end)
        assert "\x1b[2mThey want an answer" in screen.written, "reasoning is dim"
        screen.wait_for("> ", end)
        screen.interrupt()
        assert screen.wait_for_end() == 0
    assert "Traceback" not in screen.text
    assert len(History.loads((tmp_path / "h.json").read_bytes())) == 3


def test_chat_continues_after_ctrl_c_stops_a_response(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serve = (sys.executable, "-m", "streamlib", "serve", "--port", "0", "--fault", "stall@8")
    with terminal(*serve) as server:
        server.wait_for("listening on ")
        server.wait_for("(")
        url = re.search(r"http://\S+", server.text)
        assert url is not None
        command = (
            sys.executable,
            "-m",
            "streamlib",
            "chat",
            "--base-url",
            url.group(),
            "--history",
            str(tmp_path / "h.json"),
        )
        command += ("--record", str(tmp_path / "r.jsonl"))
        with terminal(*command) as screen:
            end = screen.wait_for("> ")
            screen.type("Hello there\r")
            end = screen.wait_for("You said", end)
            screen.interrupt()
            end = screen.wait_for("stopped", end)
            screen.wait_for("> ", end)
            screen.type("\x04")
            assert screen.wait_for_end() == 0
    assert "Traceback" not in screen.text
    (_, partial_message) = History.loads((tmp_path / "h.json").read_bytes())
    assert isinstance(partial_message, Message)
    assert partial_message.status == "incomplete"
    assert partial_message.text.startswith("You said")
    (recording,) = load_all(tmp_path / "r.jsonl")
    assert recording.events()[-1].error.kind == "truncated"  # type: ignore[union-attr]
    assert main(["inspect", str(tmp_path / "r.jsonl")]) == 3
    assert "the recording program stopped reading here" in capsys.readouterr().out
