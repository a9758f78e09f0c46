"""The terminal example under a real pseudo terminal: a person types, reads, stops an answer and leaves."""

from __future__ import annotations

import io
import re
import sys
from typing import Any

import pytest

rich = pytest.importorskip("rich", reason="comes with the extra `dev`")

from rich.console import Console  # noqa: E402  # after it is known to be there
from rich.text import Text as RichText  # noqa: E402

from streamlib import FunctionCall, Message, Reasoning, Response, Text, Usage  # noqa: E402
from streamlib_parsers.accumulate import Timing  # noqa: E402
from tests.examples.serving import example  # noqa: E402
from tests.support.shared import ROOT, each_vector  # noqa: E402
from tests.support.terminals import terminal  # noqa: E402

chat = example("terminal_chat.py")

POWERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""What rich itself writes."""


def running(**size: int) -> Any:
    return terminal(sys.executable, str(ROOT / "examples" / "terminal_chat.py"), **size)


def test_a_person_asks_reads_stops_and_leaves() -> None:
    with running() as screen:
        screen.wait_for("> ")
        screen.type("Hello **you**\r")
        end = screen.wait_for("requests left")
        assert "I keep it short." in screen.text
        assert "You said: Hello you" in screen.text, "Markdown is set"
        assert "first token" in screen.text
        assert screen.frames > 5, "it came word by word"
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


def test_ctrl_c_at_the_prompt_ends_it() -> None:
    with running() as screen:
        screen.wait_for("> ")
        screen.interrupt()
        assert screen.wait_for_end() == 0


def test_an_error_is_said_and_the_chat_goes_on() -> None:
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
    ids=["whole", "growing", "thought", "call"],
)
def test_nothing_a_model_writes_can_move_the_cursor(item: Any) -> None:
    assert "\x1b[2J" not in drawn(chat.shown(item))
    assert "\x07" not in drawn(chat.shown(item))


@each_vector("terminal_vectors")
def test_a_terminal_vector_is_harmless_while_it_grows_and_when_it_is_whole(
    vector: dict[str, Any],
) -> None:
    text = vector["t"]
    whole = Message("assistant", (Text(text),))
    assert chat.shown(whole).markup == vector["o"]
    for at in range(1, len(text) + 1):
        growing = Message("assistant", (Text(text[:at]),), status="incomplete")
        for item in (growing, Reasoning(text[:at]), FunctionCall("c", text[:at], text[:at])):
            assert not POWERS.search(COLOURS.sub("", drawn(chat.shown(item))))


def test_what_grows_never_gets_taller_than_the_screen() -> None:
    lines = drawn(chat.Tail(RichText("\n".join(map(str, range(100))))), height=10).split("\n")
    assert len([line for line in lines if line]) == 8
    assert lines[7] == "99"


def test_the_status_says_only_what_is_known() -> None:
    assert chat.status(Response(model="m")).plain == "m"
    whole = Response(
        model="m",
        usage=Usage(1, 2),
        timing=Timing(first_token=0.5, tokens_per_second=7.0),
        stop_reason="length",
    )
    assert chat.status(whole).plain == "m · first token 500 ms · 7 tokens/s · 1 in · 2 out · length"
