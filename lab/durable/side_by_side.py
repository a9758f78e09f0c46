"""Logs beside npm's `resumable-stream`, on Valkey: `python -m lab.durable.side_by_side`.

One process writes streams; another resumes each at random moments, where a page had read some of
it. Equal: what the page had and what it got are the stream. Once more with a writer that is killed.
Prints JSON: what the readers got, CPU seconds and memory of the server and of the writer.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
from msgspec import Struct

from lab.durable.figures import server_memory, server_seconds
from lab.real.stream_readers import HOME, absence
from lab.systems import MEMORY, need, resident_bytes
from streamlib.durable import Log, open_log
from streamlib.durable.http import log_app
from streamlib_parsers.events import (
    Completed,
    Created,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ResponseEvent,
)
from streamlib_parsers.items import Message, Text
from tests.support.durable_http import everybody, get, sse
from tests.support.redis_servers import running_server, valkey_binary

SCRIPT: Final = Path(__file__).with_name("resumable.mjs")
LEASE: Final = 1.0
"""Seconds: a writer that is killed is noticed within two."""

TIMEOUT: Final = 8.0
"""Seconds without an end, after which a reader counts as left hanging."""


class Plan(Struct):
    """What is written and when it is resumed.

    Attributes:
        streams: How many at once.
        events: Of each.
        pause: Seconds between two.
        reloads: Stream, moment in seconds, and how many events its page has.
        kill_at: When the writer is killed, in seconds; None: never.
    """

    streams: int
    events: int
    pause: float
    reloads: list[tuple[int, float, int]]
    kill_at: float | None = None


def plan_of(options: argparse.Namespace, kill_at: float | None) -> Plan:
    """Random reloads, before the end; half of the pages are new and have nothing."""
    choose = random.Random(options.seed)
    seconds = options.events * options.pause
    reloads: list[tuple[int, float, int]] = []
    for stream in range(options.streams):
        for _ in range(options.reloads):
            moment = choose.uniform(0.3, 0.9) * (kill_at or seconds)
            had = 0
            if choose.random() < 0.5:
                # Surely written by then, though a busy machine is late.
                had = int(moment / options.pause * 0.3)
            reloads.append((stream, moment, had))
    return Plan(options.streams, options.events, options.pause, reloads, kill_at)


# --- npm's ---


def frame(n: int) -> str:
    """As `resumable.mjs` writes it."""
    return f'data: {{"type":"text-delta","id":"0","delta":"word {n} "}}\n\n'


def theirs(url: str, plan: Plan) -> tuple[Counter[str], dict[str, Any]]:
    """What readers of `resumable-stream` got, and what its writer said of itself."""
    node = ["node", str(SCRIPT), str(HOME)]
    numbers = [str(plan.streams), str(plan.events), str(1000 * plan.pause)]
    with ended(subprocess.Popen([*node, "read", url, str(1000 * TIMEOUT)], **PIPES)) as reader:
        writing = subprocess.Popen([*node, "write", url, *numbers], **PIPES)
        with ended(writing) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"started\n"
            jobs = []
            for stream, moment, had in plan.reloads:
                skip = sum(len(frame(n)) for n in range(had))
                jobs.append({"id": f"s-{stream}", "skip": skip, "after": 1000 * moment})
            lines = b"".join([json.dumps(job).encode() + b"\n" for job in jobs])
            report = wait_for_writer(writer, plan, reader, lines)
        assert reader.stdout is not None
        results = [json.loads(line) for line in reader.stdout.read().splitlines()]
    whole = "".join([frame(n) for n in range(plan.events)])
    outcomes: Counter[str] = Counter()
    for result in results:
        rest = whole[result["skip"] :]
        match result["state"]:
            case "whole" if result["text"] == rest:
                outcomes["equal"] += 1
            case "whole":
                outcomes["different, ended as if whole"] += 1
            case "silent":
                outcomes["no end"] += 1
            case state:
                outcomes[state] += 1
    return outcomes, report


PIPES: Final[dict[str, Any]] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}


@contextlib.contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive the block."""
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for_writer(
    writer: subprocess.Popen[bytes], plan: Plan, reader: subprocess.Popen[bytes], lines: bytes
) -> dict[str, Any]:
    """Gives the reader its jobs; what the writer says at its end, if it is not killed before."""
    assert reader.stdin is not None
    assert writer.stdout is not None
    reader.stdin.write(lines)
    reader.stdin.close()
    reader.stdin = None
    if plan.kill_at is not None:
        time.sleep(plan.kill_at)
        writer.send_signal(signal.SIGKILL)
        return {}
    report: dict[str, Any] = json.loads(writer.stdout.readline())
    writer.wait()  # it says at last to its readers that it is done
    return report


# --- ours ---


async def words(plan: Plan) -> AsyncGenerator[ResponseEvent]:
    """The same stream as events."""
    yield Created(response_id="r", model="m")
    yield OutputItemAdded(0, Message("assistant", (), status="incomplete"), seq=1)
    for n in range(plan.events):
        yield OutputTextDelta(0, 0, f"word {n} ", seq=n + 2)
        await anyio.sleep(plan.pause)
    text = "".join([f"word {n} " for n in range(plan.events)])
    yield OutputItemDone(0, Message("assistant", (Text(text),)), seq=plan.events + 2)
    yield Completed("r", "m", "stop", seq=plan.events + 3)


