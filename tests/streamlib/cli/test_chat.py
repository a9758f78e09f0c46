"""`streamlib chat`: what it keeps, what it offers, what it never does, and that no model can act on the terminal."""

from __future__ import annotations

import io
import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streamlib import OutputItemAdded, OutputItemDone, ReasoningContentDelta, load_history, user
from streamlib.cli import main
from streamlib.cli.chat_files import save_history
from streamlib.cli.screen import Screen
from streamlib.loopback import Behaviour, running
from streamlib.recording import load_all
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
POWERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def says(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """What the person types."""
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO("".join(f"{line}\n" for line in lines).encode()))
    )


def chat(*words: str) -> int:
    return main(["chat", *words])


# --- history ---


def test_a_conversation_is_kept_after_each_turn_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = tmp_path / "talk.json"
    says(monkeypatch, "one", "", "two")
    assert chat("--history", str(name)) == 0
    items = load_history(name.read_bytes())
    assert [item.text for item in items if isinstance(item, Message) and item.role == "user"] == [
        "one",
        "two",
    ]
    assert chat("three", "--history", str(name)) == 0
    assert load_history(name.read_bytes())[:-2] == items
    assert [path.name for path in tmp_path.iterdir()] == ["talk.json"]
    assert name.stat().st_mode & 0o077 == 0, "a conversation is for its person alone"


def test_a_crash_while_saving_leaves_the_history_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = tmp_path / "talk.json"
    save_history(str(name), [user("before")])

    def crash(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", crash)
    with pytest.raises(OSError, match="disk full"):
        save_history(str(name), [user("after")])
    assert load_history(name.read_bytes()) == [user("before")]
    assert list(tmp_path.iterdir()) == [name]


def test_a_history_that_cannot_be_saved_is_said_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", "talk.json")

    monkeypatch.setattr("os.fsync", full)
    assert chat("hi", "--history", str(tmp_path / "talk.json")) == 1
    assert capsys.readouterr().err.endswith("talk.json: No space left on device\n")


def test_a_file_that_is_no_history_is_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("my notes")
    assert chat("hi", "--history", str(tmp_path / "notes.txt")) == 1
    assert "not a saved history" in capsys.readouterr().err
    assert (tmp_path / "notes.txt").read_text() == "my notes"


def test_a_line_that_got_no_answer_is_not_kept(
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
        == 1
    )
    assert "connection" in capsys.readouterr().err
    assert load_history((tmp_path / "h.json").read_bytes()) == []


# --- tools, images, recordings ---


def test_calls_are_shown_and_the_person_gives_their_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(WEATHER))
    says(monkeypatch, "18C and $(touch owned)")
    monkeypatch.chdir(tmp_path)
    assert chat("Weather?", "--tools", "tools.json", "--history", "h.json") == 0
    shown = capsys.readouterr().out
    assert '→ get_weather {"city":"Rome"}\n' in shown
    assert shown.endswith("The tool says: 18C and $(touch owned)\n")
    outputs = [
        item.output
        for item in load_history(Path("h.json").read_bytes())
        if isinstance(item, FunctionCallOutput)
    ]
    assert outputs == ["18C and $(touch owned)"]
    assert not (tmp_path / "owned").exists(), "nothing is ever run"


