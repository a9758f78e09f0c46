"""Tokens that stand around output text: they begin no call, whatever follows."""

from __future__ import annotations

import pytest

from streamlib_parsers import ReasoningContentDelta, accumulate
from streamlib_parsers.dialects import DialectFilter
from streamlib_parsers.events import StopReason
from tests.support.dialect_calls import TOOLS
from tests.support.dialect_streams import (
    calls_of,
    filtered,
    message_events,
    outcome,
)

COHERE_CALL = '<|START_ACTION|>[{{"tool_name": "{}", "parameters": {{}}}}]<|END_ACTION|>'
K3_CALL = (
    '<|open|>tools<|sep|><|open|>call tool="{}" index="1"<|sep|>'
    "<|close|>call<|sep|><|close|>tools<|sep|>"
)


@pytest.mark.parametrize("stop_reason", ["stop", "length"])
@pytest.mark.parametrize(
    ("dialect", "mark", "call"),
    [
        ("cohere", "<|START_TEXT|>", COHERE_CALL),
        ("kimi_k3", "<|open|>response<|sep|>", K3_CALL),
    ],
)
def test_text_after_a_mark_stays_text(
    dialect: str, mark: str, call: str, stop_reason: StopReason
) -> None:
    """A3: the server removed the reasoning; a call of no offered tool changes nothing."""
    unknown_call = call.format("other")
    text = f"{mark}Hello. {unknown_call} Bye."
    for chunks in ([text], list(text)):
        events = filtered(chunks, [dialect, "think:open"], stop_reason=stop_reason)
        assert outcome(events) == (f"Hello. {unknown_call} Bye.", "", [], ["leaked_tool_call"])
    known_call = call.format("f")
    response = accumulate(filtered([f"{mark}Hello. {known_call}"], [dialect, "think:open"]))
    assert response.text == "Hello. "
    assert calls_of(response) == [("f", {})]


def test_marks_in_reasoning_do_not_stop_its_deltas() -> None:
    """Only what may be a call is buffered until the end of the reasoning."""
    events = list(message_events(["<think>The tag <co: 0> is ", "Cohere's", "</think>Hi"]))
    dialect_filter = DialectFilter(["cohere", "think"], TOOLS)
    received = dialect_filter.feed(events[:4])
    deltas = [event.delta for event in received if isinstance(event, ReasoningContentDelta)]
    assert "".join(deltas) == "The tag <co: 0> is Cohere's"


@pytest.mark.parametrize("text", ["See <co: 0", "See </co: 0", "Write <co>x or <co:name>."])
def test_citation_tag_is_not_a_leaked_call(text: str) -> None:
    """A10: a citation that the end cut, and a tag that looks like one."""
    assert outcome(filtered([text], ["cohere"]))[3] == []
    assert outcome(filtered([text], ["hermes"])) == (text, "", [], [])


def test_citation_that_goes_over_a_call_is_left_out() -> None:
    """A10: no message without text is opened for it."""
    call = COHERE_CALL.format("f")
    for before in ("<co: 0>abc", "<co: 0>"):
        response = accumulate(filtered([f"{before}{call}</co: 0>"], ["cohere"]))
        assert response.text == before.removeprefix("<co: 0>")
        assert calls_of(response) == [("f", {})]
        assert len(response.items) == 1 + bool(response.text)
