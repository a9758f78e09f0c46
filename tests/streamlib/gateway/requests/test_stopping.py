"""A gateway that stops ends what is under way with an error of the client's wire, never as if it
were complete; and one that reads its routes again goes on with what it has begun."""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import Any, Final

import anyio
import httpx
import pytest

from streamlib import Prompt
from streamlib.durable import open_log
from streamlib.durable.memory import MemoryEngine
from streamlib.gateway import Gateway, NamedClient, RouteTable, gateway
from streamlib.gateway.clients.identity import digest_of
from streamlib.gateway.clients.limits import MemoryLimits
from streamlib_parsers.items import WireApi
from tests.streamlib.gateway.watch.test_metrics import samples
from tests.support.asgi_calls import AsgiCall
from tests.support.client_limits import Clock
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
BACKGROUND: Final = {"model": "m", "input": "Hello", "background": True}
LONG: Final = [
    *weather_chunks("messages")[:7],
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":1,'
    b'"delta":{"type":"text_delta","text":"' + b"word " * 1000 + b'"}}\n\n',
]
"""A stream that breaks off inside a text."""


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


async def test_reader_that_its_server_cancels_gets_an_error() -> None:
    """A server that stops cancels the tasks of its requests, those that only read a log, too."""
    body = {"model": "m", "input": "Hello", "background": True, "stream": True}
    call = AsgiCall(path="/v1/responses", headers={"x-api-key": "t"})
    options: dict[str, Any] = {"client": {"http": hanging()}, "log": "memory:"}
    async with Gateway(RouteTable([rule("messages")]), **options) as running:
        with anyio.move_on_after(1):
            await call(gateway(running, token="t"), json.dumps(body).encode())
    assert call.is_complete
    result = parse_stream("responses", call.body)
    assert result.error is not None
    assert "the gateway is stopping" in result.error.message


@pytest.mark.parametrize("model", ["messages", "chat", "gemini"])
async def test_cut_stream_counts_what_was_received(
    model: WireApi, caplog: pytest.LogCaptureFixture
) -> None:
    """Most providers count at the end, and Anthropic's first count is of a single token."""
    caplog.set_level(logging.INFO, "streamlib.gateway")
    digest = digest_of("ab")
    alice = NamedClient("alice", digest, tokens_per_minute=100_000)
    limits = MemoryLimits(Clock())
    table = RouteTable([rule(model)], clients=[alice])
    hanging = Upstream(stream_response(model, *weather_chunks(model)[:-2], 1000.0))
    async with Gateway(table, client={"http": hanging}, limits=limits) as running:
        transport = httpx.ASGITransport(gateway(running, token="owner"))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            async with anyio.create_task_group() as group:
                group.start_soon(partial(send, client, "chat", PROMPT, x_api_key="ab"))
                await anyio.sleep(1)
                running.end_streams()
            found = samples((await client.get("/metrics", headers={"x-api-key": "owner"})).text)
        balance = await limits.take(alice, 0)
    # A text, reasoning and at least one call: 40 to 80 characters.
    [counted] = [value for name, value in found.items() if name.endswith("kind=output}")]
    assert 10 <= counted <= 25
    assert f"about {int(counted)} tokens" in caplog.text
    assert balance.tokens is not None
    assert 100_000 - 12 - 25 <= balance.tokens <= 100_000 - 10


async def test_failed_stream_counts_what_was_received() -> None:
    """`message_start` counts one token of output; a stream that breaks off has no other count."""
    alice = NamedClient("alice", digest_of("ab"), tokens_per_minute=100_000)
    limits = MemoryLimits(Clock())
    chunks = [chunk.replace(b'"output_tokens":0', b'"output_tokens":1') for chunk in LONG]
    table = RouteTable([rule("messages")], clients=[alice])
    upstream = Upstream(stream_response("messages", *chunks))
    async with Gateway(table, client={"http": upstream}, limits=limits) as running:
        transport = httpx.ASGITransport(gateway(running))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            await send(client, "chat", PROMPT, x_api_key="ab")
        balance = await limits.take(alice, 0)
    assert balance.tokens is not None
    assert balance.tokens <= 100_000 - 12 - 1000


async def test_request_that_arrives_after_the_end_ends_at_once() -> None:
    async with Gateway(RouteTable([rule("messages")]), client={"http": hanging()}) as running:
        running.end_streams()
        transport = httpx.ASGITransport(gateway(running))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            with anyio.fail_after(5):
                response = await send(client, "chat", PROMPT)
    assert response.status_code == 503
    assert "the gateway is stopping" in response.text


async def test_reader_that_arrives_after_the_end_gets_an_error() -> None:
    table = RouteTable([rule("messages")])
    async with Gateway(table, client={"http": hanging()}, log="memory:") as running:
        transport = httpx.ASGITransport(gateway(running))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            created = (await client.post("/v1/responses", json=BACKGROUND)).json()
            running.streams.end()
            with anyio.fail_after(5):
                response = await client.get(f"/v1/responses/{created['id']}?stream=true")
    result = parse_stream("responses", response.content)
    assert result.error is not None
    assert "the gateway is stopping" in result.error.message


# --- responses in the background ---


async def ended_after(chunks: list[bytes | float], grace: float) -> tuple[str, float]:
    """How a response in the background ends whose gateway stops, and after how long."""
    engine = MemoryEngine()
    options = {"client": {"http": Upstream(stream_response("messages", *chunks))}}
    async with open_log(engine) as log:
        async with Gateway(
            RouteTable([rule("messages")]), log=log, grace_seconds=grace, **options
        ) as running:
            transport = httpx.ASGITransport(gateway(running))
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1"
            ) as client:
                created = (await client.post("/v1/responses", json=BACKGROUND)).json()
            await anyio.sleep(1)
            assert running.background_count == 1
            stopped_at = anyio.current_time()
        seconds = anyio.current_time() - stopped_at
        events = [entry.event async for entry in log.read(created["id"])]
    return type(events[-1]).__name__, seconds


async def test_background_response_is_waited_for() -> None:
    chunks = weather_chunks("messages")
    end, seconds = await ended_after([*chunks[:6], 10.0, *chunks[6:]], grace=25.0)
    assert (end, 8 < seconds < 11) == ("Completed", True)


@pytest.mark.parametrize("grace", [0.0, 5.0])
async def test_background_response_ends_with_the_grace(grace: float) -> None:
    chunks = weather_chunks("messages")
    end, seconds = await ended_after([*chunks[:6], 1000.0], grace)
    assert (end, grace <= seconds < grace + 1) == ("Failed", True)


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
