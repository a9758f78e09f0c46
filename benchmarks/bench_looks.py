"""What it costs to look: a snapshot at every event, a stream's hop, histories, a client.

python -m benchmarks.bench_looks [--rounds 5] [--deltas 20000] [--only NAME …] [--json F]

The contestants of a part run in turn; the table has the best and the median of the rounds.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import anyio

import streamlib
from benchmarks.contestants import MESSAGES_REQUEST, mock
from streamlib.bench.bodies import messages
from streamlib.bench.records import OURS, Record, as_json, record, table
from streamlib.bench.responses import SampleText
from streamlib.bench.workloads import EVENT, FAST, chunked
from streamlib.request.history import dump_history, load_history
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import FunctionCall, FunctionCallOutput, Message, Text, parser, user
from streamlib_parsers.accumulate import Accumulator

Run = Callable[[], float]
"""Reads once, and returns its seconds of CPU."""

WORD: Final = "word "


def body(deltas: int) -> list[bytes]:
    """The events of a Messages stream whose text has so many deltas."""
    return list(messages((SampleText((WORD,) * deltas),)))


# --- a snapshot at every event ---


def fed(chunks: list[bytes]) -> float:
    """The parser alone."""
    began = time.process_time()
    parse = parser("messages")
    for chunk in chunks:
        parse.feed(chunk)
    parse.close()
    return time.process_time() - began


def looked(chunks: list[bytes], look: Callable[[Accumulator], Any]) -> float:
    """The parser, the accumulator and a look after each event; the latest is kept."""
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
    """A stream over bytes, without its end."""

    async def source() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async with streamlib.ResponseStream.from_chunks(source(), parser("messages")) as stream:
        began = time.process_time()
        await read(stream)
        return time.process_time() - began


async def through_client(chunks: list[bytes], read: Callable[[Any], Awaitable[None]]) -> float:
    """A stream of the complete client over a mock of httpx."""
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
    """Every event."""
    async for _ in stream:
        pass


async def batches(stream: Any) -> None:
    """The events of each read."""
    async for _ in stream.batches():
        pass


async def snapshots(stream: Any) -> None:
    """The snapshot at every event; the latest is kept."""
    snapshot = None
    async for _ in stream:
        snapshot = stream.snapshot
    assert snapshot is not None


async def anthropic(chunks: list[bytes], *, accumulate: bool) -> float:
    """Its raw stream, or its accumulating one with a snapshot at every event."""
    import anthropic as sdk

    async with mock(chunks, "httpx2") as http:
        api = sdk.AsyncAnthropic(api_key="none", http_client=http).messages
        if not accumulate:
            raw = await api.create(**MESSAGES_REQUEST, stream=True)
            began = time.process_time()
            async for _ in raw:
                pass
            return time.process_time() - began
        async with api.stream(**MESSAGES_REQUEST) as stream:
            began = time.process_time()
            snapshot = None
            async for _ in stream:
                snapshot = stream.current_message_snapshot
            assert snapshot is not None
            return time.process_time() - began


def snapshot_runs(deltas: int) -> dict[str, Run]:
    """Who looks at every event of so many deltas, one event a chunk."""
    chunks = body(deltas)
    runs: dict[str, Run] = {
        OURS: lambda: looked(chunks, lambda accumulator: accumulator.response),
        "ours, feed alone": lambda: fed(chunks),
        "ours, its text": lambda: looked(chunks, lambda accumulator: accumulator.response.text),
        "ours, from_chunks": lambda: anyio.run(from_chunks, chunks, snapshots),
        "ours, client": lambda: anyio.run(through_client, chunks, snapshots),
    }
    if importlib.util.find_spec("anthropic") and deltas <= 20_000:
        runs["anthropic, no snapshot"] = lambda: anyio.run(_anthropic, chunks, False)  # noqa: FBT003
        runs["anthropic, snapshots"] = lambda: anyio.run(_anthropic, chunks, True)  # noqa: FBT003
    return runs


async def _anthropic(chunks: list[bytes], accumulate: bool) -> float:  # noqa: FBT001
    return await anthropic(chunks, accumulate=accumulate)


# --- a stream's hop ---


def hop_runs(deltas: int, size: int) -> dict[str, Run]:
    """How a stream is read, with chunks of one size."""
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
    """Saving and loading so many items; with the size in bytes."""
    saved = history(items)
    data = dump_history(saved)
    later = data.replace(b'"items":[', b'"items":[{"type":"of_a_later_version"},', 1)

    def timed(run: Callable[[], Any]) -> float:
        began = time.process_time()
        run()
        return time.process_time() - began

    runs: dict[str, Run] = {
        "load_history": lambda: timed(lambda: load_history(data)),
        "load_history, item by item": lambda: timed(lambda: load_history(later)),
        "dump_history": lambda: timed(lambda: dump_history(saved)),
    }
    return runs, len(data)


# --- a client ---


def client_runs(requests: int) -> dict[str, Run]:
    """Clients made, and short responses requested, so many of each."""
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


def raced(workload: str, chunking: str, runs: dict[str, Run], count: float, rounds: int) -> Any:
    """Microseconds of CPU for one of `count`, everybody in turn."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    gc.collect()
    gc.freeze()
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(run() / count * 1e6)
    return [
        record("looks", workload, chunking, name, "time", "µs", spent)
        for name, spent in times.items()
    ]


def parts(deltas: int, rounds: int) -> dict[str, Callable[[], list[Record]]]:
    """Name of a part to its measurement."""

    def histories() -> list[Record]:
        runs, size = history_runs(4_000)
        # Of a byte, a microsecond is a MB/s upside down.
        return [*raced("history, µs per MB", "whole", runs, size / 1e6, rounds)]

    return {
        "snapshots": lambda: raced(
            f"{deltas:,} deltas", "an event", snapshot_runs(deltas), deltas, rounds
        ),
        "long": lambda: raced(
            "100,000 deltas", "an event", snapshot_runs(100_000), 100_000, min(rounds, 3)
        ),
        "hops": lambda: [
            *raced("hop", "an event", hop_runs(20_000, EVENT), 20_000, rounds),
            *raced("hop", "16 KiB", hop_runs(20_000, FAST), 20_000, rounds),
        ],
        "histories": histories,
        "clients": lambda: raced("client", "whole", client_runs(200), 200, rounds),
    }


def main(argv: list[str] | None = None) -> int:
    """Measures every part, or those that are named."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--rounds", type=int, default=5)
    command.add_argument("--deltas", type=int, default=20_000)
    command.add_argument("--only", nargs="+", default=list(parts(0, 0)), choices=list(parts(0, 0)))
    command.add_argument("--json")
    arguments = command.parse_args(argv)
    measured = parts(arguments.deltas, arguments.rounds)
    records: list[Record] = []
    for name in arguments.only:
        records += measured[name]()
    print(table(records, "contestant"), end="")
    for entry in records:
        print(
            f"{entry.workload:22} {entry.chunks:9} {entry.contestant:28} "
            f"best {entry.best:9.3f} median {entry.median:9.3f}"
        )
    if arguments.json:
        Path(arguments.json).write_bytes(as_json(records))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
