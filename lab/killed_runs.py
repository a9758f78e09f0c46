"""Kills a run of `map_concurrent` at random moments, lets it end, and counts its rows.

    python -m lab.killed_runs               # 20 times: half a minute
    python -m lab.killed_runs --kills 3 --seed 7

Each run asks the loopback provider; what it has when it is killed, and that every prompt has one
row at the end, is printed. `tests/streamlib/batch` runs the short form.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio
import msgspec

from streamlib.batch import BatchRow, map_concurrent
from streamlib.testing import MODEL, loopback

MOST_SECONDS = 0.4
"""A run is killed within so many seconds of its first new row."""

START_SECONDS = 30.0
"""A run that has no new row by then is killed all the same."""

PROMPTS_A_KILL = 15
"""So that a run is rarely complete before its last kill."""


async def ask(path: Path, count: int) -> None:
    """What is killed: asks so many prompts, five at a time."""
    prompts = {f"case-{number}": f"What is {number}?" for number in range(count)}
    async with loopback(pace=0.002) as client:
        await map_concurrent(prompts, MODEL, client=client, out=path, limit=5)


def kill_at_random(path: Path, kills: int, seed: int) -> tuple[list[int], list[BatchRow]]:
    """Kills so many runs, then lets one end.

    Args:
        path: the file of rows, not there yet.
        kills: how many runs are killed.
        seed: of the moments.

    Returns:
        The whole lines that the file had after each kill, and the rows at the end.
    """
    moments = random.Random(seed)
    count = kills * PROMPTS_A_KILL
    command = [sys.executable, "-m", "lab.killed_runs", "--ask", str(count), str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    after: list[int] = []
    for _ in range(kills):
        before = _rows(path)
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)
        latest = time.monotonic() + START_SECONDS
        while _rows(path) <= before and time.monotonic() < latest and process.poll() is None:
            time.sleep(0.005)
        time.sleep(moments.uniform(0.0, MOST_SECONDS))
        process.kill()
        process.wait()
        after.append(_rows(path))
    subprocess.run(command, capture_output=True, env=environment, check=True)
    decoder = msgspec.json.Decoder(BatchRow)
    return after, [decoder.decode(line) for line in path.read_bytes().splitlines()]


def _rows(path: Path) -> int:
    """The whole lines of the file."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m lab.killed_runs")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ask", type=int, help=argparse.SUPPRESS)
    parser.add_argument("path", type=Path, nargs="?", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ask:
        anyio.run(ask, arguments.path, arguments.ask)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        after, rows = kill_at_random(path, arguments.kills, arguments.seed)
    ids = [row.id for row in rows]
    prompts = arguments.kills * PROMPTS_A_KILL
    sys.stdout.write(f"rows after each kill: {after}\n")
    sys.stdout.write(f"at the end: {len(ids)} rows of {len(set(ids))} prompts, of {prompts}\n")
    is_right = len(ids) == len(set(ids)) == prompts
    return 0 if is_right and all(row.error is None for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
