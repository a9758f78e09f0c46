"""Selects the target of a route for the next request: a healthy one with a free slot.

A target may have a limit of simultaneous streams, as many self-hosted model servers have. A target
that fails several times in a row cools down: while the route has another one, no request is sent to
it. After that time one request tries it, and others follow once it responds.

    healthy ── fails several times in a row, or requests a delay ──> cooling
    cooling ── its time is over ──> one request tries it ── it responds ──> healthy
                                                            └ it fails ────> cooling, twice as long

A cooldown never refuses a request: if all targets of a route cool down, the request is sent to the
one whose cooldown ends first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

import anyio
from msgspec import Struct

from streamlib.errors import StreamError
from streamlib.gateway.log_text import log_name, server_of
from streamlib.gateway.routes import RouteTarget
from streamlib_parsers.errors import ErrorInfo, ErrorKind

LONGEST_COOLDOWN: Final = 300.0
"""Maximum length of a cooldown in seconds; other proxies have the same. Each cooldown is twice as
long as the one before. A provider's `retry_after` has the same maximum."""

REMEMBERED: Final = 10_000
"""Limit of targets whose failures are remembered: with `*` in a target, clients choose models."""

UNHEALTHY: Final[frozenset[ErrorKind]] = frozenset(
    {
        "authentication",
        "connection",
        "deadline",
        "malformed",
        "overloaded",
        "permission",
        "quota_exhausted",
        "rate_limited",
        "server_error",
        "stalled",
        "truncated",
    }
)
"""Failures that the next request would probably meet too; other failures depend on the request."""

_log: Final = logging.getLogger("streamlib.gateway")


class _Health(Struct):
    """The failures of one target with one model.

    Attributes:
        failures: number of failures in a row.
        cooldowns: number of cooldowns in a row.
        until: end of the cooldown, in seconds of the pool's clock.
        since: start of the cooldown; a stream that began earlier does not end it.
        is_tried: whether a request already tries it after its cooldown, so that others do not.
    """

    failures: int = 0
    cooldowns: int = 0
    until: float = 0.0
    since: float = float("-inf")
    is_tried: bool = False


class _Waiter:
    """A request that waits for a free slot at one of several targets."""

    def __init__(self, hops: Sequence[RouteTarget]) -> None:
        self.hops = hops
        self.hop: RouteTarget | None = None
        """The target whose slot it received; None while it waits."""
        self.granted = anyio.Event()


class Lease:
    """The slot of one request at one target. Used with `with`."""

    def __init__(self, pool: TargetPool, hop: RouteTarget, *, is_trial: bool) -> None:
        self.hop = hop
        self._pool = pool
        self._is_trial = is_trial
        """Whether this is the request that tries the target after its cooldown."""
        self._started = pool.now()

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_trial()
        self._pool.give_back(self.hop)

    def responded(self) -> None:
        """The target has sent part of a response, so other requests may try it too."""
        self._end_trial()
        self._pool.end_cooldown(self.hop, self._started)

    def ended(self, error: ErrorInfo | None) -> None:
        """Records how the request ended.

        Args:
            error: The failure of the target; None: it completed its response.
        """
        if error is None:
            self._pool.succeeded(self.hop, self._started)
        elif error.kind in UNHEALTHY:
            self._pool.failed(self.hop, self._started, error)

    def _end_trial(self) -> None:
        if self._is_trial:
            self._is_trial = False
            self._pool.end_trial(self.hop)


