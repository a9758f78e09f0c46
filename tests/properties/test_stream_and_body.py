"""Invariant 16: the stream and the body of one response hold the same content and report the same
changes (action and path), on every wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlib import accumulate, encode_body, encoder, parse_body
from streamlib.request.report import Change
from streamlib.testing import strategies
from streamlib_parsers import (
    Created,
    FunctionCall,
    ItemProgress,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    Reasoning,
    ReasoningContentDelta,
    RefusalDelta,
    Response,
    ResponseEvent,
    TokenCount,
    WireApi,
)
from streamlib_parsers.items import (
    CustomToolCall,
    Image,
    Origin,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from streamlib_parsers.protocol import WIRE_APIS
from streamlib_parsers.response import Choice
from tests.support.cases import each_case
from tests.support.invariants import OURS, wire_of
from tests.support.invariants import events_of as stream_events
from tests.support.shared import BODIES, PAYLOADS, STREAMS, WIRES, Recording, recordings
from tests.support.wires import parsed

EVERY = 7
"""Of the recordings of the corpus, every seventh; `-m slow` takes all."""

each_wire = pytest.mark.parametrize("wire_api", WIRE_APIS)
few = settings(max_examples=settings.default.max_examples // 6)


def held(events: list[ResponseEvent]) -> list[ResponseEvent]:
    """The events without what a `Response` does not hold."""
    model = accumulate(events).model
    newest = [event for event in events if isinstance(event, TokenCount)][-1:]
    ids = {event.index: event.item.id for event in events if isinstance(event, OutputItemDone)}
    kept: list[ResponseEvent] = []
    for event in events:
        match event:
            case Passthrough() | ItemProgress():
                continue
            case TokenCount() if event is not newest[0]:
                continue
            case Created():
                # A provider may fall back to another model in the middle.
                kept.append(msgspec.structs.replace(event, model=model))
            case OutputItemAdded() if event.index in ids:
                # An item may get another id later.
                item = msgspec.structs.replace(event.item, id=ids[event.index])
                kept.append(msgspec.structs.replace(event, item=item))
            case OutputTextDelta() | ReasoningContentDelta() | RefusalDelta() if event.logprobs:
                kept.append(msgspec.structs.replace(event, logprobs=None))
            case _:
                kept.append(event)
    return kept


def content(response: Response, *, ordered: bool) -> Any:
    """What a response says, whatever the number of its items.

    Args:
        response: The response.
        ordered: Whether its texts have an order: on a wire without blocks those of overlapping
            items do not.
    """
    choices = response.choices or (Choice(0, response.items, response.stop_reason),)
    return (
        [choice_content(choice, ordered=ordered) for choice in choices],
        response.stop_reason,
        response.stop_sequence,
        response.model,
    )


def choice_content(choice: Choice, *, ordered: bool) -> Any:
    items = [item for item in choice.items if not is_incomplete_call(item)]
    return (
        choice.stop_reason,
        # Cohere's body has the plan apart from the content.
        *[text if ordered else sorted(text) for text in texts_of(items)],
        [call for item in items if (call := call_content(item))],
        [item.signature for item in items if item.signature],
        [found for item in items for found in annotations_and_images(item)],
    )


def items_overlap(events: list[ResponseEvent]) -> bool:
    open_items = 0
    for event in events:
        if isinstance(event, OutputItemAdded):
            open_items += 1
        elif isinstance(event, OutputItemDone):
            open_items -= 1
        if open_items > 1:
            return True
    return False


def texts_of(items: list[ResponseItem]) -> list[str]:
    """The text, that of a tool plan, and the reasoning without white space."""
    texts = ["", "", ""]
    for item in items:
        if isinstance(item, Message):
            texts[item.phase == "commentary"] += item.text
        elif isinstance(item, Reasoning):
            texts[2] += "".join(item.text.split())
    return texts


def is_incomplete_call(item: ResponseItem) -> bool:
    return isinstance(item, (FunctionCall, CustomToolCall)) and item.status == "incomplete"


def call_content(item: ResponseItem) -> Any:
    match item:
        case FunctionCall() | ServerToolCall():
            return item.call_id, item.name, item.arguments or "{}"
        case CustomToolCall():
            return item.call_id, item.name, item.input
        case ServerToolResult():
            return item.call_id, item.output
        case _:
            return None


def annotations_and_images(item: ResponseItem) -> Iterator[Any]:
    if not isinstance(item, Message):
        return
    for part in item.content:
        if isinstance(part, Text):
            yield from map(sorted, part.annotations)
        elif isinstance(part, Image):
            yield part.data or part.url


def fault(wire_api: WireApi, events: list[ResponseEvent]) -> str | None:
    """What differs between the stream of these events and the body of their response."""
    events = held(events)
    response = accumulate(events)
    if response.error is not None:
        # The body is the wire's error.
        return None
    encode = encoder(wire_api, response_id="given")
    stream = b"".join([*[encode.feed(event) for event in events], encode.close()])
    changes: list[Change] = []
    body = encode_body(wire_api, response, response_id="given", report=changes)
    reported = {(change.action, change.path) for change in encode.report}
    of_body = {(change.action, change.path) for change in changes}
    if any(map(is_incomplete_call, response.items)):
        # A stream shows the beginning of the call; in a body it would look callable.
        of_body.discard(("dropped", "/incomplete"))
        reported.discard(("dropped", "/incomplete"))
    if items_overlap(events):
        # A response has one item after another: other texts are adjacent.
        of_body.discard(("dropped", "/items"))
        reported.discard(("dropped", "/items"))
    if reported != of_body:
        return f"reports differ: {sorted(reported ^ of_body)}"
    ordered = not items_overlap(events)
    read = content(accumulate(stream_events(wire_api, [stream])), ordered=ordered)
    again = content(accumulate(parse_body(wire_api, body)), ordered=ordered)
    if read != again:
        return f"the stream has {read}, the body {again}"
    return None


def faults(recording: Recording) -> list[str]:
    events = parsed(recording)
    found = [(wire_api, fault(wire_api, events)) for wire_api in WIRE_APIS]
    return [f"{wire_api}: {text}" for wire_api, text in found if text is not None]


@pytest.mark.parametrize("folder", WIRES)
def test_stream_and_body_of_recordings_agree(folder: str) -> None:
    found = {}
    for recording in recordings(folder, [*STREAMS, *BODIES, *PAYLOADS])[::EVERY]:
        found[recording.path.name] = faults(recording)
    assert not {name: texts for name, texts in found.items() if texts}


@pytest.mark.slow
@pytest.mark.parametrize("folder", WIRES)
def test_stream_and_body_of_all_recordings_agree(folder: str) -> None:
    found = {}
    for recording in recordings(folder, [*STREAMS, *BODIES, *PAYLOADS]):
        found[recording.path.name] = faults(recording)
    assert not {name: texts for name, texts in found.items() if texts}


@each_wire
@each_case("path", OURS)
def test_stream_and_body_of_our_recordings_agree(wire_api: WireApi, path: Any) -> None:
    events = stream_events(wire_of(path), [path.read_bytes()])
    assert fault(wire_api, events) is None


@each_wire
@few
@given(st.data())
def test_stream_and_body_of_generated_answers_agree(wire_api: WireApi, data: st.DataObject) -> None:
    source: Any = data.draw(st.sampled_from(WIRE_APIS))
    events = data.draw(strategies.answers(source, failing=False))
    assert fault(wire_api, events) is None


@each_wire
def test_second_choice_is_in_stream_and_body_or_reported(wire_api: WireApi) -> None:
    items = [Message("assistant", (Text(f"answer {choice}"),), choice=choice) for choice in (0, 1)]
    choices = tuple([Choice(item.choice, (item,), "stop") for item in items])
    response = Response("r", "m", "completed", (items[0],), choices, stop_reason="stop")
    changes: list[Change] = []
    body = encode_body(wire_api, response, report=changes)
    assert b"answer 0" in body
    is_reported = any(change.path == "/choices" for change in changes)
    assert (b"answer 1" in body) is not is_reported


def test_tools_that_the_provider_ran_are_in_a_body_of_chat() -> None:
    origin = Origin("chat")
    call = ServerToolCall("call_0", "search", '{"q":"x"}', origin=origin)
    result = ServerToolResult("call_0", "search", "found", origin=origin)
    response = Response("r", "m", "completed", (call, result), stop_reason="stop")
    message = msgspec.json.decode(encode_body("chat", response))["choices"][0]["message"]
    assert message["executed_tools"] == [
        {"index": 0, "type": "search", "arguments": '{"q":"x"}', "output": "found"}
    ]


@each_wire
def test_incomplete_call_is_not_in_a_body_and_is_reported(wire_api: WireApi) -> None:
    call = FunctionCall("call_0", "weather", '{"place": "Ri', status="incomplete")
    response = Response("r", "m", "incomplete", (call,), stop_reason="length")
    changes: list[Change] = []
    assert b"weather" not in encode_body(wire_api, response, report=changes)
    assert any(change.path == "/incomplete" for change in changes)
