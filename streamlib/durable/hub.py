"""Hands what the engine pushes to the readers and writers of this process.

One subscription a process, however many readers. A push is a hint: whoever follows a log checks
that records follow each other, and reads from the engine where they do not.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Final

import anyio

from streamlib.durable.engine import Engine
from streamlib.durable.records import Record

MAX_WAITING: Final = 64
"""Records that wait for one reader; one that is slower reads them from the engine instead."""

SWEEP_FIRST: Final = 64
"""Number of logs from which on those that nobody follows are removed."""


class Follower:
    """One reader or writer of one log, while it follows it."""

    __slots__ = ("__weakref__", "_hub", "_wake", "log_id", "lost", "records")

    def __init__(self, hub: Hub, log_id: str) -> None:
        self.log_id = log_id
        self.records: deque[Record] = deque()
        """Pushed and not taken yet."""
        self.lost = True
        """Whether the engine has to be asked: nothing was read yet, or a push may be missing."""
        self._hub = hub
        self._wake = anyio.Event()

    def push(self, record: Record | None) -> None:
        """Takes a push; without a record, something else happened."""
        if record is None or len(self.records) >= MAX_WAITING:
            self.lost = True
            self.records.clear()
        else:
            self.records.append(record)
        self._wake.set()

    def wake(self) -> None:
        """Ends a `wait`, as a push does."""
        self._wake.set()

    async def wait(self, seconds: float) -> bool:
        """Waits for a push; False if none came in time."""
        with anyio.move_on_after(seconds):
            await self._wake.wait()
        if not self._wake.is_set():
            return False
        self._wake = anyio.Event()
        return True

    def close(self) -> None:
        """Follows no longer."""
        self._hub.leave(self)


class Hub:
    """The followers of every log in this process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._followers: dict[str, weakref.WeakSet[Follower]] = {}
        """Weak, since a reader may be dropped in the middle of a loop."""
        self._sweep_at = SWEEP_FIRST
        """Number of logs at which those whose readers were all dropped are removed."""

    async def run(self) -> None:
        """Listens to the engine until it is cancelled."""
        await self._engine.listen(self._receive)

    def follow(self, log_id: str) -> Follower:
        """Follows a log from now on."""
        follower = Follower(self, log_id)
        followers = self._followers.get(log_id)
        if followers is None:
            self._sweep()
            followers = self._followers[log_id] = weakref.WeakSet()
            self._engine.follow(log_id)
        followers.add(follower)
        return follower

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
        """Forgets logs that nobody follows; a look at each only once their number has doubled."""
        if len(self._followers) < self._sweep_at:
            return
        for log_id, followers in list(self._followers.items()):
            if not followers:
                self._forget(log_id)
        self._sweep_at = max(SWEEP_FIRST, 2 * len(self._followers))

    def _receive(self, log_id: str | None, record: Record | None) -> None:
        if log_id is None:
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
        if not followers:  # every reader was dropped without a close
            self._forget(log_id)
