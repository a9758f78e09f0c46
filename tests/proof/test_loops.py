"""Promise 15: the same events on asyncio and on trio; and how many of the tests of async code run on both."""

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
    """The events of these bytes through the client's stream."""

    async def bytes_of() -> AsyncIterator[bytes]:
        for step in steps:
            await anyio.lowlevel.checkpoint()
            if isinstance(step, BaseException):
                raise step
            yield step

    async with ResponseStream.from_chunks(bytes_of(), parser(wire), errors="event") as stream:
        return [ENCODE.encode(event) async for event in stream]


async def asked_log(wire: Any, body: bytes) -> list[bytes]:
    """The events of a whole request, retries and all."""
    http = MemoryTransport([OVERLOADED], [body]) if wire == "messages" else MemoryTransport([body])
    made: Client = make_client("http://memory.example", http, errors="event")
    async with made, made.stream(make_request("http://memory.example", wire)) as stream:
        return [ENCODE.encode(event) async for event in stream]


def test_15_both_loops_give_the_same_events() -> None:
    logs = different = 0
    for one in own():
        ways: list[tuple[Any, ...]] = [
            (log, one.wire, *byte_by_byte(one.body, size)) for size in (7, 100, 10_000)
        ]
        ways += [
            (log, one.wire, one.body[:place], ConnectionResetError())
            for place in range(1, len(one.body), max(1, len(one.body) // 20))
        ]
        ways += [(asked_log, one.wire, one.body)]
        for way in ways:
            different += anyio.run(*way, backend="asyncio") != anyio.run(*way, backend="trio")
            logs += 1
    figure("logs", logs)
    figure("differences", different)
    assert different == 0


def test_15_async_tests_run_on_both_loops() -> None:
    """All but those of what only one loop has: asyncio's own cancellation, which no shield holds back."""
    words = [
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
    ran = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loops: dict[str, set[str]] = {}
    for line in ran.stdout.splitlines():
        found = re.search(r"[\[-](asyncio|trio)[\]-]", line)
        if found:
            loops.setdefault(line.replace(found[1], "*", 1), set()).add(found[1])
    both = sum(on == {"asyncio", "trio"} for on in loops.values())
    alone = sorted(
        {
            name.split("[")[0].rpartition("::")[2]
            for name, on in loops.items()
            if on != {"asyncio", "trio"}
        }
    )
    for name in alone:
        figure(f"one loop only/{name}")
    figure("async tests", len(loops))
    figure("async tests on both, %", 100 * both / len(loops))
    assert both > 300, alone
