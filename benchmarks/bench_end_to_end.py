"""CPU of a reading process for 1, 100 and 500 concurrent streams, from a server in another one.

    python -m benchmarks.bench_end_to_end [--streams 1 100 500] [--rounds 3] [--pace 0]
        [--json F] [--chart F.svg]

`drained` is the HTTP library alone: it reads the same bytes and drops them. What the client adds to
it is the cost of streamlib. With --pace each event is sent so many seconds after the previous one,
as a model writes it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import streamlib
from benchmarks.contestants import CHAT_REQUEST, MESSAGES_REQUEST
from benchmarks.loopback import events_of, running
from streamlib.bench.chart import bars
from streamlib.bench.records import Record, as_json, record, table
from streamlib.bench.responses import seeded_deltas
from streamlib.cli.bench import Bar
from streamlib_parsers import parser

DELTAS: Final = {1: 8000, 100: 200, 500: 60}
"""Deltas of each stream, by the number of streams: about as much work for every row."""

Read = Callable[[str], Awaitable[str | None]]
"""Reads the response of a URL; returns its text, or None where it was not parsed."""


class Reader(NamedTuple):
    """A client to measure.

    Attributes:
        name: shown in tables.
        wire: what it reads.
        open_client: opens a client for so many concurrent streams.
    """

    name: str
    wire: str
    open_client: Callable[[int], AbstractAsyncContextManager[Read]]


def _drained(library: str) -> Callable[[int], AbstractAsyncContextManager[Read]]:
    @asynccontextmanager
    async def open_client(streams: int) -> AsyncIterator[Read]:
        http: Any = __import__(library)
        limits = http.Limits(max_connections=streams)
        async with http.AsyncClient(limits=limits, timeout=http.Timeout(600)) as client:

            async def read(url: str) -> None:
                async with client.stream("POST", url, content=b"{}") as response:
                    async for _ in response.aiter_bytes():
                        pass

            yield read

    return open_client


@asynccontextmanager
async def _aiohttp_drained(streams: int) -> AsyncIterator[Read]:
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def read(url: str) -> None:
            async with session.post(url, data=b"{}") as response:
                async for _ in response.content.iter_any():
                    pass

        yield read


def _ours(make: Callable[[int], Any]) -> Callable[[int], AbstractAsyncContextManager[Read]]:
    @asynccontextmanager
    async def open_client(streams: int) -> AsyncIterator[Read]:
        http = make(streams)
        async with streamlib.Client(http=http) as client:

            async def read(url: str) -> str:
                async with client.stream(
                    "x", model="custom:m", wire_api="messages", base_url=url, dialects=()
                ) as stream:
                    async for _ in stream:
                        pass
                return stream.response.text

            yield read
        if http is not None:
            await http.aclose()

    return open_client


def _of_library(library: str) -> Callable[[int], Any]:
    def make(streams: int) -> Any:
        http: Any = __import__(library)
        return http.AsyncClient(limits=http.Limits(max_connections=streams), timeout=None)

    return make


def _of_aiohttp(streams: int) -> Any:
    from streamlib.transport.aiohttp import AiohttpTransport

    return AiohttpTransport()


# No HTTP library at all: the lower bound on this event loop.


async def _socket_chunks(url: str) -> AsyncIterator[bytes]:
    address = urlsplit(f"{url}/close")
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(f"POST {address.path} HTTP/1.1\r\ncontent-length: 0\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    chunk = await reader.read(1 << 16)
    while chunk:
        yield chunk
        chunk = await reader.read(1 << 16)
    writer.close()


@asynccontextmanager
async def _socket_drained(streams: int) -> AsyncIterator[Read]:
    async def read(url: str) -> None:
        async for _ in _socket_chunks(url):
            pass

    yield read


@asynccontextmanager
async def _socket_parsed(streams: int) -> AsyncIterator[Read]:
    async def read(url: str) -> str:
        parse, accumulator = parser("messages"), streamlib.Accumulator()
        async for chunk in _socket_chunks(url):
            for event in parse.feed(chunk):
                accumulator.feed(event)
        for event in parse.close():
            accumulator.feed(event)
        return accumulator.response.text

    yield read


@asynccontextmanager
async def _anthropic(streams: int) -> AsyncIterator[Read]:
    import anthropic

    async def read(url: str) -> str:
        client = shared.with_options(base_url=url)
        stream = await client.messages.create(**MESSAGES_REQUEST, stream=True)
        texts: list[str] = []
        async for event in stream:
            if event.type == "content_block_delta":
                texts.append(event.delta.text)
        return "".join(texts)

    async with anthropic.AsyncAnthropic(api_key="none", max_retries=0) as shared:
        yield read


@asynccontextmanager
async def _anthropic_stream(streams: int) -> AsyncIterator[Read]:
    import anthropic

    async def read(url: str) -> str:
        async with shared.with_options(base_url=url).messages.stream(**MESSAGES_REQUEST) as stream:
            async for _ in stream:
                pass
            return await stream.get_final_text()

    async with anthropic.AsyncAnthropic(api_key="none", max_retries=0) as shared:
        yield read


@asynccontextmanager
async def _openai(streams: int) -> AsyncIterator[Read]:
    import openai

    async def read(url: str) -> str:
        client = shared.with_options(base_url=url)
        stream = await client.chat.completions.create(**CHAT_REQUEST, stream=True)
        texts: list[str] = []
        async for chunk in stream:
            if chunk.choices:
                texts.append(chunk.choices[0].delta.content or "")
        return "".join(texts)

    async with openai.AsyncOpenAI(api_key="none", max_retries=0) as shared:
        yield read


READERS: Final = (
    Reader("raw socket, drained", "messages", _socket_drained),
    Reader("raw socket + parser", "messages", _socket_parsed),
    Reader("aiohttp, drained", "messages", _aiohttp_drained),
    Reader("streamlib, aiohttp", "messages", _ours(_of_aiohttp)),
    Reader("httpx, drained", "messages", _drained("httpx")),
    Reader("streamlib, httpx", "messages", _ours(_of_library("httpx"))),
    Reader("httpx2, drained", "messages", _drained("httpx2")),
    Reader("streamlib, httpx2", "messages", _ours(_of_library("httpx2"))),
    Reader("anthropic", "messages", _anthropic),
    Reader("anthropic.stream", "messages", _anthropic_stream),
    Reader("openai", "chat", _openai),
)


async def spent(reader: Reader, url: str, streams: int, pace: float) -> float:
    """CPU seconds for an event of the wire, with everything that a stream needs."""
    count = DELTAS.get(streams, 200)
    if pace:
        count = 40  # the time is the pace's
    stream_url = f"{url}/{reader.wire}/{count}/{pace}"
    expected = "".join(seeded_deltas("end to end", count))
    async with reader.open_client(streams) as read:
        await read(f"{url}/{reader.wire}/10/0")  # clients warm up with their first request
        gc.collect()
        # Else every collection walks the modules of the readers that ran before.
        gc.freeze()
        start = time.process_time()
        texts = await asyncio.gather(*(read(stream_url) for _ in range(streams)))
        taken = time.process_time() - start
    assert all(text in (None, expected) for text in texts), f"{reader.name} read something else"
    return taken / (streams * len(events_of(reader.wire, count)))


def measured(url: str, streams: int, pace: float, rounds: int, bar: Bar) -> list[Record]:
    """The records of all readers for so many streams, in alternating rounds."""
    times: dict[str, list[float]] = {reader.name: [] for reader in READERS}
    for _ in range(rounds):
        for reader in READERS:
            bar.advance(f"{streams} streams: {reader.name}")
            taken = asyncio.run(spent(reader, url, streams, pace))
            times[reader.name].append(taken * 1e6)
    chunks = f"every {pace:g} s" if pace else "at once"
    records: list[Record] = []
    for name, values in times.items():
        key = ("end to end", f"{streams} streams", chunks, name)
        records.append(record(*key, "CPU", "µs/event", values))
    return records


def main(argv: list[str] | None = None) -> int:
    """Measures every reader with every number of streams."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--streams", type=int, nargs="+", default=[1, 100, 500])
    command.add_argument("--rounds", type=int, default=3)
    command.add_argument("--pace", type=float, default=0.0)
    command.add_argument("--json")
    command.add_argument("--chart")
    arguments = command.parse_args(argv)
    rounds, pace = arguments.rounds, arguments.pace
    bar = Bar(len(READERS) * rounds * len(arguments.streams))
    records: list[Record] = []
    with running() as url:
        for streams in arguments.streams:
            records += measured(url, streams, pace, rounds, bar)
    bar.done()
    print(table(records), end="")
    if arguments.json:
        Path(arguments.json).write_bytes(as_json(records))
    if arguments.chart:
        picture = bars("CPU of the reading process, µs an event", records)
        Path(arguments.chart).write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
