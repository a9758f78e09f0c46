"""Streams of several starts: which one is delivered, what is closed, what is said of the others."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import msgspec
import pytest
import trio
import trio.testing
from anyio.from_thread import start_blocking_portal

from streamlib import Client, Provider, SyncClient, build
from streamlib.pipeline import coalesce
from streamlib.pipeline.starts import Start, StartedStream, StartFailure, fallback, race
from streamlib.testing import Behaviour, running
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    Completed,
    Created,
    Failed,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    RateLimits,
    ResponseEvent,
)
from streamlib_parsers.items import Message, Text
from streamlib_parsers.stream_error import StreamError
from tests.support.thorough import THOROUGH
from tests.support.timing import watching

pytestmark = pytest.mark.anyio

BUSY = ErrorInfo("overloaded", "busy", retryable=True, retry_after=37.0)
WRONG = ErrorInfo("invalid_request", "wrong")


def answer(text: str) -> list[ResponseEvent]:
    """A whole response of one message."""
    message = Message("assistant", ())
    events: list[ResponseEvent] = [
        RateLimits(),
        Created(f"r-{text}", "m"),
        OutputItemAdded(0, message),
        *[OutputTextDelta(0, 0, letter) for letter in text],
        OutputItemDone(0, Message("assistant", (Text(text),))),
        Completed(f"r-{text}", "m", "stop"),
    ]
    return [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(events)]


class Scripted:
    """A stream of steps: events, seconds to wait, exceptions to raise. It knows who uses it."""

    def __init__(self, *steps: Any) -> None:
        self.steps = steps
        self.is_new = True
        self.is_closed = False
        self.given = 0
        self._events = self._play()

    async def __aenter__(self) -> Scripted:
        assert self.is_new
        await anyio.lowlevel.checkpoint()
        self.is_new = False
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        self.is_closed = True
        with anyio.CancelScope(shield=True):
            await anyio.lowlevel.checkpoint()
            await self._events.aclose()

    def __aiter__(self) -> AsyncIterator[ResponseEvent]:
        return self._events

    async def _play(self) -> AsyncGenerator[ResponseEvent]:
        for step in self.steps:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, (int, float)):
                await anyio.sleep(step)
            else:
                self.given += 1
                yield step


class Starts:
    """Functions that return scripted streams, and what was started."""

    def __init__(self, *scripts: list[Any]) -> None:
        self.started: list[Scripted] = []
        self.functions: list[Start] = [self._start(script) for script in scripts]

    def _start(self, script: list[Any]) -> Start:
        def start() -> Scripted:
            stream = Scripted(*script)
            self.started.append(stream)
            return stream

        return start

    @property
    def open(self) -> int:
        return sum(not stream.is_new and not stream.is_closed for stream in self.started)


FAILS: dict[str, list[Any]] = {
    "raised": [RateLimits(), Created("r-x", "m"), StreamError(BUSY)],
    "event": [RateLimits(), Created("r-x", "m"), Failed(BUSY)],
    "at once": [StreamError(BUSY)],
}
"""Streams that fail before any output."""
each_failure = pytest.mark.parametrize("how", FAILS)


def numbers_from(events: list[ResponseEvent]) -> list[int]:
    """The numbers that events have if they follow their first one."""
    return [events[0].seq + place for place in range(len(events))]


async def read(stream: StartedStream) -> list[ResponseEvent]:
    async with stream as events:
        return [event async for event in events]


@each_failure
async def test_fallback_delivers_the_second_where_the_first_fails(how: str) -> None:
    starts = Starts(FAILS[how], answer("two"), answer("three"))
    stream = fallback(starts.functions)
    events = await read(stream)
    assert [type(event) for event in events].count(Created) == 1
    assert stream.response.text == "two"
    assert [event.seq for event in events] == list(
        range(events[0].seq, events[0].seq + len(events))
    )
    assert stream.report == (StartFailure(0, BUSY),)
    assert (len(starts.started), starts.open) == (2, 0)


async def test_fallback_closes_the_first_before_the_second_starts() -> None:
    starts = Starts(FAILS["raised"], answer("two"))
    seen: list[int] = []

    def second() -> Any:
        seen.append(starts.open)
        return starts.functions[1]()

    await read(fallback([starts.functions[0], second]))
    assert seen == [0]


@each_failure
async def test_fallback_ends_as_its_last_start(how: str) -> None:
    starts = Starts([StreamError(ErrorInfo("overloaded", "first", retryable=True))], FAILS[how])
    stream = fallback(starts.functions)
    if how == "event":
        events = await read(stream)
        assert isinstance(events[-1], Failed)
    else:
        with pytest.raises(StreamError) as raised:
            await read(stream)
        assert (raised.value.info.kind, raised.value.info.retry_after) == ("overloaded", 37.0)
        assert raised.value.response == stream.response
    assert [failure.number for failure in stream.report] == [0, 1]
    assert starts.open == 0


async def test_fallback_stops_at_a_failure_that_is_the_request_s() -> None:
    starts = Starts([StreamError(WRONG)], answer("two"))
    with pytest.raises(StreamError, match="wrong"):
        await read(fallback(starts.functions))
    assert len(starts.started) == 1
    stream = fallback(starts.functions, on=lambda error: error.kind == "invalid_request")
    await read(stream)
    assert stream.response.text == "two"


async def test_fallback_keeps_a_stream_that_breaks_after_output() -> None:
    starts = Starts([*answer("one")[:4], StreamError(BUSY)], answer("two"))
    stream = fallback(starts.functions)
    with pytest.raises(StreamError, match="busy"):
        await read(stream)
    assert stream.response.text == "o"
    assert (len(starts.started), starts.open) == (1, 0)


async def test_fallback_fails_at_its_deadline() -> None:
    starts = Starts([RateLimits(), 30], answer("two"))
    with pytest.raises(StreamError) as raised:
        await read(fallback(starts.functions, deadline=0.05))
    assert raised.value.info.kind == "deadline"
    assert (len(starts.started), starts.open) == (1, 0)


async def test_start_that_cannot_be_built_is_a_failure() -> None:
    def refused() -> Any:
        raise StreamError(BUSY)

    stream = fallback([refused, *Starts(answer("two")).functions])
    await read(stream)
    assert (stream.response.text, stream.report) == ("two", (StartFailure(0, BUSY),))


async def test_start_may_be_a_coroutine_function() -> None:
    async def late() -> Any:
        await anyio.lowlevel.checkpoint()
        return Scripted(*answer("two"))

    stream = fallback([late])
    await read(stream)
    assert stream.response.text == "two"


@pytest.mark.parametrize("make", [fallback, race])
async def test_exception_of_a_start_is_the_reader_s(make: Callable[..., StartedStream]) -> None:
    starts = Starts([Created("r", "m"), KeyError("bug")], answer("two"))
    with pytest.raises(KeyError):
        await read(make(starts.functions))
    assert starts.open == 0


@pytest.mark.parametrize("several", [fallback, race])
async def test_start_that_returns_no_stream_is_named(several: Any) -> None:
    with pytest.raises(TypeError, match="returned a list, which is no stream"):
        async with several([lambda: [1]]):
            pass


@pytest.mark.parametrize("make", [fallback, race])
async def test_run_cannot_be_a_start(make: Callable[..., StartedStream]) -> None:
    class Run(Scripted):
        is_run = True

    with pytest.raises(TypeError, match="a run has several responses"):
        await read(make([Run]))


def test_starts_are_checked_where_they_are_written() -> None:
    with pytest.raises(ValueError, match="at least one"):
        fallback([])
    with pytest.raises(ValueError, match="after"):
        race([Scripted], after=-1)
    with pytest.raises(ValueError, match="deadline"):
        fallback([Scripted], deadline=0)


async def test_race_takes_the_first_alone_where_it_is_quick() -> None:
    starts = Starts(answer("one"), answer("two"))
    stream = race(starts.functions, after=5)
    events = await read(stream)
    assert (stream.response.text, len(starts.started)) == ("one", 1)
    assert not any(isinstance(event, Notice) for event in events)


async def test_race_closes_the_loser_before_the_first_event() -> None:
    starts = Starts([Created("r-x", "m"), 30, *answer("one")], answer("two"))
    async with race(starts.functions, after=0.02) as events:
        first = await anext(aiter(events))
        assert starts.started[0].is_closed
        assert isinstance(first, RateLimits)
        rest = [event async for event in events]
    assert events.response.text == "two"
    [created, notice] = [event for event in rest if isinstance(event, (Created, Notice))]
    assert isinstance(created, Created)
    assert isinstance(notice, Notice)
    assert (notice.code, rest.index(notice)) == ("race_lost", rest.index(created) + 1)
    assert [event.seq for event in (first, *rest)] == list(
        range(first.seq, first.seq + 1 + len(rest))
    )
    assert starts.open == 0


async def test_race_starts_the_next_at_once_where_one_fails() -> None:
    starts = Starts(FAILS["raised"], answer("two"))
    with anyio.fail_after(5):
        stream = race(starts.functions, after=30)
        await read(stream)
    assert (stream.response.text, stream.report) == ("two", (StartFailure(0, BUSY),))


async def test_race_fails_as_its_last_where_all_fail() -> None:
    starts = Starts([0.05, StreamError(BUSY)], [StreamError(WRONG)])
    stream = race(starts.functions, after=0)
    with pytest.raises(StreamError, match="busy"):
        await read(stream)
    assert [failure.number for failure in stream.report] == [1, 0]
    assert starts.open == 0


@pytest.mark.parametrize("make", [fallback, race])
async def test_cancellation_at_the_entry_closes_every_start(
    make: Callable[..., StartedStream],
) -> None:
    starts = Starts([Created("r", "m"), 30], [30])
    with anyio.move_on_after(0.05) as scope:
        options = {"after": 0.01} if make is race else {}
        await read(make(starts.functions, **options))
    assert scope.cancelled_caught
    assert starts.open == 0


async def test_leaving_the_block_closes_the_stream() -> None:
    starts = Starts([*answer("one")[:4], 30])
    with anyio.fail_after(5):
        async with fallback(starts.functions) as events:
            async for event in events:
                if isinstance(event, OutputTextDelta):
                    break
    assert starts.open == 0


async def test_started_stream_has_stages() -> None:
    starts = Starts(FAILS["raised"], answer("two"))
    async with fallback(starts.functions).pipe(coalesce(1)) as events:
        assert "".join([text async for text in events.text()]) == "two"


async def test_many_streams_with_faults_are_never_mixed() -> None:
    """Scripted faults at every place: each reader gets one response, and nothing stays open.

    Of two streams whose numbers differ by 78, all of it is the same, or more often.
    """
    every: list[Starts] = []

    async def one(number: int) -> None:
        good, faulty = answer(f"good {number}"), answer(f"bad {number}")
        place = number % (len(faulty) + 1)
        script = [*faulty[:place], [StreamError(BUSY), Failed(BUSY), 0.05][number % 3]]
        starts = Starts(script, good)
        every.append(starts)
        if number % 2:
            stream = fallback(starts.functions)
        else:
            stream = race(starts.functions, after=0.01)
        try:
            events = await read(stream)
        except StreamError:
            events = []
        ids = {event.response_id for event in events if isinstance(event, (Created, Completed))}
        assert len(ids) <= 1
        text = "".join(event.delta for event in events if isinstance(event, OutputTextDelta))
        assert stream.response.text in (text, "") or not events
        assert f"bad {number}".startswith(text) or text == f"good {number}"

    async with anyio.create_task_group() as group:
        for number in range(2000 if THOROUGH else 500):
            group.start_soon(one, number)
    assert sum(starts.open for starts in every) == 0


# --- several models of one client ---


async def test_list_of_models_falls_back_to_the_next() -> None:
    async with running(Behaviour(status=529)) as busy, running() as well:
        providers = [server("busy", busy), server("well", well)]
        async with Client(providers=providers, api_key="sk") as client:
            async with client.stream("hi", ["busy:m-1", "well:m-2"]) as events:
                [event async for event in events]
            assert (events.response.model, events.response.status) == ("m-2", "completed")
            assert [failure.error.kind for failure in events.report] == ["overloaded"]
            assert await client.text("hi", ["busy:m-1", "well:m-2"]) == events.response.text


@contextmanager
def sync_server(behaviour: Behaviour | None = None) -> Iterator[str]:
    """The URL of a loopback provider with an event loop in a thread of its own."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(running(behaviour or Behaviour())) as url,
    ):
        yield url


