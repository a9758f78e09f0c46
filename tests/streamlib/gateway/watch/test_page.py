"""The page: who may see it, what it shows, and what it never does."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import msgspec
import pytest

from streamlib.client.credentials import Secret
from streamlib.gateway import Exchange, gateway
from streamlib.gateway.watch.health import Readiness
from streamlib.gateway.watch.page import (
    SESSION_SECONDS,
    SHOWN_ERRORS,
    SHOWN_STREAMS,
    LiveView,
    Page,
    PageAccess,
)
from streamlib.request.report import Change
from streamlib_parsers.errors import ErrorInfo
from tests.support.asgi_calls import AsgiCall
from tests.support.cases import each_case
from tests.support.gateways import (
    Upstream,
    rule,
    send,
    serving,
    weather_prompt,
    weather_response,
)

TOKEN = "a-token-of-the-gateway"
HTML = {"accept": "text/html,*/*"}
OWN = {"origin": "http://127.0.0.1:8900", "sec-fetch-site": "same-origin"}


def cookie_of(response: httpx.Response) -> str:
    return response.headers["set-cookie"].partition(";")[0]


@asynccontextmanager
async def guarded() -> AsyncIterator[httpx.AsyncClient]:
    """A gateway with a token."""
    async with serving(Upstream(weather_response("chat")), rule("chat"), token=TOKEN) as client:
        yield client


async def login(client: httpx.AsyncClient, token: str, **headers: str) -> httpx.Response:
    response = await client.post("/login", data={"token": token}, headers={**OWN, **headers})
    client.cookies.clear()
    return response


async def test_page_is_open_to_this_machine_without_a_token() -> None:
    async with serving(Upstream(), rule("chat")) as client:
        page = await client.get("/", headers=HTML)
        program = await client.get("/")
        other = await client.get("/", headers={**HTML, "host": "evil.example"})
    assert (page.status_code, "Open streams" in page.text) == (200, True)
    assert program.text.startswith("streamlib gateway: /v1/messages")
    assert other.status_code == 403


async def test_token_is_posted_and_kept_in_no_page_or_cookie() -> None:
    async with guarded() as client:
        form = await client.get("/", headers=HTML)
        done = await login(client, TOKEN)
        page = await client.get("/", headers={**HTML, "cookie": cookie_of(done)})
    assert (form.status_code, 'type="password"' in form.text) == (401, True)
    assert (done.status_code, done.headers["location"]) == (303, "/")
    cookie = done.headers["set-cookie"]
    for attribute in ("HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={SESSION_SECONDS}"):
        assert attribute in cookie
    assert (page.status_code, "Open streams" in page.text) == (200, True)
    assert TOKEN not in cookie + page.text + form.text


async def test_wrong_token_opens_nothing() -> None:
    async with guarded() as client:
        wrong = await login(client, "other")
        query = await client.get(f"/?token={TOKEN}&key={TOKEN}", headers=HTML)
        live = await client.get("/live")
    assert (wrong.status_code, "not the token" in wrong.text) == (401, True)
    assert "set-cookie" not in wrong.headers
    assert (query.status_code, live.status_code) == (401, 401)


async def test_large_form_is_not_read() -> None:
    call = AsgiCall(path="/login")
    await call(gateway(token=TOKEN), b"token=" + TOKEN.encode() + b"&x=" + b"x" * 100_000)
    assert (call.status, b"not the token" in call.body) == (401, True)


async def test_cookie_opens_the_page_alone() -> None:
    async with guarded() as client:
        headers = {"cookie": cookie_of(await login(client, TOKEN))}
        metrics = await client.get("/metrics", headers=headers)
        models = await client.get("/v1/models", headers=headers)
        asked = await send(client, "chat", weather_prompt(), **headers)
    assert [one.status_code for one in (metrics, models, asked)] == [401, 401, 401]


@each_case("path", ["/login", "/logout"])
@each_case(
    "headers",
    [
        {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_form_of_another_origin_is_refused(path: str, headers: dict[str, str]) -> None:
    async with guarded() as client:
        response = await client.post(path, data={"token": TOKEN}, headers=headers)
    assert (response.status_code, "set-cookie" in response.headers) == (403, False)


async def test_logout_removes_the_cookie() -> None:
    async with guarded() as client:
        response = await client.post("/logout", headers=OWN)
    assert "Max-Age=0" in response.headers["set-cookie"]


async def test_cookie_of_a_page_behind_tls_is_secure() -> None:
    page = Page(LiveView(), PageAccess(Secret(TOKEN)), Readiness(), "")
    seen: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": f"token={TOKEN}".encode()}

    async def sending(message: Any) -> None:
        seen.append(message)

    from starlette.requests import Request

    scope = {
        "type": "http",
        "method": "POST",
        "scheme": "https",
        "path": "/llm/login",
        "root_path": "/llm",
        "headers": [],
    }
    response = await page.login(Request(scope, receive, sending))
    assert response.headers["location"] == "/llm/"
    assert response.headers["set-cookie"].endswith("; Secure")
    assert "Path=/llm;" in response.headers["set-cookie"]


def test_session_ends_and_cannot_be_forged() -> None:
    time = 1000.0
    access = PageAccess(Secret(TOKEN), now=lambda: time)
    value = access.session(TOKEN)
    assert value is not None

    def allows(cookie: str, other: PageAccess = access) -> bool:
        header = f"a=b; streamlib_gateway={cookie}".encode()
        return other.allows({"type": "http", "headers": [(b"cookie", header)]})

    until, nonce, digest = value.split(".")
    assert allows(value)
    assert not allows(f"{int(until) + 1}.{nonce}.{digest}")
    assert not allows(f"{until}.{nonce}.")
    assert not allows("")
    assert not allows(value, PageAccess(Secret("another-token"), now=lambda: time))
    time += SESSION_SECONDS
    assert not allows(value)


def test_page_without_a_token_can_be_closed() -> None:
    assert not PageAccess(None, is_closed=lambda: True).allows({"headers": []})


@pytest.mark.parametrize("path", ["live.html", "login.html"])
async def test_policy_allows_what_is_inline_and_nothing_else(path: str) -> None:
    from streamlib.gateway.watch.page import html_page

    response = html_page(path)
    policy = response.headers["content-security-policy"]
    text = bytes(response.body).decode()
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"https?://|//\w+\.|\bon\w+=|style=|innerHTML", text)


class Clock:
    """A time that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_view_shows_speed_and_gap_of_open_streams() -> None:
    clock = Clock()
    view = LiveView(clock, now=lambda: 5.0)
    exchange = Exchange(
        request_id="r", wire_api="messages", client="ann", requested="m", target="p:m"
    )
    exchange.started_at = 90.0
    exchange.first_token, exchange.last_token_at = 2.0, 97.0
    exchange.deltas, exchange.longest_gap = 41, 0.5
    view.started(exchange)
    shown = view.snapshot()["streams"][0]
    assert (shown["client"], shown["rate"], shown["first_token"]) == ("ann", 5.0, 2.0)
    assert (shown["gap"], shown["idle"], shown["seconds"]) == (3.0, 3.0, 10.0)


