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
from collections.abc import Sequence
from typing import Final

import anyio
from msgspec import Struct

from streamlib.gateway.log_text import log_name, server_of
from streamlib.gateway.targets.routes import RouteTarget
from streamlib.gateway.watch.request_log import FIELDS, cooldown_fields
from streamlib.pipeline.attempts import Attempts
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.stream_error import StreamError

COOLDOWN_FAILURES: Final = 3
"""Failures in a row after which a target cools down. Other proxies count 5 single requests; the
only target of a route was already asked up to three times for each."""

COOLDOWN_SECONDS: Final = 30.0
"""Length of the first cooldown in seconds; other proxies have the same default."""

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

REQUEST_FAULTS: Final[frozenset[ErrorKind]] = frozenset(
    {"invalid_request", "invalid_history", "request_too_large", "content_filter", "cancelled"}
)
"""Failures that would occur at another target too, unless `is_of_the_server` says otherwise."""

CONTENT_FAULTS: Final[frozenset[ErrorKind]] = frozenset(
    {"invalid_history", "request_too_large", "context_window_exceeded", "content_filter"}
)
"""Failures whose kind speaks of the request's content, whatever the status is: with such a request
one client could otherwise cool a target down for all."""

SERVER_STATUSES: Final = frozenset({405, 421, 426, 451, 499})
"""HTTP statuses of the 4xx that say something of a server, and nothing of the request: what its
address serves (405, 421, 426), where it may serve it (451), or that it gave up (499)."""

LEGAL_REASONS: Final = 451
"""The law may forbid a country, which another target may serve, or a text, which one client wrote;
the status does not say which. So the next target is asked, but nothing cools down."""

_log: Final = logging.getLogger("streamlib.gateway")


def may_succeed_elsewhere(error: ErrorInfo) -> bool:
    """Whether another target may serve a request that one has failed with this error."""
    return error.kind not in REQUEST_FAULTS or is_of_the_server(error)


def is_of_the_server(error: ErrorInfo) -> bool:
    """Whether a status says that the server at this address takes no such request from anyone."""
    if error.kind in CONTENT_FAULTS:
        return False
    status = error.status or 0
    is_redirect = 300 <= status < 400
    return is_redirect or status in SERVER_STATUSES


def is_unhealthy(error: ErrorInfo) -> bool:
    """Whether a failure counts towards a cooldown of its target."""
    if error.kind in UNHEALTHY:
        return True
    return is_of_the_server(error) and error.status != LEGAL_REASONS


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

    def __init__(self, targets: Sequence[RouteTarget]) -> None:
        self.targets = targets
        self.target: RouteTarget | None = None
        """The target whose slot it received; None while it waits."""
        self.granted = anyio.Event()


class Slot:
    """The slot of one request at one target. Used with `with`."""

    def __init__(self, pool: TargetPool, target: RouteTarget, *, is_trial: bool) -> None:
        self.target = target
        self.is_last = True
        """Whether no other target is ready to be tried instead, if this one fails."""
        self._pool = pool
        self._is_trial = is_trial
        """Whether this is the request that tries the target after its cooldown."""
        self._started = anyio.current_time()

    def __enter__(self) -> Slot:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_trial()
        self._pool.give_back(self.target)

    def responded(self) -> None:
        """The target has sent part of a response, so other requests may try it too."""
        self._end_trial()
        self._pool.end_cooldown(self.target, self._started)

    def ended(self, error: ErrorInfo | None) -> None:
        """Records how the request ended.

        Args:
            error: the failure of the target; None: it completed its response.
        """
        if error is None:
            self._pool.succeeded(self.target, self._started)
        elif is_unhealthy(error):
            self._pool.failed(self.target, self._started, error)

    def _end_trial(self) -> None:
        if self._is_trial:
            self._is_trial = False
            self._pool.end_trial(self.target)