def test_sync_list_of_models_falls_back_to_the_next() -> None:
    seen: list[str] = []
    with sync_server(Behaviour(status=529)) as busy, sync_server() as well:
        providers = [server("busy", busy), server("well", well)]
        models = ["busy:m-1", "well:m-2"]
        with SyncClient(providers=providers, api_key="sk", on_event=note(seen)) as client:
            with client.stream("hi", models) as events:
                text = "".join(events.text())
            assert (events.response.model, events.response.text) == ("m-2", text)
            assert [failure.error.kind for failure in events.report] == ["overloaded"]
            assert client.text("hi", models) == text
    assert seen.count("Created") == 2


def note(seen: list[str]) -> Callable[[ResponseEvent], None]:
    return lambda event: seen.append(type(event).__name__)


async def test_wrong_request_of_a_later_model_is_found_at_once() -> None:
    async with Client(api_key="sk") as client:
        with pytest.raises(StreamError, match="invalid_request"):
            client.stream("hi", ["openai:gpt-5", "nobody:m-2"])
        with pytest.raises(ValueError, match="at least one"):
            client.stream("hi", [])
        request = build("hi", "openai:gpt-5")
        with pytest.raises(TypeError, match="a Request is of one model"):
            client.stream(request, ["openai:gpt-5"])  # type: ignore[call-overload]


