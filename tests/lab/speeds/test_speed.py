"""Limits of speed: ratios and growth on the same bytes, never absolute times.

`lab/speeds/measure.py` takes them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TypeAlias

import pytest

from lab.speeds.measure import (
    ABOVE_MESSAGES,
    ABOVE_PARSER,
    ABOVE_SPLITTER,
    DOUBLED,
    GROWING,
    SDKS,
)
from tests.support.shared import ROOT

Figures: TypeAlias = dict[str, dict[str, tuple[float, int]]]
"""Kind of a ratio -> name -> the ratio, and how many attempts it is the best of."""


@pytest.fixture(scope="module")
def figures() -> Figures:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-m", "lab.speeds"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=environment,
    )
    measured: Figures = json.loads(ran.stdout)
    return measured


@pytest.mark.timing
@pytest.mark.parametrize("wire", ABOVE_SPLITTER)
def test_parser_stays_near_the_splitter_on_recordings(wire: str, figures: Figures) -> None:
    (found, attempts), most = figures["splitter"][wire], ABOVE_SPLITTER[wire]
    sys.stdout.write(f"{wire}, six lines: x{found:.2f}, at most {most}, attempts: {attempts}\n")
    assert found <= most


@pytest.mark.timing
def test_client_stays_near_its_parser_in_a_short_response(figures: Figures) -> None:
    found, attempts = figures["client"]["messages"]
    sys.stdout.write(f"client: x{found:.2f}, at most {ABOVE_PARSER}, attempts: {attempts}\n")
    assert found <= ABOVE_PARSER


@pytest.mark.timing
@pytest.mark.parametrize("wire", SDKS)
def test_sdk_takes_longer_on_recordings(wire: str, figures: Figures) -> None:
    share, attempts = figures["sdk"][wire]
    found, least = 1 / share, SDKS[wire]
    sys.stdout.write(f"{wire}, SDK: x{found:.2f}, at least {least}, attempts: {attempts}\n")
    assert found >= least


@pytest.mark.timing
@pytest.mark.parametrize("name", GROWING)
def test_twice_the_input_takes_at_most_2_3_times_as_long(name: str, figures: Figures) -> None:
    found, attempts = figures["doubling"][name]
    sys.stdout.write(f"{name}: x{found:.2f}, attempts: {attempts}\n")
    assert found <= DOUBLED


@pytest.mark.timing
@pytest.mark.parametrize("wire", ABOVE_MESSAGES)
def test_encoder_costs_what_that_of_messages_does(wire: str, figures: Figures) -> None:
    found, attempts = figures["encoder"][wire]
    most = ABOVE_MESSAGES[wire]
    sys.stdout.write(f"{wire}, encoder: x{found:.2f}, at most {most}, attempts: {attempts}\n")
    assert found <= most