class TargetPool:
    """The targets of all routes, with their streams and failures."""

    def __init__(self) -> None:
        """Makes a pool without any failures."""
        self._open: dict[str, int] = {}
        """Slot of a target -> number of its open streams. A slot without any is removed, so that
        those of former routes do not stay."""
        self._health: dict[str, _Health] = {}
        """Name of a target -> its failures, for targets that failed; at most `REMEMBERED`."""
        self._waiters: list[_Waiter] = []
        """Waiting requests, the oldest first: the next slot is granted to it, so that none starves.
        Each leaves after its `seconds`."""

    # --- choosing ---

    async def slot(self, targets: Sequence[RouteTarget], seconds: float) -> Slot:
        """A slot at the best of these targets; waits until one is free.

        Args:
            targets: targets in the order of the route; at least one.
            seconds: maximum time to wait.

        Raises:
            StreamError: `overloaded`: all of them stay full.
        """
        healthy = [target for target in targets if self._is_healthy(target)]
        slot = self._first_free(healthy)
        if slot is None and healthy and seconds > 0:
            slot = await self._wait(healthy, seconds)
        if slot is None:
            # Computed again, because a cooldown may have ended during the wait.
            healthy = [target for target in targets if self._is_healthy(target)]
            cooling = [target for target in targets if not self._is_healthy(target)]
            cooling.sort(key=self._ready_at)
            slot = self._first_free([*healthy, *cooling])
        if slot is None:
            message = "all slots at this model's targets are taken"
            raise StreamError(ErrorInfo("overloaded", message, retryable=True, code="busy"))
        return slot

    def attempts(self, targets: Sequence[RouteTarget], seconds: float) -> Attempts[Slot]:
        """The slots of one request at these targets, each at one that it was not at before.

        Args:
            targets: as of `slot`.
            seconds: as of `slot`, for each.
        """
        remaining = list(targets)

        async def next_slot() -> Slot | None:
            if not remaining:
                return None
            slot = await self.slot(remaining, seconds)
            remaining.remove(slot.target)
            slot.is_last = not self.is_any_ready(remaining)
            return slot

        return Attempts(next_slot, on=may_succeed_elsewhere)

    def is_any_ready(self, targets: Sequence[RouteTarget]) -> bool:
        """Whether one of these targets is healthy and has a free slot."""
        return any(self._is_healthy(target) and self._is_free(target) for target in targets)

    def preferred(self, targets: Sequence[RouteTarget]) -> RouteTarget:
        """The target that the next request would be sent to if each had a free slot."""
        for target in targets:
            if self._is_healthy(target):
                return target
        return min(targets, key=self._ready_at)

    def _is_healthy(self, target: RouteTarget) -> bool:
        health = self._health.get(target.name)
        if health is None:
            return True
        return health.until <= anyio.current_time() and not health.is_tried

    def _ready_at(self, target: RouteTarget) -> float:
        return self._health[target.name].until

    def _first_free(self, targets: Sequence[RouteTarget]) -> Slot | None:
        for target in targets:
            if self._is_free(target):
                self._take(target)
                return self._slot_at(target)
        return None

    def _take(self, target: RouteTarget) -> None:
        self._open[target.slot_key] = self._open.get(target.slot_key, 0) + 1

    def _is_free(self, target: RouteTarget) -> bool:
        limit = target.to.max_streams
        return limit is None or self._open.get(target.slot_key, 0) < limit

    def _slot_at(self, target: RouteTarget) -> Slot:
        """The slot at a target whose open streams already count it."""
        health = self._health.get(target.name)
        is_trial = health is not None and health.cooldowns > 0 and not health.is_tried
        if health is not None and is_trial:
            health.is_tried = True
        return Slot(self, target, is_trial=is_trial)

    async def _wait(self, targets: Sequence[RouteTarget], seconds: float) -> Slot | None:
        waiter = _Waiter(targets)
        self._waiters.append(waiter)
        try:
            with anyio.move_on_after(seconds):
                await waiter.granted.wait()
        except BaseException:
            # The task was cancelled, perhaps just after the slot was granted.
            if waiter.target is not None:
                self.give_back(waiter.target)
            raise
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        if waiter.target is None:
            return None
        return self._slot_at(waiter.target)

    def give_back(self, target: RouteTarget) -> None:
        """Ends a stream; its slot is granted to the request that waits longest for it."""
        self._open[target.slot_key] -= 1
        if self._open[target.slot_key] == 0:
            del self._open[target.slot_key]
        for waiter in self._waiters:
            wanted = self._wanted(waiter, target.slot_key)
            if wanted is not None:
                self._take(wanted)
                self._waiters.remove(waiter)
                waiter.target = wanted
                waiter.granted.set()
                return

    def _wanted(self, waiter: _Waiter, slot_key: str) -> RouteTarget | None:
        """The free target with this slot that a waiting request may use; None if there is none."""
        healthy = [target for target in waiter.targets if self._is_healthy(target)]
        # It waits for a healthy target; if none is left, it may use any.
        for target in healthy or waiter.targets:
            if target.slot_key == slot_key and self._is_free(target):
                return target
        return None

    # --- health ---

    def end_trial(self, target: RouteTarget) -> None:
        """Ends the trial after a cooldown: its request ended or received a response."""
        health = self._health.get(target.name)
        if health is not None:
            health.is_tried = False

    def end_cooldown(self, target: RouteTarget, started: float) -> None:
        """Ends a cooldown, because a request that was sent after its start received a response."""
        health = self._health.get(target.name)
        if health is not None and started >= health.since:
            health.until = min(health.until, anyio.current_time())

    def succeeded(self, target: RouteTarget, started: float) -> None:
        """A request completed. If it was sent before the cooldown began, it does not end it."""
        health = self._health.get(target.name)
        if health is not None and started >= health.since:
            del self._health[target.name]

    def failed(self, target: RouteTarget, started: float, error: ErrorInfo) -> None:
        """A request failed. If it was sent before the end of a cooldown, it is ignored."""
        cooldown = target.to.cooldown_seconds
        if cooldown is None:
            cooldown = COOLDOWN_SECONDS
        if cooldown == 0:
            return
        health = self._health.setdefault(target.name, _Health())
        if started < health.until:
            return
        health.failures += 1
        seconds = 0.0
        tolerated = target.to.cooldown_failures or COOLDOWN_FAILURES
        if health.failures >= tolerated or health.cooldowns:
            seconds = min(cooldown * 2.0**health.cooldowns, LONGEST_COOLDOWN)
        # The provider knows when it will be ready again.
        if error.retry_after is not None:
            seconds = max(seconds, min(error.retry_after, LONGEST_COOLDOWN))
        if seconds > 0:
            now = anyio.current_time()
            health.cooldowns += 1
            health.since, health.until = now, now + seconds
            model = f"{target.provider.name}:{target.resolved.model}"
            name = log_name(model)
            if target.base_url:
                name += f" at {server_of(target.base_url)}"
            fields = cooldown_fields(model, target.base_url, seconds, error)
            _log.warning(
                "%s cools down for %g seconds: %s",
                name,
                seconds,
                error.kind,
                extra={FIELDS: fields},
            )
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        # Each failure adds at most one target.
        if len(self._health) > REMEMBERED:
            del self._health[next(iter(self._health))]

    # --- for operators ---

    def cooling(self) -> dict[str, float]:
        """Name -> remaining seconds, for each target that cools down."""
        now = anyio.current_time()
        return {
            name: round(health.until - now, 3)
            for name, health in self._health.items()
            if health.until > now
        }

    @property
    def open_streams(self) -> int:
        """Number of open streams at all targets."""
        return sum(self._open.values())
