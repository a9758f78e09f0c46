"""A server on loopback in another process: CPU of the reading process, for 1, 100 and 500 streams at once.

python -m benchmarks.bench_end_to_end [--streams 1 100 500] [--rounds 3] [--pace 0] [--json F] [--chart F.svg]

`drained` is the HTTP library alone: it reads the same bytes and looks at none. What our client adds to it is the cost of streamlib.
With --pace each event comes alone, so many seconds after the one before, as a model writes it.
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
from benchmarks.contestants import ASK, CHAT
from benchmarks.loopback import events_of, running
from streamlib.bench.answers import words
from streamlib.bench.chart import bars
from streamlib.bench.records import Record, as_json, record, table
from streamlib.cli.bench import Bar
from streamlib_parsers import parser

DELTAS: Final = {1: 8000, 100: 200, 500: 60}
"""Of each stream, by how many there are: about as much work for every row."""

Read = Callable[[str], Awaitable[str | None]]
"""Reads the answer of an address; its text, or None where it was not looked at."""


class Reader(NamedTuple):
    """Opens a client for so many streams, which then reads one address after the other."""

    name: str
    wire: str
    opened: Callable[[int], AbstractAsyncContextManager[Read]]


def _drained(library: str) -> Callable[[int], AbstractAsyncContextManager[Read]]:
    @asynccontextmanager
    async def opened(streams: int) -> AsyncIterator[Read]:
        http: Any = __import__(library)
        limits = http.Limits(max_connections=streams)
        async with http.AsyncClient(limits=limits, timeout=http.Timeout(600)) as client:

            async def read(url: str) -> None:
                async with client.stream("POST", url, content=b"{}") as response:
                    async for _ in response.aiter_bytes():
                        pass

            yield read

    return opened


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
    async def opened(streams: int) -> AsyncIterator[Read]:
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

    return opened


def _of_library(library: str) -> Callable[[int], Any]:
    def make(streams: int) -> Any:
        http: Any = __import__(library)
        return http.AsyncClient(limits=http.Limits(max_connections=streams), timeout=None)

    return make


def _of_aiohttp(streams: int) -> Any:
    from streamlib.transport.aiohttp import AiohttpTransport

    return AiohttpTransport()


def _raw_socket(*, parsed: bool) -> Callable[[int], AbstractAsyncContextManager[Read]]:
    """No HTTP library at all: what nobody can go below on this loop."""

    async def chunks(url: str) -> AsyncIterator[bytes]:
        address = urlsplit(f"{url}/close")
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(f"POST {address.path} HTTP/1.1\r\ncontent-length: 0\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        while chunk := await reader.read(1 << 16):
            yield chunk
        writer.close()

    async def drain(url: str) -> None:
        async for _ in chunks(url):
            pass

    async def parse(url: str) -> str:
        reading, whole = parser("messages"), streamlib.Accumulator()
        async for chunk in chunks(url):
            for event in reading.feed(chunk):
                whole.feed(event)
        for event in reading.close():
            whole.feed(event)
        return whole.response.text

    @asynccontextmanager
    async def opened(streams: int) -> AsyncIterator[Read]:
        yield parse if parsed else drain

    return opened


@asynccontextmanager
async def _anthropic(streams: int) -> AsyncIterator[Read]:
    import anthropic

    async def read(url: str) -> str:
        client = shared.with_options(base_url=url)
        stream = await client.messages.create(**ASK, stream=True)
        return "".join(
            [event.delta.text async for event in stream if event.type == "content_block_delta"]
        )

    async with anthropic.AsyncAnthropic(api_key="none", max_retries=0) as shared:
        yield read


@asynccontextmanager
async def _anthropic_stream(streams: int) -> AsyncIterator[Read]:
    import anthropic

    async def read(url: str) -> str:
        async with shared.with_options(base_url=url).messages.stream(**ASK) as stream:
            async for _ in stream:
                pass
            return await stream.get_final_text()

    async with anthropic.AsyncAnthropic(api_key="none", max_retries=0) as shared:
        yield read


@asynccontextmanager
async def _openai(streams: int) -> AsyncIterator[Read]:
    import openai

    async def read(url: str) -> str:
        stream = await shared.with_options(base_url=url).chat.completions.create(
            **CHAT, stream=True
        )
        return "".join(
            [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
        )

    async with openai.AsyncOpenAI(api_key="none", max_retries=0) as shared:
        yield read


READERS: Final = (
    Reader("raw socket, drained", "messages", _raw_socket(parsed=False)),
    Reader("raw socket + parser", "messages", _raw_socket(parsed=True)),
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
    """CPU seconds for an event of the wire, everything that a stream needs included; the second of two goes, since clients warm up."""
    count = DELTAS.get(streams, 200) if not pace else 40
    address = f"{url}/{reader.wire}/{count}/{pace}"
    said = "".join(words("end to end", count))
    async with reader.opened(streams) as read:
        await read(f"{url}/{reader.wire}/10/0")
        gc.collect()
        gc.freeze()  # else everybody pays for the modules of those who ran before
        began = time.process_time()
        texts = await asyncio.gather(*(read(address) for _ in range(streams)))
        took = time.process_time() - began
    assert all(text in (None, said) for text in texts), f"{reader.name} read something else"
    return took / (streams * len(events_of(reader.wire, count)))


def main(argv: list[str] | None = None) -> int:
    """Every reader, by turns."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--streams", type=int, nargs="+", default=[1, 100, 500])
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--pace", type=float, default=0.0)
    arguments.add_argument("--json")
    arguments.add_argument("--chart")
    asked = arguments.parse_args(argv)
    bar = Bar(len(READERS) * asked.rounds * len(asked.streams))
    records: list[Record] = []
    with running() as url:
        for streams in asked.streams:
            times: dict[str, list[float]] = {reader.name: [] for reader in READERS}
            for _ in range(asked.rounds):
                for reader in READERS:
                    bar.advance(f"{streams} streams: {reader.name}")
                    times[reader.name].append(
                        asyncio.run(spent(reader, url, streams, asked.pace)) * 1e6
                    )
            how = f"every {asked.pace:g} s" if asked.pace else "at once"
            records += [
                record("end to end", f"{streams} streams", how, name, "CPU", "µs/event", taken)
                for name, taken in times.items()
            ]
    bar.done()
    print(table(records), end="")
    if asked.json:
        Path(asked.json).write_bytes(as_json(records))
    if asked.chart:
        Path(asked.chart).write_text(
            bars("CPU of the reading process, µs an event", records), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
