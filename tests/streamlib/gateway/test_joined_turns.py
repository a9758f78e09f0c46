"""A client that joins the turns of one message, as Claude Code does: it knows a message by its id.

Two responses with one id would make the model read that it made all calls before it saw a result.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import FunctionCall, Prompt, Reasoning, parse_request
from streamlib.testing.frames import unframed
from streamlib.wires.encoders import encode_all
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.items import FunctionCallOutput, Origin, ResponseItem, WireApi
from streamlib_parsers.limits import LIMITS
from tests.support.gateways import (
    MODELS,
    WEATHER,
    ProviderResponse,
    Upstream,
    client_request,
    rule,
    serving,
    stream_or_body,
    stream_response,
)

pytestmark = pytest.mark.anyio


def turn(model: WireApi, place: str) -> ProviderResponse:
    """A response with one call, of a provider that names no response."""
    assembler = EventAssembler(LIMITS, Origin(model))
    assembler.identify(None, "m")
    thought = assembler.open(Reasoning())
    assembler.reasoning(thought, f"I need {place}.")
    assembler.close(thought)
    call = assembler.open(FunctionCall(f"call_{place}", "weather"))
    assembler.arguments(call, f'{{"place":"{place}"}}')
    assembler.close(call)
    assembler.complete("tool_calls")
    return stream_response(model, encode_all(model, assembler.take()))


def message_in(content: bytes, *, stream: bool) -> dict[str, Any]:
    """The message of a response, as the official SDK accumulates it."""
    if not stream:
        message: dict[str, Any] = msgspec.json.decode(content)
        return message
    message = {}
    inputs: dict[int, str] = {}
    for _, payload in unframed("messages", content):
        event = msgspec.json.decode(payload)
        match event["type"]:
            case "message_start":
                message = event["message"]
            case "content_block_start":
                message["content"].append(event["content_block"])
            case "content_block_delta":
                delta = event["delta"]
                block = message["content"][event["index"]]
                if delta["type"] == "input_json_delta":
                    fragments = inputs.get(event["index"], "") + delta["partial_json"]
                    inputs[event["index"]] = fragments
                    block["input"] = msgspec.json.decode(fragments)
                elif delta["type"] == "thinking_delta":
                    block["thinking"] += delta["thinking"]
                elif delta["type"] == "signature_delta":
                    block["signature"] = delta["signature"]
            case _:
                pass
    return message


def joined(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The history as the client sends it: messages of one id are one, where the first stands."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        earlier = [other for other in turns if "id" in other and other["id"] == message.get("id")]
        if earlier:
            earlier[0]["content"] = [*earlier[0]["content"], *message["content"]]
        elif turns and turns[-1]["role"] == message["role"] == "user":
            turns[-1]["content"] = [*turns[-1]["content"], *message["content"]]
        else:
            turns.append(dict(message))
    return [{"role": turn["role"], "content": turn["content"]} for turn in turns]


PLACES = ("Riga", "Bonn", "Rome", "Lima")


async def last_history(model: WireApi, *, stream: bool) -> tuple[ResponseItem, ...]:
    """What the model reads in the last of four requests, after three of its responses."""
    upstream = Upstream(*[turn(model, place) for place in PLACES])
    prompt = Prompt("Weather in all?", tools=[WEATHER], max_output_tokens=4000, reasoning="low")
    request = msgspec.json.decode(client_request("messages", prompt).body)
    messages: list[dict[str, Any]] = list(request["messages"])
    async with serving(upstream, rule(model)) as client:
        for _ in PLACES:
            body = {**request, "messages": joined(messages), "stream": stream}
            headers = {"content-type": "application/json"}
            response = await client.post(
                "/v1/messages", content=msgspec.json.encode(body), headers=headers
            )
            message = message_in(response.content, stream=stream)
            results = [
                {"type": "tool_result", "tool_use_id": block["id"], "content": "sunny"}
                for block in message["content"]
                if block["type"] == "tool_use"
            ]
            messages += [message, {"role": "user", "content": results}]
    return parse_request(model, upstream.requests[-1].body).items


@stream_or_body
@pytest.mark.parametrize("model", MODELS)
async def test_client_that_joins_turns_by_id_keeps_them_apart(model: WireApi, stream: bool) -> None:
    items = await last_history(model, stream=stream)
    order = [type(item) for item in items if isinstance(item, (FunctionCall, FunctionCallOutput))]
    assert order == [FunctionCall, FunctionCallOutput] * 3


@stream_or_body
@pytest.mark.parametrize("model", ["ollama", "cohere"])
async def test_each_unsigned_reasoning_comes_back(model: WireApi, stream: bool) -> None:
    """Once one of three: the client keeps the thoughts of the turn that it knows by its id."""
    items = await last_history(model, stream=stream)
    texts = [item.content for item in items if isinstance(item, Reasoning)]
    assert texts == [f"I need {place}." for place in PLACES[:3]]
