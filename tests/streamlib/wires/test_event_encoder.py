"""`EventEncoder`: what an encoder has no method for is reported, never lost silently."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from streamlib import encoder
from streamlib.request.report import Change
from streamlib.wires.encoders import encode_body
from streamlib.wires.event_encoder import METHODS, EventEncoder
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.events import (
    Completed,
    Created,
    ItemProgress,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    RateLimits,
    ResponseEvent,
    ResponseMetadata,
)
from streamlib_parsers.item_base import WireApi
from streamlib_parsers.items import FunctionCallOutput, Message, Origin, Text
from streamlib_parsers.protocol import WIRE_APIS, parse_body, parser
from streamlib_parsers.response import Response
from tests.support.cases import each_case


class _OnlyText(EventEncoder):
    no_such_event = "the wire has text only"

    def __init__(self) -> None:
        super().__init__(lambda value, name: b"")

    def _on_text(self, event: OutputTextDelta) -> bytes:
        return event.delta.encode()


def test_event_encoder_knows_every_class_of_event() -> None:
    assert set(METHODS) == set(get_args(ResponseEvent))


def test_event_encoder_reports_what_is_not_overridden() -> None:
    encode = _OnlyText()
    assert encode.feed(OutputTextDelta(0, 0, "Hi")) == b"Hi"
    assert encode.feed(Completed(stop_reason="stop")) == b""
    assert encode.report == [Change("dropped", "/Completed", "the wire has text only")]


@pytest.mark.parametrize("event", [RateLimits(), Notice("end_inferred"), ItemProgress(0, "x")])
def test_event_encoder_reports_no_event_without_bytes(event: ResponseEvent) -> None:
    encode = _OnlyText()
    assert encode.feed(event) == b""
    assert encode.report == []


@each_case("wire_api", WIRE_APIS)
def test_encoder_reports_an_object_that_is_no_event(wire_api: str) -> None:
    encode = encoder(wire_api)
    assert encode.feed(FunctionCallOutput("c", "1")) == b""  # type: ignore[arg-type]
    assert [change.path for change in encode.report] == ["/FunctionCallOutput"]


RESERVED = """
    self cls body event data kwargs __class__
    id type role model content stop_reason stop_sequence usage message delta index
    content_block container
    object status output error incomplete_details created_at sequence_number response item
    choices created finish_reason system_fingerprint
    candidates usageMetadata modelVersion responseId promptFeedback finishReason parts
    candidates[0].index candidates[0].content candidates[0].finishReason
    candidates[0].content.parts candidates[1].index content.parts
    steps interaction event_type step
    output.message stopReason messageStart contentBlockDelta metadata metrics trace
    done done_reason message.content eval_count prompt_eval_count citations tool_plan
"""
"""Names that some wire has keys of its own for."""

VALUES: tuple[object, ...] = (
    None,
    7,
    "text",
    [],
    {},
    {"blockReason": "SAFETY"},
    [{"index": 0}],
    {"message": "no"},
)


@pytest.mark.parametrize("wire_api", [wire for wire in WIRE_APIS if wire != "invoke"])
@each_case("key", RESERVED.split())
def test_metadata_replaces_no_key_of_a_wire(wire_api: WireApi, key: str) -> None:
    """Metadata of any upstream, under the names that this wire or another one uses itself."""
    # a response of unknown origin, and one of the wire's own provider, whose keys are kept
    for value, origin in product(VALUES, (None, Origin(wire_api))):
        encoded: list[Response] = []
        for is_late in (False, True):
            events = _events({key: value}, is_late=is_late, origin=origin)
            encode = encoder(wire_api, response_id="r_1")
            sent = b"".join(map(encode.feed, events)) + encode.close()
            read = parser(wire_api)
            response = accumulate([*read.feed(sent), *read.close()])
            assert (response.status, response.text, response.error) == ("completed", "Hi", None)
            held = accumulate(events)
            if held in encoded:
                continue  # a body does not say when the metadata came
            encoded.append(held)
            body = encode_body(wire_api, held, response_id="r_1")
            response = accumulate(parse_body(wire_api, body))
            assert (response.status, response.text, response.error) == ("completed", "Hi", None)


@pytest.mark.parametrize("wire_api", [wire for wire in WIRE_APIS if wire != "invoke"])
@each_case("key", RESERVED.split())
def test_metadata_is_written_or_reported(wire_api: WireApi, key: str) -> None:
    for value in VALUES:
        events = _events({key: value}, is_late=False)
        encode = encoder(wire_api, response_id="r_1")
        sent = b"".join(map(encode.feed, events)) + encode.close()
        report: list[Change] = []
        body = encode_body(wire_api, accumulate(events), response_id="r_1", report=report)
        paths = [change.path for change in encode.report]
        assert paths == [change.path for change in report]
        named = f"/metadata/{key}" in paths
        assert value is None or named or f'"{key}"'.encode() in sent
        assert value is None or named or f'"{key}"'.encode() in body


def _events(
    values: dict[str, object], *, is_late: bool, origin: Origin | None = None
) -> list[ResponseEvent]:
    events: list[ResponseEvent] = [
        Created("r_1", "m"),
        OutputItemAdded(0, Message("assistant", origin=origin)),
        OutputTextDelta(0, 0, "Hi"),
        OutputItemDone(0, Message("assistant", [Text("Hi")], origin=origin)),
        Completed("r_1", "m", stop_reason="stop"),
    ]
    events.insert(4 if is_late else 1, ResponseMetadata(values))
    return events
