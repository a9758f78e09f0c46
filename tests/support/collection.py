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
    "tests/house/test_style.py",
    "tests/parsers/dialects/test_dialect_prefixes.py",
    "tests/parsers/dialects/test_dialects.py",
    "tests/proof/test_storm.py",
    "tests/properties/test_stages_encoders.py",
    "tests/properties/test_type_confusion.py",
    "tests/streamlib/gateway/test_signals.py",
)
"""Few tests, many seconds."""

SDK_FILES: Final = (
    "tests/lab/drift/test_drift.py",
    "tests/lab/gateway_failures/test_tables.py",
    "tests/properties/test_request_fidelity.py",
    "tests/streamlib/client/test_retry.py",
    "tests/streamlib/gateway/clients/test_named_clients.py",
    "tests/streamlib/history/transcripts/test_source.py",
    "tests/streamlib/providers/test_providers.py",
    "tests/streamlib/request/test_hosted_tools.py",
    "tests/streamlib/testing/provider/strict/test_fields.py",
    "tests/streamlib/testing/provider/strict/test_provider.py",
    "tests/streamlib/testing/provider/test_background_sdks.py",
    "tests/streamlib/testing/provider/test_websocket.py",
    "tests/streamlib/wires/chat/test_build_replay.py",
    "tests/streamlib/wires/chat/test_encode.py",
    "tests/streamlib/wires/gemini/test_build.py",
    "tests/streamlib/wires/gemini/test_encode.py",
    "tests/streamlib/wires/interactions/test_official_sdk.py",
    "tests/streamlib/wires/invoke/test_encode.py",
    "tests/streamlib/wires/messages/test_encode.py",
    "tests/streamlib/wires/responses/test_build_replay.py",
    "tests/streamlib/wires/responses/test_encode.py",
    "tests/streamlib/wires/test_claude_betas.py",
    "tests/streamlib/wires/test_cross_wire.py",
)
"""Those that import the SDKs of Anthropic, OpenAI and Google: three seconds in a worker."""


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
    """Begins with the long files: at the end, one worker would run one while the others wait. The
    files with SDKs follow, so that most workers import none: a worker is given neighbours.

    The rest is in the order of paths, whatever the order of collecting: all workers must agree.
    """
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> tuple[bool, bool, tuple[str, ...]]:
    is_long = item.nodeid.startswith(LONG_FILES)
    has_sdk = item.nodeid.startswith(SDK_FILES)
    return not (is_long or has_sdk), has_sdk, item.path.parts


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
