"""Deadlines hold whatever arrives that is no progress: bytes that never become an event (C2).

Each server sends something every few hundredths of a second, so that no read of a socket is ever
silent for long, and no event follows.
"""

from __future__ import annotations

import gzip
import itertools
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from streamlib.client.retry import RetryPolicy
from streamlib.client.stream import ResponseStream
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import parser
from tests.support.cases import each_case
from tests.support.clients import EVERY_TRANSPORT, LIBRARIES, make_client, make_request, open_http
from tests.support.http2_server import Exchange, http2_server
from tests.support.metrics import figure
from tests.support.response_bodies import HELLO, HELLO_TEXT, MESSAGE, PING
from tests.support.scripted_server import END, Repeat, Script, chunk, head, scripted
from tests.support.timing import watching

SECONDS: Final = 0.2
"""What each deadline below allows."""

OVERRUN: Final = 0.2
"""How much later than its deadline a stream may end, beside what other processes took."""

EVERY: Final = 0.03
"""Seconds between two drips."""

AT_ONCE: Final = 3
"""Cases at the same time, with three streams each: more would keep a shared core busy, and late."""

DEADLINES: Final = {
    # The longest silence is the next deadline: reads need no timeout scope.
    "even": (Deadlines(first_byte=SECONDS, first_event=SECONDS, idle=SECONDS), "idle"),
    "idle": (Deadlines(idle=SECONDS), "idle"),
    "total": (Deadlines(total=SECONDS), "total"),
}
HEAD_DEADLINES: Final = {
    "headers": (Deadlines(headers=SECONDS), "headers"),
    "total": (Deadlines(total=SECONDS), "total"),
}

PACKED_HEAD: Final = head(content_encoding="gzip")
GZIPPED: Final = gzip.compress(HELLO)
EMPTY_MEMBER: Final = gzip.compress(b"")