class TargetPool:
    """The targets of all routes, with their streams and failures."""

    def __init__(self, now: Callable[[], float] = anyio.current_time) -> None:
        """Makes a pool without any failures.

        Args:
            now: Returns monotonic seconds.
        """
        self.now = now
        self._open: dict[str, int] = {}
        """Slot of a target -> number of its open streams."""
        self._health: dict[str, _Health] = {}
        """Name of a target -> its failures, for targets that failed."""
        self._waiters: list[_Waiter] = []
        """Waiting requests, the oldest first."""

    # --- choosing ---

    async def lease(self, hops: Sequence[RouteTarget], seconds: float) -> Lease:
        """A slot at the best of these targets; waits until one is free.

        Args:
            hops: Targets in the order of the route; at least one.
            seconds: Maximum time to wait.

        Raises:
            StreamError: `overloaded`: all of them stay full.
        """
        healthy = [hop for hop in hops if self._is_healthy(hop)]
        lease = self._first_free(healthy)
        if lease is None and healthy and seconds > 0:
            lease = await self._wait(healthy, seconds)
        if lease is None:
            # Computed again, because a cooldown may have ended during the wait.
            healthy = [hop for hop in hops if self._is_healthy(hop)]
            cooling = [hop for hop in hops if not self._is_healthy(hop)]
            cooling.sort(key=self._ready_at)
            lease = self._first_free([*healthy, *cooling])
        if lease is None:
            message = "all slots at this model's targets are taken"
            raise StreamError(ErrorInfo("overloaded", message, retryable=True, code="busy"))
        return lease

    def preferred(self, hops: Sequence[RouteTarget]) -> RouteTarget:
        """The target that the next request would be sent to if each had a free slot."""
        for hop in hops:
            if self._is_healthy(hop):
                return hop
        return min(hops, key=self._ready_at)

    def _is_healthy(self, hop: RouteTarget) -> bool:
        health = self._health.get(hop.name)
        if health is None:
            return True
        return health.until <= self.now() and not health.is_tried

    def _ready_at(self, hop: RouteTarget) -> float:
        return self._health[hop.name].until

    def _first_free(self, hops: Sequence[RouteTarget]) -> Lease | None:
        for hop in hops:
            if self._is_free(hop):
                self._take(hop)
                return self._leased(hop)
        return None

    def _take(self, hop: RouteTarget) -> None:
        self._open[hop.slot] = self._open.get(hop.slot, 0) + 1

    def _is_free(self, hop: RouteTarget) -> bool:
        return hop.max_streams is None or self._open.get(hop.slot, 0) < hop.max_streams

    def _leased(self, hop: RouteTarget) -> Lease:
        """The lease of a slot that was already counted."""
        health = self._health.get(hop.name)
        is_trial = health is not None and health.cooldowns > 0 and not health.is_tried
        if health is not None and is_trial:
            health.is_tried = True
        return Lease(self, hop, is_trial=is_trial)

    async def _wait(self, hops: Sequence[RouteTarget], seconds: float) -> Lease | None:
        waiter = _Waiter(hops)
        self._waiters.append(waiter)
        try:
            with anyio.move_on_after(seconds):
                await waiter.granted.wait()
        except BaseException:
            # The task was cancelled, perhaps just after the slot was granted.
            if waiter.hop is not None:
                self.give_back(waiter.hop)
            raise
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        if waiter.hop is None:
            return None
        return self._leased(waiter.hop)

    def give_back(self, hop: RouteTarget) -> None:
        """Ends a stream; its slot is granted to the request that waits longest for it."""
        self._open[hop.slot] -= 1
        if self._open[hop.slot] == 0:
            del self._open[hop.slot]
        for waiter in self._waiters:
            wanted = self._wanted(waiter, hop.slot)
            if wanted is not None:
                self._take(wanted)
                self._waiters.remove(waiter)
                waiter.hop = wanted
                waiter.granted.set()
                return

    def _wanted(self, waiter: _Waiter, slot: str) -> RouteTarget | None:
        """The free target with this slot that a waiting request may use; None if there is none."""
        healthy = [hop for hop in waiter.hops if self._is_healthy(hop)]
        # It waits for a healthy target; if none is left, it may use any.
        for hop in healthy or waiter.hops:
            if hop.slot == slot and self._is_free(hop):
                return hop
        return None

    # --- health ---

    def end_trial(self, hop: RouteTarget) -> None:
        """Ends the trial after a cooldown: its request ended or received a response."""
        health = self._health.get(hop.name)
        if health is not None:
            health.is_tried = False

    def end_cooldown(self, hop: RouteTarget, started: float) -> None:
        """Ends a cooldown, because a request that was sent after its start received a response."""
        health = self._health.get(hop.name)
        if health is not None and started >= health.since:
            health.until = min(health.until, self.now())

    def succeeded(self, hop: RouteTarget, started: float) -> None:
        """A request completed. If it was sent before the cooldown began, it does not end it."""
        health = self._health.get(hop.name)
        if health is not None and started >= health.since:
            del self._health[hop.name]

    def failed(self, hop: RouteTarget, started: float, error: ErrorInfo) -> None:
        """A request failed. If it was sent before the end of a cooldown, it is ignored."""
        if hop.cooldown_seconds == 0:
            return
        health = self._health.setdefault(hop.name, _Health())
        if started < health.until:
            return
        health.failures += 1
        seconds = 0.0
        if health.failures >= hop.cooldown_failures or health.cooldowns:
            seconds = min(hop.cooldown_seconds * 2.0**health.cooldowns, LONGEST_COOLDOWN)
        # The provider knows when it will be ready again.
        if error.retry_after is not None:
            seconds = max(seconds, min(error.retry_after, LONGEST_COOLDOWN))
        if seconds > 0:
            now = self.now()
            health.cooldowns += 1
            health.since, health.until = now, now + seconds
            name = log_name(f"{hop.provider.name}:{hop.target.model}")
            if hop.base_url:
                name += f" at {server_of(hop.base_url)}"
            _log.warning("%s cools down for %g seconds: %s", name, seconds, error.kind)
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        if len(self._health) > REMEMBERED:
            del self._health[next(iter(self._health))]

    # --- for operators ---

    def cooling(self) -> dict[str, float]:
        """Name -> remaining seconds, for each target that cools down."""
        now = self.now()
        return {
            name: round(health.until - now, 3)
            for name, health in self._health.items()
            if health.until > now
        }

    @property
    def open_streams(self) -> int:
        """Number of open streams at all targets."""
        return sum(self._open.values())
