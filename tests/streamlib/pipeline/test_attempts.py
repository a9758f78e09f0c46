"""Streams that are tried one after another: what ends the choice, and what a failure leaves."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streamlib.pipeline.attempts import BUFFERED_EVENTS, Attempts, Opened, read_opening
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    Completed,
    Created,
    Failed,
    FunctionCallArgumentsDelta,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    RateLimits,
    ReasoningContentDelta,
    ResponseEvent,
    ResponseMetadata,
    TokenCount,
)
from streamlib_parsers.items import Message, Text
from streamlib_parsers.stream_error import StreamError
from streamlib_parsers.usage import Usage
from tests.support.cases import each_case

BUSY = ErrorInfo("overloaded", "busy", retryable=True)
WRONG = ErrorInfo("invalid_request", "wrong")
MESSAGE = Message("assistant", (Text("Hi"),))
BEFORE: tuple[ResponseEvent, ...] = (
    RateLimits(),
    Created("r-1", "m"),
    Notice("x", "y"),
    ResponseMetadata({"a": 1}),
    TokenCount(Usage()),
    Passthrough("ping", {}),
    OutputItemAdded(0, MESSAGE),
)
OUTPUT: tuple[ResponseEvent, ...] = (
    OutputTextDelta(0, 0, "Hi"),
    ReasoningContentDelta(0, 0, "Hm"),
    FunctionCallArgumentsDelta(0, "{"),
    OutputItemDone(0, MESSAGE),
    Completed("stop"),
)


class Source:
    """The batches of a stream."""

    def __init__(self, *batches: Sequence[ResponseEvent]) -> None:
        self.left = list(batches)

    def __aiter__(self) -> Source:
        return self

    async def __anext__(self) -> list[ResponseEvent]:
        if not self.left:
            raise StopAsyncIteration
        return list(self.left.pop(0))


async def read(opened: Opened) -> list[ResponseEvent]:
    return [event async for batch in opened for event in batch]


# --- the beginning of a stream ---


@pytest.mark.parametrize("output", OUTPUT, ids=lambda event: type(event).__name__)
async def test_opening_ends_with_the_first_output(output: ResponseEvent) -> None:
    source = Source(*[[event] for event in (*BEFORE, output, Completed("stop"))])
    opened = await read_opening(source)
    assert opened.failure is None
    assert len(source.left) == 1
    assert await read(opened) == [*BEFORE, output, Completed("stop")]


@each_case("count", range(len(BEFORE) + 1))
async def test_opening_fails_before_the_first_output(count: int) -> None:
    opened = await read_opening(Source(BEFORE[:count], [Failed(BUSY)]))
    assert opened.failure == BUSY


async def test_item_that_a_failure_ends_is_no_output() -> None:
    """Parsers close what is open before they report that a stream was cut."""
    cut = Message("assistant", (), status="incomplete")
    opened = await read_opening(Source([*BEFORE, OutputItemDone(0, cut), Failed(BUSY)]))
    assert opened.failure == BUSY


async def test_failure_after_output_belongs_to_the_stream() -> None:
    events = [*BEFORE, OUTPUT[0], Failed(BUSY)]
    opened = await read_opening(Source(events))
    assert opened.failure is None
    assert await read(opened) == events


async def test_opening_of_a_stream_without_output_is_bounded() -> None:
    events = [Passthrough("ping", {})] * 10
    opened = await read_opening(Source(*[events] * 1000, [Failed(BUSY)]))
    assert opened.failure is None
    assert len(await anext(opened)) <= BUFFERED_EVENTS + len(events)


async def test_empty_stream_has_no_events() -> None:
    opened = await read_opening(Source())
    assert (opened.failure, await read(opened)) == (None, [])


# --- the choice ---


def starts(*names: str, busy: bool = False) -> Attempts[str]:
    left = list(names)

    async def next_start() -> str | None:
        if left:
            return left.pop(0)
        if busy:
            raise StreamError(ErrorInfo("rate_limited", "full"))
        return None

    return Attempts(next_start)


async def tried(attempts: Attempts[str], **failures: ErrorInfo) -> list[str]:
    names: list[str] = []
    async for name in attempts:
        names.append(name)
        if name in failures:
            attempts.failed(failures[name])
    return names


async def test_next_is_tried_only_where_one_has_failed() -> None:
    attempts = starts("a", "b", "c")
    assert await tried(attempts, a=BUSY) == ["a", "b"]
    assert (attempts.failure, attempts.failures) == (None, [BUSY])


async def test_each_failure_is_reported_in_order() -> None:
    attempts = starts("a", "b")
    other = ErrorInfo("server_error", "oh", retryable=True)
    assert await tried(attempts, a=BUSY, b=other) == ["a", "b"]
    assert (attempts.failure, attempts.failures) == (other, [BUSY, other])


async def test_failure_that_would_occur_again_ends_the_choice() -> None:
    attempts = starts("a", "b")
    assert await tried(attempts, a=WRONG) == ["a"]
    assert attempts.failure == WRONG


async def test_failure_of_a_stream_is_worth_more_than_no_stream() -> None:
    attempts = starts("a", busy=True)
    assert await tried(attempts, a=BUSY) == ["a"]
    assert attempts.failure == BUSY
    attempts = starts(busy=True)
    assert await tried(attempts) == []
    assert attempts.failure is not None
    assert attempts.failure.message == "full"
