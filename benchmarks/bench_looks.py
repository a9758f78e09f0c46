"""What it costs to look: a snapshot at every event, a stream's hop, histories, a client.

python -m benchmarks.bench_looks [--rounds 7] [--only snapshots|hops|histories|clients] [--save]

The ways of a part run in turn. `against_peers` has a snapshot at every event of others.
"""

from __future__ import annotations

import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import anyio

import streamlib
from benchmarks.commands import Measured, Options, run
from benchmarks.contestants import mock
from benchmarks.results import Figure, figure
from streamlib.cli.bench import Bar
from streamlib.request.conversation import History
from streamlib.testing.bench.bodies import messages
from streamlib.testing.bench.records import OURS
from streamlib.testing.bench.responses import SampleText
from streamlib.testing.bench.workloads import EVENT, FAST, chunked
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import FunctionCall, FunctionCallOutput, Message, Text, parser, user
from streamlib_parsers.accumulate import Accumulator

Run = Callable[[], float]
"""Reads once, and returns the CPU seconds."""

WORD: Final = "word "


def body(deltas: int) -> list[bytes]:
    """The events of a Messages stream whose text has this many deltas."""
    return list(messages((SampleText((WORD,) * deltas),)))


# --- a snapshot at every event ---


def fed(chunks: list[bytes]) -> float:
    """CPU seconds of the parser alone."""
    began = time.process_time()
    parse = parser("messages")
    for chunk in chunks:
        parse.feed(chunk)
    parse.close()
    return time.process_time() - began


def looked(chunks: list[bytes], look: Callable[[Accumulator], Any]) -> float:
    """CPU seconds of parser and accumulator with a look after each event; the latest is kept."""
    began = time.process_time()
    parse, accumulator = parser("messages"), Accumulator()
    snapshot = None
    for chunk in chunks:
        for event in parse.feed(chunk):
            accumulator.feed(event)
            snapshot = look(accumulator)
    parse.close()
    assert snapshot is not None
    return time.process_time() - began


async def from_chunks(chunks: list[bytes], read: Callable[[Any], Awaitable[None]]) -> float:
    """CPU seconds of a stream over bytes, without its end."""

    async def source() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async with streamlib.ResponseStream.from_chunks(source(), parser("messages")) as stream:
        began = time.process_time()
        await read(stream)
        return time.process_time() - began


async def through_client(chunks: list[bytes], read: Callable[[Any], Awaitable[None]]) -> float:
    """CPU seconds of a stream of the complete client over a mock of httpx."""
    options: Any = {"wire_api": "messages", "base_url": "http://x", "dialects": ()}
    async with (
        mock(chunks, "httpx") as http,
        streamlib.Client(http=http) as client,
        client.stream("x", model="custom:m", **options) as stream,
    ):
        began = time.process_time()
        await read(stream)
        return time.process_time() - began


async def events(stream: Any) -> None:
    """Reads every event."""
    async for _ in stream:
        pass


async def batches(stream: Any) -> None:
    """Reads the events of each read."""
    async for _ in stream.batches():
        pass


async def look_at_each(stream: Any) -> None:
    """Takes the snapshot at every event; the latest is kept."""
    snapshot = None
    async for _ in stream:
        snapshot = stream.snapshot
    assert snapshot is not None


def snapshot_runs(deltas: int) -> dict[str, Run]:
    """Ways to look at every event of this many deltas, one event a chunk."""
    chunks = body(deltas)
    return {
        OURS: lambda: looked(chunks, lambda accumulator: accumulator.response),
        "ours, feed alone": lambda: fed(chunks),
        "ours, its text": lambda: looked(chunks, lambda accumulator: accumulator.response.text),
        "ours, from_chunks": lambda: anyio.run(from_chunks, chunks, look_at_each),
        "ours, client": lambda: anyio.run(through_client, chunks, look_at_each),
    }


# --- a stream's hop ---


def hop_runs(deltas: int, size: int) -> dict[str, Run]:
    """Ways to read a stream with chunks of one size."""
    chunks = chunked(body(deltas), size)

    async def timed(chunks: list[bytes]) -> float:
        async def source() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        parse = parser("messages")
        stream = streamlib.ResponseStream.from_chunks(source(), parse, deadlines=Deadlines())
        async with stream:
            began = time.process_time()
            await events(stream)
            return time.process_time() - began

    return {
        OURS: lambda: anyio.run(from_chunks, chunks, events),
        "ours, with deadlines": lambda: anyio.run(timed, chunks),
        "ours, batches": lambda: anyio.run(from_chunks, chunks, batches),
        "ours, client": lambda: anyio.run(through_client, chunks, events),
        "ours, client, batches": lambda: anyio.run(through_client, chunks, batches),
        "ours, feed alone": lambda: fed(chunks),
    }


# --- a history ---


