"""Promise 15: the same events on asyncio and on trio, and how many async tests run on both."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from streamlib.client import Client
from streamlib.client.stream import ResponseStream
from streamlib_parsers import parser
from tests.proof.streams import own
from tests.support.clients import MemoryTransport, make_client, make_request
from tests.support.metrics import figure
from tests.support.partitions import byte_by_byte
from tests.support.response_bodies import OVERLOADED
from tests.support.shared import ROOT

pytestmark = [pytest.mark.slow]
ENCODE = msgspec.json.Encoder()


async def log(wire: Any, *steps: bytes | BaseException) -> list[bytes]:
    """The events of these bytes through a response stream."""

    async def bytes_of() -> AsyncIterator[bytes]:
        for step in steps:
            await anyio.lowlevel.checkpoint()
            if isinstance(step, BaseException):
                raise step
            yield step

    async with ResponseStream.from_chunks(bytes_of(), parser(wire), errors="event") as stream:
        return [ENCODE.encode(event) async for event in stream]


async def request_log(wire: Any, body: bytes) -> list[bytes]:
    """The events of a complete request, retries included."""
    http = MemoryTransport([body])
    if wire == "messages":
        http = MemoryTransport([OVERLOADED], [body])
    client: Client = make_client("http://memory.example", http, errors="event")
    async with client, client.stream(make_request("http://memory.example", wire)) as stream:
        return [ENCODE.encode(event) async for event in stream]


def test_15_both_loops_give_the_same_events() -> None:
    logs = different = 0
    for recorded in own():
        wire, body = recorded.wire, recorded.body
        runs: list[tuple[Any, ...]] = [(request_log, wire, body)]
        for size in (7, 100, 10_000):
            runs.append((log, wire, *byte_by_byte(body, size)))
        for offset in range(1, len(body), max(1, len(body) // 20)):
            runs.append((log, wire, body[:offset], ConnectionResetError()))
        for run in runs:
            different += anyio.run(*run, backend="asyncio") != anyio.run(*run, backend="trio")
            logs += 1
    figure("logs", logs)
    figure("differences", different)
    assert different == 0


def test_15_async_tests_run_on_both_loops() -> None:
    """All but those of asyncio's own cancellation, which no shield stops and trio does not have."""
    arguments = [
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "not real",
        "tests/streamlib",
        "tests/examples",
    ]
    process = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loops: dict[str, set[str]] = {}
    for line in process.stdout.splitlines():
        match = re.search(r"[\[-](asyncio|trio)[\]-]", line)
        if match:
            loops.setdefault(line.replace(match[1], "*", 1), set()).add(match[1])
    alone: set[str] = set()
    both = 0
    for name, backends in loops.items():
        if backends == {"asyncio", "trio"}:
            both += 1
        else:
            alone.add(name.split("[")[0].rpartition("::")[2])
    for name in sorted(alone):
        figure(f"one loop only/{name}")
    figure("async tests", len(loops))
    figure("async tests on both, %", 100 * both / len(loops))
    assert both > 300, alone
