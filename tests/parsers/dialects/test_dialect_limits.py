"""Limits of dialects at their edge: what just fits is a call, one character or level more is text.

The numbers are repeated here: changing a limit is a decision, not an accident.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import Struct

from streamlib_parsers import Failed, ToolSpec, accumulate
from streamlib_parsers.dialects import Dialect, Opener
from streamlib_parsers.dialects.cursor import NoMatch, Parse, TextCursor
from streamlib_parsers.dialects.sink import GrammarSink, anywhere
from streamlib_parsers.limits import Limits
from tests.support.cases import each_case
from tests.support.dialect_calls import (
    TOOLS,
    M,
    kimi,
    xai,
)
from tests.support.dialect_streams import chat, check_brackets, filtered, outcome

NAMES = [ToolSpec("n" * size) for size in range(200, 300)]


def nested(opening: str, inside: str, closing: str, depth: int) -> str:
    return opening * depth + inside + closing * depth


def elements(depth: int) -> str:
    return f'{M}<invoke name="g">{nested(f"{M}<a>", "1", f"{M}</a>", depth)}{M}</invoke>'


CEILINGS: list[tuple[str, str, Any, int]] = [
    ("name", "mistral", lambda size: f"[TOOL_CALLS]{'n' * size}{{}}", 256),
    (
        "name-and-attributes",
        "anthropic",
        lambda size: f'<invoke{"":>{size - 209}} name="{"n" * 200}"></invoke>',
        256,
    ),
    (
        "header-of-a-channel",
        "harmony",
        lambda size: f"<|channel|>{' to=g':>{size}}<|message|>{{}}",
        289,
    ),
    ("noise-before-arguments", "harmony", lambda size: f"to=functions.g{' ' * size}{{}}", 119),
    ("python-number", "pythonic", lambda size: f"[g(k={'1' * size})]", 400),
    ("python-lists", "pythonic", lambda depth: f"[g(k={nested('[', '', ']', depth)})]", 101),
    (
        "python-dicts",
        "pythonic",
        lambda depth: "[g(k=" + nested('{"a":', "1", "}", depth) + ")]",
        100,
    ),
    (
        "lists",
        "gemma4",
        lambda depth: f"<|tool_call>call:g{{k:{nested('[', '', ']', depth)}}}<tool_call|>",
        50,
    ),
    (
        "objects",
        "gemma4",
        lambda depth: f"<|tool_call>call:g{nested('{k:', '1', '}', depth)}<tool_call|>",
        51,
    ),
    (
        "lists-in-lists",
        "gemma4",
        lambda depth: f"<|tool_call>call:g{{k:{nested('[', '1', ']', depth)}}}<tool_call|>",
        50,
    ),
    ("elements", "minimax_m3", elements, 50),
]
"""(what is bounded, dialect, text of a size, the largest size that is still a call)"""


@each_case("dialect, text, largest", [row[1:] for row in CEILINGS])
def test_call_at_its_limit_is_read_and_one_past_it_is_text(
    dialect: str, text: Any, largest: int
) -> None:
    for chunks in (lambda text: [text], list):
        output, _, calls, _ = outcome(filtered(chunks(text(largest)), [dialect], [*TOOLS, *NAMES]))
        assert (output, len(calls)) == ("", 1)
        assert outcome(filtered(chunks(text(largest + 1)), [dialect], [*TOOLS, *NAMES]))[::2] == (
            text(largest + 1),
            [],
        )


@pytest.mark.parametrize(("held_bytes", "largest"), [(2000, 2000), (1, 1024)])
def test_call_longer_than_held_bytes_is_text(held_bytes: int, largest: int) -> None:
    room = largest - len(xai("f", k=""))
    for size, calls in ((room, [("f", {"k": "x" * room})]), (room + 1, [])):
        text = xai("f", k="x" * size)
        for chunks in ([text], list(text), [text[:-1], text[-1:]]):
            output, _, recovered, notices = outcome(
                filtered(chunks, ["xai"], limits=Limits(held_bytes=held_bytes))
            )
            assert (output, recovered) == ("" if calls else text, calls)
            assert notices == ([] if calls else ["leaked_tool_call"])


class ToTheMark(Struct, frozen=True):
    """A grammar that reads from `@` to `!` and then finds that it is no call."""

    openers: Sequence[Opener] = anywhere("@")
    first: str = ""

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        yield from text.until(("!",), lambda _: None)
        raise NoMatch


TO_THE_MARK = [Dialect("to-the-mark", [ToTheMark()]), "hermes"]


def test_text_is_searched_again_up_to_twice_the_message() -> None:
    """Three openers that end late make the scanner read the text three times.

    Where that is too much, all of it is text, even a call in it.
    """
    call = '<tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>'
    largest = 65_536 + 3  # 3 n - 3 <= 65,536 + 2 n
    for size, calls in ((largest, [("f", {"k": "v"})]), (largest + 1, [])):
        text = f"@@@{'x' * (size - 4 - len(call))}{call}!"
        assert len(text) == size
        output, _, recovered, _ = outcome(filtered([text], TO_THE_MARK))
        assert recovered == calls
        assert output == (text.replace(call, "") if calls else text)


def test_search_effort_does_not_depend_on_the_split() -> None:
    call = '<tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>'
    call_counts: list[int] = []
    for size in (65_200, 65_500, 65_800, 66_100):
        text = f"@@@{'x' * (size - 4 - len(call))}{call}!{'y' * 1000}"
        calls = [
            outcome(filtered(chunks, TO_THE_MARK))[2]
            for chunks in ([text], [text[index : index + 50] for index in range(0, len(text), 50)])
        ]
        assert calls[0] == calls[1]
        call_counts.append(len(calls[0]))
    assert sorted(set(call_counts)) == [0, 1]


@pytest.mark.parametrize(
    ("begin", "dialect"),
    [
        ("<|channel|>final<|message|>", "harmony"),
        ("<|channel|>analysis<|message|>", "harmony"),
        ("<think>", "think"),
    ],
)
def test_text_emitted_at_once_has_no_limit(begin: str, dialect: str) -> None:
    prose = "word " * 1000
    for chunks in ([begin + prose], list(begin + prose)):
        output, reasoning, _, notices = outcome(
            filtered(chunks, [dialect], limits=Limits(held_bytes=1024), stop_reason="length")
        )
        assert (output + reasoning, notices) == (prose, [])


def test_arguments_at_their_limit_are_a_call() -> None:
    text = kimi("g:0", '{"k": "v"}')
    for size, calls in ((10, [("g", {"k": "v"})]), (9, [])):
        limits = Limits(argument_bytes=size)
        assert outcome(filtered([text], ["kimi_k2"], limits=limits))[2] == calls


def test_items_at_their_limit_are_emitted() -> None:
    text = f"a{xai('f', k='v')}b"
    assert outcome(filtered([text], ["xai"], limits=Limits(items=3)))[2] == [("f", {"k": "v"})]
    assert outcome(filtered([text], ["xai"], limits=Limits(items=2)))[2] == []


def test_call_in_unclosed_reasoning_over_its_limit_is_closed() -> None:
    text = "<think>\n" + kimi("g:0", '{"k": "v"}')
    limits = Limits(argument_bytes=9)
    events = filtered([text], ["think", "kimi_k2"], limits=limits)
    check_brackets(events)
    assert [item.status for item in accumulate(events).items] == ["incomplete"]


def test_call_in_wire_reasoning_over_its_limit_fails() -> None:
    reasoning = kimi("g:0", '{"k": "v"}')
    limits = Limits(argument_bytes=9)
    events = chat(
        [{"reasoning_content": reasoning}], tools=TOOLS, dialects=["kimi_k2"], limits=limits
    )
    check_brackets(events)
    last = events[-1]
    assert isinstance(last, Failed)
    assert last.error.code == "argument_bytes"
