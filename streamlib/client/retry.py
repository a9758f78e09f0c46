"""When to send a request again, and after how long: a pure function of what happened. The client asks only while nothing was given out."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from streamlib_parsers.errors import ErrorInfo


class RetryPolicy(Struct, frozen=True):
    """How often and how patiently.

    retries: at most so many after the first try. base, cap: seconds of the first pause and of the longest, which doubles in between.
    jitter: the part of a pause that chance may take off, so that many clients do not come back at once.
    retry_after_cap: a provider that asks for a longer pause is not obeyed: the failure and its `retry_after` go to the caller.
    """

    retries: int = 2
    base: float = 0.5
    cap: float = 8.0
    jitter: float = 0.25
    retry_after_cap: float = 120.0

    def wait(
        self,
        failure: ErrorInfo,
        attempt: int,
        elapsed: float,
        random: float,
        total: float | None = None,
    ) -> float | None:
        """Seconds to wait before the next try, or None where none is worth it.

        attempt: tries that failed before this one (0: this was the first). elapsed: seconds waited so far, of `total` allowed.
        random: from 0 to 1. What the provider asks for is kept to the letter, without jitter.
        """
        if attempt >= self.retries or not failure.retryable:
            return None
        pause = (
            self._backoff(attempt, random) if failure.retry_after is None else failure.retry_after
        )
        if failure.retry_after is not None and not 0 <= pause <= self.retry_after_cap:
            return None
        return pause if total is None or elapsed + pause < total else None

    def _backoff(self, attempt: int, random: float) -> float:
        return min(self.cap, self.base * 2.0**attempt) * (1.0 - self.jitter * random)


NO_RETRY: Final = RetryPolicy(retries=0)
