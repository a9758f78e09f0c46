"""The gate on speed: ratios and growth on the same bytes, never nanoseconds (`tests/speeds/__main__.py` measures them)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.speeds.measure import DOUBLED, FLOORS, GROWING
from tests.support.shared import ROOT


@pytest.fixture(scope="module")
def found() -> dict[str, float]:
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.speeds"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=paths,
    )
    figures: dict[str, float] = json.loads(ran.stdout)
    return figures


@pytest.mark.parametrize("name", FLOORS)
def test_the_same_answer_is_read_in_a_fraction_of_a_peers_time(
    name: str, found: dict[str, float]
) -> None:
    sys.stdout.write(f"{name}: x{found[name]:.1f}, at least {FLOORS[name].least}\n")
    assert found[name] >= FLOORS[name].least


@pytest.mark.parametrize("name", GROWING)
def test_twice_the_input_takes_at_most_2_3_times_as_long(
    name: str, found: dict[str, float]
) -> None:
    sys.stdout.write(f"{name}: x{found[name]:.2f}\n")
    assert found[name] <= DOUBLED
