"""Settings of every run: hypothesis profiles, both event loops, a count of tests without data."""

from __future__ import annotations

import gc
import os
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.shared import CORPUS, MISSING, SHARED
from tests.support.thorough import PROFILE

pytest_plugins = [
    "pytester",  # for the tests of our own plugin
    "tests.support.collection",
]

# The processes of a run share bytecode: otherwise each compiles the library and the tests again.
# Not in a folder of their own (`PYTHONPYCACHEPREFIX`): what pip compiled would not be read there.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# No deadline: the machines share their cores, and speed is measured in benchmarks/, not here.
# Parametrised tests draw inside one function on purpose (a recording, then its partition).
# The same examples each time, so that a test does not pass here and fail elsewhere; `thorough`
# looks for new ones.
settings.register_profile(
    "default",
    deadline=None,
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", settings.get_profile("default"), max_examples=2_000, derandomize=False
)
settings.load_profile(PROFILE)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Every async test runs on both loops."""
    return str(request.param)


@pytest.fixture
def asgi_server(anyio_backend: str) -> None:
    """Skips a test whose loop has no server for ASGI applications here."""
    if anyio_backend == "trio":
        pytest.importorskip("hypercorn", reason="no server for trio: hypercorn is not installed")


@pytest.fixture(scope="module")
def frozen_heap() -> None:
    """For tests that collect garbage again and again: what tests before them left is not walked
    each time, which takes longer than the tests."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Reports how much was not tested, so that a run without recordings does not seem complete."""
    skipped = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if MISSING in str(report.longrepr)
    ]
    if skipped:
        terminalreporter.section("shared test data is absent", yellow=True)
        terminalreporter.line(
            f"{len(skipped)} tests skipped without it;"
            f" looked for vectors in {SHARED}, recordings in {CORPUS}"
        )
