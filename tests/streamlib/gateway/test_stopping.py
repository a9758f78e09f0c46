"""A gateway that stops ends what is under way with an error of the client's wire, never as if it
were complete; and one that reads its routes again goes on with what it has begun."""

from __future__ import annotations

from typing import Any, Final

import anyio
import httpx
import pytest

from streamlib import Prompt
from streamlib.gateway import Gateway, NamedClient, RouteTable, gateway
from streamlib.gateway.identity import digest_of
from streamlib_parsers.items import WireApi
from tests.support.gateways import (
    ProviderResponse,
    Upstream,
    client_request,
    each_client,
    parse_stream,
    read,
    rule,
    send,
    stream_or_body,
    stream_response,
    weather_chunks,
    weather_response,
)
from tests.support.virtual_time import anyio_backend

__all__ = ["anyio_backend"]

PROMPT: Final = Prompt("Hello", max_output_tokens=50)


def hanging() -> Upstream:
    """A model that begins a response and does not go on."""
    return Upstream(stream_response("messages", *weather_chunks("messages")[:6], 1000.0))


async def stopped(upstream: Upstream, wire: WireApi, *, stream: bool = True) -> httpx.Response:
    """What a client receives whose gateway stops a second after its request."""
    responses: list[httpx.Response] = []
    async with Gateway(RouteTable([rule("messages")]), client={"http": upstream}) as running:
        transport = httpx.ASGITransport(gateway(running))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

            async def ask() -> None:
                responses.append(await send(client, wire, PROMPT, stream=stream))

            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                await anyio.sleep(1)
                assert len(running.streams) == 1
                running.end_streams()
        assert len(running.streams) == 0
    assert upstream.open == 0
    return responses[0]


@each_client
async def test_stream_ends_with_an_error_when_the_gateway_stops(wire: WireApi) -> None:
    response = await stopped(hanging(), wire)
    result = parse_stream(wire, response.content)
    assert response.status_code == 200
    assert (result.status, result.stop_reason) == ("failed", None)
    assert result.error is not None
    assert "the gateway is stopping" in result.error.message
    assert not result.calls


@each_client
@stream_or_body
async def test_request_without_output_gets_an_http_error(wire: WireApi, stream: bool) -> None:
    silent = Upstream(ProviderResponse(200, {"content-type": "text/event-stream"}, [1000.0]))
    response = await stopped(silent, wire, stream=stream)
    error = read(wire, response, stream=False).error
    assert error is not None
    assert (response.status_code in {503, 529}, response.headers["retry-after"]) == (True, "1")
    assert (error.kind, error.retryable) == ("overloaded", True)


@each_client
async def test_stream_ends_with_an_error_when_its_server_cancels_it(wire: WireApi) -> None:
    request = client_request(wire, PROMPT)
    path = httpx.URL(request.url).path
    body = request.body
    if wire == "gemini":
        path = f"/v1beta{path}"
    else:
        body = body.replace(b"{", b'{"stream":true,', 1).replace(b'"stream":false,', b"")
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"alt=sse",
        "headers": [(b"host", b"127.0.0.1")],
    }
    messages: list[Any] = []
    bodies = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if not bodies:
            await anyio.sleep_forever()
        return bodies.pop()

    async def receive_from_app(message: Any) -> None:
        messages.append(message)

    async with Gateway(RouteTable([rule("messages")]), client={"http": hanging()}) as running:
        with anyio.move_on_after(1):
            await gateway(running)(scope, receive, receive_from_app)
    assert messages[0]["status"] == 200
    assert messages[-1]["more_body"] is False
    result = parse_stream(wire, *[message["body"] for message in messages[1:]])
    assert result.status == "failed"
    assert result.error is not None
    assert "the gateway is stopping" in result.error.message


async def test_reader_of_a_background_response_gets_an_error() -> None:
    table = RouteTable([rule("messages")])
    received: list[bytes] = []
    async with Gateway(table, client={"http": hanging()}, log="memory:") as running:
        transport = httpx.ASGITransport(gateway(running))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

            async def ask() -> None:
                body = {"model": "m", "input": "Hello", "background": True, "stream": True}
                received.append((await client.post("/v1/responses", json=body)).content)

            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                await anyio.sleep(1)
                running.end_streams()
    assert parse_stream("responses", received[0]).status == "failed"


# --- routes that are read again ---


@pytest.mark.parametrize("wire", ["messages", "chat"])
async def test_stream_under_way_ends_on_its_old_route(wire: WireApi) -> None:
    chunks = weather_chunks("messages")
    slow = stream_response("messages", *chunks[:6], 10.0, *chunks[6:])
    upstream = Upstream(slow, weather_response("messages"))
    other = rule("chat")
    responses: list[httpx.Response] = []
    async with Gateway(RouteTable([rule("messages")]), client={"http": upstream}) as running:
        transport = httpx.ASGITransport(gateway(running))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

            async def ask() -> None:
                responses.append(await send(client, wire, PROMPT))

            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                await anyio.sleep(1)
                await running.use(RouteTable([other]))
                await send(client, wire, PROMPT)
    result = parse_stream(wire, responses[0].content)
    assert (result.status, len(result.calls)) == ("completed", 2)
    paths = [httpx.URL(request.url).path for request in upstream.requests]
    assert paths[0].endswith("/messages")
    assert paths[1].endswith("/chat/completions")


async def test_new_clients_are_known_and_old_ones_are_not() -> None:
    def table(name: str, token: str) -> RouteTable:
        return RouteTable([rule("messages")], clients=[NamedClient(name, digest_of(token))])

    upstream = Upstream(weather_response("messages"))
    statuses: list[int] = []
    async with Gateway(table("alice", "ab"), client={"http": upstream}) as running:
        transport = httpx.ASGITransport(gateway(running))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for _ in range(2):
                for token in ("ab", "bc"):
                    response = await send(client, "chat", PROMPT, x_api_key=token)
                    statuses.append(response.status_code)
                await running.use(table("bob", "bc"))
    assert statuses == [200, 401, 401, 200]
