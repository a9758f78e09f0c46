"""Figures of logs over HTTP, as JSON: `python -m lab.durable.figures`. CPU time, on loopback.

first       milliseconds from the first token to a reader of the log
resume      CPU milliseconds of a response with 2,000 events
stop        milliseconds from `POST …/stop` on one host to the closed upstream on another
readers     CPU of 100 readers of one log against one reader, in their process and on the server
appends     CPU of an event by batch size
writers     CPU and memory of 64 responses at once
reloads     readers by server-sent events that leave anywhere: equal or not
"""

from __future__ import annotations

import argparse
import json
import random
import re
import socket
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import httpx
from msgspec.structs import replace

from streamlib.client.stream import ResponseStream
from streamlib.durable import Log, open_log
from streamlib.durable.http import log_app
from streamlib.durable.log import engine_of
from streamlib.durable.records import encode_event
from streamlib.durable.rules import Append, Open
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import parser
from streamlib_parsers.events import (
    Completed,
    Created,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ResponseEvent,
)
from streamlib_parsers.items import Message, Text
from tests.support.asgi_calls import AsgiCall
from tests.support.asgi_servers import serving_app
from tests.support.durable_http import app_of, everybody, get, sse
from tests.support.redis_servers import redis_binary, running_server, valkey_binary
from tests.support.response_bodies import frames_of

EVENTS: Final = 2_000
BATCH: Final = 5
"""Events of one append: 100 a second, appended each 50 ms."""


async def words(
    count: int, batch: int = 1, pause: float = 0.0, end: anyio.Event | None = None
) -> AsyncGenerator[ResponseEvent]:
    """A response of so many events, which pauses behind each batch.

    Args:
        count: Events in all.
        batch: Events between two pauses.
        pause: Seconds of a pause.
        end: The last event waits for it.
    """
    yield Created(response_id="r", model="m")
    yield OutputItemAdded(0, Message("assistant", (), status="incomplete"), seq=1)
    text = ""
    for n in range(count - 4):
        text += f"word {n} "
        yield OutputTextDelta(0, 0, f"word {n} ", seq=n + 2)
        if n % batch == batch - 1:
            await anyio.sleep(pause)
    yield OutputItemDone(0, Message("assistant", (Text(text),)), seq=count - 2)
    if end is not None:
        await end.wait()
    yield Completed("r", "m", "stop", seq=count - 1)


async def write_in_batches(log: Log, log_id: str, count: int, end: anyio.Event | None) -> None:
    """Writes a log whose records have `BATCH` events each: without a pause they would be one."""
    await log.write(log_id, words(count, BATCH, 0.002, end))


# --- the first token ---


async def first_tokens(url: str, count: int) -> dict[str, float]:
    """Milliseconds from the first token of a response until a reader of its log has it."""
    async with open_log(url) as log:
        took = [await one_first_token(log, f"first-{n}") for n in range(count)]
    return {
        "responses": count,
        "p50 ms": round(1000 * statistics.median(took), 2),
        "max ms": round(1000 * max(took), 2),
    }


async def one_first_token(log: Log, log_id: str) -> float:
    """Seconds of one response, whose first token comes with its beginning."""
    sent = 0.0
    got = 0.0
    has_come = anyio.Event()

    async def events() -> AsyncGenerator[ResponseEvent]:
        nonlocal sent
        sent = time.perf_counter()
        async for event in words(5):
            yield event
            if isinstance(event, OutputTextDelta):
                await has_come.wait()

    async def read() -> None:
        nonlocal got
        async for entry in log.read(log_id):
            if isinstance(entry.event, OutputTextDelta):
                got = time.perf_counter()
                has_come.set()
                return

    await log.create(log_id)
    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await anyio.sleep(0.02)
        group.start_soon(log.write, log_id, events())
        await has_come.wait()
        group.cancel_scope.cancel()
    return got - sent


# --- resume ---


async def resume(url: str) -> dict[str, float]:
    """CPU milliseconds of a response with 2,000 events, best of five, by route."""
    async with open_log(url, interval=0.001) as log:
        await write_in_batches(log, "closed", EVENTS, None)
        app = app_of(log)
        found = {}
        for path in ("/log/closed/events", "/log/closed?offset=-1&live=sse"):
            found[path] = await best_cpu_ms(app, path, None)
        end = anyio.Event()
        async with anyio.create_task_group() as group:
            await log.create("open")
            group.start_soon(write_in_batches, log, "open", EVENTS, end)
            await wait_for(log, "open", EVENTS - 1)
            path = "/api/chat/open/stream"
            call = AsgiCall(method="GET", path=path)
            with anyio.move_on_after(2):
                await call(app)
            # Until the last of what is there.
            found[path] = await best_cpu_ms(app, path, len(call.messages))
            end.set()
    return found


async def best_cpu_ms(app: Any, path: str, leave_after: int | None) -> float:
    """CPU milliseconds of one response."""
    best = 1e9
    for _ in range(5):
        began = time.process_time()
        await get(app, path, leave_after=leave_after)
        best = min(best, time.process_time() - began)
    return round(1000 * best, 1)


