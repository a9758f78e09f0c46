"""The retry policy of commands, and the lines that report retries."""

from __future__ import annotations

from collections.abc import Callable

from streamlib.client.retry import RetryPolicy
from streamlib.client.unreachable import address_of
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.stream_error import StreamError


def ignore(_: str) -> None:
    """Reports nothing."""


class NotedRetry(RetryPolicy, frozen=True):
    """The client's own retry policy, with a line for each retry.

    A server that cannot be reached is not retried: its address is more likely wrong than its host
    is down, and the person at the terminal can retry.

    Attributes:
        note: shows a line.
    """

    note: Callable[[str], None] = ignore

    def wait(
        self,
        failure: ErrorInfo,
        attempt: int,
        elapsed: float,
        random: float,
        total: float | None = None,
    ) -> float | None:
        """Seconds to wait before the next attempt; None if there is no further attempt."""
        if failure.kind == "connection":
            return None
        delay = super().wait(failure, attempt, elapsed, random, total)
        if delay is not None:
            self.note(f"{StreamError(failure)}; trying again in {delay:.1f} s")
        return delay


def is_unreachable(error: StreamError) -> bool:
    """Whether no connection could be made."""
    detail = error.info.detail
    phase = detail.get("phase") if isinstance(detail, dict) else None
    if error.kind == "stalled":
        return phase == "connect"
    return error.kind == "connection" and (error.code or "").startswith(("Connect", "ClientConn"))


def unreachable_text(error: StreamError, url: str) -> str:
    """What to say of a server that cannot be reached: its address is the likely mistake."""
    return f"cannot reach {address_of(url)}: {error.kind}: {error.message}"
