"""Encoders write signed and encrypted state of their own wire only, and report what they leave out.

An item of unknown origin belongs to no provider.
"""

from __future__ import annotations

import msgspec
import pytest

from streamlib import Message, Reasoning, Response, accumulate, encode_body, encoder
from streamlib.request.origins import is_own, same_origin
from streamlib.request.report import Change
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.events import OutputItemAdded, OutputItemDone, ResponseEvent
from streamlib_parsers.items import Origin, Text, WireApi
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.cases import each_case

STATE = "c2lnbmVk"
ORIGINS = {
    "unknown": None,
    "without_wire": Origin(provider="anthropic"),
    "messages": Origin("messages"),
    "gemini": Origin("gemini"),
}
each_wire = pytest.mark.parametrize("wire_api", WIRE_APIS)
each_origin = each_case("origin", list(ORIGINS))


def events_of(origin: Origin | None) -> list[ResponseEvent]:
    """Signed reasoning and a signed text of an origin."""
    assembler = EventAssembler(LIMITS, Origin("messages"))
    thought = assembler.open(Reasoning())
    assembler.reasoning(thought, "hm")
    thought.fields["signature"] = STATE
    assembler.close(thought)
    message = assembler.open(Message("assistant"))
    assembler.text(message, "so")
    assembler.close(message)
    assembler.complete("stop")
    events: list[ResponseEvent] = []
    for event in assembler.take():
        if isinstance(event, (OutputItemAdded, OutputItemDone)):
            item = msgspec.structs.replace(event.item, origin=origin)
            event = msgspec.structs.replace(event, item=item)  # noqa: PLW2901
        events.append(event)
    return events


def is_reported(report: list[Change]) -> bool:
    return any(change.path == "/signature" for change in report)


@each_wire
@each_origin
def test_stream_has_no_state_of_another_origin(wire_api: WireApi, origin: str) -> None:
    encode = encoder(wire_api)
    encoded = b"".join([encode.feed(event) for event in events_of(ORIGINS[origin])])
    if origin == wire_api:
        assert not is_reported(encode.report)
    else:
        assert STATE.encode() not in encoded
        assert is_reported(encode.report)


@each_wire
@each_origin
def test_body_has_no_state_of_another_origin(wire_api: WireApi, origin: str) -> None:
    report: list[Change] = []
    body = encode_body(wire_api, accumulate(events_of(ORIGINS[origin])), report=report)
    if origin == wire_api:
        assert STATE.encode() in body
        assert not is_reported(report)
    else:
        assert STATE.encode() not in body
        assert is_reported(report)


@each_wire
def test_redacted_reasoning_of_unknown_origin_is_left_out(wire_api: WireApi) -> None:
    report: list[Change] = []
    items = (Reasoning(redacted=True, encrypted_content=STATE), Message("assistant", (Text("so"),)))
    response = Response("r", "m", "completed", items, stop_reason="stop")
    body = encode_body(wire_api, response, report=report)
    assert STATE.encode() not in body
    assert any(change.path == "/encrypted_content" for change in report)


def test_unknown_origin_is_own_nowhere_but_matches_every_target() -> None:
    item = Message("assistant")
    assert not any(is_own(item, wire_api) for wire_api in WIRE_APIS)
    assert all(same_origin(item.origin, Origin(wire_api)) for wire_api in WIRE_APIS)
