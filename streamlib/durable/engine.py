"""Operations that logs need from an engine: an atomic change, a read, and pushes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

from streamlib.durable.records import LogCursor, Record
from streamlib.durable.rules import Append, LogState, Operation, Result

Receive: TypeAlias = Callable[[str | None, Record | None], None]
"""Called with a log's id when the log changed, and with the added record if the engine sends it.
With None for both: pushes may have been lost, so every log must be read again."""


def is_news(operation: Operation, result: Result) -> bool:
    """Whether followers of the log are notified: not of an append that only renews the lease."""
    if result.status != "ok":
        return False
    return not isinstance(operation, Append) or operation.size > 0 or operation.closes


class Engine(Protocol):
    """Stores logs. `streamlib.testing.check_engine` tests an engine of your own.

    A method raises `LogError("unavailable")` if the engine does not respond, and may then be called
    again: the next result shows whether the operation was performed. Any other exception is a
    defect.
    """

    durability: str
    """What a failure of the engine may lose, as one sentence."""

    linger: float
    """Seconds after its last append for which a writer can send again what the engine lost in a
    restart; 0 if it loses nothing."""

    async def connect(self) -> None:
        """Called once before all other methods; `open_log` calls it for the engine of a URL."""
        ...

    async def ask(self, log_id: str, operation: Operation, lines: bytes = b"") -> Result:
        """Performs `streamlib.durable.rules.ask` atomically, at the time of the engine's own clock.

        Args:
            log_id: the log whose state is changed.
            operation: the operation.
            lines: lines of the record of an `Append`.
        """
        ...

    async def read(
        self, log_id: str, after: LogCursor, most: int
    ) -> tuple[LogState | None, int, list[Record]]:
        """The state, the engine's time in milliseconds, and the records after a cursor.

        Args:
            log_id: the log to read.
            after: returned records end after this cursor, and are ordered by epoch, then position.
            most: maximum number of records.
        """
        ...

    async def listen(self, receive: Receive) -> None:
        """Runs until it is cancelled, and calls `receive` for the logs that are followed.

        After a lost connection it connects again, and reports that pushes may have been
        lost.
        """
        ...

    def follow(self, log_id: str) -> None:
        """Starts pushes for this log, without waiting."""
        ...

    def unfollow(self, log_id: str) -> None:
        """Ends pushes for this log."""
        ...

    async def aclose(self) -> None:
        """Closes connections and files."""
        ...


@runtime_checkable
class Overview(Protocol):
    """Optional methods of an engine, used by the command `streamlib log`."""

    async def log_ids(self, most: int) -> list[str]:
        """Ids of logs, in order; expired logs may be among them.

        Args:
            most: maximum number of ids.
        """
        ...

    async def followers(self, log_id: str) -> int | None:
        """Number of processes that receive pushes of a log, its writer included; None: unknown."""
        ...
