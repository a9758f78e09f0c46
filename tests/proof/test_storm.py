"""A storm on every transport and loop: thousands of streams, stopped and failing in every way.

Each runs in a process of its own with Python's development mode (`-X dev`). The long form is 10,000
streams for each transport and loop.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from typing import Any, Final

import pytest

from tests.support.metrics import figure
from tests.support.shared import ROOT

STORMS: Final = [
    ("httpx", "asyncio"),
    ("httpx", "uvloop"),
    ("httpx", "trio"),
    ("httpx2", "asyncio"),
    ("httpx2", "uvloop"),
    ("httpx2", "trio"),
    ("aiohttp", "asyncio"),
    ("aiohttp", "uvloop"),
    ("http2", "asyncio"),
    ("http2", "uvloop"),
    ("http2", "trio"),
]
"""The transports on the loops that each supports."""

SHORT: Final = [("httpx", "asyncio"), ("httpx2", "trio"), ("aiohttp", "asyncio"), ("http2", "trio")]
"""Those of the default tests."""

NEVER: Final = (
    "mixed",
    "false completed",
    "events after the terminal",
    "failed though complete",
    "raised",
    "escaped",
    "slots left",
    "sockets left",
    "descriptors left",
    "tasks left",
    "warnings",
    "unraisable",
    "errors of the loop",
)
"""What a storm must not show."""


def run(transport: str, loop: str, streams: int) -> dict[str, Any]:
    """The counts of a storm."""
    if loop == "uvloop" and importlib.util.find_spec("uvloop") is None:
        pytest.skip("uvloop is not installed: the storm on it is skipped")
    command = [sys.executable, "-X", "dev", "-m", "tests.storm"]
    options = ["--transport", transport, "--loop", loop, "--streams", str(streams)]
    process = subprocess.run(
        [*command, *options], cwd=ROOT, capture_output=True, text=True, check=False, timeout=900
    )
    assert process.returncode == 0, process.stderr[-3000:]
    counts: dict[str, Any] = json.loads(process.stdout)
    return counts


def check(counts: dict[str, Any], streams: int) -> None:
    """Every stream was run, and none was other than it must be."""
    assert {name: counts.get(name, 0) for name in NEVER} == dict.fromkeys(NEVER, 0), counts
    assert counts["streams"] == streams
    assert counts["kinds"] >= 50
    assert counts["ways"] >= 12
    figure("storm streams", streams)
    for name in NEVER:
        figure(f"storm: {name}", counts.get(name, 0))


@pytest.mark.parametrize(("transport", "loop"), SHORT)
def test_a_small_storm_leaves_nothing_and_mixes_nothing(transport: str, loop: str) -> None:
    counts = run(transport, loop, 300)
    check(counts, 300)
    assert counts["completed"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("transport", "loop"), STORMS)
def test_a_storm_leaves_nothing_and_mixes_nothing(transport: str, loop: str) -> None:
    counts = run(transport, loop, 10_000)
    check(counts, 10_000)
    # Pairwise: every kind of response with every way to stop.
    assert counts["pairs"] == counts["kinds"] * counts["ways"]
    assert counts["completed"] > 100
