"""The parser, the assembly and the accumulator as all wires share them: wrong kinds of input, ceilings of stages, what nests too deep."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib_parsers import (
    Failed,
    Image,
    Message,
    Opaque,
    OutputItemDone,
    Reasoning,
    Refusal,
    Text,
    parser,
)
from streamlib_parsers.accumulate import Accumulator, accumulate
from streamlib_parsers.assembler import EventAssembler, text_changes
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import Origin
from streamlib_parsers.json_text import SurrogateJoiner, is_truncated_json
from streamlib_parsers.limits import LIMITS, Limits
from streamlib_parsers.protocol import Parser
from tests.support.dialect_streams import TOOLS
from tests.support.responses_frames import about, added, created, reasoning
from tests.support.wires import events_of


@pytest.mark.parametrize("feed", [Parser.feed, Parser.feed_body])
@pytest.mark.parametrize("text", ["data: {}\n\n", None, 5])
def test_a_parser_says_that_it_reads_bytes(feed: Any, text: Any) -> None:
    with pytest.raises(TypeError, match="a parser reads bytes, not"):
        feed(parser("chat"), text)


def test_an_exception_of_a_stage_of_the_callers_own_comes_out_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only a wrong kind of input is explained."""
    one = parser("messages")
    monkeypatch.setattr(one, "_take", lambda _: {}["x"].y)
    with pytest.raises(KeyError):
        one.feed(b"")
    monkeypatch.setattr(one, "_take", lambda _: None + 1)
    with pytest.raises(TypeError, match="unsupported operand"):
        one.feed(b"")


def test_a_body_after_the_end_is_ignored() -> None:
    one = parser("messages")
    ended = one.abort(ErrorInfo("cancelled", "stop"))
    assert isinstance(ended[-1], Failed)
    assert one.feed_body(b'{"type":"message","content":[]}') == []


def test_a_stage_that_passed_a_ceiling_ends_the_stream_at_once() -> None:
    """The wire brought one item; the call in its text is one too many."""
    one = parser("chat", tools=TOOLS, dialects=["hermes"], limits=Limits(items=1))
    text = 'Hi <tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>'
    events = one.feed(
        b"data: %s\n\n"
        % json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode()
    )
    last = events[-1]
    assert isinstance(last, Failed)
    assert (last.error.kind, accumulate(events).text, one.ended) == ("limit_exceeded", "Hi ", True)
    assert one.close() == []


def test_an_empty_summary_delta_says_nothing() -> None:
    events = events_of(
        "responses",
        created(),
        added(reasoning(item_id="r")),
        about("reasoning_summary_text.delta", 0, "r", delta=""),
    )
    assert not [event for event in events if hasattr(event, "summary_index")]


def test_what_nests_too_deep_to_be_scrubbed_is_given_as_it_is() -> None:
    """It is given while a stream is being failed: there an exception would lose the end."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assembly = EventAssembler(LIMITS, Origin("messages"))
    assembly.open(Opaque("x", {"deep": deep}))
    assembly.surrogates = SurrogateJoiner()
    assembly.fail(ErrorInfo("truncated", "cut"))
    assert [type(event) for event in assembly.take()[-2:]] == [OutputItemDone, Failed]


def test_only_text_and_refusals_of_two_versions_are_compared() -> None:
    parts = [Text("a"), Image(url="u"), Refusal("no")]
    found = [
        (before, after, part)
        for _, before, after, part in text_changes(
            Message("assistant", parts[:1]), Message("assistant", parts)
        )
    ]
    assert found == [("a", "a", 0), ("", "no", 2)]
    assert [
        after for _, _, after, _ in text_changes(Reasoning("a"), Reasoning("ab", summary=("s",)))
    ] == ["ab", "s"]


@pytest.mark.parametrize(
    ("data", "cut"),
    [
        (b'{"a":', True),
        (b"[1,", True),
        (b'{"a":1}', False),
        (b"{x", False),
        (b"12", False),
        (b"", False),
        (b"[" * 1_000_000, False),
    ],
)
def test_the_beginning_of_an_object_or_list_is_cut(data: bytes, cut: bool) -> None:
    assert is_truncated_json(data) is cut


def test_an_accumulator_takes_events_alone() -> None:
    whole = Accumulator()
    with pytest.raises(TypeError, match="a str is not an event of a stream"):
        whole.feed("data: {}")  # type: ignore[arg-type]
    assert whole.response.status == "incomplete"
