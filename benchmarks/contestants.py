"""Contestants: their type, this library as one, and peers that read over a mock transport.

A contestant is timed while it reads; making its client and request is not timed, unless its name
says so. `read` does the same and returns the outcome. Outcomes are compared before anything is
timed, so that nobody wins by reading less. The peers are in `sdks`, `framings`, `node_readers` and
`checkouts`.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib
import importlib.metadata
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import streamlib
from streamlib.testing.bench.records import OURS
from streamlib_parsers import FunctionCall, Response, accumulate, parser


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
        seconds: returns the CPU seconds for reading these chunks once: the mean of as many readings
            as take this many seconds.
        read: returns the outcome of reading these chunks.
    """

    name: str
    distribution: str
    wire: str
    seconds: Callable[[list[bytes], float], float]
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


def repeated(read_once: Callable[[], float], window: float) -> float:
    """The mean of as many readings as take `window` CPU seconds: the clock is coarse."""
    spent = read_once()
    runs = 1
    while spent < window:
        spent += read_once()
        runs += 1
    return spent / runs


# --- ours ---


def outcome_of(response: Response) -> Outcome:
    """The outcome of a response of this library."""
    calls = [call for call in response.calls if isinstance(call, FunctionCall)]
    return Outcome(response.text, [_parsed(call.arguments) for call in calls])


def ours(wire: Any) -> Contestant:
    """The parser with its complete state machine."""

    def seconds(chunks: list[bytes], window: float) -> float:
        def once() -> float:
            start = time.process_time()
            parse = parser(wire)
            for chunk in chunks:
                parse.feed(chunk)
            parse.close()
            return time.process_time() - start

        return repeated(once, window)

    def read(chunks: list[bytes]) -> Outcome:
        parse = parser(wire)
        events: list[Any] = []
        for chunk in chunks:
            events += parse.feed(chunk)
        return outcome_of(accumulate([*events, *parse.close()]))

    return Contestant(OURS, "", wire, seconds, read)


def client(wire: Any, *, with_request: bool = False) -> Contestant:
    """`Client.stream` with its deadlines, accumulator and timing, over a mock of httpx.

    Args:
        wire: wire that it reads.
        with_request: whether opening the stream is timed, too.
    """
    mocked = MockedClient(lambda http: streamlib.Client(http=http), lambda: "httpx")

    async def request(made: streamlib.Client) -> tuple[float, Response]:
        start = time.process_time()
        async with made.stream(
            "x", model="custom:m", wire_api=wire, base_url="http://x", dialects=()
        ) as stream:
            if not with_request:
                start = time.process_time()
            async for _ in stream:
                pass
            spent = time.process_time() - start
        return spent, stream.response

    def seconds(chunks: list[bytes], window: float) -> float:
        return repeated(lambda: mocked.run(request, chunks)[0], window)

    def read(chunks: list[bytes]) -> Outcome:
        return outcome_of(mocked.run(request, chunks)[1])

    return Contestant(
        _named("streamlib's client", with_request=with_request), "", wire, seconds, read
    )


def _named(name: str, *, with_request: bool) -> str:
    return f"{name} with its request" if with_request else name


# --- peers that are a generator over chunks ---


def local(
    name: str,
    distribution: str,
    wire: str,
    events_of: Callable[[list[bytes]], Iterator[Any]],
    outcome: Callable[[Iterable[Any]], Outcome],
) -> Contestant:
    """A reader without an event loop.

    Args:
        name: name in tables.
        distribution: name on the package index; empty if none is needed.
        wire: wire that it reads.
        events_of: reads chunks.
        outcome: makes the outcome from its events.
    """

    def seconds(chunks: list[bytes], window: float) -> float:
        def once() -> float:
            start = time.process_time()
            for _ in events_of(chunks):
                pass
            return time.process_time() - start

        return repeated(once, window)

    return Contestant(name, distribution, wire, seconds, lambda chunks: outcome(events_of(chunks)))


# --- peers over a mock transport ---


T = TypeVar("T")


class MockedClient:
    """A library's client over a mock of its HTTP library, in an event loop of its own.

    Both are made when they are used first, and kept: making a client takes some libraries longer
    than reading a response.

    Args:
        client_of: makes the client with an HTTP client like httpx's.
        library: returns the name of the HTTP library.
    """

    def __init__(self, client_of: Callable[[Any], Any], library: Callable[[], str]) -> None:
        self._client_of = client_of
        self._library = library
        self._runner: asyncio.Runner | None = None
        self._client: Any = None
        self._chunks: list[bytes] = []

    def run(self, read: Callable[[Any], Awaitable[T]], chunks: list[bytes]) -> T:
        """Runs `read` with the client; every request is answered with these chunks."""
        self._chunks = chunks
        if self._runner is None:
            self._runner = asyncio.Runner()
            atexit.register(self._runner.close)
        return self._runner.run(self._with_client(read))

    async def _with_client(self, read: Callable[[Any], Awaitable[T]]) -> T:
        if self._client is None:
            http: Any = importlib.import_module(self._library())
            transport = http.MockTransport(lambda _: self._respond(http))
            self._client = self._client_of(http.AsyncClient(transport=transport))
            await read(self._client)  # a first request makes what the others reuse
        return await read(self._client)

    def _respond(self, http: Any) -> Any:
        # A library that finds no `network_stream` (ours) adds its own read timeouts. With it, the
        # transport looks like a socket that has timeouts; nothing times out here.
        return http.Response(
            200,
            headers={"content-type": "text/event-stream"},
            content=self._body(),
            extensions={"network_stream": None},
        )

    async def _body(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


def peer(
    name: str,
    distribution: str,
    wire: str,
    client_of: Callable[[Any], Any],
    open_stream: Callable[[Any], Awaitable[AsyncIterator[Any]]],
    outcome: Callable[[list[Any]], Outcome],
    library: Callable[[], str] = lambda: "httpx2",
    *,
    with_request: bool = False,
) -> Contestant:
    """A library that streams through a client of an HTTP library.

    Args:
        name: name in tables.
        distribution: name on the package index.
        wire: wire that it reads.
        client_of: makes its client with an HTTP client, which is not timed.
        open_stream: opens its stream with that client.
        outcome: makes the outcome from its events.
        library: returns the name of the HTTP library; called when the contestant takes part.
        with_request: whether opening the stream is timed, too.
    """

    mocked = MockedClient(client_of, library)

    async def timed(made: Any) -> float:
        start = time.process_time()
        events = await open_stream(made)
        if not with_request:
            start = time.process_time()
        async for _ in events:
            pass
        return time.process_time() - start

    async def joined(made: Any) -> Outcome:
        return outcome([event async for event in await open_stream(made)])

    return Contestant(
        _named(name, with_request=with_request),
        distribution,
        wire,
        lambda chunks, window: repeated(lambda: mocked.run(timed, chunks), window),
        lambda chunks: mocked.run(joined, chunks),
    )


def parsed_arguments(deltas: Iterable[tuple[Any, str]]) -> list[Any]:
    """Arguments of calls, joined from deltas: (key of the call, JSON text)."""
    calls: dict[Any, list[str]] = {}
    for key, text in deltas:
        calls.setdefault(key, []).append(text)
    return [_parsed("".join(texts)) for texts in calls.values()]


def _parsed(text: str) -> Any:
    """The value of a JSON text; the text itself where it is none."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return text
    return {} if value is None else value
