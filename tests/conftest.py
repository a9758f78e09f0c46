"""Settings of every run: hypothesis profiles, both event loops, a count of tests without data."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

from tests.support.shared import CORPUS, MISSING, SHARED
from tests.support.thorough import PROFILE

pytest_plugins = ["pytester"]  # for the tests of our own plugin

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


RARE_COLLECTIONS: Final = (20_000, 20, 20)
"""Thresholds of the garbage collector while tests run; Python's are 700, 10 and 10."""

LONG_FILES: Final = (
    "test_cross_wire.py",
    "test_dialect_prefixes.py",
    "test_dialects.py",
    "test_request_fidelity.py",
    "test_signals.py",
    "test_stages_encoders.py",
    "test_storm.py",
    "test_style.py",
    "test_type_confusion.py",
)
"""Few tests, many seconds."""


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Two workers more than cores for `-n auto`: many tests wait for sockets and deadlines.

    On two idle cores 2 workers take 270 s and 4 take 194 s where bytecode is there; in a fresh
    clone 4 take 223 s, for each compiles the tests.
    """
    workers = yield
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return workers
    return workers + 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begins with the long files: at the end, one worker would run one while the others wait."""
    items.sort(key=lambda item: item.path.name not in LONG_FILES)


def pytest_collection() -> None:
    """Collects without garbage collection.

    What is collected lives to the end: walking it again and again takes a quarter of the time.
    """
    gc.disable()


def pytest_collection_finish() -> None:
    """Freezes the collected tests: collecting garbage among them doubles measured times.

    Collects more rarely than usual: a twentieth of the time of many tests would go into walks
    over objects that are all in use.
    """
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*RARE_COLLECTIONS)


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
