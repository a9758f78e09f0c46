"""What is known of each wire API: its encoder writes so, and a client reads it so."""

from __future__ import annotations

import re

from streamlib import (
    FunctionCall,
    FunctionCallOutput,
    Message,
    OutputItemAdded,
    OutputItemDone,
    Prompt,
    Provider,
    Response,
    ResponseItem,
    Text,
    accumulate,
    build,
    parser,
    user,
)
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.wires.encoders import encode_all, encode_body, encoder, request_settings
from streamlib.wires.missing_deltas import events_of
from streamlib_parsers.items import WireApi
from tests.support.cases import each_case
from tests.support.clients import MemoryTransport, make_client
from tests.support.gateways import weather_chunks, weather_events

LONGEST_ID: dict[WireApi, int] = {
    **dict.fromkeys(WIRE_SPECS, 64),
    "chat": 256,
    "ollama": 256,
    "cohere": 256,
}


@each_case("wire_api", WIRE_SPECS)
def test_server_sent_events_are_named_on_some_wires(wire_api: WireApi) -> None:
    body = b"".join(weather_chunks(wire_api))
    assert (b"event: " in body) == WIRE_SPECS[wire_api].named_events


@each_case("wire_api", WIRE_SPECS)
def test_item_ends_before_the_next_on_wires_with_blocks(wire_api: WireApi) -> None:
    is_late = wire_api == "invoke"  # it depends on the wire inside
    items_open = 0
    stream_parser = parser(wire_api)
    for chunk in weather_chunks(wire_api):
        for event in stream_parser.feed(chunk):
            if isinstance(event, OutputItemAdded):
                is_late = is_late or items_open > 0
                items_open += 1
            elif isinstance(event, OutputItemDone):
                items_open -= 1
    assert WIRE_SPECS[wire_api].has_blocks == (not is_late)


@each_case("wire_api", WIRE_SPECS)
async def test_complete_body_is_read_in_place_of_a_stream(wire_api: WireApi) -> None:
    body = encode_body(wire_api, accumulate(weather_events(wire_api)), model="m", response_id="r")
    transport = MemoryTransport([body], headers={"content-type": "application/json"})
    async with make_client("http://x", transport) as client:
        response = await client.respond("hi", "faulty:m", wire_api=wire_api)
    assert response.text == "I ask for both."


@each_case("wire_api", WIRE_SPECS)
async def test_reasoning_is_looked_for_in_texts_of_some_wires(wire_api: WireApi) -> None:
    """The others have a form for it, and what looks like a tag was written by the model."""
    tagged = "<think>Hm.</think>Yes."
    message = Message("assistant", (Text(tagged),))
    said = Response(items=(message,), status="completed", stop_reason="stop", response_id="r")
    body = encode_all(wire_api, events_of(said), model="m")
    headers = {"content-type": encoder(wire_api).media_type}
    transport = MemoryTransport([body], headers=headers)
    async with make_client("http://x", transport) as client:
        response = await client.respond("hi", "faulty:deepseek-r1", wire_api=wire_api)
    if wire_api in ("chat", "invoke"):
        assert response.text == "Yes."
    else:
        assert response.text == tagged


@each_case("wire_api, longest", LONGEST_ID.items())
def test_call_id_is_as_long_as_its_wire_takes(wire_api: WireApi, longest: int) -> None:
    call_id = "c" * 300
    items: list[ResponseItem] = [
        user("x"),
        FunctionCall(call_id, "f", "{}"),
        FunctionCallOutput(call_id, "1"),
    ]
    service = Provider(name="x", wires=(wire_api,), base_url="https://x.example")
    body = build(Prompt(items, max_output_tokens=9), "x:m", provider=service).body
    sent = re.findall(rb"c{20,}[0-9a-f_]*", body)
    # Gemini has none.
    expected = [] if wire_api == "gemini" else [longest, longest]
    assert [len(found) for found in sent] == expected


@each_case("wire_api", WIRE_SPECS)
def test_response_repeats_settings_on_one_wire(wire_api: WireApi) -> None:
    settings = request_settings(wire_api, b'{"temperature":0.5}')
    assert (settings is not None) == (wire_api == "responses")
