"""Counts of tokens and compactions are served as responses are: logged, counted, recorded, within
the limits of their targets, and ended when their client leaves or the gateway stops."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
import msgspec
import pytest
from msgspec import Struct

from streamlib.client.retry import NO_RETRY
from streamlib.gateway import ExchangeFiles, Gateway, RouteRule, RouteTable, gateway
from streamlib.gateway.clients.identity import digest_of
from streamlib.gateway.clients.limits import MemoryLimits
from streamlib.gateway.clients.named_clients import NamedClient
from streamlib.gateway.targets.routes import RouteTo
from streamlib.recording import load_all
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi
from tests.streamlib.gateway.requests.test_refusals import json_lines
from tests.streamlib.gateway.watch.test_metrics import samples
from tests.streamlib.gateway.watch.test_observer import Notes
from tests.streamlib.gateway.watch.test_record import files_of
from tests.support.cases import each_case
from tests.support.client_limits import Clock
from tests.support.gateways import (
    ProviderResponse,
    Upstream,
    client_request,
    error_response,
    rule,
    send,
    serving,
    stream_response,
    weather_chunks,
    weather_prompt,
    weather_response,
)
from tests.support.virtual_time import anyio_backend

__all__ = ["anyio_backend"]

BUSY: Final = ErrorInfo("overloaded", "busy")
COMPACT: Final = "/v1/responses/compact"
KEYS: Final = {"api_key": "k", "retry": NO_RETRY}
COMPACTED: Final = {"id": "r", "output": [], "usage": {"input_tokens": 90, "output_tokens": 5}}


class Side(Struct, frozen=True):
    """A request beside responses, and what its target returns.

    Attributes:
        name: of the case.
        operation: as observers see it.
        path: of the request.
        route: to the target.
        returned: by the target.
        model: of the target; "" where none is asked.
        tokens: input tokens in the log.
    """

    name: str
    operation: str
    path: str
    route: RouteRule
    returned: ProviderResponse
    model: str = ""
    tokens: int | None = None

    @property
    def body(self) -> bytes:
        wire = "messages" if "messages" in self.path else "responses"
        return client_request(wire, weather_prompt()).body  # type: ignore[arg-type]


def whole(body: object) -> ProviderResponse:
    return ProviderResponse(200, {}, [msgspec.json.encode(body)])


def two_targets(**options: Any) -> RouteRule:
    """Two servers of one wire."""
    targets = [
        RouteTo(f"custom:{name}", base_url=f"http://{name}", wire_api="messages") for name in "ab"
    ]
    return RouteRule("*", tuple(targets), **options)


CLAUDE: Final = RouteRule("*", "anthropic:claude-opus-4-5", max_streams=1, queue_seconds=0)
COUNT: Final = Side(
    "count",
    "count",
    "/v1/messages/count_tokens",
    CLAUDE,
    whole({"input_tokens": 42}),
    "anthropic:claude-opus-4-5",
)
SUMMARY: Final = Side(
    "summary",
    "compaction",
    COMPACT,
    rule("messages", max_streams=1, queue_seconds=0),
    weather_response("messages"),
    "custom:model-1",
    12,
)
OWN: Final = Side(
    "own compaction",
    "compaction",
    COMPACT,
    RouteRule("*", "openai:gpt-5", wire_api="responses", max_streams=1, queue_seconds=0),
    whole(COMPACTED),
    "openai:gpt-5",
    90,
)
ESTIMATE: Final = Side("estimate", "count", "/v1/responses/input_tokens", rule("chat"), whole({}))
SIDES: Final = [COUNT, ESTIMATE, SUMMARY, OWN]
ASKING: Final = [COUNT, SUMMARY, OWN]
"""Those that ask a target."""


async def ask_for_a_second(app: Any, side: Side) -> None:
    """A client that leaves after a second."""
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": side.path,
        "raw_path": side.path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")],
    }
    bodies = [{"type": "http.request", "body": side.body, "more_body": False}]

    async def receive() -> Any:
        if bodies:
            return bodies.pop()
        await anyio.sleep(1)
        return {"type": "http.disconnect"}

    async def receive_from_app(message: Any) -> None:
        raise AssertionError(message)

    await app(scope, receive, receive_from_app)


@each_case("side", SIDES)
async def test_side_request_has_one_log_line(side: Side, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streamlib.gateway")
    caplog.clear()
    async with serving(Upstream(side.returned), side.route, client=KEYS) as client:
        response = await client.post(side.path, content=side.body)
        found = samples((await client.get("/metrics")).text)
    [line] = json_lines(caplog)
    assert response.status_code == 200, response.text
    assert (line["operation"], line["status"], line["error"]) == (side.operation, 200, None)
    assert (line["model"], line["input_tokens"]) == (side.model, side.tokens)
    assert line["request_id"] in response.headers.values()
    assert f" {side.operation} client-model -> {side.model or 'an estimate'}" in caplog.text
    where = f"route=*,model={side.model}" if side.model else "route=*"
    assert found[f"requests_total{{{where},status=200}}"] == 1
    assert found.get(f"tokens_total{{{where},kind=input}}") == side.tokens


@each_case("side", ASKING)
async def test_failure_of_a_side_request_is_noted(side: Side) -> None:
    notes = Notes()
    upstream = Upstream(error_response("messages", 529, BUSY))
    async with serving(upstream, side.route, client=KEYS, observers=[notes]) as client:
        response = await client.post(side.path, content=side.body)
    assert response.status_code in {503, 529}
    assert notes.calls == ["started", f"tried {side.model}", "failed overloaded", "ended"]
    [exchange] = notes.exchanges
    assert (exchange.status, exchange.error) == (response.status_code, exchange.error)
    assert exchange.error is not None


@each_case("side", [SUMMARY, OWN])
async def test_compaction_takes_a_slot_of_its_target(side: Side) -> None:
    hanging = stream_response("messages", *weather_chunks("messages")[:3], 5.0)
    upstream = Upstream(hanging, side.returned)
    statuses: list[int] = []
    async with (
        serving(upstream, side.route, client=KEYS) as client,
        anyio.create_task_group() as group,
    ):
        group.start_soon(send, client, "messages", weather_prompt())
        await anyio.sleep(1)
        for _ in range(2):
            response = await client.post(side.path, content=side.body)
            statuses.append(response.status_code)
            await anyio.sleep(10)
    assert statuses == [503, 200]
    assert len(upstream.requests) == 2


async def test_count_takes_no_slot_of_its_target() -> None:
    hanging = stream_response("messages", *weather_chunks("messages")[:3], 5.0)
    async with (
        serving(Upstream(hanging, COUNT.returned), CLAUDE, client=KEYS) as client,
        anyio.create_task_group() as group,
    ):
        group.start_soon(send, client, "messages", weather_prompt())
        await anyio.sleep(1)
        response = await client.post(COUNT.path, content=COUNT.body)
    assert response.json() == {"input_tokens": 42}


async def test_compaction_avoids_a_target_that_cools_down() -> None:
    failed = error_response("messages", 529, BUSY)
    upstream = Upstream(failed, weather_response("messages"))
    async with serving(upstream, two_targets(cooldown_failures=1), client=KEYS) as client:
        for _ in range(2):
            response = await client.post(COMPACT, content=SUMMARY.body)
            assert response.status_code == 200, response.text
    assert [httpx.URL(request.url).host for request in upstream.requests] == ["a", "b", "b"]


async def test_compactions_that_fail_cool_their_target_down() -> None:
    upstream = Upstream(error_response("messages", 529, BUSY), weather_response("messages"))
    async with serving(upstream, two_targets(cooldown_failures=1), client=KEYS) as client:
        await client.post(COMPACT, content=SUMMARY.body)
        await send(client, "chat", weather_prompt())
    assert [httpx.URL(request.url).host for request in upstream.requests] == ["a", "b", "b"]


def two_endpoints(provider: str, wire_api: WireApi, **options: Any) -> RouteRule:
    """Two servers of one provider."""
    targets = [
        RouteTo(provider, base_url=f"http://{name}", wire_api=wire_api, key_env="SIDE_KEY")
        for name in "ab"
    ]
    return RouteRule("*", tuple(targets), cooldown_failures=1, **options)


async def test_count_avoids_a_target_that_cools_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIDE_KEY", "k")
    failed = error_response("messages", 529, BUSY)
    upstream = Upstream(failed, weather_response("messages"), COUNT.returned)
    route = two_endpoints("anthropic:claude-opus-4-5", "messages")
    async with serving(upstream, route, client=KEYS) as client:
        await send(client, "messages", weather_prompt())
        response = await client.post(COUNT.path, content=COUNT.body)
    assert response.json() == {"input_tokens": 42}
    assert [httpx.URL(request.url).host for request in upstream.requests] == ["a", "b", "b"]


async def test_compaction_ends_a_cooldown_when_its_target_responds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client that reads slowly does not keep other requests from the target."""
    monkeypatch.setenv("SIDE_KEY", "k")
    failed = error_response("responses", 529, BUSY)
    upstream = Upstream(failed, OWN.returned)
    table = RouteTable([two_endpoints("openai:gpt-5", "responses", cooldown_seconds=10)])
    async with Gateway(table, client={"http": upstream, **KEYS}) as running:
        app = gateway(running)

        async def slow_app(scope: Any, receive: Any, send_to_client: Any) -> None:
            async def slow_send(message: Any) -> None:
                await anyio.sleep(100)
                await send_to_client(message)

            await app(scope, receive, slow_send)

        async def ask(application: Any) -> None:
            transport = httpx.ASGITransport(application)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1"
            ) as client:
                await client.post(COMPACT, content=OWN.body)

        await ask(app)
        await anyio.sleep(11)
        async with anyio.create_task_group() as group:
            group.start_soon(ask, slow_app)
            await anyio.sleep(1)
            await ask(app)
    assert [httpx.URL(request.url).host for request in upstream.requests] == ["a", "b", "a", "a"]


