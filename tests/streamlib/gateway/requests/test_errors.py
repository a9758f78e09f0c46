"""Failures of the model, of the client and of the gateway, and what the client gets of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import httpx
import msgspec
import pytest

from streamlib.client.retry import NO_RETRY
from streamlib.gateway import RouteRule
from streamlib.gateway.headers import error_headers, limit_headers
from streamlib.wires.error_statuses import status_of_kind
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import RateLimits, Window
from streamlib_parsers.items import WireApi
from tests.support.cases import each_case
from tests.support.gateways import (
    ProviderResponse,
    Upstream,
    client_request,
    common_fields,
    each_client,
    error_response,
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
from tests.support.wires import error_of

NOW = datetime(2026, 11, 21, 20, 0, 0, tzinfo=UTC)
EAST = timezone(timedelta(hours=5))
ONCE: Any = {"client": {"retry": NO_RETRY}}
TWO_MODELS = RouteRule(
    "*", ("custom:one", "custom:two"), wire_api="messages", base_url="http://upstream"
)
BUSY = error_response("messages", 529, ErrorInfo("overloaded", "busy"))

HTTP_ERRORS = [
    (429, ErrorInfo("rate_limited", "slow down"), 429),
    (401, ErrorInfo("authentication", "no such key"), 401),
    (529, ErrorInfo("overloaded", "busy"), {"messages": 529}),
    (400, ErrorInfo("context_window_exceeded", "prompt is too long: 9 tokens > 8 maximum"), 400),
    (404, ErrorInfo("not_found", "no such model"), 404),
    (500, ErrorInfo("server_error", "oh"), 500),
]
"""Status of the provider, its error, and the status for the client: by wire, else 503."""


@each_client
@each_case("status, error, client_status", HTTP_ERRORS)
@stream_or_body
async def test_http_error_is_one_of_the_client_wire(
    wire: WireApi, status: int, error: ErrorInfo, client_status: Any, stream: bool
) -> None:
    upstream = Upstream(error_response("messages", status, error, retry_after="7"))
    async with serving(upstream, rule("messages"), **ONCE) as client:
        response = await send(client, wire, weather_prompt(), stream=stream)
    expected = client_status
    if isinstance(client_status, dict):
        expected = client_status.get(wire, 503)
    assert response.status_code == expected
    failure = read(wire, response, stream=False).error
    assert failure is not None
    assert (failure.kind, failure.retry_after) == (error.kind, 7.0)
    assert error.message in failure.message


async def test_retry_after_is_a_whole_number() -> None:
    """A date upstream is a fraction of seconds from now."""
    error = ErrorInfo("rate_limited", "slow down")
    upstream = Upstream(error_response("messages", 429, error, retry_after="37.2"))
    async with serving(upstream, rule("messages"), **ONCE) as client:
        response = await send(client, "chat", weather_prompt())
    assert response.headers["retry-after"] == "38"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(float("inf"), None), (float("nan"), None), (10**400, None), (-3.2, "0"), (1.2, "2")],
)
def test_delay_of_a_custom_transport_is_a_header_or_none(seconds: float, text: str | None) -> None:
    error = ErrorInfo("rate_limited", "slow down", retry_after=seconds)
    limits = RateLimits(retry_after=seconds)
    assert error_headers(error).get("retry-after") == text
    assert limit_headers("chat", limits, NOW).get("retry-after") == text


@each_case(
    "window, texts",
    [
        (Window(limit=float("inf"), remaining=5.0), ["5"]),
        (Window(limit=float("nan"), remaining=0), ["0"]),
        (Window(limit=10**400, remaining=-0.0), ["0"]),
        (Window(limit=3, reset_after=float("inf")), ["3"]),
        (Window(limit=3, reset_after=float("-inf")), ["3"]),
        (Window(limit=3, reset_after=float("nan")), ["3"]),
        (Window(limit=3, reset_after=10**400), ["3"]),
        (Window(limit=1.5, reset_after=1.5), ["1.5", "1.5s", "2026-07-01T00:00:01Z"]),
        (Window(reset_at=datetime(2026, 7, 1)), ["0s", "2026-07-01T00:00:00Z"]),  # noqa: DTZ001
        (Window(limit=3, reset_at=datetime.min.replace(tzinfo=EAST)), ["3", "0s"]),
    ],
)
def test_window_without_an_end_is_no_header(window: Window, texts: list[str]) -> None:
    """A transport of the caller's own may give any number."""
    now = datetime(2026, 7, 1, tzinfo=UTC)
    for wire in ("chat", "messages"):
        sent = limit_headers(wire, RateLimits(requests=window), now)
        assert sent
        assert set(sent.values()) <= set(texts)


@pytest.mark.parametrize("code", ["3051", "invalid_request", None])
@pytest.mark.parametrize("wire", ["chat", "responses"])
async def test_full_context_has_openais_code(wire: WireApi, code: str | None) -> None:
    """Codex compacts its history at it."""
    said = "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"
    body = msgspec.json.encode({"error": {"message": said, "type": "x", "code": code}})
    failed = ProviderResponse(400, {"content-type": "application/json"}, [body])
    async with serving(Upstream(failed), rule("chat"), **ONCE) as client:
        response = await send(client, wire, weather_prompt())
    assert response.json()["error"]["code"] == "context_length_exceeded"
    assert response.json()["error"]["message"] == said


@each_client
async def test_failure_inside_a_stream_ends_it(wire: WireApi) -> None:
    """The client has everything that came before it."""
    truncated = weather_chunks("messages")[:12]
    upstream = Upstream(stream_response("messages", *truncated))
    async with serving(upstream, rule("messages"), **ONCE) as client:
        sent = await send(client, wire, weather_prompt())
    assert sent.status_code == 200
    response = parse_stream(wire, sent.content)
    assert response.error is not None
    assert response.text == parse_stream("messages", *truncated).text
    assert response.calls == []


