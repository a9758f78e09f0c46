"""The pace that a provider allows: nobody asks while a rate limit is used up."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final

import anyio

from streamlib.client.hooks import AttemptRequest, AttemptResponse
from streamlib.pipeline.numbers import check_seconds
from streamlib_parsers.events import RateLimits, Window
from streamlib_parsers.rate_limits import read_rate_limits

LONGEST_PAUSE: Final = 60.0
"""Seconds that a rate limit may make all wait: some are reset only the next day, and then the
provider's refusal says more."""

FIRST_ERROR: Final = 400
"""The lowest HTTP status of a refusal."""


class Pause:
    """A time before which nobody asks."""

    def __init__(self, longest: float = LONGEST_PAUSE) -> None:
        self._longest = longest
        self._until = 0.0
        """The end of the pause, by the monotonic clock."""

    @property
    def seconds(self) -> float:
        """Seconds that it still lasts; 0 without a pause."""
        return max(0.0, self._until - time.monotonic())

    async def wait(self) -> None:
        """Waits until it is over."""
        # Others may have made the pause longer meanwhile.
        while (seconds := self.seconds) > 0:  # noqa: ASYNC110
            await anyio.sleep(seconds)

    def extend(self, seconds: float) -> None:
        """Makes all wait for some seconds from now."""
        self._until = max(self._until, time.monotonic() + seconds)

    def obey(self, limits: RateLimits, *, is_refused: bool = False) -> None:
        """Makes all wait where the next request would be refused.

        Args:
            limits: of a response.
            is_refused: whether that response was a refusal, whose ``Retry-After`` counts.
        """
        waits: list[float | None] = [limits.retry_after if is_refused else None]
        for window in (limits.requests, limits.tokens, limits.input_tokens, limits.output_tokens):
            waits.append(_used_up(window))
        for seconds in waits:
            if seconds is not None and 0 < seconds <= self._longest:
                self.extend(seconds)


class Pace:
    """Keeps the requests of clients within the rate limits that the provider's headers report.

        pace = Pace()
        client = Client(on_request=pace.on_request, on_response=pace.on_response)

    Where a window has nothing left, or a refusal names a time to wait, later requests and retries
    to the same model of the same provider wait until then; no deadline counts that. One `Pace` may
    serve several clients, also a `SyncClient`. `map_concurrent` does the same for its own prompts.

    Args:
        longest: seconds that a request waits at most for one limit. One that lasts longer is not
            waited for, and the provider's refusal is raised.
    """

    def __init__(self, longest: float = LONGEST_PAUSE) -> None:
        check_seconds("longest", longest, may_be_zero=True)
        self._longest = longest
        self._pauses: dict[tuple[str | None, ...], Pause] = {}
        """Provider, address and model -> its pause."""

    async def on_request(self, request: AttemptRequest) -> None:
        """Waits until the request may be sent."""
        await self._of(request).wait()

    def on_response(self, response: AttemptResponse) -> None:
        """Reads the limits that the headers of a response report."""
        limits = read_rate_limits(response.headers, datetime.now(UTC))
        self._of(response.request).obey(limits, is_refused=response.status >= FIRST_ERROR)

    def _of(self, request: AttemptRequest) -> Pause:
        key = (request.origin.provider, request.origin.endpoint, request.model)
        return self._pauses.setdefault(key, Pause(self._longest))


def _used_up(window: Window | None) -> float | None:
    """Seconds until a window that has nothing left is reset; None if it has something."""
    if window is None or window.remaining is None or window.remaining > 0:
        return None
    return window.reset_after
