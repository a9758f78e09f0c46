"""Requests that are refused: what the log, the metrics and the recordings have of them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec
import pytest

from streamlib.gateway import (
    ExchangeFiles,
    Gateway,
    NamedClient,
    RouteRule,
    RouteTable,
    gateway,
)
from streamlib.gateway.watch.observer import AccessRefusal, Exchange, Observer
from streamlib.gateway.watch.page import LiveView
from streamlib.gateway.watch.request_log import (
    FIELDS,
    LOGGED_CHANGES,
    LOGGED_REFUSALS,
    JsonFormatter,
    RequestLog,
    changed_paths,
)
from streamlib.recording import load_all
from streamlib.request.report import Change
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.stream_error import StreamError
from tests.streamlib.gateway.watch.test_metrics import samples
from tests.streamlib.gateway.watch.test_record import files_of
from tests.support.gateways import Upstream, rule, send, serving, weather_prompt, weather_response

TOKEN = "the-gateways-own-token"
GUESS = "sk-guessed-0123456789abcdef"


def json_lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """The lines of requests and refusals, as `--log-format json` has them."""
    lines: list[dict[str, Any]] = []
    for record in caplog.records:
        if hasattr(record, FIELDS):
            lines.append(msgspec.json.decode(JsonFormatter().format(record)))
    return lines


async def test_recording_has_the_response_of_a_refusal(tmp_path: Path) -> None:
    """The record was handed to its writer before the response was sent."""
    files = ExchangeFiles(tmp_path)
    async with Gateway(RouteTable([rule("chat")]), record=files) as running:
        app = gateway(running)

        async def slow_app(scope: Any, receive: Any, send: Any) -> None:
            async def slow_send(message: Any) -> None:
                await anyio.sleep(0.05)
                await send(message)

            await app(scope, receive, slow_send)

        transport = httpx.ASGITransport(slow_app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            response = await client.post("/v1/chat/completions", content=b"no json")
    [path] = files_of(tmp_path)
    [ours] = load_all(path)
    assert response.status_code == 400
    assert (ours.status, ours.end, ours.body) == (400, None, response.content)


OPEN = [
    ("POST", "/", "GET, HEAD"),
    ("POST", "/health", "GET, HEAD"),
    ("POST", "/ready", "GET, HEAD"),
    ("POST", "/live", "GET, HEAD"),
    ("DELETE", "/health", "GET, HEAD"),
    ("GET", "/login", "POST"),
    ("PUT", "/logout", "POST"),
]


async def test_open_paths_never_reach_the_handler(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A token opens nothing there either (test_health.py has those who have none)."""
    caplog.set_level(logging.INFO, "streamlib.gateway")
    files = ExchangeFiles(tmp_path, files=3)
    upstream = Upstream(weather_response("chat"))
    async with serving(upstream, rule("chat"), token=TOKEN, record=files) as client:
        headers = {"authorization": f"Bearer {TOKEN}"}
        await send(client, "chat", weather_prompt(), x_api_key=TOKEN)
        for method, path, allowed in OPEN:
            response = await client.request(method, path, content=b"{}", headers=headers)
            methods = sorted(response.headers["allow"].split(", "))
            assert (response.status_code, ", ".join(methods)) == (405, allowed)
        found = samples((await client.get("/metrics", headers=headers)).text)
    [file] = files_of(tmp_path)
    assert load_all(file)[0].status == 200
    assert len(json_lines(caplog)) == 1
    assert [name for name in found if name.startswith("requests_total")] == [
        "requests_total{route=*,model=custom:model-1,status=200}"
    ]


