"""Invariant 14: any stage, then any encoder, then that wire's parser gives the items of the stream,
or the encoder's report names what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlib import (
    AnnotationAdded,
    Completed,
    Created,
    CustomToolCall,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Reasoning,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    ResponseEvent,
    Text,
    TokenCount,
    accumulate,
    encoder,
    parser,
)
from streamlib.pipeline import aggregate, coalesce, only, through, until
from streamlib.testing.strategies import answers
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.items import BUILT_IN_CALLS, Origin, snake_case, tag
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.cases import each_case
from tests.support.thorough import THOROUGH

EXAMPLES = 60 if THOROUGH else 25
"""For each wire and stage; the thorough run tries more."""
EXAMPLES_A_KIND = 20 if THOROUGH else 8
"""For each wire and each of nine kinds of events."""

STAGES: dict[str, Callable[[], Any]] = {"aggregate": aggregate, "coalesce": lambda: coalesce(1)}
DROPPED = (
    Created,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    FunctionCallArgumentsDelta,
    AnnotationAdded,
    TokenCount,
)
"""Kinds of events that `only` is made to drop, one at a time."""
KINDS = ("text", "cited", "reasoning", "summary", "call", "custom")
CITATION = {"type": "url_citation", "url": "https://example.com/", "title": "Example"}
TEXTS = st.text('ab \n"\\ü🙂<{', min_size=1, max_size=12).map(lambda text: f"{text}.")


def streamed(
    wire: Any, items: list[tuple[str, list[str]]], *, overlap: bool = False
) -> list[ResponseEvent]:
    """The events of these items, one after the other, or all of them open at once."""
    assembler = EventAssembler(LIMITS, Origin(wire))
    assembler.identify("r", "m")
    opened: list[OpenItem] = []
    for number, (kind, fragments) in enumerate(items):
        item = assembler.open(BLANK[kind](number))
        if kind in ("call", "custom"):
            fragments = ['{"a":', '"b"}']  # noqa: PLW2901
        for fragment in fragments:
            WRITERS[kind](assembler, item, fragment)
        if kind == "cited":
            assembler.annotation(item, CITATION)
        opened.append(item)
        if not overlap:
            assembler.close(item)
    if overlap:
        for item in reversed(opened):
            assembler.close(item)
    assembler.complete("stop")
    return assembler.take()


BLANK: dict[str, Callable[[int], Any]] = {
    "text": lambda number: Message("assistant"),
    "cited": lambda number: Message("assistant"),
    "reasoning": lambda number: Reasoning(),
    "summary": lambda number: Reasoning(),
    "call": lambda number: FunctionCall(f"c{number}", "f"),
    "custom": lambda number: CustomToolCall(f"c{number}", "f"),
}
WRITERS: dict[str, Callable[..., None]] = {
    "text": EventAssembler.text,
    "cited": EventAssembler.text,
    "reasoning": EventAssembler.reasoning,
    "summary": EventAssembler.summary,
    "call": EventAssembler.arguments,
    "custom": EventAssembler.arguments,
}


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
@settings(max_examples=EXAMPLES)
@given(items=ITEMS, overlap=st.booleans())
def test_stage_before_an_encoder_loses_no_text(
    wire: Any, stage: str, items: Any, overlap: bool
) -> None:
    """A15: after `aggregate` no encoder wrote any text; Gemini's raised `KeyError`."""
    events = streamed(wire, items, overlap=overlap)
    without, report = read(wire, events)
    with_stage, stage_report = read(wire, list(through(events, STAGES[stage]())))
    assert with_stage == without
    # Fewer deltas may lose less: Gemini reports arguments that it joins again.
    assert {change.path for change in stage_report} <= {change.path for change in report}


def interleaved(wire: Any, items: list[tuple[str, list[str]]]) -> list[ResponseEvent]:
    """The events of these items, all open at once, a fragment of each in turn."""
    assembler = EventAssembler(LIMITS, Origin(wire))
    assembler.identify("r", "m")
    opened: list[tuple[str, OpenItem, list[str]]] = []
    for number, (kind, fragments) in enumerate(items):
        item = assembler.open(BLANK[kind](number))
        if kind in ("call", "custom"):
            opened.append((kind, item, ['{"a":', '"b"}']))
        else:
            opened.append((kind, item, fragments))
    for turn in range(3):
        for kind, item, fragments in opened:
            if turn < len(fragments):
                WRITERS[kind](assembler, item, fragments[turn])
    for _, item, _ in opened:
        assembler.close(item)
    assembler.complete("stop")
    return assembler.take()


@pytest.mark.parametrize("wire", WIRE_APIS)
@settings(max_examples=25)
@given(items=ITEMS)
def test_coalesce_keeps_items_that_grow_at_once(wire: Any, items: Any) -> None:
    """E3: deltas of one interval are no longer interleaved; wires without blocks join them."""
    events = interleaved(wire, items)
    joined = list(through(events, coalesce(1)))
    assert accumulate(joined).items == accumulate(events).items
    without, report = read(wire, events)
    with_stage, stage_report = read(wire, joined)
    assert [sorted(map(str, texts)) for texts in with_stage] == [
        sorted(map(str, texts)) for texts in without
    ]
    assert {change.path for change in stage_report} <= {change.path for change in report}


