"""When a request is sent again: the policy, every form of Retry-After, and the client."""

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
from streamlib.providers import Provider, shipped
from streamlib_parsers import ErrorInfo
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import RETRYABLE
from streamlib_parsers.stream_error import StreamError
from tests.support.cases import each_case
from tests.support.clients import MemoryTransport, make_client, make_request
from tests.support.metrics import figure
from tests.support.response_bodies import (
    CALL,
    CREATED,
    HELLO,
    HELLO_TEXT,
    MESSAGE,
    OVERLOADED,
    PING,
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


def test_delay_doubles_up_to_its_cap_less_jitter() -> None:
    policy = RetryPolicy(retries=10, base=0.5, cap=8, jitter=0.25)
    assert [policy.wait(BUSY, n, 0, 0.0) for n in range(6)] == [0.5, 1, 2, 4, 8, 8]
    assert policy.wait(BUSY, 0, 0, 1.0) == 0.375


def test_number_of_retries_is_limited() -> None:
    assert [POLICY.wait(BUSY, n, 0, 0) is None for n in range(4)] == [False, False, True, True]
    assert NO_RETRY.wait(BUSY, 0, 0, 0) is None


@given(
    st.sampled_from(["rate_limited", "overloaded"]),
    st.floats(0, 1e6),
    st.floats(0, 1),
    st.integers(0, 5),
    st.floats(0, 1e4),
)
def test_retry_after_is_exact_or_left_to_the_caller(
    kind: Any, asked_for: float, chance: float, attempt: int, elapsed: float
) -> None:
    failure = ErrorInfo(kind, "", retryable=True, retry_after=asked_for)
    assert RetryPolicy(retries=6).wait(failure, attempt, elapsed, chance) == (
        asked_for if asked_for <= 120 else None
    )


@given(st.floats(0, 200), st.floats(0, 200), st.floats(0, 1), st.integers(0, 9))
def test_no_delay_exceeds_the_total(
    elapsed: float, total: float, chance: float, attempt: int
) -> None:
    pause = RetryPolicy(retries=10).wait(BUSY, attempt, elapsed, chance, total)
    assert pause is None or elapsed + pause < total


def test_permanent_failure_is_not_retried() -> None:
    assert POLICY.wait(ErrorInfo("authentication", ""), 0, 0, 0) is None
    assert (
        POLICY.wait(
            ErrorInfo("rate_limited", "", retryable=True, retry_after=float("nan")), 0, 0, 0
        )
        is None
    )


# --- Retry-After ---


@each_vector("retry_after_vectors")
def test_retry_after_is_read_in_every_form(vector: dict[str, Any]) -> None:
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


class Refusing(MemoryTransport):
    """Responds with these statuses and headers in turn, then with a complete response."""

    def __init__(self, *refusals: tuple[int, Mapping[str, str]]) -> None:
        super().__init__([error_body("rate_limit_error")])
        self.refusals = refusals

    async def send(self, *request: Any) -> Any:
        turn = len(self.sent)
        refused = turn < len(self.refusals)
        self.status, self.headers = self.refusals[turn] if refused else (200, {})
        self.scripts = ([error_body("rate_limit_error")] if refused else [MESSAGE],)
        return await super().send(*request)


async def timed(transport: MemoryTransport, **options: Any) -> tuple[float, str | None, int]:
    """Seconds that it took, the kind of the failure if any, and the number of requests."""
    began, kind = anyio.current_time(), None
    async with make_client(URL, transport, **options) as client:
        try:
            await client.respond(make_request(URL))
        except StreamError as error:
            kind = error.kind
    return round(anyio.current_time() - began, 6), kind, len(transport.sent)


@each_case(
    "refusals, expected",
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
async def test_client_honours_the_delay_of_the_provider(refusals: Any, expected: Any) -> None:
    now = datetime(2026, 11, 21, 20, tzinfo=UTC)
    assert await timed(Refusing(*refusals), now=lambda: now) == expected


async def test_retry_after_on_a_success_delays_nothing() -> None:
    assert await timed(MemoryTransport([MESSAGE], headers={"retry-after": "60"})) == (0, None, 1)


async def test_failure_before_any_event_is_retried_under_status_200() -> None:
    transport = MemoryTransport([PING, OVERLOADED], [MESSAGE])
    async with make_client(URL, transport) as client, client.stream(make_request(URL)) as stream:
        events = [event async for event in stream]
    assert (stream.response.text, len(transport.sent)) == (HELLO_TEXT, 2)
    assert [failure.kind for failure in stream.retried] == ["overloaded"]
    assert [event.seq for event in events] == list(range(len(events)))
    assert all(response.closed for response in transport.responses)


@pytest.mark.parametrize(("within", "requests"), [(None, 2), (40, 2), (20, 1)])
async def test_request_is_not_sent_again_after_its_time(
    within: float | None, requests: int
) -> None:
    transport = MemoryTransport([30.0, OVERLOADED], [MESSAGE])
    retry = RetryPolicy(within=within)
    async with make_client(URL, transport, retry=retry, errors="event") as client:
        response = await client.respond(make_request(URL))
    assert (len(transport.sent), response.error is None) == (requests, requests == 2)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([START, OVERLOADED], id="after the start"),
        pytest.param([START + OVERLOADED], id="after the start, in one chunk"),
        pytest.param([HELLO, OVERLOADED], id="after text"),
        pytest.param([CALL + arguments('{"a'), OVERLOADED], id="after a call began"),
        pytest.param([HELLO, ConnectionResetError()], id="connection lost"),
        pytest.param([HELLO], id="cut"),
    ],
)
async def test_nothing_is_retried_after_an_event_was_delivered(script: Any) -> None:
    transport = MemoryTransport(script, [MESSAGE])
    async with make_client(URL, transport, errors="event") as client:
        response = await client.respond(make_request(URL))
    assert len(transport.sent) == 1
    assert response.error is not None
    assert response.error.retryable
    assert response.response_id == "msg_1"
    figure("faults after output")
    figure("repeats after output", len(transport.sent) - 1)


