"""How much each named client may ask in a minute: a bucket for requests and one for tokens.

A bucket holds what its limit allows in a minute, and fills up again steadily. A request takes 1
from the first and the estimate of its input from the second; where one does not have it, the
request is refused, and takes nothing. At the end the estimate is corrected by the reported usage:
the second bucket may then hold less than nothing, and the next request is refused until it is
full enough again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct

from streamlib.gateway.clients.named_clients import NamedClient
from streamlib_parsers.events import RateLimits, Window

MINUTE: Final = 60.0
"""Seconds in which an empty bucket is full again."""


class Balance(Struct, frozen=True):
    """What is left in a client's buckets.

    Attributes:
        requests: None: there is no limit.
        tokens: None: there is no limit. Negative after an estimate that was too low.
        wait: seconds until what was asked for is there; 0: it was taken.
    """

    requests: float | None
    tokens: float | None
    wait: float = 0.0


class ClientLimits(Protocol):
    """Where the buckets of all clients are."""

    async def take(self, client: NamedClient, tokens: int) -> Balance:
        """Takes one request and some tokens, or nothing where one of them is not there.

        Args:
            client: with at least one limit.
            tokens: the estimate of the request. One above the limit needs a full bucket.
        """
        ...

    async def correct(self, client: NamedClient, tokens: int) -> None:
        """Takes some more tokens, whether they are there or not; fewer than 0: gives them back."""
        ...


class Bucket:
    """One limit of one client."""

    def __init__(self, limit: int, now: float) -> None:
        self._limit = limit
        self._level = float(limit)
        """What is left, at the time `_time`."""
        self._time = now

    def use_limit(self, limit: int) -> None:
        """Continues with another limit: the file was read again."""
        self._limit = limit
        self._level = min(self._level, limit)

    def level(self, now: float) -> float:
        """What is left now."""
        # A clock that goes back would take what was never asked for.
        elapsed = max(0.0, now - self._time)
        self._level = min(self._limit, self._level + elapsed * self._limit / MINUTE)
        self._time = max(now, self._time)
        return self._level

    def wait(self, amount: float, now: float) -> float:
        """Seconds until this much is left; 0: it is."""
        # More than fits in would never be there.
        missing = min(amount, self._limit) - self.level(now)
        return max(0.0, missing * MINUTE / self._limit)

    def take(self, amount: float, now: float) -> None:
        """Takes from what is left, or gives back; more than the limit is never left."""
        self._level = min(self._limit, self.level(now) - amount)


class MemoryLimits:
    """Buckets of one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepares them.

        Args:
            clock: seconds that never go back.
        """
        self._clock = clock
        self._requests: dict[str, Bucket] = {}
        """By the names of clients."""
        self._tokens: dict[str, Bucket] = {}

    async def take(self, client: NamedClient, tokens: int) -> Balance:
        """See `ClientLimits.take`."""
        now = self._clock()
        wanted: list[tuple[Bucket, int]] = []
        requests = self._bucket(self._requests, client.name, client.requests_per_minute, now)
        if requests is not None:
            wanted.append((requests, 1))
        of_tokens = self._bucket(self._tokens, client.name, client.tokens_per_minute, now)
        if of_tokens is not None:
            wanted.append((of_tokens, tokens))
        wait = max([bucket.wait(amount, now) for bucket, amount in wanted], default=0.0)
        if wait == 0:
            for bucket, amount in wanted:
                bucket.take(amount, now)
        return Balance(_level(requests, now), _level(of_tokens, now), wait)

    async def correct(self, client: NamedClient, tokens: int) -> None:
        """See `ClientLimits.correct`."""
        now = self._clock()
        bucket = self._bucket(self._tokens, client.name, client.tokens_per_minute, now)
        if bucket is not None:
            bucket.take(tokens, now)

    def _bucket(
        self, buckets: dict[str, Bucket], name: str, limit: int | None, now: float
    ) -> Bucket | None:
        if limit is None:
            return None
        bucket = buckets.get(name)
        if bucket is None:
            bucket = buckets[name] = Bucket(limit, now)
        bucket.use_limit(limit)
        return bucket


def _level(bucket: Bucket | None, now: float) -> float | None:
    if bucket is None:
        return None
    return bucket.level(now)


def rate_limits(client: NamedClient, balance: Balance) -> RateLimits:
    """What a client is told of its limits, as a provider would."""
    retry_after: float | None = None
    if balance.wait > 0:
        # Whole seconds: clients read the header with `int`, and one that is early is refused again.
        retry_after = math.ceil(balance.wait)
    return RateLimits(
        requests=_window(client.requests_per_minute, balance.requests),
        tokens=_window(client.tokens_per_minute, balance.tokens),
        retry_after=retry_after,
    )


def _window(limit: int | None, left: float | None) -> Window | None:
    if limit is None or left is None:
        return None
    seconds_until_full = (limit - left) * MINUTE / limit
    return Window(limit, max(0, math.floor(left)), reset_after=round(seconds_until_full, 3))