async def wait_for(log: Log, log_id: str, position: int) -> None:
    """Until a log has so many events."""
    while int((await log.head(log_id)).cursor.partition("-")[2]) < position:  # noqa: ASYNC110
        await anyio.sleep(0.02)


# --- stop ---


async def stops(url: str, count: int) -> dict[str, float]:
    """Milliseconds from the request to the closed upstream of a silent model."""
    took: list[float] = []
    async with (
        open_log(url) as writing,
        open_log(url) as other,
        serving_app(log_app(other, allow=everybody)) as server,
        httpx.AsyncClient(base_url=server.url) as http,
    ):
        for n in range(count):
            took.append(await one_stop(writing, f"stop-{n}", http))
    took.sort()
    return {
        "stops": count,
        "p50": round(1000 * statistics.median(took), 1),
        "p99": round(1000 * took[int(0.99 * count)], 1),
        "max": round(1000 * took[-1], 1),
    }


async def one_stop(log: Log, log_id: str, http: httpx.AsyncClient) -> float:
    """Seconds from the request to the closed upstream."""
    silent = anyio.Event()
    closed = anyio.Event()

    async def chunks() -> AsyncGenerator[bytes]:
        try:
            for frame in frames_of(6)[:5]:
                yield frame
            silent.set()
            await anyio.sleep_forever()
        finally:
            closed.set()

    stream = ResponseStream.from_chunks(
        chunks(), parser("messages"), errors="event", deadlines=Deadlines(idle=1e9)
    )
    await log.create(log_id)
    async with anyio.create_task_group() as group:

        async def write() -> None:
            # Without the time in which a writer is ready to send again what a server lost.
            await log.write(log_id, stream)

        group.start_soon(write)
        await silent.wait()
        await anyio.sleep(random.random() * 0.1)
        began = time.perf_counter()
        (await http.post(f"/log/{log_id}/stop")).raise_for_status()
        await closed.wait()
        took = time.perf_counter() - began
        group.cancel_scope.cancel()
    return took


# --- many readers ---


async def readers(url: str, records: int, server_cpu: Callable[[], float]) -> dict[str, Any]:
    """CPU microseconds a record, with one reader and with 100, without and with sockets' cost."""
    found: dict[str, Any] = {}
    for count in (1, 100):
        async with open_log(url) as log, anyio.create_task_group() as group:
            log_id = f"readers-{count}"
            await log.create(log_id)
            app = app_of(log)
            for _ in range(count):
                group.start_soon(get, app, f"/log/{log_id}/events")
            await anyio.sleep(0.5)
            process = time.process_time()
            server = server_cpu()
            end = anyio.Event()
            group.start_soon(log.write, log_id, words(records * BATCH, BATCH, 0.05, end))
            await wait_for(log, log_id, records * BATCH - 1)
            found[f"{count} process us/record"] = per(time.process_time() - process, records)
            found[f"{count} server us/record"] = per(server_cpu() - server, records)
            end.set()
            await anyio.sleep(0.2)
            group.cancel_scope.cancel()
    return found


def per(seconds: float, records: int) -> int:
    """Microseconds of one."""
    return round(1e6 * seconds / records)


# --- appends ---


async def appends(url: str, count: int) -> dict[str, str]:
    """CPU microseconds an event of one writer that waits for each append, by batch size."""
    server_cpu = server_seconds(url)
    engine = engine_of(url)
    await engine.connect()
    found: dict[str, str] = {}
    try:
        for batch in (1, 4, 16, 64):
            log_id = f"appends-{batch}"
            await engine.ask(log_id, Open("w", 60_000))
            line = encode_event(OutputTextDelta(0, 0, "word 1234 ", seq=1234))
            process = time.process_time()
            server = server_cpu()
            for n in range(count):
                first = n * batch + 1
                record = Append("w", 1, first, first + batch - 1, batch * len(line), 60_000)
                record = replace(record, max_bytes=1 << 30)
                result = await engine.ask(log_id, record, batch * line)
                assert result.status == "ok", result
            ours = 1e6 * (time.process_time() - process) / count / batch
            theirs = 1e6 * (server_cpu() - server) / count / batch
            found[f"{batch} events an append, us/event"] = f"{ours:.1f} and {theirs:.1f}"
    finally:
        await engine.aclose()
    return found


# --- many writers ---


async def writers(url: str, count: int, records: int) -> dict[str, Any]:
    """CPU microseconds an append, and memory, of many responses at once that nobody reads."""
    server_cpu = server_seconds(url)
    async with open_log(url) as log:
        ends = [anyio.Event() for _ in range(count)]
        for n in range(count):
            await log.create(f"writers-{n}")
        async with anyio.create_task_group() as group:
            process = time.process_time()
            server = server_cpu()
            memory = server_memory(url)
            for n, end in enumerate(ends):
                group.start_soon(
                    log.write, f"writers-{n}", words(records * BATCH, BATCH, 0.05, end)
                )
            for n in range(count):
                await wait_for(log, f"writers-{n}", records * BATCH - 1)
            appends = count * records
            found = {
                "writers": count,
                "appends": appends,
                "process us/append": per(time.process_time() - process, appends),
                "server us/append": per(server_cpu() - server, appends),
                "server bytes/event": round((server_memory(url) - memory) / appends / BATCH),
            }
            for end in ends:
                end.set()
    return found


