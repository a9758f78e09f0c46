"""A route with several targets: the next one is tried until one has output of the model.

Durations are simulated, so a long wait costs nothing.
"""

from __future__ import annotations

from typing import Any, Final

import anyio
import pytest

from streamlib.gateway import RouteRule
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi
from tests.support.gateways import (
    Upstream,
    common_fields,
    each_client,
    error_response,
    parse_stream,
    read,
    send,
    serving,
    stream_or_body,
    stream_response,
    weather_chunks,
    weather_prompt,
    weather_response,
)
from tests.support.virtual_time import anyio_backend

__all__ = ["anyio_backend"]

TWO: Final = RouteRule(
    "*", ("custom:one", "custom:two"), wire_api="messages", base_url="http://upstream"
)
WHOLE: Final = weather_response("messages")
LIMITED: Final = error_response(
    "messages", 429, ErrorInfo("rate_limited", "slow down"), retry_after="37"
)


def models(upstream: Upstream) -> list[str]:
    return [upstream.body(index)["model"] for index in range(len(upstream.requests))]


def expected() -> Any:
    return common_fields(parse_stream("messages", *weather_chunks("messages")))


@each_client
@stream_or_body
async def test_next_target_is_tried_at_once(wire: WireApi, stream: bool) -> None:
    """Its `retry-after` is for whoever has no other target."""
    upstream = Upstream(LIMITED, WHOLE)
    async with serving(upstream, TWO) as client:
        start = anyio.current_time()
        response = await send(client, wire, weather_prompt(), stream=stream)
        seconds = anyio.current_time() - start
    assert common_fields(read(wire, response, stream=stream)) == expected()
    assert (models(upstream), seconds) == (["one", "two"], 0)


async def test_only_target_is_asked_again_after_its_delay() -> None:
    upstream = Upstream(LIMITED, WHOLE)
    one = RouteRule("*", "custom:one", wire_api="messages", base_url="http://upstream")
    async with serving(upstream, one) as client:
        start = anyio.current_time()
        response = await send(client, "chat", weather_prompt())
        assert anyio.current_time() - start == pytest.approx(37)
    assert (response.status_code, models(upstream)) == (200, ["one", "one"])


@each_client
async def test_keep_alive_does_not_end_the_choice(wire: WireApi) -> None:
    upstream = Upstream(stream_response("messages", 40.0), WHOLE)
    async with serving(upstream, TWO) as client:
        response = await send(client, wire, weather_prompt())
    assert common_fields(parse_stream(wire, response.content)) == expected()
    assert models(upstream) == ["one", "two"]


@each_client
@pytest.mark.parametrize("count", [1, 2])
async def test_start_of_a_response_does_not_end_the_choice(wire: WireApi, count: int) -> None:
    """Its client sees one response: nothing of the first target's."""
    chunks = weather_chunks("messages")
    upstream = Upstream(stream_response("messages", *chunks[:count]), WHOLE)
    async with serving(upstream, TWO) as client:
        response = await send(client, wire, weather_prompt())
    assert common_fields(parse_stream(wire, response.content)) == expected()
    assert models(upstream) == ["one", "two"]


async def test_response_in_the_background_has_one_start() -> None:
    chunks = weather_chunks("messages")
    upstream = Upstream(stream_response("messages", *chunks[:1]), WHOLE)
    body = {"model": "m", "input": "Weather?", "background": True, "stream": True}
    async with serving(upstream, TWO, log="memory:") as client:
        response = await client.post("/v1/responses", json=body)
    assert response.content.count(b"event: response.created") == 1
    assert parse_stream("responses", response.content).stop_reason == "tool_calls"


async def test_failure_after_a_keep_alive_is_in_the_stream() -> None:
    upstream = Upstream(stream_response("messages", 40.0))
    async with serving(upstream, TWO) as client:
        response = await send(client, "chat", weather_prompt())
    assert response.status_code == 200
    assert parse_stream("chat", response.content).error is not None
    assert models(upstream)[:2] == ["one", "two"]


async def test_failure_after_output_is_in_the_stream() -> None:
    chunks = weather_chunks("messages")
    upstream = Upstream(stream_response("messages", *chunks[:12]), WHOLE)
    async with serving(upstream, TWO) as client:
        response = await send(client, "chat", weather_prompt())
    assert parse_stream("chat", response.content).error is not None
    assert models(upstream) == ["one"]