async def test_guessed_tokens_are_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(Upstream(), rule("chat"), token=TOKEN) as client:
        headers = {"authorization": f"Bearer {GUESS}"}
        await send(client, "chat", weather_prompt(), x_api_key=GUESS)
        await client.post(f"/v1/{GUESS}/a%0Ab{'c' * 900}?key={GUESS}", headers=headers)
        await client.post("/login", data={"token": GUESS})
        right = {"authorization": f"Bearer {TOKEN}"}
        text = (await client.get("/metrics", headers=right)).text
    first, second, third = json_lines(caplog)
    assert (first["message"], first["level"]) == ("access refused", "warning")
    assert (first["status"], first["reason"], first["error"]) == (401, "token", "authentication")
    assert first["error_message"] == "this gateway requires its own token, sent as the API key"
    assert (first["method"], first["path"]) == ("POST", "/chat/completions")
    assert first["address"] == "127.0.0.1"
    assert (third["reason"], third["path"], third["status"]) == ("login", "/login", 401)
    for line in (str(second), caplog.text):
        assert GUESS not in line
    assert "\\n" in second["path"]
    assert max(len(record.getMessage()) for record in caplog.records) < 400
    assert len(caplog.text.splitlines()) == 3
    found = [line for line in text.splitlines() if line.startswith("streamlib_gateway_access")]
    assert (
        'streamlib_gateway_access_refused_total{error="authentication",reason="token"} 2.0' in found
    )
    assert (
        'streamlib_gateway_access_refused_total{error="authentication",reason="login"} 1.0' in found
    )


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"host": "evil.example"}, "host"),
        ({"origin": "https://evil.example"}, "origin"),
        ({f"x-{number}": "x" for number in range(200)}, "headers"),
    ],
)
async def test_each_refusal_of_access_has_its_reason(
    headers: dict[str, str], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(Upstream(), rule("chat")) as client:
        response = await client.post("/v1/chat/completions", json={}, headers=headers)
    [line] = json_lines(caplog)
    assert (line["reason"], line["status"]) == (reason, response.status_code)


def test_refusals_are_bounded_within_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    log = RequestLog(clock=lambda: now)
    refusal = AccessRefusal(
        reason="token",
        error=ErrorInfo("authentication", "no"),
        status=401,
        method="POST",
        path="/v1/messages",
        address=None,
    )
    for _ in range(1000):
        log.access_refused(refusal)
    assert len(caplog.records) == LOGGED_REFUSALS
    now = 61.0
    log.access_refused(refusal)
    assert f"{1000 - LOGGED_REFUSALS} before it were not logged" in caplog.records[-1].getMessage()
    log.access_refused(refusal)
    assert "not logged" not in caplog.records[-1].getMessage()


async def test_json_line_of_a_refusal_has_the_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "streamlib.gateway")
    async with serving(Upstream(), RouteRule("other-*", "loopback:x")) as client:
        await send(client, "chat", weather_prompt())
        await client.post("/v1/nothing", json={})
    unrouted, unknown = json_lines(caplog)
    texts = [record.getMessage() for record in caplog.records]
    assert (unrouted["requested_model"], unrouted["route"]) == ("client-model", None)
    for line, text in zip((unrouted, unknown), texts, strict=True):
        assert line["error_message"]
        assert text.endswith(f"refused: {line['error_message']}")


SAID = "Patient Jane Doe - at `$.x`"


@pytest.mark.parametrize("with_content", [False, True])
async def test_log_quotes_no_request_without_log_content(
    caplog: pytest.LogCaptureFixture, with_content: bool
) -> None:
    caplog.set_level(logging.INFO, "streamlib.gateway")
    table = RouteTable([rule("chat")])
    user = {"role": "user", "content": "a"}
    refused: list[Any] = [
        {"max_tokens": 5, "messages": [{"role": SAID, "content": "a"}]},
        {"max_tokens": SAID, "messages": [user]},
        {"max_tokens": 5, "messages": [user], "tool_choice": {"type": SAID}},
    ]
    async with Gateway(table, log_content=with_content) as running:
        transport = httpx.ASGITransport(gateway(running))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for body in refused:
                response = await client.post("/v1/messages", json={"model": "m", **body})
                # The client reads what is wrong.
                assert (response.status_code, "Jane" in response.text) == (400, True)
            await client.post("/v1/messages", content=b'{"a" Jane}')
        shown = msgspec.json.encode(running.view.snapshot()).decode()
    lines = [line["error_message"] for line in json_lines(caplog)]
    quoting = [line for line in lines if "Jane" in line]
    assert len(quoting) == (3 if with_content else 0)
    assert ("Jane" in caplog.text) == with_content
    assert "Jane" not in shown
    if not with_content:
        start = "not a request of messages"
        assert lines == [
            f"{start}: at messages[0].role",
            f"{start}: max_tokens has a wrong value",
            f"{start}: a key or a value is missing or unknown in tool_choice.type",
            f"{start}: at byte 5",
        ]
        assert "refused: not a request of messages: at messages[0].role" in caplog.text


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"messages": "Jane"}, "Expected `array`, got `str` in messages"),
        ({"messages": [5]}, "Expected `object`, got `int` in messages[0]"),
        ({"messages": [], "tools": "Jane"}, "tools has a value of the wrong type"),
    ],
)
async def test_log_names_the_wrong_key(
    fields: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "streamlib.gateway")
    async with serving(Upstream(), rule("chat")) as client:
        response = await client.post("/v1/chat/completions", json={"model": "m", **fields})
    assert response.json()["error"]["message"] == f"not a request of chat: {said}"
    [line] = json_lines(caplog)
    assert line["error_message"] == f"not a request of chat: {said}"


