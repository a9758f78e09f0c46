"""The choice of targets: limits of streams and cooldowns, in virtual time.

The property test runs crowds of requests over targets that fail and recover, with clients that
leave, and checks each choice against what was known when it was made.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from streamlib import Prompt, StreamError
from streamlib.gateway.targets.pool import (
    LONGEST_COOLDOWN,
    TargetPool,
    is_unhealthy,
    may_succeed_elsewhere,
)
from streamlib.gateway.targets.routes import RouteRule, RouteTable, RouteTarget, RouteTo, read_table
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from tests.support.cases import each_case
from tests.support.gateways import (
    Upstream,
    error_response,
    read,
    send,
    serving,
    stream_response,
    weather_chunks,
    weather_response,
)
from tests.support.shared import ROOT
from tests.support.virtual_time import JumpingLoop, anyio_backend

__all__ = ["anyio_backend"]

PROMPT: Final = Prompt("Hello", max_output_tokens=50)
DOWN: Final = ErrorInfo("overloaded", "too much to do")


def route_targets(*options: dict[str, Any], **of_route: Any) -> list[RouteTarget]:
    """The targets of a route, each with a server of its own."""
    to = tuple(
        RouteTo("custom:m", base_url=f"http://host-{number}", wire_api="chat", **each)
        for number, each in enumerate(options)
    )
    rule = RouteRule("*", to, **of_route)
    return RouteTable([rule]).targets(rule, "m")


async def serve_one(
    pool: TargetPool,
    targets: Sequence[RouteTarget],
    *,
    error: ErrorInfo | None = None,
    seconds: float = 0.0,
) -> int:
    """One request at one target; returns which one it was."""
    with await pool.slot(targets, 10.0) as slot:
        await anyio.sleep(seconds)
        if error is None:
            slot.responded()
        slot.ended(error)
        return targets.index(slot.target)


# --- cooldowns ---


async def test_failures_in_a_row_cool_a_target_down(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streamlib.gateway")
    pool, targets = TargetPool(), route_targets({}, {})
    tried = [await serve_one(pool, targets, error=DOWN) for _ in range(3)]
    assert (tried, list(pool.cooling().values())) == ([0, 0, 0], [30.0])
    assert await serve_one(pool, targets) == 1
    assert "host-0 cools down for 30 seconds: overloaded" in caplog.text.replace("\\x20", " ")
    await anyio.sleep(31)
    assert await serve_one(pool, targets) == 0
    assert not pool.cooling()


async def test_success_ends_a_row_of_failures() -> None:
    pool, targets = TargetPool(), route_targets({}, {})
    for _ in range(5):
        for error in (DOWN, DOWN, None):
            assert await serve_one(pool, targets, error=error) == 0


async def test_one_request_tries_a_target_after_its_cooldown() -> None:
    pool, targets = TargetPool(), route_targets({"cooldown_failures": 1}, {})
    await serve_one(pool, targets, error=DOWN)
    await anyio.sleep(31)
    tried: list[int] = []

    async def request(delay: float, error: ErrorInfo | None) -> None:
        await anyio.sleep(delay)
        tried.append(await serve_one(pool, targets, error=error, seconds=5))

    async with anyio.create_task_group() as group:
        for delay in (0, 1, 2):
            group.start_soon(request, delay, DOWN if delay == 0 else None)
    assert tried == [0, 1, 1]
    assert list(pool.cooling().values()) == [pytest.approx(58, abs=0.1)], "twice as long"


async def test_cooldowns_double_to_a_limit() -> None:
    pool, targets = (
        TargetPool(),
        route_targets({"cooldown_failures": 1, "cooldown_seconds": 50}, {}),
    )
    lengths: list[float] = []
    for _ in range(5):
        await serve_one(pool, targets, error=DOWN)
        (length,) = pool.cooling().values()
        lengths.append(length)
        await anyio.sleep(length + 0.1)
    assert lengths == [50, 100, 200, LONGEST_COOLDOWN, LONGEST_COOLDOWN]


async def test_delay_of_the_provider_is_its_cooldown() -> None:
    pool, targets = TargetPool(), route_targets({}, {})
    await serve_one(pool, targets, error=ErrorInfo("rate_limited", "wait", retry_after=7))
    assert list(pool.cooling().values()) == [7]
    assert await serve_one(pool, targets) == 1


@pytest.mark.parametrize("kind", ["invalid_request", "content_filter", "context_window_exceeded"])
async def test_fault_of_a_request_cools_nothing_down(kind: ErrorKind) -> None:
    pool, targets = TargetPool(), route_targets({"cooldown_failures": 1})
    await serve_one(pool, targets, error=ErrorInfo(kind, "no"))
    assert not pool.cooling()


CONTENT_KINDS: Final[tuple[ErrorKind, ...]] = (
    "invalid_history",
    "request_too_large",
    "context_window_exceeded",
    "content_filter",
)


@each_case("status", [301, 405, 451, 499])
@each_case("kind", CONTENT_KINDS)
async def test_content_cools_nothing_down_whatever_the_status(kind: ErrorKind, status: int) -> None:
    pool, targets = TargetPool(), route_targets({"cooldown_failures": 1})
    await serve_one(pool, targets, error=ErrorInfo(kind, "no", status=status))
    assert not pool.cooling()


async def test_legal_reasons_cool_nothing_down() -> None:
    """They may be about a text, which one client sent."""
    pool, targets = TargetPool(), route_targets({"cooldown_failures": 1})
    await serve_one(pool, targets, error=ErrorInfo("invalid_request", "no", status=451))
    assert not pool.cooling()


def test_table_of_statuses_is_what_the_pool_decides() -> None:
    page = (ROOT / "docs/gateway/routes.md").read_text(encoding="utf-8")
    table = page.partition("<!-- table: what a status leads to -->")[2].partition("<!-- end")[0]
    left = [*range(300, 309), *range(400, 600)]
    for row in table.strip().splitlines()[2:]:
        answers, next_is_asked, counts, _ = [cell.strip() for cell in row.strip("|").split("|")]
        named = re.findall(r"\dxx|\d{3}", answers.replace("any other 4xx", ""))
        listed = {
            status for status in left if str(status) in named or f"{status // 100}xx" in named
        }
        if "any other 4xx" in answers:
            listed |= {status for status in left if status // 100 == 4}
        left = [status for status in left if status not in listed]
        for status in listed:
            error = classify(status, {})
            assert may_succeed_elsewhere(error) == (next_is_asked == "yes"), status
            assert is_unhealthy(error) == (counts == "yes"), status
    assert not left


async def test_server_that_moved_cools_down() -> None:
    pool, targets = TargetPool(), route_targets({"cooldown_failures": 1}, {})
    moved = ErrorInfo("invalid_request", "moved", status=301)
    await serve_one(pool, targets, error=moved)
    assert await serve_one(pool, targets) == 1


async def test_route_of_cooling_targets_is_still_served() -> None:
    pool, targets = (
        TargetPool(),
        route_targets({"cooldown_failures": 1, "cooldown_seconds": 60}, {"cooldown_failures": 1}),
    )
    await serve_one(pool, targets, error=DOWN)
    await serve_one(pool, targets, error=DOWN)
    assert await serve_one(pool, targets) == 1, "the one that is ready first"


async def test_streams_that_break_together_count_once() -> None:
    pool, targets = TargetPool(), route_targets({}, {})
    slots = [await pool.slot(targets, 1.0) for _ in range(20)]
    for slot in slots:
        with slot:
            slot.ended(DOWN)
    assert list(pool.cooling().values()) == [30.0]


async def test_cooldown_of_zero_is_none() -> None:
    pool, targets = TargetPool(), route_targets({}, {}, cooldown_seconds=0)
    for _ in range(9):
        assert await serve_one(pool, targets, error=DOWN) == 0


# --- limits of streams ---


async def test_full_target_gives_way_to_the_next() -> None:
    pool, targets = TargetPool(), route_targets({"max_streams": 2}, {})
    slots = [await pool.slot(targets, 1.0) for _ in range(4)]
    assert [targets.index(slot.target) for slot in slots] == [0, 0, 1, 1]
    slots[0].__exit__()
    assert targets.index((await pool.slot(targets, 1.0)).target) == 0


async def test_requests_wait_their_turn_for_a_slot() -> None:
    pool, targets = TargetPool(), route_targets({"max_streams": 1})
    order: list[int] = []

    async def request(number: int) -> None:
        await anyio.sleep(number / 100)
        await serve_one(pool, targets, seconds=1.0)
        order.append(number)

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(request, number)
    assert order == [0, 1, 2, 3, 4, 5]
    assert pool.open_streams == 0


async def test_request_that_waits_too_long_is_refused() -> None:
    pool, targets = TargetPool(), route_targets({"max_streams": 1})
    with await pool.slot(targets, 10.0):
        before = anyio.current_time()
        with pytest.raises(StreamError) as raised:
            await pool.slot(targets, 10.0)
        assert anyio.current_time() - before == pytest.approx(10, abs=0.1)
    assert (raised.value.kind, raised.value.info.retryable) == ("overloaded", True)


async def test_target_that_recovers_while_a_request_waits_is_tried() -> None:
    first = {"cooldown_failures": 1, "cooldown_seconds": 5}
    pool, targets = TargetPool(), route_targets(first, {"max_streams": 1})
    await serve_one(pool, targets, error=DOWN)
    with await pool.slot(targets, 1.0) as taken:
        assert targets.index(taken.target) == 1
        assert await serve_one(pool, targets) == 0


@pytest.mark.parametrize("leaves_first", [True, False])
async def test_slot_of_a_request_that_left_is_free(leaves_first: bool) -> None:
    pool, targets = TargetPool(), route_targets({"max_streams": 1})
    held = await pool.slot(targets, 1.0)
    async with anyio.create_task_group() as group:
        group.start_soon(serve_one, pool, targets)
        await anyio.sleep(1)
        # The slot is granted and its task is cancelled, both before that runs again.
        if leaves_first:
            group.cancel_scope.cancel()
        held.__exit__()
        group.cancel_scope.cancel()
    assert pool.open_streams == 0


# --- the property ---


class Ask(NamedTuple):
    """One request: when it comes, what its targets do, and when its client leaves."""

    at: float
    seconds: float
    failing: tuple[bool, bool, bool]
    leaves_after: float | None


asks = st.lists(
    st.builds(
        Ask,
        at=st.floats(0, 60, width=16),
        seconds=st.floats(0, 20, width=16),
        failing=st.tuples(st.booleans(), st.booleans(), st.booleans()),
        leaves_after=st.none() | st.floats(0, 15, width=16),
    ),
    min_size=1,
    max_size=25,
)
limits = st.none() | st.integers(1, 3)


class Crowd:
    """Requests at one pool, which check what they are given."""

    def __init__(self, targets: list[RouteTarget], queue: float) -> None:
        self.pool = TargetPool()
        self.targets = targets
        self.queue = queue
        self.open: dict[str, int] = {}
        self.results: list[str] = []
        self.cooling: set[str] = set()
        """Targets that cool down at the end."""

    async def request(self, ask: Ask) -> None:
        await anyio.sleep(ask.at)
        result = "left"
        try:
            with anyio.move_on_after(ask.leaves_after or 1e9):
                result = await self.try_targets(ask)
        finally:
            self.results.append(result)

    async def try_targets(self, ask: Ask) -> str:
        remaining = list(self.targets)
        while remaining:
            asked_at = anyio.current_time()
            # One that another request tries after its cooldown is not healthy yet.
            healthy = [target for target in remaining if self.pool._is_healthy(target)]
            # A slot that was granted to a request which waits is not free, either.
            ready = [target for target in healthy if self.pool._is_free(target)]
            try:
                slot = await self.pool.slot(remaining, self.queue)
            except StreamError as error:
                waited = anyio.current_time() - asked_at
                # Refused only where nothing is free, and after the wait for what is healthy.
                assert not any(self.pool._is_free(target) for target in remaining)
                assert waited <= self.queue + 1e-6
                return str(error.info.code)
            if ready:
                assert anyio.current_time() == asked_at
                assert slot.target is ready[0], "the first in the order of the route"
            remaining.remove(slot.target)
            with slot:
                if await self.stream(slot.target, ask):
                    slot.responded()
                    slot.ended(None)
                    return "served"
                slot.ended(DOWN)
        return "failed"

    def is_free(self, target: RouteTarget) -> bool:
        limit = target.to.max_streams
        return limit is None or self.open.get(target.name, 0) < limit

    async def stream(self, target: RouteTarget, ask: Ask) -> bool:
        assert self.is_free(target), "over the limit of streams"
        self.open[target.name] = self.open.get(target.name, 0) + 1
        try:
            await anyio.sleep(ask.seconds)
        finally:
            self.open[target.name] -= 1
        return not ask.failing[self.targets.index(target)]


async def run_crowd(crowd: Crowd, requests: list[Ask]) -> None:
    async with anyio.create_task_group() as group:
        for ask in requests:
            group.start_soon(crowd.request, ask)
    crowd.cooling = set(crowd.pool.cooling())


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=40)
@given(limits, limits, limits, st.integers(1, 3), st.sampled_from([0.0, 5.0, 30.0]), asks)
def test_crowds_keep_the_limits_and_all_are_answered(
    backend: str,
    first: int | None,
    second: int | None,
    third: int | None,
    failures: int,
    queue: float,
    requests: list[Ask],
) -> None:
    targets = route_targets(
        {"max_streams": first},
        {"max_streams": second, "cooldown_seconds": 5},
        {"max_streams": third, "cooldown_seconds": 0},
        cooldown_failures=failures,
    )
    crowd = Crowd(targets, queue)
    loop: dict[str, Any] = {"loop_factory": JumpingLoop}
    if backend == "trio":
        loop = {"clock": MockClock(autojump_threshold=0)}
    anyio.run(run_crowd, crowd, requests, backend=backend, backend_options=loop)
    assert len(crowd.results) == len(requests)
    assert set(crowd.results) <= {"served", "failed", "busy", "left"}
    assert crowd.pool.open_streams == 0
    assert crowd.cooling <= {targets[0].name, targets[1].name}
    if not any(any(ask.failing) for ask in requests):
        assert "failed" not in crowd.results
        assert not crowd.cooling


# --- at the gateway ---


def two_servers(**options: Any) -> RouteRule:
    return RouteRule(
        "*",
        (
            RouteTo("custom:m", base_url="http://first", wire_api="messages"),
            RouteTo("custom:m", base_url="http://second", wire_api="messages"),
        ),
        **options,
    )


class ByHost(Upstream):
    """A provider in memory whose first host is down."""

    async def send(self, method: str, url: str, *rest: Any) -> Any:
        if url.startswith("http://first"):
            self.down += 1
            failing = Upstream(error_response("messages", 529, DOWN))
            return await failing.send(method, url, *rest)
        return await super().send(method, url, *rest)

    down = 0
    """Requests to the first host."""


@pytest.mark.parametrize("wire", ["messages", "gemini"])
async def test_gateway_leaves_a_failing_target_alone(wire: Any) -> None:
    upstream = ByHost(weather_response("messages"))
    async with serving(upstream, two_servers()) as client:
        for _ in range(10):
            assert (await send(client, wire, PROMPT)).status_code == 200
    # Three requests tried it, each once: the other target was ready.
    assert (upstream.down, len(upstream.requests)) == (3, 10)


@pytest.mark.parametrize("wire", ["messages", "gemini"])
async def test_gateway_refuses_where_all_targets_are_full(wire: Any) -> None:
    slow = stream_response("messages", *weather_chunks("messages")[:3], 60.0)
    upstream = Upstream(slow)
    rule = two_servers(max_streams=1, queue_seconds=3)
    statuses: list[int] = []
    async with serving(upstream, rule) as client, anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(send, client, wire, PROMPT)
        await anyio.sleep(1)
        refused = await send(client, wire, PROMPT)
        statuses.append(refused.status_code)
        group.cancel_scope.cancel()
    failure = read(wire, refused, stream=False).error
    assert failure is not None
    assert failure.kind == "overloaded"
    assert statuses[0] in {503, 529}
    assert len(upstream.requests) == 2


def test_settings_of_targets_are_read() -> None:
    (rule,) = read_table(
        '[[route]]\nmodel = "*"\nwire_api = "chat"\nmax_streams = 8\n'
        "cooldown_seconds = 10\nqueue_seconds = 2\nto = [\n"
        '  { model = "custom:a", base_url = "http://a", max_streams = 2 },\n'
        '  { model = "custom:b", base_url = "http://b", cooldown_seconds = 0 },\n'
        "]\n"
    )
    first, second = [target.to for target in RouteTable([rule]).targets(rule, "m")]
    assert (first.max_streams, first.cooldown_seconds, first.cooldown_failures) == (2, 10, None)
    assert (second.max_streams, second.cooldown_seconds, rule.queue_seconds) == (8, 0, 2)
    with pytest.raises(ValueError, match="max_streams"):
        read_table('[[route]]\nmodel = "*"\nto = "openai:*"\nmax_streams = 0\n')
