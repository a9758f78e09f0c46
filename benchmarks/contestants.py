"""Contestants: their type, this library as one, and peers that read over a mock transport.

A contestant is timed while it reads; making its client and request is not timed. `read` does the
same and returns the outcome. Outcomes are compared before anything is timed, so that nobody wins by
reading less. The peers are in `sdks`, `other_sdks`, `frameworks`, `framings` and
`node_readers`.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple

from streamlib.testing.bench.records import OURS
from streamlib_parsers import FunctionCall, Response, accumulate, parser
from streamlib_parsers.accumulate import Accumulator

Depth = Literal["events", "snapshots", "response"]
"""How much of a response a contestant makes: its events; a snapshot at every event; the complete
response at the end."""

DEPTHS: Final[tuple[Depth, ...]] = ("events", "snapshots", "response")


class Outcome(NamedTuple):
    """The content of a response: its text, and the parsed arguments of its calls."""

    text: str
    arguments: list[Any]


class Contestant(NamedTuple):
    """One reader.

    Attributes:
        name: name in tables.
        distribution: name on the package index; empty if none is needed.
        wire: wire that it reads.
        depth: how much of the response it makes.
        seconds: returns the CPU seconds for reading these chunks.
        read: returns the outcome of reading these chunks.
    """

    name: str
    distribution: str
    wire: str
    depth: Depth
    seconds: Callable[[list[bytes]], float]
    read: Callable[[list[bytes]], Outcome]

    @property
    def installed(self) -> bool:
        """Whether its distribution is installed."""
        if not self.distribution:
            return True
        try:
            return bool(importlib.metadata.version(self.distribution))
        except importlib.metadata.PackageNotFoundError:
            return False


# --- ours ---


def outcome_of(response: Response) -> Outcome:
    """The outcome of a response of this library."""
    calls = [call for call in response.calls if isinstance(call, FunctionCall)]
    return Outcome(response.text, [json.loads(call.arguments or "{}") for call in calls])


def _events(wire: Any, chunks: Iterable[bytes]) -> list[Any]:
    parse = parser(wire)
    events: list[Any] = []
    for chunk in chunks:
        events += parse.feed(chunk)
    return events + parse.close()


def _read_events(wire: Any, chunks: list[bytes]) -> None:
    parse = parser(wire)
    for chunk in chunks:
        parse.feed(chunk)
    parse.close()


def _read_response(wire: Any, chunks: list[bytes]) -> None:
    parse, accumulator = parser(wire), Accumulator()
    for chunk in chunks:
        for event in parse.feed(chunk):
            accumulator.feed(event)
    for event in parse.close():
        accumulator.feed(event)
    assert accumulator.response.status == "completed"


def _read_snapshots(wire: Any, chunks: list[bytes]) -> None:
    parse, accumulator = parser(wire), Accumulator()
    for chunk in chunks:
        for event in parse.feed(chunk):
            accumulator.feed(event)
            _ = accumulator.response
    for event in parse.close():
        accumulator.feed(event)
    assert accumulator.response.status == "completed"


_READINGS: Final[dict[Depth, Callable[[Any, list[bytes]], None]]] = {
    "events": _read_events,
    "snapshots": _read_snapshots,
    "response": _read_response,
}


def ours(wire: str, depth: Depth = "events") -> Contestant:
    """The parser with its complete state machine; for other depths also with an `Accumulator`."""
    run = _READINGS[depth]

    def seconds(chunks: list[bytes]) -> float:
        start = time.process_time()
        run(wire, chunks)
        return time.process_time() - start

    def read(chunks: list[bytes]) -> Outcome:
        return outcome_of(accumulate(_events(wire, chunks)))

    return Contestant(OURS, "", wire, depth, seconds, read)


# --- peers that are a generator over chunks ---


def local(
    name: str,
    distribution: str,
    wire: str,
    depth: Depth,
    events_of: Callable[[list[bytes]], Iterator[Any]],
    outcome: Callable[[Iterable[Any]], Outcome],
) -> Contestant:
    """A reader without an event loop.

    Args:
        name: name in tables.
        distribution: name on the package index; empty if none is needed.
        wire: wire that it reads.
        depth: `events`, or `response`: its events joined by `outcome`.
        events_of: reads chunks.
        outcome: makes the outcome from its events.
    """

    def read(chunks: list[bytes]) -> Outcome:
        return outcome(events_of(chunks))

    def seconds(chunks: list[bytes]) -> float:
        start = time.process_time()
        if depth == "response":
            read(chunks)
        else:
            for _ in events_of(chunks):
                pass
        return time.process_time() - start

    return Contestant(name, distribution, wire, depth, seconds, read)


# --- peers over a mock transport ---


class OpenStream(NamedTuple):
    """An open stream of a peer.

    Attributes:
        events: iterator over its events.
        response: returns the complete response after the stream was read, or an awaitable of it;
            None if the peer has none, so that its events are joined by hand.
        snapshot: returns the response so far; called with each event. None if the peer has none.
    """

    events: AsyncIterator[Any]
    response: Callable[[], Any] | None = None
    snapshot: Callable[[Any], Any] | None = None


def mock(chunks: list[bytes], library: str) -> Any:
    """A client like httpx's that responds to every request with these chunks."""
    http: Any = importlib.import_module(library)

    async def body() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    def respond(request: Any) -> Any:
        # A library that finds no `network_stream` (ours) adds its own read timeouts. With it, the
        # transport looks like a socket that has timeouts; nothing times out here.
        return http.Response(
            200,
            headers={"content-type": "text/event-stream"},
            content=body(),
            extensions={"network_stream": None},
        )

    return http.AsyncClient(transport=http.MockTransport(respond))


