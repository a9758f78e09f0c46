"""One conversation through every pair of wires: as a stream, and as one body."""

from __future__ import annotations

from itertools import product

import msgspec

from lab.gateway_table.table import conversation_of, plain_texts
from streamlib import build
from streamlib_parsers.items import WireApi
from tests.support.cases import each_case
from tests.support.gateways import (
    CLIENTS,
    MODELS,
    Upstream,
    common_fields,
    next_prompt,
    parse_stream,
    read,
    rule,
    send,
    serving,
    stream_or_body,
    weather_chunks,
    weather_prompt,
    weather_response,
)

each_pair = each_case("client_wire, model_wire", product(CLIENTS, MODELS))


@each_pair
@stream_or_body
async def test_client_reads_what_the_model_sent(
    client_wire: WireApi, model_wire: WireApi, stream: bool
) -> None:
    async with serving(Upstream(weather_response(model_wire)), rule(model_wire)) as client:
        response = await send(client, client_wire, weather_prompt(), stream=stream)
    assert response.status_code == 200, response.text
    received = common_fields(read(client_wire, response, stream=stream))
    assert received == common_fields(parse_stream(model_wire, *weather_chunks(model_wire)))


@each_pair
@stream_or_body
async def test_next_request_is_the_one_without_a_gateway(
    client_wire: WireApi, model_wire: WireApi, stream: bool
) -> None:
    """Signed reasoning, order, call ids, bytes of arguments: the whole conversation."""
    upstream = Upstream(weather_response(model_wire))
    async with serving(upstream, rule(model_wire)) as client:
        sent = await send(client, client_wire, weather_prompt(), stream=stream)
        first = read(client_wire, sent, stream=stream)
        await send(client, client_wire, next_prompt(weather_prompt(), first))
    direct = build(
        weather_prompt(),
        "model-1",
        provider="custom",
        wire_api=model_wire,
        base_url="http://upstream",
    )
    response = parse_stream(model_wire, *weather_chunks(model_wire), origin=direct.origin)
    expected = build(
        next_prompt(weather_prompt(), response),
        "model-1",
        provider="custom",
        wire_api=model_wire,
        base_url="http://upstream",
    )
    expected_body = msgspec.json.decode(expected.body)
    received = without_non_strict(plain_texts(conversation_of(upstream.body())))
    assert received == without_non_strict(plain_texts(conversation_of(expected_body)))


@each_pair
async def test_settings_are_those_sent_without_a_gateway(
    client_wire: WireApi, model_wire: WireApi
) -> None:
    """Instructions, tools, output schema, levels of reasoning and length.

    Responses clients must send `strict: false`.
    """
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    prompt = weather_prompt(
        instructions="Be brief.",
        output_schema=schema,
        tool_choice="required",
        max_output_tokens=5000,
    )
    upstream = Upstream(weather_response(model_wire))
    async with serving(upstream, rule(model_wire)) as client:
        await send(client, client_wire, prompt)
    direct = build(
        prompt, "model-1", provider="custom", wire_api=model_wire, base_url="http://upstream"
    )
    expected = without_non_strict(plain_texts(msgspec.json.decode(direct.body)))
    assert without_non_strict(plain_texts(upstream.body())) == expected


def without_non_strict(value: object) -> object:
    """A JSON value without `strict: false`, which is the default of every wire but Responses."""
    if isinstance(value, dict):
        return {
            key: without_non_strict(element)
            for key, element in value.items()
            if (key, element) != ("strict", False)
        }
    if isinstance(value, list):
        return [without_non_strict(element) for element in value]
    return value
