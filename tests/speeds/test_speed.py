"""Limits of speed: ratios and growth on the same bytes, never absolute times.

`tests/speeds/measure.py` takes them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.speeds.measure import DOUBLED, FLOORS, GROWING
from tests.support.shared import ROOT


@pytest.fixture(scope="module")
def figures() -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.speeds"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=environment,
    )
    measured: dict[str, float] = json.loads(ran.stdout)
    return measured


@pytest.mark.parametrize("name", FLOORS)
def test_peers_take_at_least_this_many_times_longer(name: str, figures: dict[str, float]) -> None:
    sys.stdout.write(f"{name}: x{figures[name]:.1f}, at least {FLOORS[name].least}\n")
    assert figures[name] >= FLOORS[name].least


@pytest.mark.parametrize("name", GROWING)
def test_twice_the_input_takes_at_most_2_3_times_as_long(
    name: str, figures: dict[str, float]
) -> None:
    sys.stdout.write(f"{name}: x{figures[name]:.2f}\n")
    assert figures[name] <= DOUBLED