def peer(
    name: str,
    distribution: str,
    wire: str,
    depth: Depth,
    open_stream: Callable[[Any], Awaitable[OpenStream]],
    outcome: Callable[[list[Any], Any], Outcome],
    library: Callable[[], str] = lambda: "httpx2",
) -> Contestant:
    """A library that streams through a client of an HTTP library.

    Args:
        name: name in tables.
        distribution: name on the package index.
        wire: wire that it reads.
        depth: how much of the response it makes.
        open_stream: opens its stream with an HTTP client.
        outcome: makes the outcome from its events and its complete response (None if it has none).
        library: returns the name of the HTTP library; called when the contestant takes part.
    """

    async def timed(chunks: list[bytes]) -> float:
        async with mock(chunks, library()) as http:
            stream = await open_stream(http)
            start = time.process_time()
            await _DEPTHS_OF_PEERS[depth](stream, outcome)
            return time.process_time() - start

    async def read(chunks: list[bytes]) -> Outcome:
        async with mock(chunks, library()) as http:
            stream = await open_stream(http)
            events = [event async for event in stream.events]
            return outcome(events, await _final_response(stream.response))

    return Contestant(
        name,
        distribution,
        wire,
        depth,
        lambda chunks: asyncio.run(timed(chunks)),
        lambda chunks: asyncio.run(read(chunks)),
    )


Join = Callable[[list[Any], Any], Outcome]


async def _peer_events(stream: OpenStream, outcome: Join) -> None:
    async for _ in stream.events:
        pass


async def _peer_snapshots(stream: OpenStream, outcome: Join) -> None:
    snapshot = stream.snapshot
    assert snapshot is not None
    async for event in stream.events:
        snapshot(event)
    await _final_response(stream.response)


async def _peer_response(stream: OpenStream, outcome: Join) -> None:
    if stream.response is None:  # its users keep what they need of each event
        outcome([event async for event in stream.events], None)
        return
    async for _ in stream.events:
        pass
    await _final_response(stream.response)


_DEPTHS_OF_PEERS: Final[dict[Depth, Callable[[OpenStream, Join], Awaitable[None]]]] = {
    "events": _peer_events,
    "snapshots": _peer_snapshots,
    "response": _peer_response,
}


async def _final_response(response_of: Callable[[], Any] | None) -> Any:
    """The complete response; some libraries return it at once, others must be awaited."""
    if response_of is None:
        return None
    response = response_of()
    if hasattr(response, "__await__"):
        response = await response
    return response


def parsed_arguments(deltas: Iterable[tuple[Any, str]]) -> list[Any]:
    """Arguments of calls, joined from deltas: (key of the call, JSON text)."""
    calls: dict[Any, list[str]] = {}
    for key, text in deltas:
        calls.setdefault(key, []).append(text)
    return [json.loads("".join(texts) or "{}") for texts in calls.values()]
