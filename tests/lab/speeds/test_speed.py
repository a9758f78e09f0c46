"""Limits of speed: ratios and growth on the same bytes, never absolute times.

`lab/speeds/measure.py` takes them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from lab.speeds.measure import (
    ABOVE_FLOOR,
    ABOVE_MESSAGES,
    DOUBLED,
    FLOORS,
    GROWING,
    floor_name,
)
from tests.support.shared import ROOT


@pytest.fixture(scope="module")
def figures() -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-m", "lab.speeds"],
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


def test_feed_stays_near_the_floor_of_each_wire(figures: dict[str, float]) -> None:
    for (wire, size), most in ABOVE_FLOOR.items():
        name = floor_name(wire, size)
        sys.stdout.write(f"{name}: x{figures[name]:.2f}, at most {most}\n")
    too_slow = [case for case, most in ABOVE_FLOOR.items() if figures[floor_name(*case)] > most]
    assert not too_slow


@pytest.mark.parametrize("wire", ABOVE_MESSAGES)
def test_encoder_costs_what_that_of_messages_does(wire: str, figures: dict[str, float]) -> None:
    name = f"{wire}, encoder"
    sys.stdout.write(f"{name}: x{figures[name]:.2f}, at most {ABOVE_MESSAGES[wire]}\n")
    assert figures[name] <= ABOVE_MESSAGES[wire]
