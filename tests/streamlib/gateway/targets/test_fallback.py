"""A route with several targets: the next one is tried until one has output of the model.

Durations are simulated, so a long wait costs nothing.
"""

from __future__ import annotations

from typing import Any, Final

import anyio
import msgspec
import pytest

from streamlib import Deadlines, Message, Origin, Reasoning, Text, user
from streamlib.gateway import RouteRule, RouteTo
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi
from tests.support.gateways import (
    ProviderResponse,
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


def one(**options: Any) -> RouteRule:
    return RouteRule("*", "custom:one", wire_api="messages", base_url="http://upstream", **options)


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


@pytest.mark.parametrize("status", [301, 307, 405, 421, 426, 451, 499])
@stream_or_body
async def test_status_of_a_server_alone_leads_to_the_next_one(status: int, stream: bool) -> None:
    """The client's request is not at fault: it never reached a model."""
    refusal = error_response("messages", status, ErrorInfo("invalid_request", "not here"))
    upstream = Upstream(refusal, WHOLE)
    async with serving(upstream, TWO) as client:
        response = await send(client, "chat", weather_prompt(), stream=stream)
    assert common_fields(read("chat", response, stream=stream)) == expected()
    assert models(upstream) == ["one", "two"]


async def test_filtered_request_is_not_sent_on_whatever_the_status() -> None:
    body = b'{"type":"error","error":{"type":"content_filter","message":"no"}}'
    refusal = ProviderResponse(451, {"content-type": "application/json"}, [body])
    upstream = Upstream(refusal, WHOLE)
    async with serving(upstream, TWO) as client:
        response = await send(client, "chat", weather_prompt())
    assert (response.status_code, models(upstream)) == (400, ["one"])


async def test_refused_request_is_not_sent_to_the_next_target() -> None:
    refusal = error_response("messages", 400, ErrorInfo("invalid_request", "temperature"))
    upstream = Upstream(refusal, WHOLE)
    async with serving(upstream, TWO) as client:
        response = await send(client, "chat", weather_prompt())
    assert (response.status_code, models(upstream)) == (400, ["one"])


@pytest.mark.parametrize(("delay", "waits"), [("1", True), ("2", True), ("3", False)])
async def test_only_target_is_asked_again_after_short_delay(delay: str, waits: bool) -> None:
    """A longer one is for the client, whose SDK obeys it."""
    limited = error_response("messages", 429, ErrorInfo("rate_limited", "no"), retry_after=delay)
    upstream = Upstream(limited, WHOLE)
    async with serving(upstream, one()) as client:
        start = anyio.current_time()
        response = await send(client, "chat", weather_prompt())
        seconds = anyio.current_time() - start
    if waits:
        assert response.status_code == 200
        assert seconds == pytest.approx(float(delay))
    else:
        assert (response.status_code, seconds) == (429, 0)
        assert response.headers["retry-after"] == delay


@pytest.mark.parametrize("retries", [0, 1, 4])
async def test_only_target_is_asked_again_as_configured(retries: int) -> None:
    busy = error_response("messages", 529, ErrorInfo("overloaded", "busy"))
    upstream = Upstream(busy)
    async with serving(upstream, one(retries=retries)) as client:
        response = await send(client, "chat", weather_prompt())
    assert (response.status_code, len(upstream.requests)) == (503, 1 + retries)


@pytest.mark.parametrize(("seconds", "asked"), [(25, 3), (100, 1)])
async def test_target_that_was_long_silent_is_not_asked_again(seconds: float, asked: int) -> None:
    """Else its client would wait for three times the deadline."""
    upstream = Upstream(stream_response("messages", 400.0))
    deadlines = Deadlines(first_byte=seconds)
    async with serving(upstream, one(), client={"deadlines": deadlines}) as client:
        response = await send(client, "chat", weather_prompt(), stream=False)
    assert (response.status_code, len(upstream.requests)) == (504, asked)


class Late(Upstream):
    """A provider whose first response has no headers for some seconds."""

    def __init__(self, seconds: float, *responses: ProviderResponse) -> None:
        super().__init__(*responses)
        self.seconds = seconds

    async def send(self, *request: Any) -> Any:
        response = await super().send(*request)
        if len(self.requests) == 1:
            await anyio.sleep(self.seconds)
        return response


@each_client
@stream_or_body
async def test_target_without_headers_is_left_after_30_s(wire: WireApi, stream: bool) -> None:
    upstream = Late(1000, WHOLE)
    async with serving(upstream, TWO) as client:
        start = anyio.current_time()
        response = await send(client, wire, weather_prompt(), stream=stream)
        seconds = anyio.current_time() - start
    assert common_fields(read(wire, response, stream=stream)) == expected()
    assert (models(upstream), seconds) == (["one", "two"], 30)


async def test_only_target_has_time_for_its_headers() -> None:
    upstream = Late(300, WHOLE)
    async with serving(upstream, one()) as client:
        response = await send(client, "chat", weather_prompt())
    assert parse_stream("chat", response.content).stop_reason == "tool_calls"
    assert models(upstream) == ["one"]


async def test_headers_are_due_at_the_time_of_the_target() -> None:
    rule = RouteRule(
        "*",
        (RouteTo("custom:one", headers_seconds=5), "custom:two"),
        wire_api="messages",
        base_url="http://upstream",
        headers_seconds=7,
    )
    upstream = Late(1000, WHOLE)
    async with serving(upstream, rule) as client:
        start = anyio.current_time()
        await send(client, "chat", weather_prompt())
        assert anyio.current_time() - start == 5
    assert models(upstream) == ["one", "two"]


@each_client
@stream_or_body
async def test_first_output_is_due_at_the_time_of_the_route(wire: WireApi, stream: bool) -> None:
    """`Created` and pings are none."""
    start_of_response, *_ = weather_chunks("messages")
    ping = b'event: ping\ndata: {"type": "ping"}\n\n'
    silent = stream_response("messages", start_of_response, 4.0, ping, 4.0, ping, 400.0)
    upstream = Upstream(silent, WHOLE)
    rule = msgspec.structs.replace(TWO, first_output_seconds=10)
    async with serving(upstream, rule) as client:
        start = anyio.current_time()
        response = await send(client, wire, weather_prompt(), stream=stream)
        assert anyio.current_time() - start == 10
    assert common_fields(read(wire, response, stream=stream)) == expected()
    assert (models(upstream), upstream.open) == (["one", "two"], 0)


async def test_only_target_without_output_is_an_error() -> None:
    upstream = Upstream(stream_response("messages", 400.0))
    async with serving(upstream, one(first_output_seconds=10)) as client:
        response = await send(client, "messages", weather_prompt())
    assert response.status_code == 504
    assert response.json()["error"]["message"] == "the model had no output within 10 s"


async def test_response_of_a_target_ends_after_total_seconds() -> None:
    *most, _ = weather_chunks("messages")
    upstream = Upstream(stream_response("messages", *most, 400.0))
    async with serving(upstream, one(total_seconds=20)) as client:
        start = anyio.current_time()
        response = await send(client, "chat", weather_prompt())
        assert anyio.current_time() - start == 20
    error = parse_stream("chat", response.content).error
    assert error is not None
    assert "within 20 s" in error.message


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


# --- a history that a target refuses ---

POISONED: Final = error_response(
    "messages",
    400,
    ErrorInfo("invalid_history", "messages.1.content.0: Invalid `signature` in `thinking` block"),
)


@stream_or_body
@pytest.mark.parametrize("recover", [True, False])
async def test_refused_history_is_sent_without_state(stream: bool, recover: bool) -> None:
    thought = Reasoning("Hm.", signature="sig", origin=Origin("messages"), response_id="r")
    prompt = weather_prompt()
    said = Message("assistant", (Text("Sunny."),), response_id="r")
    prompt = msgspec.structs.replace(prompt, input=(*prompt.items, thought, said, user("Now?")))
    upstream = Upstream(POISONED, WHOLE)
    async with serving(upstream, one(recover=recover)) as client:
        response = await send(client, "messages", prompt, stream=stream)
    assert response.status_code == (200 if recover else 400)
    signed = [b"sig" in request.body for request in upstream.requests]
    assert signed == ([True, False] if recover else [True])
    if recover:
        assert common_fields(read("messages", response, stream=stream)) == expected()


async def test_history_without_state_is_not_sent_again() -> None:
    upstream = Upstream(POISONED, WHOLE)
    async with serving(upstream, one(recover=True)) as client:
        response = await send(client, "messages", weather_prompt())
    assert (response.status_code, len(upstream.requests)) == (400, 1)
