"""A pytest plugin for `lab.mutation`: coverage records which test runs each line."""

from __future__ import annotations

from collections.abc import Generator

import coverage
import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Switches the context to the test's name without parameters."""
    running = coverage.Coverage.current()
    assert running is not None
    running.switch_context(item.nodeid.partition("[")[0])
    try:
        return (yield)
    finally:
        running.switch_context("")
