"""Engines for tests: on virtual time, and between a process and an engine that fails."""

from __future__ import annotations

import anyio

from streamlib.durable import Engine, LogError
from streamlib.durable.memory import MemoryEngine
from streamlib.durable.records import LogCursor, Receive, Record
from streamlib.durable.rules import LogState, Operation, Result


def loop_milliseconds() -> int:
    """The loop's clock, which may be virtual."""
    return int(anyio.current_time() * 1000)


def memory_engine() -> MemoryEngine:
    """An engine on the loop's clock."""
    return MemoryEngine(clock=loop_milliseconds)


class Connection:
    """One process's connection to an engine that several share: its calls may fail.

    Attributes:
        cut: Whether calls fail to reach the engine.
        answers_lost: Number of next operations that are performed, but whose results are lost.
        frozen_until: Time until which calls wait, on the loop's clock, as if the process stopped.
        operations: Operations that were requested, in order.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.durability = engine.durability
        self.linger = engine.linger
        self.cut = False
        self.answers_lost = 0
        self.frozen_until = 0.0
        self.operations: list[Operation] = []

    async def connect(self) -> None:
        """The engine is connected."""

    async def ask(self, log_id: str, operation: Operation, lines: bytes = b"") -> Result:
        await self._pass()
        self.operations.append(operation)
        result = await self.engine.ask(log_id, operation, lines)
        if self.answers_lost:
            self.answers_lost -= 1
            raise LogError("unavailable", "the answer was lost")
        return result

    async def read(
        self, log_id: str, after: LogCursor, most: int
    ) -> tuple[LogState | None, int, list[Record]]:
        await self._pass()
        return await self.engine.read(log_id, after, most)

    async def listen(self, receive: Receive) -> None:
        def receive_unless_cut(log_id: str | None, record: Record | None) -> None:
            if not self.cut:
                receive(log_id, record)

        await self.engine.listen(receive_unless_cut)

    def follow(self, log_id: str) -> None:
        self.engine.follow(log_id)

    def unfollow(self, log_id: str) -> None:
        """Another process may follow it still."""

    async def aclose(self) -> None:
        """The engine outlives this process."""

    async def _pass(self) -> None:
        if self.frozen_until:
            await anyio.sleep(max(0.0, self.frozen_until - anyio.current_time()))
        if self.cut:
            raise LogError("unavailable", "the network is cut")


def lose(engine: MemoryEngine, log_id: str, keep: int | None) -> None:
    """Loses records as a restart of the engine may: all after the first `keep`, or the log.

    Args:
        engine: Engine whose memory is changed.
        log_id: Id of the log.
        keep: Number of records that remain; None: the log is lost.
    """
    if keep is None:
        engine._states.pop(log_id, None)
        engine._records.pop(log_id, None)
        return
    state = engine._states[log_id]
    records = engine._records.get(log_id, [])
    del records[keep:]
    last = 0
    epoch = 1
    if records:
        last, epoch = records[-1].last, records[-1].epoch
    size = sum(len(record.lines) for record in records)
    owner = state.owner
    engine._states[log_id] = LogState(
        epoch,
        last,
        owner=owner,
        lease_until=state.lease_until,
        meta=state.meta,
        size=size,
        expires_at=state.expires_at,
    )
