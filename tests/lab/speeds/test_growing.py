"""Costs grow with the work and not faster; what a waiting stream holds is bounded.

`lab/speeds/growing.py` takes the figures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from lab.speeds.growing import CASES, MEMORY, MOST
from tests.support.cases import each_case
from tests.support.shared import ROOT

IDLE_STREAM = 20_000
"""Bytes that one waiting stream may hold, its request included; docs/benchmarks.md has 13,000."""


def measured(*arguments: str) -> dict[str, float]:
    """What the module prints."""
    environment = {**os.environ, **MEMORY, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-m", "lab.speeds.growing", *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=environment,
    )
    figures: dict[str, float] = json.loads(ran.stdout)
    return figures


@pytest.fixture(scope="module")
def figures() -> dict[str, float]:
    return measured()


@pytest.mark.timing
@each_case("name", CASES)
def test_cost_grows_with_the_work(name: str, figures: dict[str, float]) -> None:
    sys.stdout.write(f"{name}: x{figures[name]:.2f}\n")
    assert figures[name] <= MOST


@pytest.mark.timing
def test_idle_streams_hold_bounded_memory(figures: dict[str, float]) -> None:
    """Allocated bytes are counted, so that no load of the machine changes them."""
    assert figures["bytes of an idle stream"] <= IDLE_STREAM
    assert figures["idle streams"] <= 1.1


@pytest.mark.slow
def test_cost_grows_with_the_work_when_it_is_large() -> None:
    """Up to 100,000 items of builders, 20,000 of all others, and 10,000 idle streams."""
    builders = [name for name in CASES if name.startswith("build ")]
    others = [name for name in CASES if name not in builders]
    figures = measured("--size", "25000", *builders)
    figures |= measured("--size", "5000", "--idle", "2500", *others)
    assert {name: figures[name] for name in CASES if figures[name] > MOST} == {}
    assert figures["idle streams"] <= 1.1
