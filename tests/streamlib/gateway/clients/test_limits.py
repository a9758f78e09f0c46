"""The buckets of named clients, on a virtual clock.

Properties: what a client gets in any time is at most a full bucket and what flows in; a refused
request takes nothing, and is served after the delay that it was told.
"""

from __future__ import annotations

import anyio
from hypothesis import given
from hypothesis import strategies as st

from streamlib.gateway.clients.admission import Admission
from streamlib.gateway.clients.limits import Balance, MemoryLimits, rate_limits
from streamlib.gateway.clients.named_clients import NamedClient
from streamlib_parsers.events import RateLimits, Window
from tests.support.client_limits import TOLERANCE, Clock, Step, follow, limited_client

limits = st.none() | st.integers(1, 50)
steps = st.lists(
    st.builds(Step, st.floats(0, 90, width=16), st.integers(0, 60), st.booleans()), max_size=25
)


@given(limits, limits, steps)
def test_refused_client_is_served_after_its_delay(
    requests: int | None, tokens: int | None, asked: list[Step]
) -> None:
    clock, who = Clock(), limited_client(requests, tokens)
    buckets = MemoryLimits(clock)

    async def run() -> None:
        for step in asked:
            clock.now += step.pause
            if step.is_correction:
                await buckets.correct(who, step.tokens - 30)
                continue
            first = await buckets.take(who, step.tokens)
            if first.wait == 0:
                continue
            clock.now += first.wait * 0.99 - TOLERANCE
            early = await buckets.take(who, step.tokens)
            assert early.wait > 0 or first.wait < 2 * TOLERANCE
            if early.wait > 0:
                clock.now += early.wait + TOLERANCE
                assert (await buckets.take(who, step.tokens)).wait == 0

    anyio.run(run)


@given(st.integers(1, 50), steps)
def test_client_gets_no_more_than_bucket_and_inflow(limit: int, asked: list[Step]) -> None:
    clock, who = Clock(), limited_client(tokens=limit)
    served = [step._replace(is_correction=False) for step in asked]
    balances = anyio.run(follow, MemoryLimits(clock), clock, who, served)
    granted = sum(
        step.tokens
        for step, balance in zip(served, balances, strict=True)
        if balance.wait == 0 and step.tokens <= limit
    )
    elapsed = sum(step.pause for step in served)
    assert granted <= limit + elapsed * limit / 60 + TOLERANCE


class SlowLimits(MemoryLimits):
    """Limits whose correction takes a moment, as that of a server does."""

    async def correct(self, client: NamedClient, tokens: int) -> None:
        await anyio.sleep(0.01)
        await super().correct(client, tokens)


async def test_cancelled_request_still_corrects_its_estimate() -> None:
    clock, who = Clock(), limited_client(tokens=600)
    buckets = SlowLimits(clock)
    admission = Admission(who, buckets, 500, await buckets.take(who, 500))
    with anyio.CancelScope() as scope:
        scope.cancel()
        await admission.settle(None)
    assert (await buckets.take(who, 0)).tokens == 600


async def test_correction_leaves_less_than_nothing() -> None:
    clock, who = Clock(), limited_client(tokens=600)
    buckets = MemoryLimits(clock)
    assert (await buckets.take(who, 100)).tokens == 500
    await buckets.correct(who, 800)
    refused = await buckets.take(who, 1)
    assert (refused.tokens, round(refused.wait, 1)) == (-300, 30.1)
    told = rate_limits(who, refused)
    assert told.tokens is not None
    assert (told.retry_after, told.tokens.remaining) == (31, 0)
    clock.now += 31
    assert (await buckets.take(who, 1)).wait == 0


async def test_request_above_the_limit_needs_a_full_bucket() -> None:
    clock, who = Clock(), limited_client(tokens=60)
    buckets = MemoryLimits(clock)
    assert (await buckets.take(who, 1000)).wait == 0
    assert (await buckets.take(who, 0)).wait > 0
    clock.now += 1060
    assert (await buckets.take(who, 0)).wait == 0


def test_balance_without_its_limit_is_not_shown() -> None:
    """Limits of your own may know of only one of the two."""
    client = limited_client(requests=10)
    assert rate_limits(client, Balance(None, 5.0)) == RateLimits()
    shown = rate_limits(client, Balance(4.0, None))
    assert (shown.requests, shown.tokens) == (Window(10, 4, reset_after=36.0), None)


async def test_limit_of_a_file_read_again_holds_at_once() -> None:
    buckets = MemoryLimits(Clock())
    await buckets.take(limited_client(requests=100), 0)
    assert (await buckets.take(limited_client(requests=1), 0)).wait == 0
    assert (await buckets.take(limited_client(requests=1), 0)).wait > 0