# --- reloads ---


async def reloads(url: str, count: int, seed: int) -> dict[str, Any]:
    """Readers by `EventSource`'s rules, which leave anywhere and come back with their last id."""
    choose = random.Random(seed)
    outcomes: Counter[str] = Counter()
    connections = 0
    slots = anyio.CapacityLimiter(20)

    async def run(n: int, log: Log) -> None:
        nonlocal connections
        async with slots:
            log_id = f"reload-{n}"
            await log.create(log_id)
            app = app_of(log)
            reads: list[list[dict[str, str]]] = []

            async def read() -> None:
                nonlocal connections
                events: list[dict[str, str]] = []
                while True:
                    fields = {"last_event_id": events[-1]["id"]} if events else {}
                    leave_after = choose.randint(2, 8)
                    call = await get(
                        app, f"/log/{log_id}/events", leave_after=leave_after, **fields
                    )
                    connections += 1
                    if call.status == 204:
                        break
                    events += sse(call.body)
                    await anyio.sleep(choose.random() * 0.1)
                reads.append(events)

            async with anyio.create_task_group() as group:
                group.start_soon(write, log, log_id)
                for _ in range(5):
                    group.start_soon(read)
            ids = [entry.cursor async for entry in log.read(log_id)]
            for events in reads:
                same = events == reads[0] and [event["id"] for event in events] == ids
                outcomes["equal" if same else "different"] += 1

    async def write(log: Log, log_id: str) -> None:
        await log.write(log_id, words(60, choose.randint(1, 8), choose.random() * 0.05))

    async with open_log(url) as log, anyio.create_task_group() as group:
        for n in range(count):
            group.start_soon(run, n, log)
    return {"readers": dict(outcomes), "connections": connections}


# --- the command ---


def server_seconds(url: str) -> Callable[[], float]:
    """Reads the CPU seconds of a Redis server."""
    if not url.startswith("redis"):
        return float
    parts = urlsplit(url)

    def read() -> float:
        return sum(
            float(info(parts.hostname or "", parts.port or 0, f"used_cpu_{kind}"))
            for kind in ("user", "sys")
        )

    return read


def server_memory(url: str) -> int:
    """Bytes that a Redis server uses; 0 of another engine."""
    if not url.startswith("redis"):
        return 0
    parts = urlsplit(url)
    return int(info(parts.hostname or "", parts.port or 0, "used_memory"))


def info(host: str, port: int, name: str) -> str:
    """A value of the server's INFO."""
    with socket.create_connection((host, port), timeout=5) as connection:
        connection.sendall(b"INFO\r\n")
        data = b""
        # A bulk string: its length, then so many bytes.
        while True:
            data += connection.recv(65536)
            head, _, rest = data.partition(b"\r\n")
            if len(rest) >= int(head[1:]):
                break
    found = re.search(rf"^{name}:(\S+)", rest.decode(), re.MULTILINE)
    assert found is not None, name
    return found.group(1)


async def run(engine: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Every figure on one engine."""
    match engine:
        case "memory":
            return await figures("memory:", options)
        case "sqlite":
            return await figures(f"sqlite:///{folder / 'logs.db'}", options)
        case _:
            binary = redis_binary() if engine == "redis" else valkey_binary()
            with running_server(binary, folder) as server:
                return await figures(server.url, options)


async def figures(url: str, options: argparse.Namespace) -> dict[str, Any]:
    """The figures."""
    from streamlib.durable.redis import RedisEngine

    RedisEngine.linger = 0.0  # five seconds behind each log, of which nothing is measured
    found: dict[str, Any] = {"first token": await first_tokens(url, 200)}
    found["resume of 2,000 events, CPU ms"] = await resume(url)
    if not url.startswith("memory"):  # its logs are of one process
        found["stop to closed upstream, ms"] = await stops(url, options.stops)
    found["readers of one log"] = await readers(url, options.records, server_seconds(url))
    found["appends: process and server"] = await appends(url, 10 * options.records)
    found["many writers"] = await writers(url, 64, options.records)
    found["reloads"] = await reloads(url, options.reloads, options.seed)
    return found


def main() -> None:
    """Runs the command."""
    command = argparse.ArgumentParser(prog="python -m lab.durable.figures", description=__doc__)
    command.add_argument(
        "--engine", choices=("memory", "sqlite", "valkey", "redis"), default="memory"
    )
    command.add_argument("--loop", choices=("asyncio", "trio"), default="asyncio")
    command.add_argument("--stops", type=int, default=200)
    command.add_argument("--records", type=int, default=200)
    command.add_argument("--reloads", type=int, default=100)
    command.add_argument("--seed", type=int, default=0)
    options = command.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = anyio.run(run, options.engine, Path(folder), options, backend=options.loop)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
