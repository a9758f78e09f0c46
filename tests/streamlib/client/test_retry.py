"""When a request is sent again: the policy by itself, every form of Retry-After, and the client that keeps to both."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib.client.retry import NO_RETRY, RetryPolicy
from streamlib.errors import StreamError
from streamlib_parsers import ErrorInfo
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import RETRYABLE
from tests.support.clients import Memory, asked, client
from tests.support.metrics import figure
from tests.support.response_bodies import (
    CALL,
    CREATED,
    HELLO,
    MESSAGE,
    OVERLOADED,
    PING,
    SAID,
    START,
    arguments,
    error_body,
    response_end,
)
from tests.support.shared import each_vector, vectors
from tests.support.virtual_time import anyio_backend

__all__ = ["anyio_backend"]

URL: Final = "http://memory.example"
POLICY: Final = RetryPolicy()
BUSY: Final = ErrorInfo("overloaded", "busy", retryable=True, status=529)


# --- the policy ---


def test_the_pause_doubles_up_to_its_cap_and_chance_only_shortens_it() -> None:
    policy = RetryPolicy(retries=10, base=0.5, cap=8, jitter=0.25)
    assert [policy.wait(BUSY, n, 0, 0.0) for n in range(6)] == [0.5, 1, 2, 4, 8, 8]
    assert policy.wait(BUSY, 0, 0, 1.0) == 0.375


def test_so_many_retries_and_no_more() -> None:
    assert [POLICY.wait(BUSY, n, 0, 0) is None for n in range(4)] == [False, False, True, True]
    assert NO_RETRY.wait(BUSY, 0, 0, 0) is None


@given(
    st.sampled_from(["rate_limited", "overloaded"]),
    st.floats(0, 1e6),
    st.floats(0, 1),
    st.integers(0, 5),
    st.floats(0, 1e4),
)
def test_what_the_provider_asks_for_is_kept_to_the_letter_or_left_to_the_caller(
    kind: Any, asked_for: float, chance: float, attempt: int, elapsed: float
) -> None:
    failure = ErrorInfo(kind, "", retryable=True, retry_after=asked_for)
    assert RetryPolicy(retries=6).wait(failure, attempt, elapsed, chance) == (
        asked_for if asked_for <= 120 else None
    )


@given(st.floats(0, 200), st.floats(0, 200), st.floats(0, 1), st.integers(0, 9))
def test_no_pause_passes_the_total(
    elapsed: float, total: float, chance: float, attempt: int
) -> None:
    pause = RetryPolicy(retries=10).wait(BUSY, attempt, elapsed, chance, total)
    assert pause is None or elapsed + pause < total


def test_a_failure_that_stays_one_is_not_tried_again() -> None:
    assert POLICY.wait(ErrorInfo("authentication", ""), 0, 0, 0) is None
    assert (
        POLICY.wait(
            ErrorInfo("rate_limited", "", retryable=True, retry_after=float("nan")), 0, 0, 0
        )
        is None
    )


# --- Retry-After ---


@each_vector("retry_after_vectors")
def test_retry_after_in_every_form(vector: dict[str, Any]) -> None:
    """The seconds that a 429 with these headers, or this message, is waited for."""
    now = parsedate_to_datetime(vectors("retry_after_vectors")["now"])
    body = {
        "error": {"type": "rate_limit_error", "message": vector.get("body_message", "slow down")}
    }
    failure = classify(429, body, vector.get("h", {}), now)
    if "retry" in vector:
        assert (POLICY.wait(failure, 0, 0, 0) is not None) is vector["retry"]
    elif "snapshot_s" in vector:
        assert failure.retry_after is None
    elif vector["s"] == "cap":
        assert failure.retry_after is not None
        assert failure.retry_after > 120
        assert POLICY.wait(failure, 0, 0, 0) is None
    elif vector["s"] is None:
        assert failure.retry_after is None
        assert POLICY.wait(failure, 0, 0, 0) == POLICY.base
    else:
        assert POLICY.wait(failure, 0, 0, 0) == pytest.approx(vector["s"])
    figure(f"vector/{vector}")


# --- the client ---


class Refusing(Memory):
    """Answers with these statuses and headers in turn, then with a whole answer."""

    def __init__(self, *refusals: tuple[int, Mapping[str, str]]) -> None:
        super().__init__([error_body("rate_limit_error")])
        self.refusals = refusals

    async def send(self, *request: Any) -> Any:
        turn = len(self.sent)
        refused = turn < len(self.refusals)
        self.status, self.headers = self.refusals[turn] if refused else (200, {})
        self.scripts = ([error_body("rate_limit_error")] if refused else [MESSAGE],)
        return await super().send(*request)


async def timed(transport: Memory, **options: Any) -> tuple[float, str | None, int]:
    """Seconds that it took, the kind of the failure if it was one, and the requests sent."""
    began, kind = anyio.current_time(), None
    async with client(URL, transport, **options) as asking:
        try:
            await asking.respond(asked(URL))
        except StreamError as error:
            kind = error.kind
    return round(anyio.current_time() - began, 6), kind, len(transport.sent)


@pytest.mark.parametrize(
    ("refusals", "expected"),
    [
        ([(429, {"retry-after": "7"})], (7, None, 2)),
        ([(429, {"retry-after": "Sat, 21 Nov 2026 20:00:30 GMT"})], (30, None, 2)),
        ([(503, {"retry-after-ms": "1500", "retry-after": "9"})], (1.5, None, 2)),
        ([(529, {}), (500, {})], (0.5 + 1, None, 3)),
        ([(500, {"retry-after": "2"}), (502, {"retry-after": "3"})], (5, None, 3)),
        ([(529, {})] * 3, (1.5, "rate_limited", 3)),
        ([(429, {"retry-after": "121"})], (0, "rate_limited", 1)),
        ([(500, {"x-should-retry": "false"})], (0, "rate_limited", 1)),
        ([(400, {"x-should-retry": "true"})], (0.5, None, 2)),
    ],
)
async def test_the_client_waits_as_it_is_told(refusals: Any, expected: Any) -> None:
    now = datetime(2026, 11, 21, 20, tzinfo=UTC)
    assert await timed(Refusing(*refusals), now=lambda: now) == expected


async def test_a_retry_after_on_an_answer_that_succeeded_delays_nothing() -> None:
    assert await timed(Memory([MESSAGE], headers={"retry-after": "60"})) == (0, None, 1)


async def test_a_failure_before_any_event_is_tried_again_even_under_status_200() -> None:
    transport = Memory([PING, OVERLOADED], [MESSAGE])
    async with client(URL, transport) as asking, asking.stream(asked(URL)) as stream:
        events = [event async for event in stream]
    assert (stream.response.text, len(transport.sent)) == (SAID, 2)
    assert [failure.kind for failure in stream.retried] == ["overloaded"]
    assert [event.seq for event in events] == list(range(len(events)))
    assert all(answer.closed for answer in transport.answers)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([START, OVERLOADED], id="after the start"),
        pytest.param([START + OVERLOADED], id="after the start, in one piece"),
        pytest.param([HELLO, OVERLOADED], id="after text"),
        pytest.param([CALL + arguments('{"a'), OVERLOADED], id="after a call began"),
        pytest.param([HELLO, ConnectionResetError()], id="connection lost"),
        pytest.param([HELLO], id="cut"),
    ],
)
async def test_nothing_is_sent_again_once_anything_was_given_out(script: Any) -> None:
    transport = Memory(script, [MESSAGE])
    async with client(URL, transport, errors="event") as asking:
        response = await asking.respond(asked(URL))
    assert len(transport.sent) == 1
    assert response.error is not None
    assert response.error.retryable
    assert response.response_id == "msg_1"
    figure("faults after output")
    figure("repeats after output", len(transport.sent) - 1)


@pytest.mark.parametrize("place", range(1, 6))
async def test_a_fault_after_any_event_gives_the_partial_response(place: int) -> None:
    frames = [START, *HELLO.removeprefix(START).split(b"\n\n")]
    frames = [frame if frame.endswith(b"\n\n") else frame + b"\n\n" for frame in frames if frame]
    transport = Memory([*frames[:place], OVERLOADED], [MESSAGE])
    async with client(URL, transport, errors="event") as asking:
        response = await asking.respond(asked(URL))
    figure("faults after output")
    figure("repeats after output", len(transport.sent) - 1)
    assert (len(transport.sent), response.status) == (1, "failed")
    assert SAID.startswith(response.text)


async def test_a_failure_told_by_responses_before_anything_else_is_not_after_an_event() -> None:
    """`response.created` was given out: the caller has seen an answer begin."""
    transport = Memory(
        [CREATED + response_end("failed", error={"code": "server_error", "message": "x"})]
    )
    async with client(URL, transport, errors="event") as asking:
        assert (await asking.respond(asked(URL, "responses"))).status == "failed"
    assert len(transport.sent) == 1


def test_kinds_that_may_pass_are_those_the_client_tries_again() -> None:
    assert {
        kind
        for kind in RETRYABLE
        if POLICY.wait(ErrorInfo(kind, "", retryable=True), 0, 0, 0) is not None
    } == RETRYABLE