def test_view_is_bounded_and_counts_the_rest() -> None:
    view = LiveView(Clock(), now=lambda: 5.0)
    for number in range(SHOWN_STREAMS + 50):
        exchange = Exchange(request_id=str(number), wire_api="chat", requested="x" * 10_000)
        view.started(exchange)
    shown = view.snapshot()
    assert len(shown["streams"]) == SHOWN_STREAMS
    assert shown["totals"]["open"] == SHOWN_STREAMS + 50
    assert shown["streams"][0]["id"] == str(SHOWN_STREAMS + 49)
    assert len(msgspec.json.encode(shown)) < 100_000


def test_view_lists_errors_with_what_was_lost() -> None:
    view = LiveView(Clock(), now=lambda: 5.0)
    for number in range(SHOWN_ERRORS + 5):
        error = ErrorInfo("overloaded", "busy, key sk-proj-0123456789")
        report = [Change("dropped", "/seed", "messages has no seed")] * 3
        exchange = Exchange(request_id=str(number), wire_api="chat", error=error, report=report)
        view.started(exchange)
        view.ended(exchange)
    left = Exchange(request_id="left", wire_api="chat", error=ErrorInfo("cancelled", "left"))
    view.started(left)
    view.ended(left)
    shown = view.snapshot()
    assert shown["totals"] == {
        "open": 0,
        "ended": SHOWN_ERRORS + 6,
        "failed": SHOWN_ERRORS + 5,
        "input": 0,
        "output": 0,
    }
    assert len(shown["errors"]) == SHOWN_ERRORS
    assert shown["errors"][0]["lost"] == ["dropped /seed: messages has no seed"]
    assert shown["errors"][0]["message"] == "busy, key ***"


def test_view_shows_a_failure_that_another_target_made_good() -> None:
    view = LiveView(Clock(), now=lambda: 5.0)
    exchange = Exchange(request_id="r", wire_api="chat", target="p:b")
    view.started(exchange)
    view.upstream_failed(exchange, ErrorInfo("overloaded", "busy"))
    view.ended(exchange)
    shown = view.snapshot()
    assert (shown["totals"]["failed"], shown["errors"][0]["made_good"]) == (0, True)


async def test_live_events_end_when_the_gateway_is_about_to_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streamlib.gateway.watch.page.PERIOD", 0.05)
    readiness = Readiness()
    readiness.unblock("starting")
    page = Page(LiveView(), PageAccess(None), readiness, "")
    call = AsgiCall(path="/live", method="GET")
    async with anyio.create_task_group() as group:
        group.start_soon(call, page.live)
        with anyio.fail_after(5):
            while len(call.messages) < 3:  # noqa: ASYNC110  # it has no event for it
                await anyio.sleep(0.01)
        readiness.block("draining", "the gateway is stopping")
        with anyio.fail_after(3):
            while not call.is_complete:  # noqa: ASYNC110  # as above
                await anyio.sleep(0.01)
    assert call.status == 200
    assert call.headers["content-type"].startswith("text/event-stream")
    events = call.body.split(b"\n\n")
    assert events[0] == b"retry: 1000"
    assert msgspec.json.decode(events[1].removeprefix(b"data: "))["totals"]["open"] == 0
