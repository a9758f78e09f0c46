"""A plugin of pytest for `tests.mutation`: coverage notes each line under the name of the test that runs it, hypothesis' tests too."""

from __future__ import annotations

from collections.abc import Generator

import coverage
import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Named without its parameters."""
    running = coverage.Coverage.current()
    assert running is not None
    running.switch_context(item.nodeid.partition("[")[0])
    try:
        return (yield)
    finally:
        running.switch_context("")
