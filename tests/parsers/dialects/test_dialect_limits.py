"""Dialects: every ceiling at its edge. What just fits is a call, one character or one level more is the text it was.

The numbers stand here once more: a ceiling that moves is a decision, not a slip.
"""

from __future__ import annotations

from typing import Any

import pytest

from streamlib_parsers import ToolSpec
from streamlib_parsers.limits import Limits
from tests.support.dialect_streams import TOOLS, M, kimi, staged, told, xai

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
    ("number", "gemma4", lambda size: f"<|tool_call>call:g{{k:{'1' * size}}}<tool_call|>", 256),
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


@pytest.mark.parametrize(
    ("dialect", "text", "most"), [row[1:] for row in CEILINGS], ids=[row[0] for row in CEILINGS]
)
def test_what_just_fits_is_a_call_and_one_more_is_text(dialect: str, text: Any, most: int) -> None:
    for pieces in (lambda text: [text], list):
        said, _, calls, _ = told(staged(pieces(text(most)), [dialect], [*TOOLS, *NAMES]))
        assert (said, len(calls)) == ("", 1)
        assert told(staged(pieces(text(most + 1)), [dialect], [*TOOLS, *NAMES]))[::2] == (
            text(most + 1),
            [],
        )


@pytest.mark.parametrize(("held", "most"), [(2000, 2000), (1, 1024)])
def test_a_form_as_long_as_the_ceiling_is_a_call_and_a_longer_one_is_text(
    held: int, most: int
) -> None:
    room = most - len(xai("f", k=""))
    for size, calls in ((room, [("f", {"k": "x" * room})]), (room + 1, [])):
        text = xai("f", k="x" * size)
        for pieces in ([text], list(text), [text[:-1], text[-1:]]):
            said, _, found, notices = told(staged(pieces, ["xai"], limits=Limits(held_bytes=held)))
            assert (said, found) == ("" if calls else text, calls)
            assert notices == ([] if calls else ["leaked_tool_call"] * 2)


def test_what_broke_off_is_looked_through_again_up_to_twice_the_message_and_a_little_more() -> None:
    """Three openings that never end cost three times the text. Where that is too much, all of it is text, a call in it too."""
    opening = '<tool_call>{"name": "f", "arguments": {['
    call = '<tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>'
    most = 65_536 + 3 * len(opening)  # 3 n - 3 openings <= 65,536 + 2 n
    for size, calls in ((most, [("f", {"k": "v"})]), (most + 1, [])):
        text = f"{opening * 3}{'x' * (size - 3 * len(opening) - len(call))}{call}"
        assert len(text) == size
        said, _, found, _ = told(staged([text], ["hermes"]))
        assert found == calls
        assert said == (text.removesuffix(call) if calls else text)


def test_how_often_a_text_is_looked_through_does_not_hang_on_its_pieces() -> None:
    opening, call = (
        '<tool_call>{"name": "f", "arguments": {[',
        '<tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>',
    )
    found: list[int] = []
    for size in (
        65_200,
        65_500,
        65_800,
        66_100,
    ):  # every opening ends here, but is no JSON; what comes behind them is no part of it
        text = f"{opening * 3}{'x' * (size - 3 * len(opening) - len(call))}{call}{']}}' * 3}{'y' * 1000}"
        calls = [
            told(staged(pieces, ["hermes"]))[2]
            for pieces in ([text], [text[at : at + 50] for at in range(0, len(text), 50)])
        ]
        assert calls[0] == calls[1]
        found.append(len(calls[0]))
    assert sorted(set(found)) == [0, 1]


@pytest.mark.parametrize(
    ("begin", "dialect"),
    [
        ("<|channel|>final<|message|>", "harmony"),
        ("<|channel|>analysis<|message|>", "harmony"),
        ("<think>", "think"),
    ],
)
def test_what_is_given_out_at_once_has_no_ceiling(begin: str, dialect: str) -> None:
    words = "word " * 1000
    for pieces in ([begin + words], list(begin + words)):
        said, thought, _, notices = told(
            staged(pieces, [dialect], limits=Limits(held_bytes=1024), stop_reason="length")
        )
        assert (said + thought, notices) == (words, [])


def test_arguments_as_long_as_their_ceiling_are_a_call() -> None:
    text = kimi("g:0", '{"k": "v"}')
    for size, calls in ((10, [("g", {"k": "v"})]), (9, [])):
        limits = Limits(argument_bytes=size)
        assert told(staged([text], ["kimi_k2"], limits=limits))[2] == calls


def test_items_up_to_their_ceiling_are_given_out() -> None:
    text = f"a{xai('f', k='v')}b"
    assert told(staged([text], ["xai"], limits=Limits(items=3)))[2] == [("f", {"k": "v"})]
    assert told(staged([text], ["xai"], limits=Limits(items=2)))[2] == []
