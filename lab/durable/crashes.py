"""Logs while their server is killed: `python -m lab.durable.crashes`. Prints JSON.

Logs are written and read at the same time; the server is killed (SIGKILL) in their middle and
started again, with its data kept, cut at its end, or empty. Beside it each log has a fault of its
own: its writer is killed, frozen, partitioned or stopped. What no log can keep is counted apart:

second end     a reader had the end of a log, whose writer was gone, before the server lost it
lost           the server lost the whole log, and its writer was gone
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import anyio

from lab.durable.scenarios import FAULTS, Outcome, Scenario
from lab.systems import need
from streamlib.durable import Log, LogError, open_log
from streamlib.durable.redis import RedisEngine
from tests.support.durable_engines import Connection
from tests.support.redis_servers import (
    RedisServer,
    redis_binary,
    running_server,
    valkey_binary,
)

OPTIONS: Final[dict[str, Any]] = {"lease": 1.0, "interval": 0.01, "outage": 15.0}
"""A server that starts again is away for longer than the leases of `scenarios`."""

MODES: Final = ("kept", "cut", "empty")
OWN_FAULTS: Final = ("nothing", "stop", "kill", "freeze", "partition")
GIVE_UP: Final = 6.0
"""Seconds after the crash for which a reader asks again for a log that the server lost."""


class CrashScenario(Scenario):
    """A log whose server is killed.

    Attributes:
        crashed_at: When, on the loop's clock; None before.
        lost: Readers that were told that the log is gone.
    """

    def __init__(self, engine: RedisEngine, reading: Log, log_id: str, seed: int) -> None:
        super().__init__(engine, reading, log_id, seed, OPTIONS)
        self.fault = self.random.choice(OWN_FAULTS)
        self.outcome = Outcome(self.fault, [], wrong=[])
        self.crashed_at: float | None = None
        self.lost = 0

    def may_come_back(self) -> bool:
        """For some seconds behind the crash."""
        return self.crashed_at is not None and anyio.current_time() < self.crashed_at + GIVE_UP

    async def _make_fault(self) -> None:
        try:
            await super()._make_fault()
        except LogError as error:
            # A stop while the server is away, or empty: whoever asks hears of it.
            self.outcome.fault = f"{self.fault}, refused: {error.kind}"

    async def _read(self) -> None:
        try:
            await super()._read()
        except LogError as error:
            if error.kind != "gone" or self.crashed_at is None:
                raise
            self.lost += 1

    def _compare(self) -> None:
        if self._readings:
            super()._compare()

    def had_end_before(self) -> bool:
        """Whether a reader had the end before the crash."""
        assert self.crashed_at is not None
        return any(moment < self.crashed_at + 0.5 for moment in self.read_at)


async def run_batch(
    server: RedisServer, mode: str, seed: int, count: int, totals: Counter[str]
) -> list[str]:
    """Logs at once, one crash; what must not be."""
    choose = random.Random(seed)
    wrong: list[str] = []
    engine, *writers = [RedisEngine(server.url) for _ in range(count + 1)]
    async with AsyncExitStack() as stack:  # the last one that was connected is closed first
        for connected in (engine, *writers):
            await connected.connect()
            stack.push_async_callback(connected.aclose)
        async with open_log(Connection(engine), **OPTIONS) as reading:
            scenarios = []
            for n, writer in enumerate(writers):
                log_id = f"crash-{seed}-{n}"
                scenarios.append(CrashScenario(writer, reading, log_id, seed * 1000 + n))
            async with anyio.create_task_group() as group:
                for scenario in scenarios:
                    group.start_soon(scenario.run)
                for scenario in scenarios:
                    await scenario.created.wait()
                await anyio.sleep(choose.random() * 0.6)
                server.kill()
                lose(server.folder, mode, choose)
                for scenario in scenarios:
                    scenario.crashed_at = anyio.current_time()
                await anyio.to_thread.run_sync(server.start)
    for scenario in scenarios:
        count_outcome(scenario, mode, totals, wrong)
    return wrong


def lose(folder: Path, mode: str, choose: random.Random) -> None:
    """What the server loses in the crash."""
    data = folder / "appendonlydir"
    if mode == "empty":
        shutil.rmtree(data, ignore_errors=True)
    elif mode == "cut":
        for file in data.glob("*.incr.aof"):
            size = file.stat().st_size
            with file.open("r+b") as opened:
                opened.truncate(max(0, size - choose.randint(1, 16_384)))


def count_outcome(
    scenario: CrashScenario, mode: str, totals: Counter[str], wrong: list[str]
) -> None:
    """Adds what became of a log."""
    outcome = scenario.outcome
    totals["logs"] += 1
    totals[f"mode {mode}"] += 1
    totals[f"fault {outcome.fault}"] += 1
    totals["reads"] += outcome.reads
    totals["rewound"] += outcome.rewound
    for end in outcome.ends:
        totals[f"end {end}"] += 1
    if scenario.lost:
        totals[f"lost, {mode}, {outcome.fault}"] += 1
        if mode == "kept":
            wrong.append(f"{outcome.fault}: the log is gone, though the server kept it")
    elif not outcome.wrong:
        totals["equal"] += 1
    elif mode != "kept" and scenario.had_end_before():
        totals["second end"] += 1
    else:
        wrong += [f"{mode}, {outcome.fault}: {reason}" for reason in outcome.wrong]


async def run(binary: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All batches, on one server."""
    totals: Counter[str] = Counter()
    wrong: list[str] = []
    assert set(OWN_FAULTS) <= FAULTS.keys()
    with running_server(binary, folder, "--appendfsync", options.fsync) as server:
        for n in range(options.logs // options.at_once):
            mode = MODES[n % len(MODES)]
            wrong += await run_batch(server, mode, options.seed + n, options.at_once, totals)
    return {**dict(sorted(totals.items())), "wrong": wrong}


def main() -> None:
    """Runs the command."""
    need("lab.durable.crashes", "signal.SIGKILL")
    command = argparse.ArgumentParser(prog="python -m lab.durable.crashes", description=__doc__)
    command.add_argument("--engine", choices=("valkey", "redis"), default="valkey")
    command.add_argument("--loop", choices=("asyncio", "trio"), default="asyncio")
    command.add_argument("--logs", type=int, default=300)
    command.add_argument("--at-once", type=int, default=25)
    command.add_argument("--fsync", choices=("always", "everysec"), default="everysec")
    command.add_argument("--seed", type=int, default=0)
    options = command.parse_args()
    binary = redis_binary() if options.engine == "redis" else valkey_binary()
    with tempfile.TemporaryDirectory() as folder:
        found = anyio.run(run, binary, Path(folder), options, backend=options.loop)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
