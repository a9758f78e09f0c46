"""Invariant 17: encoders never give two responses, items or calls the same generated id, on any
wire, in streams and bodies; an id is reproducible only where a caller passes one."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlib.testing import strategies
from streamlib.testing.frames import unframed
from streamlib.wires.encoders import UI_PROTOCOLS, encode_all, encode_body
from streamlib_parsers import (
    Completed,
    Created,
    FunctionCall,
    Message,
    OutputItemAdded,
    OutputItemDone,
    Reasoning,
    ResponseEvent,
    Text,
    accumulate,
)
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.items import Origin
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.cases import each_case

ENCODERS = (*WIRE_APIS, *UI_PROTOCOLS)
each_encoder = pytest.mark.parametrize("name", ENCODERS)
few = settings(max_examples=settings.default.max_examples // 6)

ID = re.compile(
    rb'"(?:\w*_id|(?!thread)\w*Id|id)":"((?:[^"\\]|\\.){2,})"',
)
"""Every id of a JSON text but AG-UI's `threadId`, which is of a conversation. One character is the
number of a part within its message."""


def without_ids(events: list[ResponseEvent]) -> list[ResponseEvent]:
    """The events as a wire without ids gives them; calls keep theirs, which a parser made."""
    stripped: list[ResponseEvent] = []
    for event in events:
        match event:
            case Created() | Completed():
                event = msgspec.structs.replace(event, response_id=None)  # noqa: PLW2901
            case OutputItemAdded() | OutputItemDone():
                item = msgspec.structs.replace(event.item, id=None, response_id=None)
                event = msgspec.structs.replace(event, item=item)  # noqa: PLW2901
            case _:
                pass
        stripped.append(event)
    return stripped


def ids_in(name: Any, encoded: bytes, events: list[ResponseEvent]) -> set[bytes]:
    """The ids that an encoder made: those that no event has."""
    if name in WIRE_APIS:
        encoded = b"\n".join([payload for _, payload in unframed(name, encoded)]) or encoded
    given_ids = msgspec.json.encode(events)
    return {found for found in ID.findall(encoded) if b'"%s"' % found not in given_ids}


def said_and_called() -> list[ResponseEvent]:
    """Reasoning, a text and a call of a wire without ids."""
    assembler = EventAssembler(LIMITS, Origin("ollama"))
    assembler.identify(None, "m")
    for item in (Reasoning(), Message("assistant"), FunctionCall("call_of_the_parser", "f")):
        opened = assembler.open(item)
        match item:
            case Reasoning():
                assembler.reasoning(opened, "hm")
            case Message():
                assembler.text(opened, "Hi")
            case _:
                assembler.arguments(opened, "{}")
        assembler.close(opened)
    assembler.complete("tool_calls")
    return assembler.take()


@each_encoder
def test_two_streams_share_no_generated_id(name: str) -> None:
    events = said_and_called()
    first, second = (ids_in(name, encode_all(name, events), events) for _ in range(2))
    assert not first & second


@each_encoder
def test_two_bodies_share_no_generated_id(name: str) -> None:
    events = said_and_called()
    response = accumulate(events)
    first, second = (ids_in(name, encode_body(name, response), events) for _ in range(2))
    assert not first & second


@each_encoder
@few
@given(st.data())
def test_generated_streams_share_no_generated_id(name: str, data: st.DataObject) -> None:
    source: Any = data.draw(st.sampled_from(WIRE_APIS))
    events = without_ids(data.draw(strategies.answers(source)))
    first, second = (ids_in(name, encode_all(name, events), events) for _ in range(2))
    assert not first & second
    response = accumulate(events)
    first, second = (ids_in(name, encode_body(name, response), events) for _ in range(2))
    assert not first & second


@pytest.mark.parametrize("wire_api", ["messages", "responses", "chat", "cohere", "interactions"])
def test_stream_and_body_have_an_id_though_none_came(wire_api: str) -> None:
    events = said_and_called()
    assert ids_in(wire_api, encode_all(wire_api, events), events)
    assert ids_in(wire_api, encode_body(wire_api, accumulate(events)), events)


@each_case("wire_api", WIRE_APIS)
def test_stream_is_reproducible_where_the_caller_gives_an_id(wire_api: str) -> None:
    events = said_and_called()
    first, second = (encode_all(wire_api, events, response_id="resp_given") for _ in range(2))
    assert first == second


@each_case("wire_api", WIRE_APIS)
def test_body_is_reproducible_where_the_caller_gives_an_id(wire_api: str) -> None:
    response = accumulate(said_and_called())
    first, second = (encode_body(wire_api, response, response_id="resp_given") for _ in range(2))
    assert first == second


def test_items_of_two_long_response_ids_differ() -> None:
    events = said_and_called()
    long = "v1_" + "A" * 60
    one, other = (
        ids_in("responses", encode_all("responses", events, response_id=long + end), events)
        for end in "12"
    )
    assert not one & other
    assert all(len(found) <= 64 for found in one | other if not found.startswith(b"v1_"))


def test_a_call_without_an_id_gets_another_in_each_message() -> None:
    call = FunctionCall("", "f", "{}")
    message = Message("assistant", (Text("Hi"),))
    response = msgspec.structs.replace(accumulate(said_and_called()), items=(message, call))
    for protocol in ("vercel", "agui"):
        first, second = (ids_in(protocol, encode_body(protocol, response), []) for _ in range(2))
        assert first
        assert not first & second
