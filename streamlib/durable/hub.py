"""Distributes the engine's pushes to the readers and writers of this process.

There is one subscription for all readers of a process. A push is only a hint: a follower checks
that records are contiguous, and reads from the engine if they are not.
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from typing import Final

import anyio

from streamlib.durable.records import Engine, Record

MAX_WAITING: Final = 64
"""Limit of records that wait for one reader; a slower one reads them from the engine instead."""

SWEEP_FIRST: Final = 64
"""Number of logs from which on logs without followers are removed."""


class Follower:
    """One reader or writer that follows one log."""

    __slots__ = ("__weakref__", "_hub", "_wake", "log_id", "lost", "records")

    def __init__(self, hub: Hub, log_id: str) -> None:
        self.log_id = log_id
        self.records: deque[Record] = deque()
        """Records that were pushed and not taken yet."""
        self.lost = True
        """Whether the engine must be read: nothing was read yet, or a push may be missing."""
        self._hub = hub
        self._wake = anyio.Event()

    def push(self, record: Record | None) -> None:
        """Adds a pushed record; None means that the log changed otherwise."""
        if record is None or len(self.records) >= MAX_WAITING:
            self.lost = True
            self.records.clear()
        else:
            self.records.append(record)
        self._wake.set()

    def wake(self) -> None:
        """Ends a `wait` as a push does."""
        self._wake.set()

    async def wait(self, seconds: float) -> bool:
        """Waits for a push; returns False if none came in time."""
        with anyio.move_on_after(seconds):
            await self._wake.wait()
        if not self._wake.is_set():
            return False
        self._wake = anyio.Event()
        return True

    def close(self) -> None:
        """Stops following the log."""
        self._hub.leave(self)


class Hub:
    """The followers of all logs in this process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._followers: dict[str, weakref.WeakSet[Follower]] = {}
        """Log id -> its followers. Weak, because a reader may be dropped inside a loop."""
        self._sweep_at = SWEEP_FIRST
        """Number of logs at which logs whose readers were all dropped are removed."""
        self._interrupted_at = -math.inf
        """Time at which the engine last reported lost pushes, on the loop's clock."""

    async def run(self) -> None:
        """Listens to the engine until it is cancelled."""
        await self._engine.listen(self._receive)

    def follow(self, log_id: str) -> Follower:
        """Starts to follow a log."""
        follower = Follower(self, log_id)
        followers = self._followers.get(log_id)
        if followers is None:
            self._sweep()
            followers = self._followers[log_id] = weakref.WeakSet()
            self._engine.follow(log_id)
        followers.add(follower)
        return follower

    def was_interrupted(self, seconds: float) -> bool:
        """Whether the engine was away within these seconds: it may have restarted without logs."""
        return anyio.current_time() - self._interrupted_at < seconds

    def leave(self, follower: Follower) -> None:
        """See `Follower.close`."""
        followers = self._followers.get(follower.log_id)
        if followers is None:
            return
        followers.discard(follower)
        if not followers:
            self._forget(follower.log_id)

    def _forget(self, log_id: str) -> None:
        del self._followers[log_id]
        self._engine.unfollow(log_id)

    def _sweep(self) -> None:
        """Removes logs that nobody follows. Runs only after the number of logs doubled."""
        if len(self._followers) < self._sweep_at:
            return
        for log_id, followers in list(self._followers.items()):
            if not followers:
                self._forget(log_id)
        self._sweep_at = max(SWEEP_FIRST, 2 * len(self._followers))

    def _receive(self, log_id: str | None, record: Record | None) -> None:
        if log_id is None:
            self._interrupted_at = anyio.current_time()
            for followed in list(self._followers):
                self._tell(followed, None)
        else:
            self._tell(log_id, record)

    def _tell(self, log_id: str, record: Record | None) -> None:
        followers = self._followers.get(log_id)
        if followers is None:
            return
        for follower in list(followers):
            follower.push(record)
        if not followers:  # all readers were dropped without a close
            self._forget(log_id)
