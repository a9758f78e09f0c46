"""What a server does to a response over HTTP/2."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeAlias

import anyio

from lab.storm.faults import body_of, frames_of
from tests.support.http2_server import Exchange
from tests.support.response_bodies import PING, error_body

Play: TypeAlias = Callable[[Exchange, str], Awaitable[None]]


class Http2Fault(NamedTuple):
    """A kind of response.

    completes: the response is complete, if its connection lasts.
    ends_connection: every other response of the connection ends, too.
    """

    play: Callable[[Exchange, str], Awaitable[None]]
    completes: bool = False
    ends_connection: bool = False


async def whole(exchange: Exchange, tag: str) -> None:
    await exchange.headers()
    await exchange.data(body_of(tag))
    await exchange.end()


async def frame_by_frame(exchange: Exchange, tag: str) -> None:
    await send(exchange, tag, 7)
    await exchange.end()


async def slowly(exchange: Exchange, tag: str) -> None:
    await exchange.headers()
    for frame in frames_of(tag):
        await anyio.sleep(0.002)
        await exchange.data(frame)
    await exchange.end()


async def in_small_frames(exchange: Exchange, tag: str) -> None:
    body = body_of(tag)
    await exchange.headers()
    for start in range(0, len(body), 50):
        await exchange.data(body[start : start + 50])
    await exchange.end()


async def late(exchange: Exchange, tag: str) -> None:
    await anyio.sleep(0.01)
    await whole(exchange, tag)


async def reset_behind_the_end(exchange: Exchange, tag: str) -> None:
    await send(exchange, tag, 7)
    await exchange.reset()


async def left_open(exchange: Exchange, tag: str) -> None:
    await send(exchange, tag, 7)
    await silence(exchange)


def mingled(filler: Callable[[Exchange], Awaitable[None]]) -> Play:
    """A complete response with something else before each event."""

    async def play(exchange: Exchange, tag: str) -> None:
        await exchange.headers()
        for frame in frames_of(tag):
            await filler(exchange)
            await exchange.data(frame)
        await exchange.end()

    return play


async def send(exchange: Exchange, tag: str, count: int) -> None:
    """Headers, and so many events in a frame each."""
    await exchange.headers()
    for frame in frames_of(tag)[:count]:
        await exchange.data(frame)


async def silence(exchange: Exchange) -> None:
    await anyio.sleep_forever()


async def empty_data(exchange: Exchange) -> None:
    await exchange.data(b"")


async def pings_of_the_wire(exchange: Exchange) -> None:
    await exchange.data(PING)


def endless(filler: Callable[[Exchange], Awaitable[None]]) -> Callable[[Exchange], Awaitable[None]]:
    """The same again and again."""

    async def play(exchange: Exchange) -> None:
        while True:
            await filler(exchange)
            await anyio.sleep(0.2)

    return play


def cut(count: int, end: Callable[[Exchange], Awaitable[None]]) -> Play:
    """A response that stops after so many events."""

    async def play(exchange: Exchange, tag: str) -> None:
        await send(exchange, tag, count)
        await end(exchange)

    return play


def before_headers(end: Callable[[Exchange], Awaitable[None]]) -> Play:
    """No response at all."""

    async def play(exchange: Exchange, tag: str) -> None:
        await end(exchange)

    return play


def status(code: int) -> Play:
    """An HTTP error."""

    async def play(exchange: Exchange, tag: str) -> None:
        await exchange.headers(code)
        await exchange.data(error_body("api_error"))
        await exchange.end()

    return play


ENDS: Final[dict[str, Callable[[Exchange], Awaitable[None]]]] = {
    "ends": Exchange.end,
    "reset": Exchange.reset,
    "silent": silence,
    "endless pings": endless(Exchange.ping),
    "endless window updates": endless(Exchange.window),
    "endless empty data": endless(empty_data),
    "endless pings of the wire": endless(pings_of_the_wire),
}
"""What ends one response; others of the connection go on."""

DATA_BEFORE_HEADERS: Final = {"endless empty data", "endless pings of the wire"}
"""Before headers these violate HTTP/2, and h2 ends the connection (RFC 9113, 8.1)."""

CONNECTION_ENDS: Final[dict[str, Callable[[Exchange], Awaitable[None]]]] = {
    "connection goes away": Exchange.goaway,
    "connection reset": Exchange.abort,
    "garbage": Exchange.garbage,
}
"""What ends every response of the connection."""


def _faults() -> dict[str, Http2Fault]:
    complete: dict[str, Play] = {
        "whole": whole,
        "frame by frame": frame_by_frame,
        "slowly": slowly,
        "small frames": in_small_frames,
        "late": late,
        "reset behind the end": reset_behind_the_end,
        "left open": left_open,
        "pings between": mingled(Exchange.ping),
        "window updates between": mingled(Exchange.window),
        "empty data between": mingled(empty_data),
        "pings of the wire between": mingled(pings_of_the_wire),
    }
    faults = {name: Http2Fault(play, completes=True) for name, play in complete.items()}
    for name, end in ENDS.items():
        if name != "ends":
            faults[f"{name} before headers"] = Http2Fault(
                before_headers(end), ends_connection=name in DATA_BEFORE_HEADERS
            )
    for count in (1, 2, 3, 5, 6):
        for name, end in ENDS.items():
            faults[f"{name} after {count} events"] = Http2Fault(cut(count, end))
    for name, end in CONNECTION_ENDS.items():
        faults[f"{name} before headers"] = Http2Fault(before_headers(end), ends_connection=True)
        faults[f"{name} after 3 events"] = Http2Fault(cut(3, end), ends_connection=True)
    for code in (400, 401, 404, 429, 500, 503, 529):
        faults[f"status {code}"] = Http2Fault(status(code))
    return faults


HTTP2_FAULTS: Final = _faults()
"""Every kind by name."""
