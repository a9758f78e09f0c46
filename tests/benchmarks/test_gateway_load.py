"""The load of the gateway, in its quick form: every row is measured, and a soak leaves nothing."""

from __future__ import annotations

import subprocess
import sys

from tests.support.shared import ROOT


def run(*options: str) -> list[list[str]]:
    """The rows that the benchmark prints, without their header."""
    command = [sys.executable, "-m", "benchmarks.gateway_load", *options]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()[1:]]


def test_load_measures_paced_streams_and_bursts() -> None:
    rows = run("--streams", "3", "--seconds", "0.1")
    assert [row[-7] for row in rows] == ["paced", "paced", "bursts", "bursts"]
    assert all(float(row[-2]) >= 0 for row in rows)


def test_soak_truncates_no_stream_silently() -> None:
    rows = run("--soak", "1")
    assert len(rows) == 11
    assert int(rows[-1][3]) > 0
    assert int(rows[-1][4]) == 0
    assert int(rows[-1][2]) < 60, "the sockets of the clients are closed"
