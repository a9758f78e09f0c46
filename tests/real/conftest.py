"""The servers, each started when the first test asks for it and stopped with the last. One that is
not here skips its tests, and the last lines of the run say so and count them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from lab.real.counterparts import AIMOCK_SERVER, LLAMA, Counterpart, absence, missing, running

ABSENT: Final = "real counterpart is absent"
"""How every skip for want of a server begins; they are counted by it."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Imports no SDK for tests that the run leaves out: that takes seconds in each worker."""
    if "not real" not in config.option.markexpr or not collection_path.is_file():
        return None
    if "pytest.mark.real" in collection_path.read_text(encoding="utf-8"):
        return True
    return None


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of llama.cpp's server with a real model."""
    yield from _address(LLAMA, tmp_path_factory)


@pytest.fixture(scope="session")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the scripted provider; its script is `aimock.json`."""
    yield from _address(AIMOCK_SERVER, tmp_path_factory)


def _address(server: Counterpart, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    why = absence(server.name)
    if why is not None:
        pytest.skip(f"{ABSENT}: {server.name}, {why}")
    with running(server, tmp_path_factory.mktemp(server.name) / "log") as address:
        yield address


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say which servers were missing and how many tests that cost: such a run must not pass for a
    whole one."""
    skipped = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if ABSENT in str(report.longrepr)
    ]
    if skipped:
        terminalreporter.section("real counterparts missing", yellow=True)
        terminalreporter.line(
            f"real counterparts missing: {', '.join(missing())}: {len(skipped)} tests did not run"
        )
        terminalreporter.line("to get them: python -m lab.real.fetch")