def history(items: int) -> list[Any]:
    """A conversation with calls."""
    turns: list[Any] = []
    for number in range(items // 4):
        turns += [
            user(f"Question {number}: what is the weather in Oslo tomorrow morning?"),
            FunctionCall(f"call_{number}", "get_weather", '{"city":"Oslo","day":"tomorrow"}'),
            FunctionCallOutput(f"call_{number}", "Light rain, 4 degrees, wind from the west."),
            Message("assistant", (Text("It will rain a little; take a coat. " * 8),)),
        ]
    return turns


def history_runs(items: int) -> tuple[dict[str, Run], int]:
    """Ways to save and load this many items, and their size in bytes."""
    saved = history(items)
    data = History(saved).dumps()
    History.loads(data)  # the first call makes the decoder
    later = data.replace(b'"items":[', b'"items":[{"type":"of_a_later_version"},', 1)

    def timed(run: Callable[[], Any]) -> float:
        began = time.process_time()
        run()
        return time.process_time() - began

    runs: dict[str, Run] = {
        "load_history": lambda: timed(lambda: History.loads(data)),
        "load_history, item by item": lambda: timed(lambda: History.loads(later)),
        "dump_history": lambda: timed(lambda: History(saved).dumps()),
    }
    return runs, len(data)


# --- a client ---


def client_runs(requests: int) -> dict[str, Run]:
    """Ways to make this many clients, and to request this many short responses."""
    chunks = [b"".join(body(1))]
    options: Any = {"wire_api": "messages", "base_url": "http://x"}

    def made() -> float:
        began = time.process_time()
        for _ in range(requests):
            streamlib.Client()
        return time.process_time() - began

    async def requested(chunks: list[bytes]) -> float:
        async with mock(chunks, "httpx") as http, streamlib.Client(http=http) as client:
            await client.respond("x", model="custom:m", **options)
            began = time.process_time()
            for _ in range(requests):
                async with client.stream("x", model="custom:m", **options) as stream:
                    await events(stream)
            return time.process_time() - began

    async def posted(chunks: list[bytes]) -> float:
        async with mock(chunks, "httpx") as http:
            began = time.process_time()
            for _ in range(requests):
                request = http.build_request("POST", "http://x", content=b"{}")
                response = await http.send(request, stream=True)
                async for _ in response.aiter_raw():
                    pass
                await response.aclose()
            return time.process_time() - began

    return {
        "Client()": made,
        "a short stream": lambda: anyio.run(requested, chunks),
        "the same, httpx alone": lambda: anyio.run(posted, chunks),
    }


# --- all of it ---


def raced(workload: str, chunks: str, runs: dict[str, Run], count: float, rounds: int) -> Any:
    """CPU microseconds for one of `count` units, for each way, in alternating rounds."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    gc.collect()
    gc.freeze()
    for _ in range(rounds):
        for name, once in runs.items():
            times[name].append(once() / count * 1e6)
    return [
        figure("looks", workload, chunks, name, "time", "µs", spent)
        for name, spent in times.items()
    ]


def snapshots(rounds: int, scale: int) -> list[Figure]:
    """Figures for a snapshot at every event of 20,000 and of 100,000 deltas."""
    figures: list[Figure] = []
    for deltas in (20_000 // scale, 100_000 // scale):
        runs = snapshot_runs(deltas)
        figures += raced(f"{deltas:,} deltas", "an event", runs, deltas, rounds)
    return figures


def hops(rounds: int, scale: int) -> list[Figure]:
    """Figures for the ways to read a stream, with one event a chunk and with 16 KiB."""
    deltas = 20_000 // scale
    return [
        *raced("hop", "an event", hop_runs(deltas, EVENT), deltas, rounds),
        *raced("hop", "16 KiB", hop_runs(deltas, FAST), deltas, rounds),
    ]


def histories(rounds: int, scale: int) -> list[Figure]:
    """Figures for saving and loading: microseconds for a KB."""
    runs, size = history_runs(4_000 // scale)
    return [*raced("a KB of history", "whole", runs, size / 1e3, rounds)]


def clients(rounds: int, scale: int) -> list[Figure]:
    """Figures for making clients and streams."""
    requests = 200 // scale
    return [*raced("client", "whole", client_runs(requests), requests, rounds)]


PARTS: Final[dict[str, Callable[[int, int], list[Figure]]]] = {
    "snapshots": snapshots,
    "hops": hops,
    "histories": histories,
    "clients": clients,
}


def measure(options: Options, bar: Bar) -> Measured:
    """Measures every part, or the named ones."""
    figures: list[Figure] = []
    for name, part in PARTS.items():
        if options.takes(name):
            bar.advance(name)
            figures += part(options.rounds, 20 if options.quick else 1)
    return Measured(figures, {})


def main(argv: list[str] | None = None) -> int:
    """Measures every part, or those that are named."""
    return run("bench_looks", __doc__, measure, argv, steps=lambda _: len(PARTS))


if __name__ == "__main__":
    raise SystemExit(main())
