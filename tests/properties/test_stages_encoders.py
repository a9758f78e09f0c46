"""Invariant 14: any stage, then any encoder, then that wire's parser gives the items of the stream,
or the encoder's report names what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    CustomToolCall,
    FunctionCall,
    Message,
    OutputTextDelta,
    Reasoning,
    ResponseEvent,
    accumulate,
    encoder,
    parser,
)
from streamlib.pipeline import aggregate, coalesce, through
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.items import Origin
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.protocol import WIRE_APIS

STAGES: dict[str, Callable[[], Any]] = {"aggregate": aggregate, "coalesce": lambda: coalesce(1)}
KINDS = ("text", "reasoning", "summary", "call", "custom")
TEXTS = st.text('ab \n"\\ü🙂<{', min_size=1, max_size=12).map(lambda text: f"{text}.")


def streamed(wire: Any, items: list[tuple[str, list[str]]]) -> list[ResponseEvent]:
    assembler = EventAssembler(LIMITS, Origin(wire))
    assembler.identify("r", "m")
    for number, (kind, fragments) in enumerate(items):
        if kind == "text":
            item = assembler.open(Message("assistant"))
            write: Any = assembler.text
        elif kind == "reasoning":
            item, write = assembler.open(Reasoning()), assembler.reasoning
        elif kind == "summary":
            item, write = assembler.open(Reasoning()), assembler.summary
        elif kind == "call":
            item, write = assembler.open(FunctionCall(f"c{number}", "f")), assembler.arguments
            fragments = ['{"a":', '"b"}']  # noqa: PLW2901
        else:
            item, write = assembler.open(CustomToolCall(f"c{number}", "f")), assembler.arguments
        for fragment in fragments:
            write(item, fragment)
        assembler.close(item)
    assembler.complete("stop")
    return assembler.take()


def texts(events: list[ResponseEvent]) -> list[Any]:
    """What a reader gets of the response: its text, reasoning, and calls."""
    response = accumulate(events)
    calls = [
        (call.name, call.input if isinstance(call, CustomToolCall) else call.arguments)
        for call in response.calls
    ]
    return ["".join(response.text.split()), "".join(response.reasoning.split()), calls]


def read(wire: Any, events: list[ResponseEvent]) -> tuple[list[Any], list[Any]]:
    encode = encoder(wire)
    body = b"".join([encode.feed(event) for event in events] + [encode.close()])
    parse = parser(wire)
    return texts([*parse.feed(body), *parse.close()]), encode.report


ITEMS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.lists(TEXTS, min_size=1, max_size=3)),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("wire", WIRE_APIS)
@pytest.mark.parametrize("stage", STAGES)
@given(items=ITEMS)
def test_stage_before_an_encoder_loses_no_text(wire: Any, stage: str, items: Any) -> None:
    """A15: after `aggregate` no encoder wrote any text; Gemini's raised `KeyError`."""
    events = streamed(wire, items)
    without, report = read(wire, events)
    with_stage, stage_report = read(wire, list(through(events, STAGES[stage]())))
    assert with_stage == without
    # Fewer deltas may lose less: Gemini reports arguments that it joins again.
    assert {change.path for change in stage_report} <= {change.path for change in report}


@pytest.mark.parametrize("name", ["vercel", "agui"])
def test_ui_encoder_gives_aggregated_text(name: str) -> None:
    events = streamed("chat", [("text", ["Hel", "lo"])])
    assert any(isinstance(event, OutputTextDelta) for event in events)
    encode = encoder(name)
    body = b"".join([encode.feed(event) for event in through(events, aggregate())])
    assert b"Hello" in body
