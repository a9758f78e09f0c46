"""Runs the gateway with two workers between failing models and impatient fate, and prints counts.

python -m lab.gateway_chaos [--seconds 30] [--clients 20] [--seed 1]
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import anyio

from lab.gateway_chaos import SILENT, model, run_clients
from lab.systems import need
from streamlib.gateway.clients.identity import digest_of
from tests.support.gateway_commands import GatewayProcess, gateway_process
from tests.support.redis_servers import RedisServer, running_server, valkey_binary
from tests.support.scripted_server import scripted

TOKEN = "slg_of-the-chaos"


def write_routes(file: Path, url: str) -> None:
    """Two targets, and a client whose limits it never reaches."""
    target = f'{{ model = "custom:m", base_url = "{url}", wire_api = "messages" }}'
    file.write_text(
        f'[[route]]\nmodel = "*"\nto = [{target}, {target}]\n'
        f'[[client]]\nname = "chaos"\ntoken_sha256 = "{digest_of(TOKEN)}"\n'
        "requests_per_minute = 1_000_000\ntokens_per_minute = 1_000_000_000\n",
        encoding="utf-8",
    )


async def fate(gateway: GatewayProcess, redis: RedisServer, seconds: float) -> list[str]:
    """Kills what the gateway stands on; returns what happened."""
    happened: list[str] = []
    step = seconds / 8
    for _ in range(3):
        await anyio.sleep(step)
        workers = gateway.workers()
        if workers:
            os.kill(workers[0], signal.SIGKILL)
            happened.append("a worker was killed")
    await anyio.sleep(step)
    redis.kill()
    happened.append("Redis was killed")
    await anyio.sleep(step)
    gateway.send(signal.SIGHUP)
    happened.append("the routes were read again")
    await anyio.sleep(step)
    await anyio.to_thread.run_sync(redis.start)
    happened.append("Redis was started again")
    await anyio.sleep(step)
    gateway.send(signal.SIGTERM)
    happened.append("the gateway was stopped, with its streams open")
    return happened


async def run(seconds: float, clients: int, seed: int) -> tuple[Counter[str], list[str], int]:
    """Counts of outcomes, what happened, and the exit code of the gateway."""
    counts: Counter[str] = Counter()
    is_over = False
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "routes.toml"
        async with scripted(choose=model(seed, 0.02)) as upstream:
            write_routes(file, upstream.url)
            with running_server(valkey_binary(), Path(folder)) as redis:
                options = ["--config", str(file), "--workers", "2", "--grace", "1"]
                options += ["--limits", redis.url, "--state", redis.url]
                with gateway_process(*options) as gateway:

                    async def ask() -> None:
                        headers = {"x-api-key": TOKEN}
                        counts.update(
                            await run_clients(gateway.url, clients, lambda _: is_over, headers)
                        )

                    async with anyio.create_task_group() as group:
                        group.start_soon(ask)
                        happened = await fate(gateway, redis, seconds)
                        await anyio.sleep(1)
                        is_over = True
                    return counts, happened, gateway.wait()


def main() -> int:
    """Prints the counts; the exit code is 1 if a stream was silently cut."""
    need("lab.gateway_chaos", "os.fork", "signal.SIGHUP", "/proc")
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=30.0)
    options.add_argument("--clients", type=int, default=20)
    options.add_argument("--seed", type=int, default=1)
    arguments = options.parse_args()
    counts, happened, code = anyio.run(run, arguments.seconds, arguments.clients, arguments.seed)
    lines = list(happened)
    lines += [f"{count:>7}  {result}" for result, count in counts.most_common()]
    lines.append(f"{counts.total():>7}  requests, {counts[SILENT]} silently cut; exit code {code}")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if counts[SILENT] or code else 0


if __name__ == "__main__":
    sys.exit(main())