async def write(url: str, plan: Plan) -> None:
    """The writer's process."""
    async with open_log(url, lease=LEASE) as log:
        for n in range(plan.streams):
            await log.create(f"o-{n}")
        before = sum(os.times()[:2])
        memory = resident_bytes()
        began = time.monotonic()
        sys.stdout.write("started\n")
        sys.stdout.flush()
        async with anyio.create_task_group() as group:
            for n in range(plan.streams):
                group.start_soon(log.write, f"o-{n}", words(plan))
            for n in range(plan.streams):
                async for _ in log.read(f"o-{n}", f"1-{plan.events}"):
                    pass
            report = {
                "cpu": sum(os.times()[:2]) - before,
                "rss MB": (resident_bytes() - memory) / 1e6,
                "took": time.monotonic() - began,
            }
            sys.stdout.write(json.dumps(report) + "\n")
            sys.stdout.flush()


async def ours(url: str, plan: Plan) -> tuple[Counter[str], dict[str, Any]]:
    """What readers of logs got over HTTP, and what the writer said of itself."""
    plain = json.dumps([url, plan.streams, plan.events, plan.pause])
    command = [sys.executable, "-m", "lab.durable.side_by_side", "--write", plain]
    outcomes: Counter[str] = Counter()
    report: dict[str, Any] = {}
    process = await anyio.open_process(command, stdin=subprocess.DEVNULL, stderr=None)
    try:
        assert process.stdout is not None
        assert (await process.stdout.receive()).startswith(b"started")
        async with open_log(url, lease=LEASE) as log, anyio.create_task_group() as group:
            for reload in plan.reloads:
                group.start_soon(resume, log, plan, reload, outcomes)
            if plan.kill_at is None:
                report = json.loads(await process.stdout.receive())
            else:
                await anyio.sleep(plan.kill_at)
                process.kill()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.aclose()
    return outcomes, report


async def resume(
    log: Log, plan: Plan, reload: tuple[int, float, int], outcomes: Counter[str]
) -> None:
    """One page that comes back."""
    stream, moment, had = reload
    await anyio.sleep(moment)
    app = log_app(log, allow=everybody)
    after = f"1-{had + 2}"
    if not had:
        after = "1-0"
    events: list[dict[str, Any]] = []
    with anyio.move_on_after(TIMEOUT) as scope:
        call = await get(app, f"/log/o-{stream}/events", last_event_id=after)
        events = [json.loads(event["data"]) for event in sse(call.body)]
    if scope.cancelled_caught:
        outcomes["no end"] += 1
        return
    texts = [event["delta"] for event in events if event["type"] == "output_text_delta"]
    expected = [f"word {n} " for n in range(had, plan.events)]
    last = events[-1]
    if last["type"] == "completed" and texts == expected:
        outcomes["equal"] += 1
    elif last["type"] == "failed" and texts == expected[: len(texts)]:
        outcomes[f"honest end ({last['error']['kind']})"] += 1
    else:
        outcomes["different, ended as if whole"] += 1


# --- the comparison ---


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Each library on a server of its own, of one kind."""
    seconds = options.events * options.pause
    found: dict[str, Any] = {}
    for name, kill_at in (("writer lives", None), ("writer is killed", seconds / 2)):
        plan = plan_of(options, kill_at)
        for library in ("resumable-stream", "streamlib.durable"):
            found[f"{library}, {name}"] = run_library(library, plan)
    return found


def run_library(library: str, plan: Plan) -> dict[str, Any]:
    """A plan with one library."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(valkey_binary(), Path(folder)) as server,
    ):
        read = server_seconds(server.url)
        cpu = read()
        memory = server_memory(server.url)
        if library == "streamlib.durable":
            outcomes, report = anyio.run(ours, server.url, plan)
        else:
            outcomes, report = theirs(server.url, plan)
        return {
            "readers": dict(outcomes),
            "server CPU s": round(read() - cpu, 2),
            "server memory MB": round((server_memory(server.url) - memory) / 1e6, 2),
            **{f"writer {key}": round(value, 2) for key, value in report.items()},
        }


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    need("lab.durable.side_by_side", "signal.SIGKILL", MEMORY)
    command = argparse.ArgumentParser(
        prog="python -m lab.durable.side_by_side", description=__doc__
    )
    command.add_argument("--write", help=argparse.SUPPRESS)
    command.add_argument("--streams", type=int, default=20)
    command.add_argument("--events", type=int, default=200)
    command.add_argument("--pause", type=float, default=0.02)
    command.add_argument("--reloads", type=int, default=5)
    command.add_argument("--seed", type=int, default=0)
    options = command.parse_args(arguments)
    if options.write:
        url, streams, events, pause = json.loads(options.write)
        anyio.run(write, url, Plan(streams, events, pause, []))
        return
    why = absence()
    if why is not None:
        sys.exit(f"resumable-stream is not here: {why}; python -m lab.real.fetch")
    sys.stdout.write(json.dumps(compare(options), indent=1) + "\n")


if __name__ == "__main__":
    main()