@pytest.mark.parametrize("count", range(1, 6))
async def test_fault_after_any_event_gives_the_partial_response(count: int) -> None:
    frames = [START, *HELLO.removeprefix(START).split(b"\n\n")]
    frames = [frame if frame.endswith(b"\n\n") else frame + b"\n\n" for frame in frames if frame]
    transport = MemoryTransport([*frames[:count], OVERLOADED], [MESSAGE])
    async with make_client(URL, transport, errors="event") as client:
        response = await client.respond(make_request(URL))
    figure("faults after output")
    figure("repeats after output", len(transport.sent) - 1)
    assert (len(transport.sent), response.status) == (1, "failed")
    assert HELLO_TEXT.startswith(response.text)


async def test_failed_response_is_not_retried_after_created() -> None:
    """`response.created` was delivered: the caller has seen the response begin."""
    transport = MemoryTransport(
        [CREATED + response_end("failed", error={"code": "server_error", "message": "x"})]
    )
    async with make_client(URL, transport, errors="event") as client:
        assert (await client.respond(make_request(URL, "responses"))).status == "failed"
    assert len(transport.sent) == 1


def test_retryable_kinds_are_those_the_client_retries() -> None:
    assert {
        kind
        for kind in RETRYABLE
        if POLICY.wait(ErrorInfo(kind, "", retryable=True), 0, 0, 0) is not None
    } == RETRYABLE


# --- idempotency ---


def sent_values(transport: MemoryTransport, header: str) -> list[str | None]:
    """The value of a header in each request."""
    return [headers.get(header) for _, _, headers, _, _ in transport.sent]


async def test_every_attempt_has_the_same_idempotency_value() -> None:
    provider = Provider(
        name="faulty", wires=("messages",), base_url=URL, idempotency_header="Idempotency-Key"
    )
    transport = MemoryTransport([OVERLOADED], [OVERLOADED], [MESSAGE])
    async with make_client(URL, transport, providers=(provider,)) as client:
        for _ in range(2):
            assert (await client.respond(make_request(URL))).text == HELLO_TEXT
    first, second, third, other = sent_values(transport, "idempotency-key")
    assert first is not None
    assert first == second == third
    assert other not in {None, first}


async def test_idempotency_value_of_the_request_is_kept() -> None:
    provider = Provider(
        name="faulty", wires=("messages",), base_url=URL, idempotency_header="Idempotency-Key"
    )
    transport = MemoryTransport([OVERLOADED], [MESSAGE])
    request = make_request(URL)
    request.headers["Idempotency-Key"] = "mine"
    async with make_client(URL, transport, providers=(provider,)) as client:
        await client.respond(request)
    assert sent_values(transport, "idempotency-key") == ["mine", "mine"]


def test_no_shipped_provider_claims_an_idempotency_header() -> None:
    """A provider gets one together with the source that documents it."""
    assert [name for name, provider in shipped().items() if provider.idempotency_header] == []


def test_official_sdks_send_no_idempotency_header() -> None:
    """The source of what docs/errors.md says of them."""
    for name, client in (("openai", "OpenAI"), ("anthropic", "Anthropic")):
        sdk = pytest.importorskip(name, reason=f"{name} is not installed")
        assert getattr(sdk, client)(api_key="sk-none")._idempotency_header is None