async def test_failure_as_first_event_is_an_http_error() -> None:
    failed = (
        b'event: error\ndata: {"type":"error",'
        b'"error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    )
    upstream = Upstream(stream_response("messages", failed))
    async with serving(upstream, rule("messages"), **ONCE) as client:
        response = await send(client, "chat", weather_prompt())
    assert (response.status_code, response.headers["content-type"]) == (503, "application/json")


async def test_fallback_is_tried_before_the_first_byte_only() -> None:
    upstream = Upstream(BUSY, weather_response("messages"))
    async with serving(upstream, TWO_MODELS, **ONCE) as client:
        response = await send(client, "chat", weather_prompt())
    expected = common_fields(parse_stream("messages", *weather_chunks("messages")))
    assert common_fields(read("chat", response)) == expected
    assert [upstream.body(index)["model"] for index in (0, 1)] == ["one", "two"]

    truncated = stream_response("messages", *weather_chunks("messages")[:12])
    upstream = Upstream(truncated, weather_response("messages"))
    async with serving(upstream, TWO_MODELS, **ONCE) as client:
        response = await send(client, "chat", weather_prompt())
    assert len(upstream.requests) == 1
    assert parse_stream("chat", response.content).error is not None


async def test_fallback_is_not_tried_for_an_invalid_request() -> None:
    error = ErrorInfo("invalid_request", "max_tokens: too many")
    upstream = Upstream(error_response("messages", 400, error))
    async with serving(upstream, TWO_MODELS, **ONCE) as client:
        assert (await send(client, "chat", weather_prompt())).status_code == 400
    assert len(upstream.requests) == 1


@each_client
async def test_malformed_request_is_refused_in_the_client_wire(wire: WireApi) -> None:
    path = httpx.URL(client_request(wire, weather_prompt()).url).path
    if wire == "gemini":
        path = f"/v1beta{path}"
    async with serving(Upstream(), rule("messages")) as client:
        response = await client.post(path, content=b'{"model":')
    assert response.status_code == 400
    assert error_of(wire, response.content).kind == "invalid_request"


async def test_stored_history_is_refused_by_another_wire() -> None:
    prompt = weather_prompt(extra={"previous_response_id": "resp_0"})
    async with serving(Upstream(), rule("messages")) as client:
        response = await send(client, "responses", prompt)
    assert (response.status_code, "previous_response_id" in response.text) == (400, True)


async def test_defect_of_the_gateway_is_a_server_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("ours")

    monkeypatch.setattr("streamlib.gateway.targets.streams.prompt_for", broken)
    async with serving(Upstream(), rule("messages")) as client:
        response = await send(client, "chat", weather_prompt())
    assert (response.status_code, error_of("chat", response.content).kind) == (500, "server_error")
    assert "failed inside the gateway" in caplog.text


async def test_missing_key_is_not_an_error_of_the_client(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    caplog.set_level("INFO", "streamlib.gateway")
    async with serving(Upstream(), RouteRule("*", "anthropic:claude-opus-5")) as client:
        response = await send(client, "messages", weather_prompt())
    assert (response.status_code, "ANTHROPIC_API_KEY" in response.text) == (500, False)
    assert "the gateway has no key" in response.text
    assert "anthropic needs a key: set ANTHROPIC_API_KEY" in caplog.text


async def test_path_with_v1_twice_is_explained() -> None:
    async with serving(Upstream(), rule("messages")) as client:
        response = await client.post("/v1/v1/messages", content=b"{}")
    assert (response.status_code, "has no /v1" in response.text) == (404, True)


async def test_failure_after_a_keep_alive_is_inside_the_stream() -> None:
    upstream = Upstream(stream_response("messages", 0.05))
    async with serving(upstream, rule("messages"), keep_alive=0.01, **ONCE) as client:
        response = await send(client, "chat", weather_prompt())
    assert response.status_code == 200
    assert error_of("chat", response.content).kind in ("truncated", "server_error")


LOGGER = "streamlib.gateway"


@pytest.mark.parametrize("pattern", ["*", "other"], ids=["served", "refused"])
async def test_model_name_in_the_log_is_escaped_and_bounded(
    pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    """C7: a client's model name went raw and unbounded into the log."""
    name = "m\x1b]0;title\x07\n\x9b2J\u202e -> forged: end_turn" + "x" * 100_000
    caplog.set_level("INFO", logger=LOGGER)
    upstream = Upstream(weather_response("messages"))
    served = RouteRule(pattern, "custom:x", wire_api="messages", base_url="http://upstream")
    async with serving(upstream, served) as client:
        body = {"model": name, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
        await client.post("/v1/messages", json=body)
    (line,) = [record.getMessage() for record in caplog.records if record.name == LOGGER]
    assert line.isprintable()
    assert len(line) < 1500
    assert "-> forged" not in line or pattern == "other"


@pytest.mark.parametrize(
    ("kinds", "status"),
    [
        (("authentication",), 401),
        (("rate_limited", "quota_exhausted"), 429),
        (("context_window_exceeded", "invalid_request", "invalid_history", "content_filter"), 400),
        # Between the gateway and its model: no error of the client.
        (("connection", "truncated", "malformed", "limit_exceeded"), 502),
        (("stalled", "deadline"), 504),
        (("server_error",), 500),
    ],
)
def test_kind_of_error_has_a_status(kinds: tuple[Any, ...], status: int) -> None:
    assert {status_of_kind("chat", kind) for kind in kinds} == {status}
