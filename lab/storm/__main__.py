"""Runs storms and prints their counts as JSON, a line each: `python -X dev -m lab.storm`.

    --transport httpx --loop asyncio --streams 10000    one storm
    --all --jobs 2                                      each transport on its loops, two at a time
    --small                                             every kind and every way once, four storms
    --yields                                            cancels public awaitables at each yield

`--all` starts the storms in processes of their own, with `-X dev`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Final

import anyio

from lab.storm.plan import TRANSPORTS
from lab.storm.run import Storm, run, run_small
from lab.storm.server import server_process
from lab.storm.yields import RUNS, cancel_everywhere, operations_on
from tests.support.shared import ROOT

LOOPS: Final = ("asyncio", "uvloop", "trio")
STORMS: Final = (
    # The longest first, so that none is left over at the end.
    ("httpx", "asyncio"),
    ("httpx2", "asyncio"),
    ("http2", "asyncio"),
    ("httpx", "uvloop"),
    ("httpx2", "uvloop"),
    ("http2", "uvloop"),
    ("aiohttp", "asyncio"),
    ("aiohttp", "uvloop"),
    ("http2", "trio"),
    ("httpx", "trio"),
    ("httpx2", "trio"),
)
"""The transports on the loops that each supports."""
SMALL: Final = (("httpx", "asyncio"), ("httpx2", "trio"), ("aiohttp", "asyncio"), ("http2", "trio"))
"""The small storms."""


def backend(loop: str) -> dict[str, Any]:
    """What anyio is told to run on a loop."""
    if loop == "uvloop":
        return {"backend": "asyncio", "backend_options": {"use_uvloop": True}}
    return {"backend": loop}


def write(storm: Storm, loop: str, began: float) -> None:
    """Prints what a storm counted."""
    result = {
        "transport": storm.transport,
        "loop": loop,
        **storm.counts,
        "kinds": len(storm.plan.kinds),
        "ways": len(storm.plan.ways),
        "pairs": len(storm.pairs),
        "seconds": round(time.monotonic() - began, 1),
        "examples": storm.examples,
    }
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()


def run_one(transport: str, loop: str, streams: int) -> None:
    """One storm in this process, its server in another."""
    began = time.monotonic()
    with server_process(transport) as server:
        write(anyio.run(run, transport, streams, server, **backend(loop)), loop, began)


def run_all(streams: int, jobs: int) -> None:
    """Every storm in a process of its own, some at a time."""

    def start(storm: tuple[str, str]) -> str:
        command = [sys.executable, "-X", "dev", "-m", "lab.storm", "--transport", storm[0]]
        command += ["--loop", storm[1], "--streams", str(streams)]
        process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if process.returncode:
            raise SystemExit(process.stderr[-3000:])
        return process.stdout

    with ThreadPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(start, storm) for storm in STORMS]):
            sys.stdout.write(done.result())
            sys.stdout.flush()


def run_yields() -> int:
    """Cancels every public awaitable at each of its yields; 1 if anything was left."""
    is_clean = True
    for transport, loop, way in RUNS:
        began = time.monotonic()
        operations = operations_on(transport)
        leaks = anyio.run(cancel_everywhere, operations, transport, way, backend=loop)
        is_clean = is_clean and not leaks.found
        result = {"transport": transport, "loop": loop, "way": way, **leaks.cancellations}
        result["cancellations"] = leaks.cancellations.total()
        result |= {"leaks": leaks.found, "seconds": round(time.monotonic() - began, 1)}
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
    return 0 if is_clean else 1


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.storm",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--transport", choices=TRANSPORTS, default="httpx")
    parser.add_argument("--loop", choices=LOOPS, default="asyncio")
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--yields", action="store_true")
    options = parser.parse_args()
    if options.all:
        run_all(options.streams, options.jobs)
    elif options.small:
        for transport, loop in SMALL:
            began = time.monotonic()
            write(anyio.run(run_small, transport, **backend(loop)), loop, began)
    elif options.yields:
        raise SystemExit(run_yields())
    else:
        run_one(options.transport, options.loop, options.streams)


if __name__ == "__main__":
    main()
