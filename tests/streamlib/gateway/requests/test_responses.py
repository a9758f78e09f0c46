"""What a client gets besides the content: headers, keep-alives, the format of the stream; and what
the log has of it."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import msgspec
import pytest

from streamlib.gateway import Gateway, RouteTable, gateway
from streamlib_parsers.items import WireApi
from tests.support.gateways import (
    CLIENTS,
    Upstream,
    client_request,
    common_fields,
    each_client,
    parse_stream,
    read,
    rule,
    send,
    serving,
    stream_or_body,
    stream_response,
    weather_chunks,
    weather_prompt,
    weather_response,
)
from tests.support.messages_frames import block, end, start

# --- headers ---


async def test_rate_limits_have_the_client_wire_names() -> None:
    limits = {
        "anthropic_ratelimit_requests_limit": "50",
        "anthropic_ratelimit_requests_remaining": "49",
    }
    upstream = Upstream(stream_response("messages", *weather_chunks("messages"), **limits))
    async with serving(upstream, rule("messages")) as client:
        chat = await send(client, "chat", weather_prompt())
        messages = await send(client, "messages", weather_prompt())
    assert chat.headers["x-ratelimit-limit-requests"] == "50"
    assert chat.headers["x-ratelimit-remaining-requests"] == "49"
    assert messages.headers["anthropic-ratelimit-requests-remaining"] == "49"


@each_client
@stream_or_body
async def test_response_names_the_requested_model(wire: WireApi, stream: bool) -> None:
    async with serving(Upstream(weather_response("messages")), rule("messages")) as client:
        response = await send(client, wire, weather_prompt(), stream=stream)
    # Cohere's responses name no model.
    expected = None if wire == "cohere" else "client-model"
    assert read(wire, response, stream=stream).model == expected
    assert response.headers["x-streamlib-model"] == "custom:model-1"


async def test_dropped_fields_are_counted_in_a_header() -> None:
    upstream = Upstream(weather_response("messages"))
    prompt = weather_prompt(seed=7, extra={"logit_bias": {"1": 2}})
    async with serving(upstream, rule("messages")) as client:
        response = await send(client, "chat", prompt)
    assert response.headers["x-streamlib-report"].startswith("dropped=2")
    assert b"logit_bias" not in upstream.requests[0].body


# --- the stream ---


async def test_gemini_stream_without_sse_is_a_json_array() -> None:
    upstream = Upstream(weather_response("messages"))
    body = client_request("gemini", weather_prompt()).body
    path = "/v1beta/models/client-model:streamGenerateContent"
    async with serving(upstream, rule("messages"), keep_alive=0.001) as client:
        response = await client.post(path, content=body)
    assert response.headers["content-type"] == "application/json"
    assert len(response.json()) > 5
    received = common_fields(parse_stream("gemini", response.content))
    assert received == common_fields(parse_stream("messages", *weather_chunks("messages")))


@each_client
async def test_keep_alives_are_sent_while_the_model_is_silent(wire: WireApi) -> None:
    first, *rest = weather_chunks("gemini")
    upstream = Upstream(stream_response("gemini", 0.2, first, 0.2, *rest))
    async with serving(upstream, rule("gemini"), keep_alive=0.01) as client:
        response = await send(client, wire, weather_prompt())
    keep_alive = {"messages": b"event: ping", "gemini": b"\n"}.get(wire, b": keep-alive")
    assert response.content.startswith(keep_alive)
    assert response.content.count(keep_alive) >= 2
    received = common_fields(read(wire, response))
    assert received == common_fields(parse_stream("gemini", first, *rest))


async def test_interleaved_texts_are_not_mixed() -> None:
    """Chat and Gemini have no blocks: there, the deltas of two open texts would become one text."""
    block = '{"type":"content_block_%s","index":%d,%s}'
    start = (
        '{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"model":"m",'
        '"usage":{"input_tokens":1,"output_tokens":1}}}'
    )
    lines = [start]
    for index in (0, 1):
        lines.append(block % ("start", index, '"content_block":{"type":"text","text":""}'))
    for index, text in ((0, "Hel"), (1, "B"), (0, "lo ")):
        delta = f'"delta":{{"type":"text_delta","text":"{text}"}}'
        lines.append(block % ("delta", index, delta))
    for index in (0, 1):
        lines.append(block % ("stop", index, '"x":0'))
    end = '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}'
    lines += [end, '{"type":"message_stop"}']
    stream = "".join(f"data: {line}\n\n" for line in lines).encode()
    async with serving(Upstream(stream_response("messages", stream)), rule("messages")) as client:
        for wire in CLIENTS:
            response = await send(client, wire, weather_prompt())
            assert parse_stream(wire, response.content).text == "Hello B"


async def disconnect(app: Any, wire: WireApi, after: int) -> int:
    """A client that disconnects after some ASGI messages; returns how many it received."""
    request = client_request(wire, weather_prompt())
    body = msgspec.json.encode({**msgspec.json.decode(request.body), "stream": True})
    received = 0
    disconnected = anyio.Event()
    is_sent = False
    if not after:
        disconnected.set()

    async def receive() -> Any:
        nonlocal is_sent
        if not is_sent:
            is_sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        await disconnected.wait()
        return {"type": "http.disconnect"}

    async def send_message(message: Any) -> None:
        nonlocal received
        await anyio.lowlevel.checkpoint()
        received += 1
        if received >= after:
            disconnected.set()

    scope = {
        "type": "http",
        "method": "POST",
        "path": httpx.URL(request.url).path,
        "headers": [(b"host", b"localhost")],
        "query_string": b"",
    }
    await app(scope, receive, send_message)
    return received


async def test_client_disconnect_closes_the_connection_upstream() -> None:
    chunks: list[bytes | float] = []
    for chunk in weather_chunks("messages"):
        chunks += [chunk, 0.001]
    upstream = Upstream(stream_response("messages", *chunks, 60.0))
    table = RouteTable([rule("messages")])
    async with Gateway(table, client={"http": upstream}) as running:
        app = gateway(running)
        for after in range(12):
            with anyio.fail_after(5):
                assert await disconnect(app, "chat", after) <= after + 3
            assert upstream.open == 0


async def test_keep_alive_to_a_closed_connection_is_a_disconnect(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Some servers raise an error where a client is gone that is written to."""
    request = client_request("chat", weather_prompt())
    body = msgspec.json.encode({**msgspec.json.decode(request.body), "stream": True})
    requests = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        if requests:
            return requests.pop()
        return await anyio.sleep_forever()

    async def send_message(message: Any) -> None:
        sent.append(message)
        if len(sent) > 2:
            raise ConnectionResetError("the client is gone")

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": "/v1/chat/completions",
        "headers": [(b"host", b"localhost")],
        "query_string": b"",
    }
    caplog.set_level(logging.INFO, "streamlib.gateway")
    upstream = Upstream(stream_response("messages", 60.0))
    table = RouteTable([rule("messages")])
    async with Gateway(table, client={"http": upstream}, keep_alive=0.005) as running:
        with anyio.fail_after(5):
            await gateway(running)(scope, receive, send_message)
        assert upstream.open == 0
    (line,) = [record.getMessage() for record in caplog.records]
    assert "chat client-model -> custom:model-1 at upstream: cancelled" in line


# --- the log ---


async def test_log_has_one_line_per_request_without_content(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "streamlib.gateway")
    prompt = weather_prompt(instructions="the secret plan")
    async with serving(Upstream(weather_response("messages")), rule("messages")) as client:
        await send(client, "chat", prompt)
    lines = [record.getMessage() for record in caplog.records if record.name == "streamlib.gateway"]
    assert len(lines) == 1
    assert "chat client-model -> custom:model-1 at upstream: tool_calls, 12+34 tokens" in lines[0]
    for text in ("secret", "Riga", "Two places"):
        assert text not in lines[0]


async def test_omitted_thinking_is_counted_inside_its_block() -> None:
    """A11: clients of the API never met a `message_delta` inside a block."""
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    estimate = {"kind": "thinking_delta", "thinking": "", "estimated_tokens": 64}
    upstream = Upstream(stream_response("messages", start() + block(0, thinking, estimate) + end()))
    async with serving(upstream, rule("messages")) as client:
        response = await send(client, "messages", weather_prompt())
    inside = response.content.partition(b"content_block_stop")[0]
    assert b'"estimated_tokens":64' in inside
    assert b"message_delta" not in inside
