"""Public awaitables that are cancelled at any of their yields leave nothing open."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

import anyio
import anyio.lowlevel
import pytest

from lab.storm.yields import (
    HTTP_OPERATIONS,
    OPERATIONS,
    RUNS,
    Operation,
    Place,
    Way,
    cancel_everywhere,
    operations_on,
)
from tests.support.thorough import THOROUGH

# Each operation ends with a collection, for warnings about what it dropped.
pytestmark = pytest.mark.usefixtures("frozen_heap")

QUICK = {"stream", "respond", "agent", "gateway", "race", "tee", "log.write, SQLite", "connect"}
"""One of each kind; `python -m lab.storm --yields` runs all, at each of their yields."""
EVERY = 3 if THOROUGH else 9
"""Each run begins at another yield: with eight runs, code that all share is cancelled at eight of
nine, though each run tries one of nine."""


@pytest.mark.parametrize(("transport", "loop", "way"), RUNS)
def test_cancelled_operation_leaves_nothing_open(transport: str, loop: str, way: Way) -> None:
    first = 1 + RUNS.index((transport, loop, way)) % EVERY
    operations = operations_on(transport)
    chosen = {name: operations[name] for name in operations if name in QUICK}

    async def run() -> list[str]:
        leaks = await cancel_everywhere(chosen, transport, way, every=EVERY, first=first)
        assert all(leaks.cancellations[name] for name in chosen)
        return leaks.found

    assert anyio.run(run, backend=loop) == []


def test_log_file_is_closed_when_its_close_is_cancelled() -> None:
    """asyncio's own cancellation left SQLite's files open, where it came at their closing."""
    name = "log.write, SQLite"
    leaks = anyio.run(cancel_everywhere, {name: OPERATIONS[name]}, "httpx", "task.cancel")
    assert leaks.found == []


async def leave_a_file(place: Place) -> None:
    os.open(place.folder, os.O_RDONLY)
    await anyio.lowlevel.checkpoint()


async def ignore_it(place: Place) -> None:
    with suppress(asyncio.CancelledError):
        await anyio.lowlevel.checkpoint()
    await HTTP_OPERATIONS["models"](place)


async def fail(place: Place) -> None:
    try:
        await anyio.lowlevel.checkpoint()
    finally:
        raise ValueError("broken")


PLANTED: dict[str, tuple[Operation, str]] = {
    "file": (leave_a_file, "a file or socket is open"),
    "ignored": (ignore_it, "it went on"),
    "raised": (fail, "ValueError"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_left_is_found(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.storm.yields.SETTLE_SECONDS", 0.05)
    operation, expected = PLANTED[planted]
    leaks = anyio.run(cancel_everywhere, {planted: operation}, "httpx", "task.cancel")
    assert any(expected in found for found in leaks.found)