def test_a_call_may_be_left_without_an_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(WEATHER))
    says(monkeypatch)
    assert chat("Weather?", "--tools", str(tmp_path / "tools.json")) == 0
    assert "get_weather was left without an output" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ("{", "a JSON list of tools"),
        ("[{}]", "name"),
        ('[{"name": "f", "parameters": {}}]', "unknown key 'parameters'"),
        (None, "No such file"),
    ],
)
def test_a_file_of_tools_that_is_none_is_said_in_words(
    tools: str | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if tools is not None:
        (tmp_path / "tools.json").write_text(tools)
    assert chat("hi", "--tools", str(tmp_path / "tools.json")) == 1
    assert words in capsys.readouterr().err


def test_an_image_goes_with_the_first_line_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    says(monkeypatch, "what is this?", "and this?")
    assert chat("--image", str(tmp_path / "a.png"), "--history", str(tmp_path / "h.json")) == 0
    said = [
        item
        for item in load_history((tmp_path / "h.json").read_bytes())
        if isinstance(item, Message) and item.role == "user"
    ]
    assert [[getattr(part, "media_type", "text") for part in item.content] for item in said] == [
        ["text", "image/png"],
        ["text"],
    ]


def test_words_that_are_no_text_are_made_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert chat("h\udcff", "--system", "s\udcff") == 0
    assert capsys.readouterr().out.startswith("You said: h?")


def test_what_is_no_image_is_not_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.png").write_text("no image")
    assert chat("hi", "--image", str(tmp_path / "a.png")) == 1
    assert "not an image" in capsys.readouterr().err


def test_every_answer_is_recorded_and_a_recording_knows_its_wire(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = str(tmp_path / "answers.jsonl")
    assert [chat("one", "--record", name), chat("two", "--record", name, "--wire-api", "chat")] == [
        0,
        0,
    ]
    assert [one.wire_api for one in load_all(name)] == ["messages", "chat"]
    first = capsys.readouterr().out
    assert main(["replay", name, "--speed", "0"]) == 0
    assert capsys.readouterr().out == first


def test_no_other_file_is_recorded_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert chat("hi", "--record", str(tmp_path / "thesis.txt")) == 1
    assert "no recording" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


# --- the terminal ---


@each_vector("terminal_vectors")
def test_a_vector_is_harmless_through_the_whole_program_at_any_split(
    vector: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every split, as the deltas of one answer: from a server, through the client, to the screen."""
    text = vector["t"]
    deltas = [half for at in range(len(text) + 1) for half in (text[:at], text[at:], "|")]
    frames = [
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": delta}}]}
        for delta in deltas
    ]
    body = (
        "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames).encode() + b"data: [DONE]\n\n"
    )
    monkeypatch.setattr("streamlib.cli.chat.running", partial(running, Behaviour((body,))))
    assert chat("hi", "--wire-api", "chat") == 0
    assert capsys.readouterr().out == (vector["o"] + "|") * (len(text) + 1) + "\n"


@each_vector("terminal_vectors")
def test_a_person_sees_a_vector_in_thoughts_calls_and_notes_without_its_powers(
    vector: dict[str, Any],
) -> None:
    text = vector["t"]
    for at in range(len(text) + 1):
        out, err = Tty(), Tty()
        screen = Screen(out, err)
        call = FunctionCall("c", text, text)
        for event in (
            OutputItemAdded(0, Reasoning(status="incomplete")),
            *(ReasoningContentDelta(0, 0, half) for half in (text[:at], text[at:])),
            OutputItemDone(0, Reasoning(text)),
            OutputItemAdded(1, FunctionCall("c", text, status="incomplete")),
            *(FunctionCallArgumentsDelta(1, half) for half in (text[:at], text[at:])),
            OutputItemDone(1, call),
            OutputItemDone(2, call),
        ):
            screen.show(event)
        screen.end()
        screen.note(text)
        assert vector["o"] in out.getvalue()
        for shown in (out.getvalue(), err.getvalue()):
            assert not POWERS.search(COLOURS.sub("", shown))


def test_two_calls_that_grow_at_once_are_two_lines() -> None:
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


def test_a_person_talks_and_leaves_with_ctrl_c(tmp_path: Path) -> None:
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
        assert "\x1b[2mThey want an answer" in screen.written, "thoughts are dim"
        screen.wait_for("> ", end)
        screen.interrupt()
        assert screen.wait_for_end() == 0
    assert "Traceback" not in screen.text
    assert len(load_history((tmp_path / "h.json").read_bytes())) == 3


def test_ctrl_c_stops_the_answer_and_not_the_conversation(
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
    (_, cut) = load_history((tmp_path / "h.json").read_bytes())
    assert isinstance(cut, Message)
    assert cut.status == "incomplete"
    assert cut.text.startswith("You said")
    (recorded,) = load_all(tmp_path / "r.jsonl")
    assert recorded.events()[-1].error.kind == "truncated"  # type: ignore[union-attr]
    assert main(["inspect", str(tmp_path / "r.jsonl")]) == 1
    assert "whoever recorded it stopped reading here" in capsys.readouterr().out
