"""Runs many logs under faults and prints their counts as JSON: `python -m lab.durable`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import anyio

from lab.durable.scenarios import counts, run_many
from streamlib.durable import Engine
from streamlib.durable.redis import RedisEngine
from streamlib.durable.sqlite import SqliteEngine
from tests.support.durable_engines import memory_engine
from tests.support.redis_servers import (
    redis_binary,
    running_cluster,
    running_server,
    valkey_binary,
)

ENGINES = ("memory", "sqlite", "valkey", "redis", "cluster")


async def run(engine_name: str, logs: int, seed: int, at_once: int) -> dict[str, object]:
    """All of them on one engine."""
    with tempfile.TemporaryDirectory() as folder:
        if engine_name == "memory":
            return await run_on(memory_engine(), logs, seed, at_once)
        if engine_name == "sqlite":
            engine = SqliteEngine(str(Path(folder) / "logs.db"))
            return await run_on(engine, logs, seed, at_once)
        if engine_name == "cluster":
            with running_cluster(valkey_binary(), Path(folder)) as nodes:
                url = f"redis+cluster://127.0.0.1:{nodes[0].port}"
                return await run_on(RedisEngine(url), logs, seed, at_once, url)
        binary = redis_binary() if engine_name == "redis" else valkey_binary()
        with running_server(binary, Path(folder)) as server:
            return await run_on(RedisEngine(server.url), logs, seed, at_once, server.url)


async def run_on(
    engine: Engine, logs: int, seed: int, at_once: int, url: str | None = None
) -> dict[str, object]:
    """All of them on this engine."""
    await engine.connect()
    try:
        return counts(await run_many(engine, seed, logs, at_once, url))
    finally:
        await engine.aclose()


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m lab.durable", description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, default="memory")
    parser.add_argument("--loop", choices=("asyncio", "trio"), default="asyncio")
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-once", type=int, default=20)
    options = parser.parse_args()
    began = time.monotonic()
    result = anyio.run(
        run, options.engine, options.logs, options.seed, options.at_once, backend=options.loop
    )
    seconds = round(time.monotonic() - began, 1)
    sys.stdout.write(json.dumps({**result, "seconds": seconds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
