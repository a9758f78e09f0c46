"""What a log needs of the software that keeps it: one atomic operation, a read, and a push."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

from streamlib.durable.records import Cursor, Record
from streamlib.durable.rules import Append, LogState, Operation, Result

Receive: TypeAlias = Callable[[str | None, Record | None], None]
"""Called with a log's id when something happened to it, with the record that was added if the
engine sends it along. With None for both: pushes may have been lost, every log is worth a look."""


def is_news(operation: Operation, result: Result) -> bool:
    """Whether those who follow the log are told: a sign of life is no news."""
    if result.status != "ok":
        return False
    return not isinstance(operation, Append) or operation.size > 0


class Engine(Protocol):
    """Where logs are kept. `streamlib.testing.check_engine` tests an engine of your own.

    A method raises `LogError("unavailable")` where the engine does not answer, and may be called
    again then: whether the operation landed is seen in the next result. Any other exception is a
    mistake.
    """

    durability: str
    """What a failure of the engine may lose, in one sentence."""

    linger: float
    """Seconds after its last append for which a writer stays ready to send again what the engine
    lost when it restarted; 0 where it loses nothing."""

    async def connect(self) -> None:
        """Called once, before anything else; `open_log` does it for the engine of a URL."""
        ...

    async def ask(self, log_id: str, operation: Operation, lines: bytes = b"") -> Result:
        """Does what `streamlib.durable.rules.ask` says, atomically, by the engine's own clock.

        Args:
            log_id: The log whose state is changed.
            operation: What to do.
            lines: The record of an `Append`.
        """
        ...

    async def read(
        self, log_id: str, after: Cursor, most: int
    ) -> tuple[LogState | None, int, list[Record]]:
        """The state, the engine's time in milliseconds, and records that follow a place.

        Args:
            log_id: The log to read.
            after: Records that end after it, in order: by epoch, then position.
            most: How many records at most.
        """
        ...

    async def listen(self, receive: Receive) -> None:
        """Runs until it is cancelled, and calls `receive` for the logs that are followed.

        A lost connection is not an error: it connects again, and reports that pushes may have been
        lost.
        """
        ...

    def follow(self, log_id: str) -> None:
        """Pushes of this log are wanted; it does not wait."""
        ...

    def unfollow(self, log_id: str) -> None:
        """Pushes of this log are wanted no longer."""
        ...

    async def aclose(self) -> None:
        """Closes connections and files."""
        ...


@runtime_checkable
class Overview(Protocol):
    """What an engine may tell about its logs besides; the command `streamlib log` shows it."""

    async def log_ids(self, most: int) -> list[str]:
        """Ids of logs, in order; those whose time is over may be among them.

        Args:
            most: How many at most.
        """
        ...

    async def followers(self, log_id: str) -> int | None:
        """Processes that get pushes of a log, its writer's among them; None: it is not known."""
        ...
