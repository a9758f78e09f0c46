"""Who may use the gateway, how large a request may be, and whose keys go where."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib.client.retry import NO_RETRY
from streamlib.gateway import Gateway, RouteTable, gateway
from streamlib.gateway.clients.access import wire_of
from streamlib_parsers.errors import ErrorInfo
from tests.support.cases import each_case
from tests.support.gateways import (
    Upstream,
    error_response,
    rule,
    send,
    serving,
    weather_prompt,
    weather_response,
)


@pytest.mark.parametrize(
    "headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}]
)
async def test_web_page_is_refused(headers: dict[str, str]) -> None:
    async with serving(Upstream(), rule("messages")) as client:
        response = await send(client, "messages", weather_prompt(), **headers)
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:3000",
        "https://localhost",
        "chrome-extension://localhost",
        "http://127.0.0.1",
        "http://user@localhost",
        "http://localhost/",
    ],
)
async def test_other_origin_of_this_machine_is_refused(origin: str) -> None:
    """C11: another server of this machine, or an extension, is another origin."""
    async with serving(Upstream(), rule("messages")) as client:
        headers = {"host": "localhost", "origin": origin}
        response = await send(client, "messages", weather_prompt(), **headers)
    assert response.status_code == 403


@each_case(
    "host, status",
    [
        ("localhost", 200),
        ("LOCALHOST:8900", 200),
        ("127.0.0.1:8900", 200),
        ("[::1]:8900", 200),
        ("user@127.0.0.1", 403),
        ("http://127.0.0.1", 403),
        ("//127.0.0.1", 403),
        ("127.0.0.1/x", 403),
        ("127.0.0.1:x", 403),
        ("127.0.0.1.evil.example", 403),
        ("", 403),
    ],
)
async def test_host_is_this_machine_and_nothing_else(host: str, status: int) -> None:
    """C11: `user@127.0.0.1` was read as an address of this machine."""
    upstream = Upstream(weather_response("messages"))
    async with serving(upstream, rule("messages")) as client:
        response = await send(client, "messages", weather_prompt(), host=host)
    assert response.status_code == status


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8900", "[::1]:8900"])
async def test_own_origin_is_served(host: str) -> None:
    upstream = Upstream(weather_response("messages"))
    async with serving(upstream, rule("messages")) as client:
        headers = {"host": host, "origin": f"http://{host}"}
        response = await send(client, "messages", weather_prompt(), **headers)
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Bearer t0ken"}, 200),
        ({"x-api-key": "t0ken"}, 200),
        ({"x-goog-api-key": "t0ken"}, 200),
    ],
)
async def test_token_is_read_where_sdks_send_their_key(
    headers: dict[str, str], status: int
) -> None:
    upstream = Upstream(weather_response("messages"))
    headers = {"host": "gateway.example", **headers}
    async with serving(upstream, rule("messages"), token="t0ken") as client:
        response = await send(client, "messages", weather_prompt(), **headers)
    assert response.status_code == status


async def test_client_headers_are_not_sent_upstream() -> None:
    upstream = Upstream(weather_response("messages"))
    headers = {
        "authorization": "Bearer mine",
        "x_api_key": "mine",
        "anthropic_beta": "mine",
        "cookie": "mine",
        "user_agent": "mine",
    }
    async with serving(upstream, rule("messages")) as client:
        await send(client, "messages", weather_prompt(), **headers)
    assert "mine" not in str(upstream.requests[0].headers)


async def test_route_key_goes_upstream_and_never_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPSTREAM_KEY", "sk-canary-1")
    error = ErrorInfo("authentication", "no such key: sk-canary-1")
    upstream = Upstream(error_response("messages", 401, error))
    options = {"retry": NO_RETRY}
    async with serving(
        upstream, rule("messages", key_env="UPSTREAM_KEY"), client=options
    ) as client:
        response = await send(client, "chat", weather_prompt())
    assert "sk-canary-1" in str(upstream.requests[0].headers)
    assert "sk-canary-1" not in response.text + str(response.headers)


async def test_request_has_a_limit_of_size() -> None:
    async with serving(Upstream(), rule("messages")) as client:
        declared = {"content-length": str(33 << 20)}
        too_large = await client.post("/v1/messages", content=b"{}", headers=declared)
        assert too_large.status_code == 413
        # More digits than Python converts.
        endless = await client.post(
            "/v1/messages", content=b"{}", headers={"content-length": "9" * 5000}
        )
        assert endless.status_code == 413
        streamed = await client.post("/v1/chat/completions", content=b" " * (33 << 20))
        assert streamed.status_code == 413


async def refused(path: str, token: bytes, *parts: bytes, is_whole: bool = False) -> list[Any]:
    """What a gateway sends to a client that has sent these parts of a body.

    Args:
        path: of the request.
        token: that the client sends.
        parts: of the body.
        is_whole: whether nothing follows them.
    """
    async with Gateway(RouteTable([rule("messages")])) as running:
        app = gateway(running, token="right")
        scope = {
            "type": "http",
            "method": "POST",
            "http_version": "1.1",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"x-api-key", token), (b"transfer-encoding", b"chunked")],
        }
        messages: list[Any] = []
        waiting = list(parts)

        async def receive() -> Any:
            body = waiting.pop(0)
            more = bool(waiting) or not is_whole
            return {"type": "http.request", "body": body, "more_body": more}

        async def send(message: Any) -> None:
            messages.append(message)

        await app(scope, receive, send)
    return messages


@pytest.mark.parametrize(
    ("path", "token", "parts", "status"),
    [
        ("/v1/messages", b"wrong", [b"{"], 401),
        ("/v1/nothing", b"right", [b"{"], 404),
        # A part was read, but not the last one.
        ("/login", b"", [b"token=", b"x" * 10_000], 401),
        ("/v1/messages", b"right", [b" ", b" " * (33 << 20)], 413),
    ],
)
async def test_refusal_before_the_bodys_end_closes_the_connection(
    path: str, token: bytes, parts: list[bytes], status: int
) -> None:
    """The client could drip its body for ever: no deadline is left for it."""
    messages = await refused(path, token, *parts)
    assert messages[0]["status"] == status
    assert dict(messages[0]["headers"])[b"connection"] == b"close"


async def test_refusal_after_the_body_keeps_the_connection() -> None:
    messages = await refused("/v1/messages", b"right", b"{", b"x", is_whole=True)
    assert messages[0]["status"] == 400
    assert b"connection" not in dict(messages[0]["headers"])


@pytest.mark.parametrize(
    ("path", "wire_api"),
    [
        ("/v1/messages/count_tokens", "messages"),
        ("/v1/responses/compact", "responses"),
        ("/v1beta/interactions/i-1/unknown", "interactions"),
        ("/v1beta/tunedModels/x", "gemini"),
        ("/v1/nothing", "chat"),
    ],
)
def test_error_of_a_path_has_its_wires_format(path: str, wire_api: str) -> None:
    assert wire_of({"path": path}) == wire_api