BODY_DRIPS: Final[dict[str, Script]] = {
    "comments": [head(), chunk(HELLO), Repeat(chunk(b": still here\n\n"), EVERY)],
    "pings": [head(), chunk(HELLO), Repeat(chunk(PING), EVERY)],
    "blank lines": [head(), chunk(HELLO), Repeat(chunk(b"\n"), EVERY)],
    "half an event": [head(), chunk(HELLO), chunk(b"data: "), Repeat(chunk(b"x"), EVERY)],
    "chunk extension": [head(), chunk(HELLO), b"5;", Repeat(b"x", EVERY)],
    "trailers": [head(), chunk(HELLO), b"0\r\n", Repeat(b"x: y\r\n", EVERY)],
    "empty gzip members": [PACKED_HEAD, chunk(GZIPPED), Repeat(chunk(EMPTY_MEMBER), EVERY)],
    "gzip header": [
        PACKED_HEAD,
        chunk(GZIPPED),
        # A member whose name never ends: nothing is unpacked.
        chunk(b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03"),
        Repeat(chunk(b"n"), EVERY),
    ],
}
"""What follows a few events."""

FLOODS: Final[dict[str, Script]] = {
    "empty gzip members": [
        PACKED_HEAD,
        chunk(GZIPPED),
        Repeat(chunk(EMPTY_MEMBER * 50)),
    ],
    "comments": [head(), chunk(HELLO), Repeat(chunk(b": still here\n\n" * 50))],
    "pings": [head(), chunk(HELLO), Repeat(chunk(PING * 20))],
}
"""The same, as fast as the client reads."""

HEAD_DRIPS: Final[dict[str, Script]] = {
    "informational responses": [Repeat(b"HTTP/1.1 102 Processing\r\n\r\n", EVERY)],
    "early hints": [Repeat(b"HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n", EVERY)],
    "header": [b"HTTP/1.1 200 OK\r\nx: ", Repeat(b"y", EVERY)],
    "headers": [b"HTTP/1.1 200 OK\r\n", Repeat(b"x: y\r\n", EVERY)],
}
"""What comes instead of the response headers."""


TRIES: Final = 5
"""How often a deadline may be tried, since a busy machine may be late."""


async def failure_of(url: str, http: Any, deadlines: Deadlines) -> tuple[float, str, str]:
    """Seconds until the stream failed, less those that others took; its kind and phase."""
    async with watching() as watch:
        elapsed, kind, phase = await _failure_of(url, http, deadlines)
        return max(min(elapsed, SECONDS), elapsed - watch.stolen), kind, phase


async def _failure_of(url: str, http: Any, deadlines: Deadlines) -> tuple[float, str, str]:
    client = make_client(
        url, http, deadlines=deadlines, retry=RetryPolicy(retries=0), errors="event"
    )
    began = anyio.current_time()
    with anyio.move_on_after(5):
        response = await client.respond(make_request(url))
        elapsed = anyio.current_time() - began
        assert response.error is not None
        return elapsed, response.error.kind, (response.error.detail or {}).get("phase", "")
    return anyio.current_time() - began, "hangs", ""


async def check(url: str, http: Any, deadlines: Deadlines, phase: str) -> None:
    """A stream ends with the failure of the deadline, at its time.

    On a busy machine an earlier phase may end the stream before its first byte was read. So it may
    try again, and the figures say how often one did.
    """
    expected = ("deadline" if phase == "total" else "stalled", phase)
    tries = 0
    while True:
        tries += 1
        elapsed, kind, found = await failure_of(url, http, deadlines)
        is_in_time = (kind, found) == expected and elapsed <= SECONDS + OVERRUN
        if is_in_time or tries == TRIES:
            break
    figure("tries/one deadline", tries)
    if tries > 1:
        figure("tries/deadlines tried more than once")
    assert (kind, found) == expected
    check_time(elapsed)


def check_time(elapsed: float) -> None:
    """The deadline was neither early nor late."""
    figure("drips")
    figure("overrun s", elapsed - SECONDS)
    assert SECONDS - 0.02 <= elapsed <= SECONDS + OVERRUN


# --- HTTP/1.1 ---


@contextmanager
def endless_server(start: bytes, drip: bytes) -> Iterator[str]:
    """A server in threads of its own: its bytes are there at every turn of a busy loop."""

    def send(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(start)
            while True:
                connection.sendall(drip)
                time.sleep(0.003)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=send, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


async def keep_busy() -> None:
    """Other work of the loop: each of its turns takes longer than the pause between two drips."""
    while True:
        time.sleep(0.02)  # noqa: ASYNC251  # it blocks the loop on purpose
        await anyio.lowlevel.checkpoint()


ENDLESS: Final = {
    "chunk extension": (head() + chunk(HELLO) + b"5;", b"x"),
    "trailers": (head() + chunk(HELLO) + b"0\r\n", b"x: y\r\n"),
    "empty gzip members": (PACKED_HEAD + chunk(GZIPPED), chunk(EMPTY_MEMBER)),
}


def test_deadline_holds_on_a_busy_uvloop() -> None:
    """C2: anyio lets a read have the bytes that came before its scope's cancellation, each time."""
    found: dict[tuple[str, str], str] = {}

    async def read(drip: str, http: str) -> None:
        with endless_server(*ENDLESS[drip]) as url:
            async with open_http(http) as inner:
                _, kind, phase = await failure_of(url, inner, Deadlines(idle=SECONDS))
                found[drip, http] = f"{kind} {phase}"

    async def read_all() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(keep_busy)
            async with anyio.create_task_group() as readers:
                for drip in ENDLESS:
                    for http in LIBRARIES:
                        readers.start_soon(read, drip, http)
            group.cancel_scope.cancel()

    anyio.run(read_all, backend_options={"use_uvloop": True})
    assert found == {(drip, http): "stalled idle" for drip in ENDLESS for http in LIBRARIES}


async def check_each(url: str, http: Any, deadlines: dict[str, tuple[Deadlines, str]]) -> None:
    """Streams with each of the deadlines, at the same time."""

    async def run(limits: Deadlines, phase: str) -> None:
        await check(url, http, limits, phase)

    async with anyio.create_task_group() as group:
        for limits, phase in deadlines.values():
            group.start_soon(run, limits, phase)


@EVERY_TRANSPORT
@each_case("drip", BODY_DRIPS, at_once=AT_ONCE)
async def test_deadline_holds_against_a_drip(drip: str, http: str) -> None:
    """C2."""
    async with scripted(BODY_DRIPS[drip]) as server, open_http(http) as inner:
        await check_each(server.url, inner, DEADLINES)


@EVERY_TRANSPORT
@each_case("drip", FLOODS)
async def test_deadline_holds_against_a_flood(drip: str, http: str) -> None:
    """C2."""
    async with scripted(FLOODS[drip]) as server, open_http(http) as inner:
        await check_each(server.url, inner, DEADLINES)


@EVERY_TRANSPORT
@each_case("drip", HEAD_DRIPS, at_once=AT_ONCE)
async def test_deadline_holds_against_dripping_headers(drip: str, http: str) -> None:
    """C2."""
    async with scripted(HEAD_DRIPS[drip]) as server, open_http(http) as inner:
        await check_each(server.url, inner, HEAD_DEADLINES)


# --- HTTP/2 ---


async def pings(exchange: Exchange) -> None:
    while True:
        await exchange.ping()
        await anyio.sleep(EVERY)


async def windows(exchange: Exchange) -> None:
    while True:
        await exchange.window()
        await anyio.sleep(EVERY)


async def empty_data(exchange: Exchange) -> None:
    while True:
        await exchange.data(b"")
        await anyio.sleep(EVERY)


async def comments(exchange: Exchange) -> None:
    while True:
        await exchange.data(b": still here\n\n")
        await anyio.sleep(EVERY)


async def nothing(exchange: Exchange) -> None:
    await anyio.sleep_forever()


HTTP2_DRIPS: Final[dict[str, Callable[[Exchange], Awaitable[None]]]] = {
    "pings": pings,
    "window updates": windows,
    "empty data": empty_data,
    "comments": comments,
    "nothing": nothing,
}


@asynccontextmanager
async def http2_client(http: str) -> Any:
    async with open_http(http, http1=False, http2=True) as inner:
        yield inner


@pytest.mark.parametrize("http", LIBRARIES)
@each_case("drip", HTTP2_DRIPS, at_once=AT_ONCE)
async def test_deadline_holds_against_frames(drip: str, http: str) -> None:
    """C2: over HTTP/2 a read of the socket says nothing of the stream."""

    async def script(exchange: Exchange) -> None:
        await exchange.headers()
        await exchange.data(HELLO)
        await HTTP2_DRIPS[drip](exchange)

    async with http2_server(script) as server, http2_client(http) as inner:
        await check_each(server.url, inner, DEADLINES)


@pytest.mark.parametrize("http", LIBRARIES)
async def test_pings_do_not_delay_a_deadline_before_headers(http: str) -> None:
    """C2."""
    silence = {"first_byte": (Deadlines(first_byte=SECONDS), "first_byte")}
    async with http2_server(pings) as server, http2_client(http) as inner:
        await check_each(server.url, inner, {**HEAD_DEADLINES, **silence})


@pytest.mark.parametrize("http", LIBRARIES)
@each_case("before", ["headers", "body"], at_once=2)
async def test_busy_neighbour_does_not_keep_a_stream_alive(http: str, before: str) -> None:
    """C2: another stream of the same connection receives data all the while, and goes on."""
    if before == "headers":
        deadlines = {"first_byte": (Deadlines(first_byte=SECONDS), "first_byte")}
    else:
        deadlines = DEADLINES
    end = anyio.Event()

    async def script(exchange: Exchange) -> None:
        if exchange.path.endswith("/messages"):
            if before == "body":
                await exchange.headers()
                await exchange.data(HELLO)
            await anyio.sleep_forever()
        await exchange.headers()
        while not end.is_set():
            await exchange.data(b": busy\n\n")
            await anyio.sleep(EVERY)
        await exchange.data(b"data: [DONE]\n\n")
        await exchange.end()

    bodies: list[bytes] = []

    async def neighbour(url: str, inner: Any) -> None:
        async with inner.stream("POST", f"{url}/busy", content=b"{}", timeout=None) as response:
            bodies.append(b"".join([part async for part in response.aiter_bytes()]))

    async with http2_server(script) as server, http2_client(http) as inner:
        async with anyio.create_task_group() as group:
            group.start_soon(neighbour, server.url, inner)
            await anyio.sleep(0.1)
            await check_each(server.url, inner, deadlines)
            end.set()
        assert server.connections == 1
    assert bodies[0].endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("http", LIBRARIES)
async def test_stalled_stream_does_not_end_its_neighbour(http: str) -> None:
    """A read timeout of the library would fail every stream of the connection."""
    end = anyio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.headers()
        await exchange.data(HELLO)
        if exchange.path.endswith("/messages"):
            await anyio.sleep_forever()
        await end.wait()
        await exchange.end()

    statuses: list[int] = []

    async def neighbour(url: str, inner: Any) -> None:
        async with inner.stream("POST", f"{url}/quiet", content=b"{}", timeout=None) as response:
            await response.aread()
            statuses.append(response.status_code)

    deadlines, phase = DEADLINES["even"]
    async with (
        http2_server(script) as server,
        http2_client(http) as inner,
        anyio.create_task_group() as group,
    ):
        group.start_soon(neighbour, server.url, inner)
        await anyio.sleep(0.1)
        await check(server.url, inner, deadlines, phase)
        end.set()
    assert statuses == [200]


# --- bytes of the caller ---

CHUNK_DRIPS: Final = (b": still here\n\n", b"\n", b"", b"data", PING)


@each_case("drip, deadline", itertools.product(CHUNK_DRIPS, DEADLINES), at_once=15)
async def test_deadline_holds_for_bytes_of_the_caller(drip: bytes, deadline: str) -> None:
    """C2."""
    deadlines, phase = DEADLINES[deadline]

    async def chunks() -> Any:
        yield HELLO
        while True:
            await anyio.sleep(EVERY)
            yield drip

    stream = ResponseStream.from_chunks(
        chunks(), parser("messages"), deadlines=deadlines, errors="event"
    )
    async with watching() as watch:
        began = anyio.current_time()
        async with stream:
            async for _ in stream:
                pass
        elapsed = anyio.current_time() - began
        error = stream.response.error
        assert error is not None
        assert error.detail == {"phase": phase}
        check_time(max(min(elapsed, SECONDS), elapsed - watch.stolen))


# --- after the end ---

LATE_DRIPS: Final[dict[str, Script]] = {
    "comments": [Repeat(chunk(b": still here\n\n"), EVERY)],
    "trailers": [b"0\r\n", Repeat(b"x: y\r\n", EVERY)],
    "chunk extension": [b"5;", Repeat(b"x", EVERY)],
}


@EVERY_TRANSPORT
@each_case("drip", LATE_DRIPS, at_once=len(LATE_DRIPS))
async def test_drip_after_the_end_delays_a_response_briefly(http: str, drip: str) -> None:
    """C2: `drain` ends it without an error."""
    async with (
        scripted([head(), chunk(MESSAGE), *LATE_DRIPS[drip], END]) as server,
        open_http(http) as inner,
        watching() as watch,
    ):
        client = make_client(server.url, inner, deadlines=Deadlines(drain=SECONDS))
        began = anyio.current_time()
        with anyio.move_on_after(5):
            response = await client.respond(make_request(server.url))
            assert (response.status, response.text) == ("completed", HELLO_TEXT)
        elapsed = anyio.current_time() - began
        assert elapsed <= SECONDS * 2 + OVERRUN + watch.stolen
