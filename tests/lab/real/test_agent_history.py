"""The comparison of what a model reads with what its client sent finds every kind of difference."""

from __future__ import annotations

from typing import Any

import pytest

from lab.real.agent_history import difference, history_lines, without_space
from streamlib import FunctionCall, Message, Prompt, Reasoning, Text, user
from streamlib_parsers.items import FunctionCallOutput

FIRST = FunctionCall("call_1", "shell", '{"command":"ls","cwd":"/"}')
SECOND = FunctionCall("call_2", "shell", '{"command":"pwd"}')
HISTORY: list[Any] = [
    user("List it."),
    Reasoning("A thought."),
    FIRST,
    SECOND,
    FunctionCallOutput("call_1", "a.txt"),
    FunctionCallOutput("call_2", "/work"),
    Message("assistant", (Text("Done."),)),
]


def lines(items: list[Any]) -> list[str]:
    return [without_space(line) for line in history_lines(Prompt(items))]


def test_history_is_the_same_in_the_form_of_another_wire() -> None:
    """Ids, the order of keys, spaces and how texts are divided are forms of a wire."""
    other = [
        user("List", "it."),
        FunctionCall("x", "shell", '{ "cwd": "/", "command": "ls" }'),
        FunctionCall("y", "shell", '{"command":"pwd"}'),
        FunctionCallOutput("x", (Text("a.txt"),)),
        FunctionCallOutput("y", "/work"),
        Message("assistant", (Text("Do"), Text("ne."))),
    ]
    assert lines(other) == lines(HISTORY)


@pytest.mark.parametrize(
    "changed",
    [
        HISTORY[:-1],
        [*HISTORY[:2], SECOND, FIRST, *HISTORY[4:]],
        [*HISTORY[:3], HISTORY[4], HISTORY[3], *HISTORY[5:]],
        [*HISTORY[:4], FunctionCallOutput("call_1", "b.txt"), *HISTORY[5:]],
        [*HISTORY[:4], FunctionCallOutput("call_2", "a.txt"), *HISTORY[5:]],
        [*HISTORY[:2], FunctionCall("call_1", "shell", "{}"), *HISTORY[3:]],
        [*HISTORY, user("And now?")],
    ],
)
def test_difference_of_content_or_order_is_found(changed: list[Any]) -> None:
    assert lines(changed) != lines(HISTORY)
    assert difference(history_lines(Prompt(HISTORY)), history_lines(Prompt(changed)))