def server(name: str, url: str) -> Provider:
    return Provider(name, base_url=f"{url}/v1")


async def test_cancelled_read_of_a_start_loses_nothing() -> None:
    events = answer("one")
    starts = Starts([*events[:4], 0.05, *events[4:]])
    got: list[ResponseEvent] = []
    async with fallback(starts.functions) as stream:
        with anyio.move_on_after(0.01) as scope:
            async for event in stream:
                got.append(event)
        assert scope.cancelled_caught
        async for event in stream:
            got.append(event)
    assert got == events


# --- latency ---


def test_race_halves_the_tail() -> None:
    """Two of a hundred starts take ten times as long: the 99th percentile falls by half or more."""
    alone: list[float] = []
    raced: list[float] = []
    requests = 0

    async def ask() -> None:
        nonlocal requests
        for number in range(500):
            slow = 5.0 if number % 50 == 7 else 0.5
            starts = Starts([slow, *answer("one")], [0.5, *answer("two")])
            alone.append(slow)
            began = anyio.current_time()
            async with race(starts.functions, after=1) as events:
                await anext(aiter(events))
                raced.append(anyio.current_time() - began)
            requests += len(starts.started)

    trio.run(ask, clock=trio.testing.MockClock(autojump_threshold=0))
    assert sorted(raced)[494] <= sorted(alone)[494] / 2
    assert requests <= 550


async def test_losers_close_side_by_side() -> None:
    """One after the other, three that take their time would delay the first event three times."""

    class Slow(Scripted):
        async def aclose(self) -> None:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.2)
            await super().aclose()

    starts: list[Start] = [lambda: Slow(30)] * 3
    async with watching() as watch:
        began = anyio.current_time()
        async with race([*starts, lambda: Scripted(*answer("one"))], after=0) as events:
            await anext(aiter(events))
        assert anyio.current_time() - began < 0.5 + watch.stolen
