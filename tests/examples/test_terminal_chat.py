"""The terminal example in a pseudo terminal: a user types, reads, stops a response and leaves."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from streamlib import (
    FunctionCall,
    Message,
    OutputItemDone,
    OutputTextDelta,
    ReasoningContentDelta,
    Response,
    Text,
    Usage,
)
from streamlib_parsers.accumulate import Timing
from tests.examples.serving import example
from tests.support.screens import Screen
from tests.support.shared import ROOT, each_vector
from tests.support.terminals import terminal

chat = example("terminal_chat.py")

POWERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
OWN = re.compile(r"\x1b\[(?:[0-9;]*m|\d*A|[JK]|\?2026[hl])|\r\n|\r")
"""What the writer of Markdown itself sends."""


def running(**size: int) -> Any:
    return terminal(sys.executable, str(ROOT / "examples" / "terminal_chat.py"), **size)


def test_chat_responds_stops_and_ends() -> None:
    with running() as screen:
        screen.wait_for("> ")
        screen.type("Hello **you**\r")
        end = screen.wait_for("requests left")
        assert "I keep it short." in screen.text
        assert "You said: Hello you" in screen.text, "Markdown is rendered"
        assert "first token" in screen.text
        assert screen.frames > 5, "it was streamed"
        end = screen.wait_for("> ", end)
        screen.type("more and more " * 30 + "\r")
        end = screen.wait_for("You said: more and", end)
        screen.type("\x03")
        end = screen.wait_for("stopped", end)
        end = screen.wait_for("> ", end)
        screen.type("still there?\r")
        end = screen.wait_for("requests left", end)
        screen.wait_for("> ", end)
        screen.type("\x04")
        assert screen.wait_for_end() == 0
    assert "Traceback" not in screen.text


def test_ctrl_c_at_the_prompt_ends_the_program() -> None:
    with running() as screen:
        screen.wait_for("> ")
        screen.interrupt()
        assert screen.wait_for_end() == 0


def test_chat_continues_after_an_error() -> None:
    command = (sys.executable, str(ROOT / "examples" / "terminal_chat.py"), "nobody:model")
    with terminal(*command) as screen:
        end = screen.wait_for("> ")
        screen.type("hi\r")
        end = screen.wait_for("invalid_request", end)
        screen.wait_for("> ", end)
        assert "Traceback" not in screen.text


def drawn(*events: Any, capsys: pytest.CaptureFixture[str]) -> str:
    """What the example writes for events."""
    screen = chat.Screen()
    for event in events:
        screen.show(event)
    screen.end()
    return capsys.readouterr().out


def test_screen_parts_reasoning_text_and_calls(capsys: pytest.CaptureFixture[str]) -> None:
    call = FunctionCall("c", "look", '{"at": 1}')
    output = drawn(
        ReasoningContentDelta(0, 0, "Let me think."),
        OutputTextDelta(1, 0, "I will **look**."),
        OutputItemDone(1, Message("assistant", (Text("I will **look**."),))),
        OutputItemDone(2, call),
        OutputTextDelta(3, 0, "Found."),
        capsys=capsys,
    )
    screen = Screen(60, 12)
    screen.write(output.replace("\r\n", "\n").replace("\n", "\r\n"))
    lines = [line for line in screen.lines if line]
    assert lines == ["Let me think.", "I will look.", '→ look {"at": 1}', "Found."]


@each_vector("terminal_vectors")
def test_terminal_vector_is_harmless(
    vector: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    text = vector["t"]
    for length in range(1, len(text) + 1):
        prefix = text[:length]
        output = drawn(
            ReasoningContentDelta(0, 0, prefix),
            OutputTextDelta(1, 0, prefix),
            OutputItemDone(2, FunctionCall("c", prefix, prefix)),
            capsys=capsys,
        )
        assert not POWERS.search(OWN.sub("", output))


def test_status_shows_only_known_values() -> None:
    assert chat.status(Response(model="m")) == "m"
    response = Response(
        model="m",
        usage=Usage(1, 2),
        timing=Timing(first_token=0.5, tokens_per_second=7.0),
        stop_reason="length",
    )
    assert chat.status(response) == "m · first token 500 ms · 7 tokens/s · 1 in · 2 out · length"
