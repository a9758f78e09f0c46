"""How a run collects its tests: the number of workers, the order, and garbage meanwhile.

A plugin of pytest, which `tests/conftest.py` loads.
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Generator
from typing import Final

import pytest

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

    Where four took 194 s on two idle cores, two took 270 s.
    """
    workers = yield
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return workers
    return workers + 2


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Lets each worker collect a folder in an order of its own, so that a fresh clone's tests are
    compiled once: in one order, all workers compile a file before one of them has written it.

    A hook of a conftest is not asked about the folders below its own, this plugin is.
    """
    report = yield
    worker = getattr(collector.config, "workerinput", None)
    if worker is not None and isinstance(collector, pytest.Directory):
        random.Random(worker["workerid"]).shuffle(report.result)
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begins with the long files: at the end, one worker would run one while the others wait.

    Then in the order of paths, in whatever order they were collected: all workers must agree.
    """
    items.sort(key=lambda item: (item.path.name not in LONG_FILES, item.path.parts))


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
