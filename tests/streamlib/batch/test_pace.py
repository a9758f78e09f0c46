"""`Pace`: requests of any client wait while the provider's limits are used up."""

from __future__ import annotations

import time
from typing import Any, Final

import anyio
import pytest

from streamlib import Client, RateLimits, RetryPolicy, StreamError, SyncClient
from streamlib.batch import Pace
from streamlib.batch.concurrent import Pause
from streamlib.client import ClientOptions
from streamlib.testing import MODEL, loopback, sync_loopback
from streamlib_parsers.events import Window
from tests.support.cases import each_case

USED_UP: Final = {
    "x-ratelimit-limit-requests": "1",
    "x-ratelimit-remaining-requests": "0",
    "x-ratelimit-reset-requests": "100ms",
}


def hooks(pace: Pace, **options: Any) -> ClientOptions:
    """The options of a client that keeps the pace."""
    return ClientOptions(on_request=pace.on_request, on_response=pace.on_response, **options)


@each_case(
    "window, seconds",
    [
        (None, 0),
        (Window(10, 0, reset_after=3.0), 3.0),
        (Window(10, 1, reset_after=3.0), 0),
        (Window(10, 0), 0),
        (Window(10, None, reset_after=3.0), 0),
        (Window(10, 0, reset_after=61.0), 0),
        (Window(10, 0, reset_after=-3.0), 0),
    ],
)
@each_case("name", ["requests", "tokens", "input_tokens", "output_tokens"])
def test_window_without_rest_makes_wait(name: str, window: Window | None, seconds: float) -> None:
    pause = Pause()
    limits: Any = {name: window}
    pause.obey(RateLimits(**limits))
    assert pause.seconds == pytest.approx(seconds, abs=0.5)


@pytest.mark.parametrize(("is_refused", "seconds"), [(True, 3.0), (False, 0)])
def test_wait_of_a_refusal_counts(is_refused: bool, seconds: float) -> None:
    """A success may carry the header too."""
    pause = Pause()
    pause.obey(RateLimits(retry_after=3.0), is_refused=is_refused)
    assert pause.seconds == pytest.approx(seconds, abs=0.5)


def test_shorter_limit_never_shortens_a_pause() -> None:
    pause = Pause()
    pause.extend(5.0)
    pause.extend(1.0)
    assert pause.seconds == pytest.approx(5.0, abs=0.5)


async def test_requests_of_a_client_wait_for_the_window() -> None:
    began = time.monotonic()
    async with loopback("chat", headers=USED_UP, client=hooks(Pace())) as client:
        for _ in range(3):
            await client.text("Hi.", MODEL)
    assert time.monotonic() - began >= 0.2


async def test_refusal_makes_the_others_wait() -> None:
    """The second asks while the first waits for its retry."""
    refusal = {"retry-after-ms": "200"}
    pace = Pace()
    options = hooks(pace, retry=RetryPolicy(retries=1))
    ended: list[float] = []
    async with loopback(status=429, failing=1, headers=refusal, client=options) as client:
        began = time.monotonic()

        async def ask() -> None:
            await client.text("Hi.", MODEL)
            ended.append(time.monotonic() - began)

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await anyio.sleep(0.1)
            group.start_soon(ask)
    assert min(ended) >= 0.2


def test_requests_of_a_sync_client_wait_too() -> None:
    began = time.monotonic()
    with sync_loopback("chat", headers=USED_UP, client=hooks(Pace())) as client:
        for _ in range(3):
            client.text("Hi.", MODEL)
    assert time.monotonic() - began >= 0.2


async def test_other_models_do_not_wait() -> None:
    headers = {**USED_UP, "x-ratelimit-reset-requests": "50s"}
    async with loopback("chat", headers=headers, client=hooks(Pace())) as client:
        await client.text("Hi.", "loopback:a")
        with anyio.fail_after(5):
            await client.text("Hi.", "loopback:b")
        with anyio.move_on_after(0.1) as scope:
            await client.text("Hi.", "loopback:a")
    assert scope.cancelled_caught


async def test_long_limit_is_not_waited_for() -> None:
    """The provider's refusal says more."""
    options = hooks(Pace(longest=1.0), retry=RetryPolicy(retries=0))
    headers = {"retry-after": "86400"}
    async with loopback(status=429, headers=headers, client=options) as client:
        for _ in range(2):
            with anyio.fail_after(5), pytest.raises(StreamError) as raised:
                await client.text("Hi.", MODEL)
    assert raised.value.kind == "rate_limited"


def test_clients_take_the_hooks_of_a_pace() -> None:
    pace = Pace()
    for kind in (Client, SyncClient):
        kind(on_request=pace.on_request, on_response=pace.on_response)
