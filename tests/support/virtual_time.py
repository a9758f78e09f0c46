"""Virtual time: when every task waits for a timer, the clock jumps to the next one.

Ten minutes of silence take a millisecond.

    from tests.support.virtual_time import anyio_backend  # the fixture, instead of the usual one

Only for tests that touch no socket: the clock would not wait for it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from trio.testing import MockClock


class JumpingLoop(asyncio.SelectorEventLoop):
    """asyncio's loop with such a clock. `_run_once` is private: this is for tests only."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__()

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        while self._scheduled and self._scheduled[0]._cancelled:  # type: ignore[attr-defined]
            self._timer_cancelled_count -= 1  # type: ignore[attr-defined]
            handle = self._scheduled.pop(0)  # type: ignore[attr-defined]
            handle._scheduled = False
            self._scheduled.sort()  # type: ignore[attr-defined]
        if self._scheduled and not self._ready:  # type: ignore[attr-defined]
            self._now = max(self._now, self._scheduled[0]._when)  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Both loops, in virtual time."""
    if request.param == "asyncio":
        return "asyncio", {"loop_factory": JumpingLoop}
    return "trio", {"clock": MockClock(autojump_threshold=0)}
