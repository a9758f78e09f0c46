"""The terminal example in a pseudo terminal: a user types, reads, stops a response and leaves."""

from __future__ import annotations

import io
import re
import sys
from typing import Any

import pytest

rich = pytest.importorskip("rich", reason="comes with the extra `dev`")

from rich.console import Console  # noqa: E402  # after the check that it is installed
from rich.text import Text as RichText  # noqa: E402

from streamlib import FunctionCall, Message, Reasoning, Response, Text, Usage  # noqa: E402
from streamlib_parsers.accumulate import Timing  # noqa: E402
from tests.examples.serving import example  # noqa: E402
from tests.support.shared import ROOT, each_vector  # noqa: E402
from tests.support.terminals import terminal  # noqa: E402

chat = example("terminal_chat.py")

POWERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""Colour sequences, which rich itself writes."""


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


def drawn(part: Any, height: int = 24) -> str:
    console = Console(
        file=io.StringIO(), force_terminal=True, width=60, height=height, color_system=None
    )
    console.print(part)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize(
    "item",
    [
        Message("assistant", (Text("\x1b]0;title\x07\x1b[2J"),)),
        Message("assistant", (Text("\x1b]0;title\x07\x1b[2J"),), status="incomplete"),
        Reasoning("\x1b[2J"),
        FunctionCall("c", "\x1b[2J", "\x1b[2J"),
    ],
    ids=["complete", "open", "reasoning", "call"],
)
def test_escape_sequences_of_a_model_are_harmless(item: Any) -> None:
    assert "\x1b[2J" not in drawn(chat.rendered(item))
    assert "\x07" not in drawn(chat.rendered(item))


@each_vector("terminal_vectors")
def test_terminal_vector_is_harmless_open_and_complete(
    vector: dict[str, Any],
) -> None:
    text = vector["t"]
    complete = Message("assistant", (Text(text),))
    assert chat.rendered(complete).markup == vector["o"]
    for length in range(1, len(text) + 1):
        prefix = text[:length]
        open_message = Message("assistant", (Text(prefix),), status="incomplete")
        for item in (open_message, Reasoning(prefix), FunctionCall("c", prefix, prefix)):
            assert not POWERS.search(COLOURS.sub("", drawn(chat.rendered(item))))


def test_tail_is_never_taller_than_the_screen() -> None:
    lines = drawn(chat.Tail(RichText("\n".join(map(str, range(100))))), height=10).split("\n")
    assert len([line for line in lines if line]) == 8
    assert lines[7] == "99"


def test_status_shows_only_known_values() -> None:
    assert chat.status(Response(model="m")).plain == "m"
    response = Response(
        model="m",
        usage=Usage(1, 2),
        timing=Timing(first_token=0.5, tokens_per_second=7.0),
        stop_reason="length",
    )
    assert (
        chat.status(response).plain == "m · first token 500 ms · 7 tokens/s · 1 in · 2 out · length"
    )