async def test_own_compaction_counts_its_input_when_it_is_stopped() -> None:
    alice = NamedClient("alice", digest_of("ab"), tokens_per_minute=100_000)
    limits = MemoryLimits(Clock())
    upstream = Upstream(ProviderResponse(200, {}, [1000.0]))
    table = RouteTable([OWN.route], clients=[alice])
    async with Gateway(table, client={"http": upstream, **KEYS}, limits=limits) as running:
        transport = httpx.ASGITransport(gateway(running, token="owner"))
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
            anyio.create_task_group() as group,
        ):
            client.headers["x-api-key"] = "ab"
            group.start_soon(partial(client.post, COMPACT, content=OWN.body))
            await anyio.sleep(1)
            running.end_streams()
        balance = await limits.take(alice, 0)
    assert balance.tokens is not None
    # The estimate of its input.
    assert 97_000 < balance.tokens < 99_000


async def test_cut_summary_is_no_failure_of_its_target() -> None:
    """It depends on the conversation: the target does not cool down for it."""
    text = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"So far"}}]}\n\n'
    end = b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}\n\n'
    cut = stream_response("chat", text, end, b"data: [DONE]\n\n")
    table = RouteTable([rule("chat", cooldown_failures=1)])
    async with Gateway(table, client={"http": Upstream(cut), **KEYS}) as running:
        transport = httpx.ASGITransport(gateway(running))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            response = await client.post(COMPACT, content=SUMMARY.body)
        assert response.status_code >= 500
        assert running.pool.cooling() == {}


