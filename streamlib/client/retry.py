"""When to send a request again, and after how long: a pure function of what happened.

The client consults it only while no event was delivered.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from msgspec import Struct

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.item_base import NamedFields


class RetryPolicy(Struct, frozen=True, metaclass=NamedFields):
    """Retry policy: maximum retries, backoff in seconds, jitter fraction.

    Attributes:
        retries: maximum number of attempts after the first.
        base: seconds before the first retry; doubles with each further one.
        cap: seconds that the backoff does not exceed.
        jitter: fraction of the backoff that is removed at random, so that many clients do not
            return at the same moment.
        retry_after_cap: seconds. A provider that names a longer delay is not obeyed: the failure
            and its `retry_after` are reported to the caller.
        within: seconds of waiting after which a request is not sent again; None: no limit. A server
            that was silent until its deadline would be waited for as long once more.
    """

    _meant: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("max_retries", "attempts", "max_attempts", "total"), "retries"),
        **dict.fromkeys(("backoff", "initial_delay", "delay"), "base"),
        **dict.fromkeys(("max_delay", "max_backoff", "backoff_max"), "cap"),
    }
    """Name in other libraries -> the field."""

    retries: int = 2
    base: float = 0.5
    cap: float = 8.0
    jitter: float = 0.25
    retry_after_cap: float = 120.0
    within: float | None = None

    def __post_init__(self) -> None:
        # Those of this class: a subclass may have fields of other kinds.
        for name in RetryPolicy.__struct_fields__:
            value: Any = getattr(self, name)
            if name == "within" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
                raise ValueError(f"{name} is a number, zero or more: not {value!r}")

    def wait(
        self,
        failure: ErrorInfo,
        attempt: int,
        elapsed: float,
        random: float,
        total: float | None = None,
    ) -> float | None:
        """Seconds to wait before the next attempt; None if there is none.

        A provider's own delay is honoured exactly, without jitter.

        Args:
            failure: the failure of the last attempt.
            attempt: attempts that failed before it (0: it was the first).
            elapsed: seconds waited so far.
            random: from 0 to 1.
            total: seconds that all waiting may take: `Deadlines.total`.
        """
        if attempt >= self.retries or not failure.retryable:
            return None
        if failure.retry_after is None:
            delay = self._backoff(attempt, random)
        else:
            delay = failure.retry_after
            # Written so that NaN fails as well.
            if not 0 <= delay <= self.retry_after_cap:
                return None
        if total is not None and elapsed + delay >= total:
            return None
        return delay

    def _backoff(self, attempt: int, random: float) -> float:
        return min(self.cap, self.base * 2.0**attempt) * (1.0 - self.jitter * random)


NO_RETRY: Final = RetryPolicy(retries=0)
