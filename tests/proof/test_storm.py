"""A storm on every transport and loop: thousands of streams, stopped and failing in every way.

They run in processes with Python's development mode (`-X dev`). The long form is 10,000 streams for
each transport and loop.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from typing import Any, Final

import pytest

from lab.storm.__main__ import SMALL, STORMS
from tests.support.metrics import figure
from tests.support.shared import ROOT

NEVER: Final = (
    "mixed",
    "mixed requests",
    "late bytes",
    "gap",
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


def run(*options: str) -> list[dict[str, Any]]:
    """The counts of storms."""
    command = [sys.executable, "-X", "dev", "-m", "lab.storm", *options]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-3000:]
    return [json.loads(line) for line in process.stdout.splitlines()]


def check(counts: dict[str, Any]) -> None:
    """No stream was other than it must be, and all kinds and ways were among them."""
    assert {name: counts.get(name, 0) for name in NEVER} == dict.fromkeys(NEVER, 0), counts
    assert counts["kinds"] >= 50
    assert counts["ways"] >= 12
    figure("storm streams", counts["streams"])
    for name in NEVER:
        figure(f"storm: {name}", counts.get(name, 0))


def test_small_storms_leave_nothing_and_mix_nothing() -> None:
    """Every kind of response and every way to stop once, on four of the combinations."""
    storms = run("--small")
    assert [(counts["transport"], counts["loop"]) for counts in storms] == list(SMALL)
    for counts in storms:
        check(counts)
        assert counts["streams"] == counts["kinds"] == counts["pairs"]


@pytest.mark.slow
def test_storms_leave_nothing_and_mix_nothing() -> None:
    if importlib.util.find_spec("uvloop") is None:
        pytest.skip("uvloop is not installed: the storms are skipped")
    began = time.monotonic()
    storms = run("--all", "--streams", "10000")
    assert {(counts["transport"], counts["loop"]) for counts in storms} == {*STORMS}
    for counts in storms:
        check(counts)
        assert counts["streams"] == 10_000
        # Pairwise: every kind of response with every way to stop.
        assert counts["pairs"] == counts["kinds"] * counts["ways"]
        assert counts["completed"] > 100
    figure("storm minutes", (time.monotonic() - began) / 60)