@each_case("side", ASKING)
async def test_side_request_ends_when_the_gateway_stops(side: Side) -> None:
    upstream = Upstream(ProviderResponse(200, {"content-type": "text/event-stream"}, [1000.0]))
    responses: list[httpx.Response] = []
    table = RouteTable([side.route])
    async with Gateway(table, client={"http": upstream, **KEYS}) as running:
        transport = httpx.ASGITransport(gateway(running))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

            async def ask() -> None:
                responses.append(await client.post(side.path, content=side.body))

            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                await anyio.sleep(1)
                assert len(running.streams) == 1
                running.end_streams()
    [response] = responses
    assert (response.status_code in {503, 529}, response.headers["retry-after"]) == (True, "1")
    assert "the gateway is stopping" in response.text
    assert upstream.open == 0


@each_case("side", ASKING)
async def test_side_request_ends_when_its_client_leaves(side: Side) -> None:
    notes = Notes()
    upstream = Upstream(ProviderResponse(200, {"content-type": "text/event-stream"}, [1000.0]))
    table = RouteTable([side.route])
    async with Gateway(table, client={"http": upstream, **KEYS}, observers=[notes]) as running:
        await ask_for_a_second(gateway(running), side)
    [exchange] = notes.exchanges
    assert exchange.error is not None
    assert (exchange.status, exchange.error.kind, upstream.open) == (499, "cancelled", 0)


@each_case("side", SIDES)
async def test_side_request_is_recorded(side: Side, tmp_path: Path) -> None:
    folder = tmp_path / side.name
    files = ExchangeFiles(folder)
    upstream = Upstream(side.returned)
    async with serving(upstream, side.route, client=KEYS, record=files) as client:
        response = await client.post(side.path, content=side.body)
    [path] = files_of(folder)
    ours, *theirs = load_all(path)
    assert (ours.status, ours.body, ours.end) == (200, response.content, None)
    assert ours.request is not None
    assert ours.request.body == side.body
    assert [one.wire_api for one in theirs] == [side.route.wire_api or "messages"] * len(theirs)
    assert len(theirs) == len(upstream.requests) == int(bool(side.model))
