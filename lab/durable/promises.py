"""Promises of logs, tried often: `python -m lab.durable.promises --engine valkey`. Prints JSON.

lost answers   every append lands and its answer is lost: each event is there once
two writers    two processes write one log at the same time, one of them frozen: one's events
clocks         hosts whose clocks are an hour off, either way: as with right clocks
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio

from lab.durable.figures import words
from lab.durable.scenarios import counts, run_many
from streamlib.durable import Engine, Log, LogError, open_log
from streamlib.durable.redis import RedisEngine
from streamlib.durable.rules import Append, Operation, Result
from streamlib.durable.sqlite import SqliteEngine
from streamlib_parsers import accumulate
from streamlib_parsers.events import Completed, Event, Failed, OutputTextDelta, ResponseEvent
from tests.support.durable_engines import Connection, memory_engine
from tests.support.redis_servers import redis_binary, running_server, valkey_binary

LEASE: Final = 0.5
AN_HOUR: Final = 3600.0
AT_ONCE: Final = 20
"""Logs that are written at the same time."""


class LosesEveryAnswer(Connection):
    """Each append lands, and its answer is lost: the writer asks again."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.lost = 0
        """Appends whose answer was lost."""
        self._landed: set[tuple[str, int]] = set()

    async def ask(self, log_id: str, operation: Operation, lines: bytes = b"") -> Result:
        result = await super().ask(log_id, operation, lines)
        if isinstance(operation, Append) and operation.size and result.status == "ok":
            place = (log_id, operation.first)
            if place not in self._landed:
                self._landed.add(place)
                self.lost += 1
                raise LogError("unavailable", "the answer was lost")
        return result


async def lost_answers(engine: Engine, appends: int) -> dict[str, Any]:
    """So many appends, in logs of about 100."""
    connection = LosesEveryAnswer(engine)
    duplicates = missing = logs = 0
    while connection.lost < appends:
        async with open_log(connection, interval=0.005) as log, anyio.create_task_group() as group:
            for n in range(logs, logs + AT_ONCE):
                group.start_soon(log.write, f"lost-{n}", words(500, 5, 0.08))
        logs += AT_ONCE
    async with open_log(engine) as log:
        for n in range(logs):
            entries = [entry.event async for entry in log.read(f"lost-{n}")]
            found = [event.seq for event in entries if isinstance(event, Event)]
            duplicates += len(found) - len(set(found))
            missing += len(set(range(500)) - set(found))
    return {"appends": connection.lost, "duplicates": duplicates, "missing": missing}


# --- two writers ---


async def spoken(name: str, choose: random.Random) -> AsyncGenerator[ResponseEvent]:
    """A response that says whose it is."""
    async for event in words(20, 3, choose.random() * 0.05):
        if isinstance(event, OutputTextDelta):
            yield OutputTextDelta(0, 0, name, seq=event.seq)
        else:
            yield event


@asynccontextmanager
async def of_another_process(engine: Engine, url: str | None) -> AsyncGenerator[Connection]:
    """The engine, connected once more where it is a server."""
    if url is None:
        yield Connection(engine)
        return
    own = RedisEngine(url)
    await own.connect()
    try:
        yield Connection(own)
    finally:
        await own.aclose()


async def two_writers(engine: Engine, count: int, seed: int, url: str | None) -> dict[str, int]:
    """Each time in another order, with pauses and freezes anywhere."""
    outcomes: Counter[str] = Counter()
    slots = anyio.CapacityLimiter(AT_ONCE)

    async def run_pair(n: int, reading: Log) -> None:
        async with (
            slots,
            of_another_process(engine, url) as first,
            of_another_process(engine, url) as second,
        ):
            await one_pair((first, second), reading, f"two-{n}", seed + n, outcomes)

    async with open_log(engine, lease=LEASE) as reading, anyio.create_task_group() as group:
        for n in range(count):
            group.start_soon(run_pair, n, reading)
    return dict(outcomes)


async def one_pair(
    connections: tuple[Connection, Connection],
    reading: Log,
    log_id: str,
    seed: int,
    outcomes: Counter[str],
) -> None:
    """Two processes write; whose events are there in the end?"""
    choose = random.Random(seed)
    await reading.create(log_id)

    async def write(name: str, connection: Connection) -> None:
        async with open_log(connection, lease=LEASE, interval=0.01) as log:
            await anyio.sleep(choose.random() * 0.1)
            async with anyio.create_task_group() as group:
                group.start_soon(freeze, connection)
                for _ in range(10):
                    try:
                        await log.write(log_id, spoken(name, choose))
                    except LogError as error:
                        outcomes[f"writer: {error.kind}"] += 1
                        if error.kind != "held":
                            break
                        await anyio.sleep(choose.random() * LEASE)
                group.cancel_scope.cancel()

    async def freeze(connection: Connection) -> None:
        await anyio.sleep(choose.random() * 0.4)
        connection.frozen_until = anyio.current_time() + choose.random() * 3 * LEASE

    async with anyio.create_task_group() as group:
        group.start_soon(write, "a", connections[0])
        group.start_soon(write, "b", connections[1])
    entries = [entry.event async for entry in reading.read(log_id)]
    events = [event for event in entries if isinstance(event, Event)]
    names = {event.delta for event in events if isinstance(event, OutputTextDelta)}
    ends = [event for event in events if isinstance(event, (Completed, Failed))]
    accumulate(events)  # raises where they are out of order
    if len(names) <= 1 and len(ends) == 1 and events[-1] is ends[0]:
        outcomes["logs of one writer"] += 1
    else:
        outcomes["WRONG"] += 1


# --- clocks ---


async def clocks(engine: Engine, logs: int, seed: int, url: str | None) -> dict[str, Any]:
    """Under every fault, with a clock that is an hour fast or slow, another way at each look."""
    real = time.time
    choose = random.Random(seed)

    def wrong() -> float:
        return real() + choose.choice((-AN_HOUR, AN_HOUR))

    time.time = wrong
    try:
        return counts(await run_many(engine, seed, logs, 20, url))
    finally:
        time.time = real


# --- the command ---


async def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """All of them on one engine."""
    if options.engine == "memory":
        return await promises(memory_engine(), None, options)
    if options.engine == "sqlite":
        return await promises(SqliteEngine(str(folder / "logs.db")), None, options)
    binary = redis_binary() if options.engine == "redis" else valkey_binary()
    with running_server(binary, folder) as server:
        return await promises(RedisEngine(server.url), server.url, options)


async def promises(engine: Engine, url: str | None, options: argparse.Namespace) -> dict[str, Any]:
    """The promises of an engine."""
    RedisEngine.linger = 0.0  # five seconds behind each log
    await engine.connect()
    try:
        found: dict[str, Any] = {
            "lost answers": await lost_answers(engine, 100 * options.logs),
            "two writers": await two_writers(engine, options.logs, options.seed, url),
        }
        if not isinstance(engine, SqliteEngine):  # its clock is the host's, of which it has one
            found["clocks"] = await clocks(engine, options.logs, options.seed, url)
    finally:
        await engine.aclose()
    return found


def main() -> None:
    """Runs the command."""
    command = argparse.ArgumentParser(prog="python -m lab.durable.promises", description=__doc__)
    command.add_argument(
        "--engine", choices=("memory", "sqlite", "valkey", "redis"), default="memory"
    )
    command.add_argument("--loop", choices=("asyncio", "trio"), default="asyncio")
    command.add_argument("--logs", type=int, default=100)
    command.add_argument("--seed", type=int, default=0)
    options = command.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = anyio.run(run, options, Path(folder), backend=options.loop)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