@pytest.mark.parametrize("wire", WIRE_APIS)
@pytest.mark.parametrize("dropped", DROPPED)
@settings(max_examples=EXAMPLES_A_KIND)
@given(items=ITEMS, overlap=st.booleans())
def test_dropped_events_lose_no_item_silently(
    wire: Any, dropped: Any, items: Any, overlap: bool
) -> None:
    """Chat, Gemini and Ollama raised `KeyError` where no item was added."""
    events = streamed(wire, items, overlap=overlap)
    expected, _ = read(wire, events)
    kept = {type(event) for event in events} - {dropped}
    result, report = read(wire, list(through(events, only(*kept))))
    if overlap:
        # What is streamed comes before what only an item's end has: the order is not defined.
        result, expected = (
            [sorted(texts) for texts in result],
            [sorted(texts) for texts in expected],
        )
    reported = {change.path for change in report}
    for kinds, found, wanted in zip(OF_TEXTS, result, expected, strict=True):
        own = {f"/items/{index}" for index, (kind, _) in enumerate(items) if kind in kinds}
        assert found == wanted or reported & own


OF_TEXTS = (("text", "cited"), ("reasoning", "summary"), ("call", "custom"))
"""The kinds of items that each of `texts` is of: a report names the one that is lost."""


@pytest.mark.parametrize("target", [*WIRE_APIS, "vercel", "agui"])
@pytest.mark.parametrize("stage", [*STAGES, None])
@settings(max_examples=EXAMPLES)
@given(events=answers("responses", failing=False))
def test_built_in_call_is_encoded_or_reported(
    target: Any, stage: str | None, events: list[ResponseEvent]
) -> None:
    """Calls that only Responses has: its own encoder keeps them, every other one names them."""
    expected = built_in_calls(events)
    if stage is not None:
        events = list(through(events, STAGES[stage]()))
    encode = encoder(target)
    body = b"".join([encode.feed(event) for event in events] + [encode.close()])
    if target == "responses":
        parse = parser("responses")
        assert built_in_calls([*parse.feed(body), *parse.close()]) == expected
    else:
        named = {change.path.rpartition("/")[2] for change in encode.report}
        lost = {tag(type(call)) for call in expected}
        if target in ("vercel", "agui"):
            # Both have a form for it.
            lost.discard("approval_request")
        assert lost <= {snake_case(name) for name in named}


def built_in_calls(events: list[ResponseEvent]) -> list[Any]:
    """The response's calls of tools that the provider defines, but for what encoders add."""
    calls: list[Any] = []
    for item in accumulate(events).items:
        if isinstance(item, BUILT_IN_CALLS):
            calls.append(msgspec.structs.replace(item, id=None, native=None))
    return calls


@pytest.mark.parametrize("wire", [*WIRE_APIS, "vercel", "agui"])
@settings(max_examples=20)
@given(items=ITEMS, count=st.integers(0, 30))
def test_stream_that_until_ends_is_not_complete(wire: Any, items: Any, count: int) -> None:
    events = streamed("chat", items)
    seen = iter(range(len(events) + 1))
    stopped = list(through(events, until(lambda _: next(seen) >= count)))
    encode = encoder(wire)
    body = b"".join([encode.feed(event) for event in stopped] + [encode.close()])
    is_complete = isinstance(stopped[-1], Completed)
    if wire in WIRE_APIS:
        parse = parser(wire)
        last = [*parse.feed(body), *parse.close()][-1]
        assert isinstance(last, (type(stopped[-1]), Failed))
        assert isinstance(last, Completed) == is_complete
    else:
        ends = {"vercel": b'"type":"abort"', "agui": b'"outcome":{"type":"cancelled"}'}
        assert (ends[wire] in body) != is_complete


@each_case("wire", WIRE_APIS)
def test_complete_item_is_written_without_terminal_event(wire: Any) -> None:
    """It waited for the item before it, which a stage had dropped, and was lost."""
    done = [
        OutputItemDone(1, Message("assistant", [Text("Hello")])),
        OutputItemDone(2, FunctionCall("c", "f", "{}")),
    ]
    encode = encoder(wire)
    body = b"".join([encode.feed(event) for event in (Created("r", "m"), *done)])
    body += encode.close()
    parse = parser(wire)
    response = accumulate([*parse.feed(body), *parse.close()])
    assert response.text == "Hello"
    assert [item.name for item in response.items if isinstance(item, FunctionCall)] == ["f"]
    assert response.status == "failed"


@pytest.mark.parametrize("name", ["vercel", "agui"])
def test_ui_encoder_gives_aggregated_text(name: str) -> None:
    events = streamed("chat", [("text", ["Hel", "lo"])])
    assert any(isinstance(event, OutputTextDelta) for event in events)
    encode = encoder(name)
    body = b"".join([encode.feed(event) for event in through(events, aggregate())])
    assert b"Hello" in body