QUESTION: Any = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([], "Expected `object`, got `array` in the body"),
        ({"model": "m"}, "'messages' is missing or unknown"),
        (
            {"messages": [QUESTION], "max_tokens": "Jane"},
            "max_tokens has a wrong value",
        ),
        (
            {"messages": [QUESTION], "max_tokens": 1.5},
            "Expected `int | null`, got `float` in max_tokens",
        ),
        # Its text is cut behind what looks like a position.
        (
            {"messages": [QUESTION], "max_tokens": "x" * 86 + " - at `$Jane`"},
            "max_tokens has a wrong value",
        ),
        (
            {"messages": [{**QUESTION, "role": "Jane"}]},
            "a key or a value is missing or unknown in messages[0].role",
        ),
        (
            {"messages": [{**QUESTION, "role": "Jane' is missing or unknown"}]},
            "a key or a value is missing or unknown in messages[0].role",
        ),
        (
            {"messages": [QUESTION, {**QUESTION, "content": 3}]},
            "messages[1] has a value of the wrong type",
        ),
    ],
)
async def test_log_names_the_fault_without_its_value(
    body: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "streamlib.gateway")
    async with serving(Upstream(), rule("chat")) as client:
        response = await client.post("/v1/chat/completions", json=body)
    assert response.status_code == 400
    [line] = json_lines(caplog)
    assert line["error_message"] == f"not a request of chat: {said}"
    assert "Jane" not in caplog.text


async def test_log_masks_a_token_in_an_unknown_path(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streamlib.gateway")
    async with serving(Upstream(), rule("chat"), token=TOKEN) as client:
        headers = {"authorization": f"Bearer {TOKEN}"}
        response = await client.post(f"/proxy/{TOKEN}/v1/messages", json={}, headers=headers)
    assert "/proxy/***/v1/messages" in response.text
    [line] = json_lines(caplog)
    assert line["error_message"] == "no API has the path /proxy/***/v1/messages"


async def test_refusal_after_the_route_was_found_names_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*args: Any) -> None:
        raise StreamError(ErrorInfo("rate_limited", "2 requests a minute", code="requests"))

    monkeypatch.setattr("streamlib.gateway.requests.reader.admit", full)
    caplog.set_level(logging.INFO, "streamlib.gateway")
    async with serving(Upstream(), rule("chat")) as client:
        await send(client, "chat", weather_prompt())
    [line] = json_lines(caplog)
    assert (line["route"], line["requested_model"]) == ("*", "client-model")
    assert line["error_message"] == "2 requests a minute"
    assert "refused: 2 requests a minute" in caplog.text


async def test_observers_see_refusals_of_access() -> None:
    class Broken(Observer):
        def access_refused(self, refusal: AccessRefusal) -> None:
            raise RuntimeError("no room")

    class Notes(Observer):
        def access_refused(self, refusal: AccessRefusal) -> None:
            seen.append(refusal)

    seen: list[AccessRefusal] = []
    observers = [Broken(), Notes()]
    async with serving(Upstream(), rule("chat"), token=TOKEN, observers=observers) as client:
        response = await client.get("/v1/models")
    assert (response.status_code, [one.status for one in seen]) == (401, [401])


def test_page_has_the_message_of_a_refusal() -> None:
    view = LiveView()
    error = ErrorInfo("not_found", "no route for the model 'm'")
    view.ended(Exchange(request_id="r", wire_api="chat", error=error, is_refused=True))
    assert [entry["message"] for entry in view._errors] == [error.message]


async def test_page_without_a_session_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    html = {"accept": "text/html"}
    other = {"origin": "https://evil.example"}
    async with serving(Upstream(), rule("chat"), token=TOKEN) as client:
        statuses = [
            (await client.get("/", headers=html)).status_code,
            (await client.get("/live")).status_code,
            (await client.post("/logout", headers=other)).status_code,
        ]
        await client.get("/")  # a program is told the paths, which are no secret
    lines = json_lines(caplog)
    assert [line["status"] for line in lines] == statuses == [401, 401, 403]
    assert [line["path"] for line in lines] == ["/", "/live", "/logout"]
    assert [line["reason"] for line in lines] == ["session", "session", "origin"]


async def test_closed_page_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    table = RouteTable([rule("chat")], clients=[NamedClient("alice", "0" * 64)])
    async with Gateway(table) as running:
        transport = httpx.ASGITransport(gateway(running))
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            response = await client.get("/", headers={"accept": "text/html"})
    [line] = json_lines(caplog)
    assert (line["status"], line["reason"]) == (response.status_code, "session") == (403, "session")


def test_log_examines_a_limited_number_of_changes() -> None:
    """A hostile body may cause a hundred thousand, and the line is written between requests."""
    exchange = Exchange(request_id="req_1", wire_api="chat")
    exchange.report = [Change("dropped", f"/{number}", "unknown") for number in range(1000)]
    assert changed_paths(exchange) == [f"dropped /{number}" for number in range(LOGGED_CHANGES)]
