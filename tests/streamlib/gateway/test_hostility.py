"""Requests made to hurt: large, slow, deep, forged, and with headers that contradict each other."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import anyio
import pytest
from starlette.types import ASGIApp, Message

from streamlib.gateway import Gateway, RouteTable, gateway
from streamlib.gateway.clients.access import HEADER_BYTES, HEADERS
from streamlib.gateway.requests.body import DEPTH, VALUES, StructureCounter
from streamlib_parsers.items import WireApi
from streamlib_parsers.stream_error import StreamError
from tests.support import hostile_bodies
from tests.support.gateways import (
    Upstream,
    rule,
    send,
    serving,
    weather_prompt,
    weather_response,
)
from tests.support.hostile_bodies import MESSAGES, OTHERS

PATHS: dict[WireApi, str] = {
    "messages": "/v1/messages",
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/m:streamGenerateContent",
    "interactions": "/v1beta/interactions",
    "cohere": "/v2/chat",
}
FAST = ("brackets", "quotes", "escapes", "spaced_text", "turns", "keys")
"""Attacks of the default tests; the others take minutes on a busy machine."""
BLOCK = 64 << 10


def chunks_of(body: bytes) -> list[bytes]:
    return [body[start : start + BLOCK] for start in range(0, len(body), BLOCK)]


async def request(
    app: ASGIApp,
    body: Iterable[bytes],
    *,
    wire: WireApi = "messages",
    headers: Sequence[tuple[bytes, bytes]] = ((b"host", b"localhost"),),
    pause: float = 0.0,
) -> int:
    """The status of a request that comes in these chunks; -1 if the application sent none."""
    remaining = iter(body)
    ended = False
    status = -1

    async def receive() -> Message:
        nonlocal ended
        if ended:
            await anyio.sleep_forever()
        if pause:
            await anyio.sleep(pause)
        chunk = next(remaining, None)
        ended = chunk is None
        return {"type": "http.request", "body": chunk or b"", "more_body": not ended}

    async def noted(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]

    path = PATHS[wire]
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": list(headers),
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    await app(scope, receive, noted)
    return status


async def longest_hold(body: bytes, wire: WireApi = "messages") -> float:
    """Seconds of CPU of this process between two turns of another task, at most, while the gateway
    serves a request. What else the machine does is not in it."""
    longest = 0.0

    async def take_turns() -> None:
        nonlocal longest
        while True:
            start = time.process_time()
            await anyio.sleep(0.001)
            longest = max(longest, time.process_time() - start)

    upstream = Upstream(weather_response("messages"))
    async with Gateway(RouteTable([rule("messages")]), client={"http": upstream}) as running:
        app = gateway(running)
        # Modules and caches are loaded by the first request.
        await request(app, [hostile_bodies.ordinary(100)])
        chunks = chunks_of(body)
        async with anyio.create_task_group() as group:
            group.start_soon(take_turns)
            await anyio.sleep(0.01)
            await request(app, chunks, wire=wire)
            group.cancel_scope.cancel()
    return longest


async def assert_holds_less(seconds: float, body: bytes, wire: WireApi = "messages") -> None:
    """One of three runs is below the limit: a busy machine may let the loop's thread wait, while
    what blocks the loop blocks it in each run."""
    holds: list[float] = []
    for _ in range(3):
        holds.append(await longest_hold(body, wire))
        if holds[-1] < seconds:
            return
    pytest.fail(f"other clients waited for {holds}")


@pytest.mark.timing
@pytest.mark.parametrize(
    "name",
    [
        name if name in FAST else pytest.param(name, marks=pytest.mark.slow)
        for name in (*MESSAGES, *OTHERS)
    ],
)
async def test_hostile_body_does_not_hold_other_clients(name: str) -> None:
    """At most half a second; before, 80,000 turns in 2.5 MB held them for six."""
    wire: WireApi
    make: Callable[[], bytes]
    if name in MESSAGES:
        wire, make = "messages", MESSAGES[name]
    else:
        wire, make = OTHERS[name]
    body = make()
    assert len(body) <= hostile_bodies.SIZE
    await assert_holds_less(0.5, body, wire)


@pytest.mark.timing
async def test_ordinary_large_body_does_not_hold_other_clients() -> None:
    body = hostile_bodies.ordinary()
    assert len(body) > 5 << 20
    await assert_holds_less(0.1, body)


# --- structure ---


def structure(text: bytes, *sizes: int) -> tuple[int, int]:
    """Values and depth that a counter finds in a text, fed in parts of these sizes."""
    counter = StructureCounter()
    start = 0
    for size in (*sizes, len(text)):
        counter.feed(text[start : start + size])
        start += size
    return counter._values, counter._depth


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"a":[1,2]}', (6, 0)),
        (b'["[[[,,,", "]"]', (3, 0)),
        (rb'["\"[", "\\", [', (4, 2)),
        (rb'["\\\"[[\\\\", [[', (4, 3)),
        (rb'["\u005b\n", [', (3, 2)),
        (b'["[', (1, 1)),
        (b"", (0, 0)),
    ],
)
def test_structure_is_counted_outside_strings(text: bytes, expected: tuple[int, int]) -> None:
    assert structure(text) == expected
    for first in range(len(text)):
        for second in range(len(text) - first):
            assert structure(text, first, second) == expected, (first, second)


@pytest.mark.parametrize(
    ("body", "code"), [(b"[" * (DEPTH + 1), "nesting"), (b"," * (VALUES + 1), "values")]
)
def test_structure_over_the_limit_is_refused(body: bytes, code: str) -> None:
    with pytest.raises(StreamError) as caught:
        StructureCounter().feed(body)
    assert (caught.value.kind, caught.value.code) == ("request_too_large", code)
    StructureCounter().feed(body[:-1])


async def test_deeply_nested_body_is_refused() -> None:
    nested = b'{"model":"m","messages":' + b"[" * 200 + b"]" * 200 + b"}"
    async with Gateway(RouteTable([rule("messages")]), client={"http": Upstream()}) as running:
        assert await request(gateway(running), [nested]) == 413


async def test_too_many_values_are_refused_before_the_body_ends() -> None:
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(500):
            sent += 1
            yield b"[]," * 20_000

    async with Gateway(RouteTable([rule("messages")]), client={"http": Upstream()}) as running:
        assert await request(gateway(running), chunks()) == 413
    assert sent == VALUES // 60_000 + 1


# --- time ---


async def test_slow_upload_is_refused() -> None:
    options: dict[str, Any] = {"client": {"http": Upstream()}, "body_seconds": 0.1}
    async with Gateway(RouteTable([rule("messages")]), **options) as running:
        with anyio.fail_after(2):
            assert await request(gateway(running), [b" "] * 100, pause=0.03) == 408


# --- headers ---


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([(b"host", b"localhost"), (b"host", b"evil.example")], 400),
        ([(b"host", b"evil.example"), (b"Host", b"localhost")], 400),
        (
            [
                (b"host", b"localhost"),
                (b"origin", b"http://evil.example"),
                (b"origin", b"http://localhost"),
            ],
            400,
        ),
        ([(b"host", b"localhost"), *[(b"x-a", b"1")] * HEADERS], 413),
        ([(b"host", b"localhost"), (b"x-a", b"1" * HEADER_BYTES)], 413),
        ([(b"host", b"localhost"), *[(b"x-a", b"1")] * (HEADERS - 1)], 200),
    ],
)
async def test_headers_are_limited_and_unambiguous(
    headers: list[tuple[bytes, bytes]], status: int
) -> None:
    upstream = Upstream(weather_response("messages"))
    async with Gateway(RouteTable([rule("messages")]), client={"http": upstream}) as running:
        app = gateway(running)
        assert await request(app, [hostile_bodies.ordinary(10)], headers=headers) == status


# --- the log ---


FORGED = 'no"\r\n2026-01-01 forged line \x1b]0;title\x07 \u202e' + "x" * 10_000


@pytest.mark.parametrize(
    "broken",
    [
        "streamlib.gateway.targets.streams.prompt_for",
        "streamlib.gateway.requests.reader.parse_request",
    ],
)
async def test_exception_is_one_bounded_line_of_the_log(
    broken: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise KeyError(FORGED)

    monkeypatch.setattr(broken, fail)
    async with serving(Upstream(), rule("messages")) as client:
        response = await send(client, "chat", weather_prompt())
    assert response.status_code == 500
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    text = logging.Formatter().format(errors[0])
    assert text.isprintable()
    assert "KeyError" in text
    assert "in fail" in text
    assert len(text) < 2000
