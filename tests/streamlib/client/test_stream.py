"""The stream: its events, its response, and that nothing leaks wherever it is stopped."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from streamlib.client.stream import ResponseStream
from streamlib.errors import StreamError
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import (
    Completed,
    Failed,
    FunctionCallArgumentsDelta,
    OutputTextDelta,
    RateLimits,
    accumulate,
    parser,
)
from tests.support.clients import LIBRARIES, MemoryTransport, make_client, make_request, open_http
from tests.support.metrics import figure
from tests.support.response_bodies import (
    CALL,
    CHAT,
    DONE,
    HELLO,
    HELLO_TEXT,
    LAST,
    MESSAGE,
    OPENED,
    START,
    arguments,
    converse,
    finish,
    part,
    stop,
    text,
)
from tests.support.scripted_server import (
    END,
    HANG,
    Script,
    Wait,
    chunk,
    complete_response,
    head,
    scripted,
)

EVENTS: Final = [text("Hello"), text(" there")]
FRAMES: Final = [START, OPENED.removeprefix(START), *EVENTS, stop(), finish(), LAST]
CONVERSE: Final = [
    converse("messageStart", role="assistant"),
    converse("contentBlockDelta", contentBlockIndex=0, delta={"text": HELLO_TEXT}),
    converse("contentBlockStop", contentBlockIndex=0),
    converse("messageStop", stopReason="end_turn"),
    converse("metadata", usage={"inputTokens": 7, "outputTokens": 5, "totalTokens": 12}),
]
CHAT_FRAMES: Final = [frame + b"\n\n" for frame in CHAT.split(b"\n\n") if frame]


def paced(frames: list[bytes], seconds: float = 0.0005) -> list[bytes | Wait]:
    """The frames as HTTP chunks, each followed by a pause."""
    steps: list[bytes | Wait] = []
    for frame in frames:
        steps += [chunk(frame), Wait(seconds)]
    return steps


PACED: Final[dict[str, Script]] = {
    "messages": [head(), *paced(FRAMES), END],
    "chat": [head(), *paced(CHAT_FRAMES), END],
    "converse": [
        head(content_type="application/vnd.amazon.eventstream"),
        *paced(CONVERSE),
        END,
    ],
}
"""One read per event, in three framings."""

Ask = Callable[[ResponseStream], Awaitable[None]]


def stream_over(
    *chunks: bytes | float | BaseException, wire: Any = "messages", **options: Any
) -> ResponseStream:
    """A stream over chunks from memory; a number is a pause in seconds."""

    async def bytes_of() -> AsyncIterator[bytes]:
        for step in chunks:
            if isinstance(step, BaseException):
                raise step
            if isinstance(step, bytes):
                yield step
            else:
                await anyio.sleep(step)

    return ResponseStream.from_chunks(bytes_of(), parser(wire), **options)


async def all_events(stream: ResponseStream) -> list[Any]:
    """All events of a stream."""
    async with stream:
        return [event async for event in stream]


# --- events and the response ---


async def test_events_are_those_of_the_parser() -> None:
    p = parser("messages")
    expected = [*p.feed(MESSAGE), *p.close()]
    assert await all_events(stream_over(MESSAGE)) == await all_events(stream_over(*FRAMES))
    assert [
        event
        for event in await all_events(stream_over(MESSAGE))
        if not isinstance(event, RateLimits)
    ] == expected


async def test_batches_hold_the_same_events_in_one_list_per_read() -> None:
    async with stream_over(*FRAMES) as stream:
        batches = [batch async for batch in stream.batches()]
    assert [event for batch in batches for event in batch] == await all_events(stream_over(*FRAMES))
    assert len(batches) <= len(FRAMES) + 1
    assert all(batches)


async def test_batches_and_events_can_be_mixed() -> None:
    async with stream_over(*FRAMES) as stream:
        seen = [await anext(stream)]
        async for batch in stream.batches():
            seen += batch
            seen += [event async for event in stream]
    assert seen == await all_events(stream_over(*FRAMES))


async def test_snapshot_accumulates_the_delivered_events() -> None:
    async with stream_over(MESSAGE) as stream:
        seen: list[Any] = []
        async for event in stream:
            seen.append(event)
            snapshot = stream.snapshot
            assert snapshot.items == accumulate(seen).items
            assert snapshot.text == accumulate(seen).text
    assert stream.response.status == "completed"
    assert stream.response.text == HELLO_TEXT


async def test_failure_is_raised_with_the_partial_response() -> None:
    stream = stream_over(HELLO)
    with pytest.raises(StreamError) as raised:
        await all_events(stream)
    assert raised.value.kind == "truncated"
    assert raised.value.response is not None
    assert raised.value.response.text == stream.response.text == HELLO_TEXT
    assert stream.response.status == "failed"
    assert (raised.value.__cause__, raised.value.__context__) == (None, None)


async def test_failure_is_an_event_when_requested() -> None:
    events = await all_events(stream_over(HELLO, errors="event"))
    assert isinstance(events[-1], Failed)


async def test_batches_deliver_events_before_they_raise() -> None:
    async with stream_over(HELLO) as stream:
        batches = stream.batches()
        seen = [*await anext(batches), *await anext(batches)]
        assert not any(isinstance(event, Failed) for event in seen)
        with pytest.raises(StreamError):
            await anext(batches)


async def test_connection_reset_after_the_end_is_ignored() -> None:
    assert isinstance(
        (await all_events(stream_over(MESSAGE, ConnectionResetError("gone"))))[-1], Completed
    )


async def test_connection_reset_before_the_end_is_truncated() -> None:
    events = await all_events(stream_over(HELLO, ConnectionResetError("gone"), errors="event"))
    assert events[-1].error.kind == "truncated"
    assert "gone" in events[-1].error.message


async def test_partial_arguments_are_read_while_they_stream() -> None:
    """With one read per delta, and with one read for all."""
    deltas = [arguments(text) for text in ('{"city":', '"Par', 'is", "days": 1', "2}")]
    frames = [CALL, *deltas, stop(), finish("tool_use"), LAST]
    for chunks in (frames, [b"".join(frames)]):
        async with stream_over(*chunks) as stream:
            views = [
                dict(stream.partial(0))
                async for event in stream
                if isinstance(event, FunctionCallArgumentsDelta)
            ]
            assert views == [{}, {"city": "Par"}, {"city": "Paris"}, {"city": "Paris", "days": 12}]
            assert stream.partial(0) == {"city": "Paris", "days": 12}


async def test_partial_raises_for_items_without_arguments() -> None:
    async with stream_over(
        CALL, arguments('{"city":'), arguments('"Paris"}'), stop(), finish("tool_use"), LAST
    ) as stream:
        async for event in stream:
            if isinstance(event, FunctionCallArgumentsDelta) and event.delta == '{"city":':
                assert stream.partial(0) == {}
        assert stream.partial(0) == {"city": "Paris"}
        with pytest.raises(LookupError):
            stream.partial(7)
    stream = stream_over(MESSAGE)
    await all_events(stream)
    with pytest.raises(LookupError):
        stream.partial(0)


async def test_timing_counts_from_the_request_without_the_caller() -> None:
    now = 100.0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal now
        for seconds, data in (
            (2.0, OPENED),
            (1.0, text("a")),
            (4.0, text("b")),
            (0.5, stop() + finish(tokens=12) + LAST),
        ):
            now += seconds
            yield data

    stream = ResponseStream.from_chunks(chunks(), parser("messages"), clock=lambda: now)
    async with stream:
        async for _ in stream:
            now += 10.0
    timing = stream.response.timing
    assert timing is not None
    assert timing.first_byte == 0.0
    assert timing.longest_gap == 4.0
    assert timing.first_token is not None
    assert timing.last is not None
    assert timing.tokens_per_second == pytest.approx(12 / (timing.last - timing.first_token))


# --- the end ---


async def test_usage_after_completion_is_read() -> None:
    usage = part(usage={"prompt_tokens": 3, "completion_tokens": 2}).replace(
        b'"choices": [{', b'"choices": [], "x": [{'
    )
    stream = stream_over(
        CHAT.removesuffix(DONE),
        0.05,
        usage,
        0.05,
        DONE,
        wire="chat",
        deadlines=Deadlines(drain=0.0),
    )
    await all_events(stream)
    assert stream.response.usage is not None
    assert stream.response.usage.output_tokens == 2


async def test_server_that_does_not_close_ends_no_response() -> None:
    async with (
        scripted([head(), chunk(MESSAGE), HANG]) as server,
        make_client(server.url, deadlines=Deadlines(drain=0.05)) as client,
    ):
        with anyio.fail_after(2):
            response = await client.respond(make_request(server.url))
        assert (response.status, response.text) == ("completed", HELLO_TEXT)
        await server.quiet()
        assert server.open == 0


async def test_pings_after_the_end_do_not_keep_the_stream_open() -> None:
    pings = [Wait(0.02), chunk(b": ping\n\n")] * 100
    async with (
        scripted([head(), chunk(MESSAGE), *pings, HANG]) as server,
        make_client(server.url, deadlines=Deadlines(drain=0.1)) as client,
    ):
        with anyio.fail_after(1):
            assert (await client.respond(make_request(server.url))).status == "completed"


# --- misuse ---


async def test_stream_is_not_read_outside_async_with() -> None:
    stream = stream_over(MESSAGE)
    with pytest.raises(RuntimeError, match="async with"):
        await anext(stream)
    assert [type(event) for event in await all_events(stream)][-1] is Completed


async def test_stream_is_entered_once() -> None:
    stream = stream_over(MESSAGE)
    await all_events(stream)
    with pytest.raises(RuntimeError, match="once"):
        await all_events(stream)


async def test_second_reader_is_refused_and_the_first_goes_on() -> None:
    async with (
        stream_over(START, 0.05, MESSAGE.removeprefix(START)) as stream,
        anyio.create_task_group() as group,
    ):
        await anext(stream)
        while stream._pending:
            await anext(stream)

        async def second() -> None:
            await anyio.sleep(0.01)
            with pytest.raises(RuntimeError, match="another task"):
                await anext(stream)

        group.start_soon(second)
        assert [event async for event in stream]
    assert stream.response.status == "completed"


async def test_reading_after_a_break_raises_cancelled() -> None:
    async with stream_over(*FRAMES) as stream:
        async for event in stream:
            if isinstance(event, OutputTextDelta):
                break
    with pytest.raises(StreamError) as raised:
        await anext(stream)
    assert raised.value.kind == "cancelled"


async def test_stream_dropped_open_names_the_line_that_created_it() -> None:
    stream = stream_over(MESSAGE)
    await stream.__aenter__()
    with pytest.warns(ResourceWarning) as warned:  # noqa: PT031  # `del` is what warns
        del stream
        gc.collect()
    assert any(__file__ in str(warning.message) for warning in warned)
    figure("fault/no-with")


@pytest.mark.parametrize("http", LIBRARIES)
async def test_connection_of_a_dropped_stream_is_closed_by_the_next(http: str) -> None:
    async with (
        scripted([head(), chunk(HELLO), HANG], complete_response(MESSAGE)) as server,
        open_http(http) as http_client,
        make_client(server.url, http_client) as client,
    ):
        stream = client.stream(make_request(server.url))
        await stream.__aenter__()
        await anext(stream)
        with pytest.warns(ResourceWarning):  # noqa: PT031  # `del` is what warns
            del stream
            gc.collect()
        assert (await client.respond(make_request(server.url))).text == HELLO_TEXT
        await until(lambda: server.open == 1, 0.2)
        assert server.open == 1
        assert [idle.is_idle() for idle in http_client._transport._pool.connections] == [True]
        assert client._transport.slots.borrowed_tokens == 0


# --- stopping ---


@pytest.mark.parametrize("http", LIBRARIES)
@pytest.mark.parametrize("way", ["break", "exception", "aclose"])
async def test_leaving_after_any_event_closes_the_connection(http: str, way: str) -> None:
    """The usage received so far is kept."""
    count = len(await all_events(stream_over(MESSAGE)))
    async with (
        scripted(PACED["messages"]) as server,
        open_http(http) as http_client,
        make_client(server.url, http_client) as client,
    ):
        for position in range(1, count):
            async with client.stream(make_request(server.url)) as stream:
                with (
                    pytest.raises(ZeroDivisionError) if way == "exception" else anyio.CancelScope()
                ):
                    async for event in stream:
                        if event.seq == position:
                            if way == "aclose":
                                await stream.aclose()
                            if way == "exception":
                                raise ZeroDivisionError
                            break
            assert stream.response.status == "cancelled", position
            if position >= 2:
                assert stream.response.usage is not None
                assert stream.response.usage.input_tokens == 7
            left = anyio.current_time()
            await server.quiet(2)  # 0.1 s is enough on a machine that does nothing else
            assert server.open == 0, position
            figure("stops")
            figure("slowest/close, s", anyio.current_time() - left)
        figure("fault/break-early")


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.003, 0.006, 0.01, 0.02])
@pytest.mark.parametrize("http", LIBRARIES)
async def test_another_task_may_close_at_any_moment(http: str, delay: float) -> None:
    slow = [Wait(0.004), head(), *paced(FRAMES, 0.003), HANG]
    async with (
        scripted(slow) as server,
        open_http(http) as http_client,
        make_client(server.url, http_client) as client,
    ):
        kinds: list[str] = []

        async def reading(stream: ResponseStream) -> None:
            try:
                async with stream:
                    async for _ in stream:
                        pass
            except StreamError as error:
                kinds.append(error.kind)

        with anyio.fail_after(2):
            async with anyio.create_task_group() as group:
                stream = client.stream(make_request(server.url))
                group.start_soon(reading, stream)
                await anyio.sleep(delay)
                await stream.aclose()
        assert kinds in (["cancelled"], [])
        assert stream.response.status in {"cancelled", "incomplete"}
        await server.quiet()
        assert server.open == 0


async def test_closing_ends_the_delay_before_a_retry() -> None:
    refused = complete_response(b"{}", "503 Busy", "application/json", retry_after="100")
    async with (
        scripted(refused) as server,
        make_client(server.url) as client,
        anyio.create_task_group() as group,
    ):
        stream = client.stream(make_request(server.url))

        async def reading() -> None:
            with pytest.raises(StreamError) as raised:
                await all_events(stream)
            assert raised.value.kind == "cancelled"

        group.start_soon(reading)
        await anyio.sleep(0.1)
        with anyio.fail_after(1):
            await stream.aclose()
    assert len(server.requests) == 1


class CancelAt:
    """Awaits a coroutine and calls `cancel` at its n-th wait. `count` is the number of waits."""

    def __init__(self, coroutine: Any, n: int, cancel: Callable[[], object]) -> None:
        self.count = 0
        self._coroutine = coroutine
        self._n = n
        self._cancel = cancel

    def __await__(self) -> Generator[Any, Any, Any]:
        step: Callable[[], Any] = lambda: self._coroutine.send(None)  # noqa: E731
        while True:
            try:
                waiting = step()
            except StopIteration as stopped:
                return stopped.value
            self.count += 1
            if self.count == self._n:
                self._cancel()
            try:
                value = yield waiting
                step = _sender(self._coroutine, value)
            except BaseException as error:  # noqa: BLE001  # passed on to the coroutine
                step = _thrower(self._coroutine, error)


def _sender(coroutine: Any, value: Any) -> Callable[[], Any]:
    return lambda: coroutine.send(value)


def _thrower(coroutine: Any, error: BaseException) -> Callable[[], Any]:
    return lambda: coroutine.throw(error)


async def read_through(stream: ResponseStream) -> None:
    """Reads a stream to its end."""
    async with stream:
        async for _ in stream:
            pass


async def stopped_by_scope(stream: ResponseStream, n: int) -> bool:
    """Reads a stream, cancelled at its n-th wait by a scope; returns whether it had n waits."""
    with anyio.CancelScope() as scope:
        counted = CancelAt(read_through(stream), n, scope.cancel)
        await counted
    return counted.count >= n


async def stopped_by_asyncio(stream: ResponseStream, n: int) -> bool:
    """The same by `Task.cancel`, as most frameworks do: once, and ignoring shields."""
    task: asyncio.Task[Any]
    counted = CancelAt(read_through(stream), n, lambda: task.cancel())  # noqa: PLW0108  # set below
    task = asyncio.create_task(_awaited(counted))
    with suppress(asyncio.CancelledError):
        await task
    return counted.count >= n


async def _awaited(counted: CancelAt) -> None:
    await counted


async def sweep(
    http: str, wire: str, stopped: Callable[[ResponseStream, int], Awaitable[bool]], rounds: int = 1
) -> int:
    """Stops a stream at each of its waits; returns how many there were.

    After each stop, only the idle connections of the pool are open.
    """
    stops, slowest = 0, 0.0
    async with (
        scripted(PACED[wire]) as server,
        open_http(http) as http_client,
        make_client(server.url, http_client) as client,
    ):
        pool, slots = http_client._transport._pool, client._transport.slots
        for _ in range(rounds):
            n, more = 0, True
            while more:
                n += 1
                stream = client.stream(make_request(server.url, wire))
                more = await stopped(stream, n)
                stops += more
                left = anyio.current_time()  # 0.1 s is enough on a machine that does nothing else
                await until(
                    lambda: (
                        server.open == sum(connection.is_idle() for connection in pool.connections)
                    ),
                    2,
                )
                slowest = max(slowest, anyio.current_time() - left)
                assert server.open == sum(
                    connection.is_idle() for connection in pool.connections
                ), (
                    n,
                    pool.connections,
                )
                assert [
                    connection
                    for connection in pool.connections
                    if not (connection.is_idle() or connection.is_closed())
                ] == []
                assert slots.borrowed_tokens == 0
                assert stream.response.status in {"cancelled", "completed", "incomplete"}
        assert (await client.respond(make_request(server.url, wire))).text == HELLO_TEXT
        await http_client.aclose()
        await server.quiet()
        assert server.open == 0
    figure("stops", stops)
    figure("slowest/close, s", slowest)
    figure("fault/cancel-any")
    gc.collect()
    await anyio.lowlevel.checkpoint()
    return stops


async def until(settled: Callable[[], bool], seconds: float) -> None:
    """Waits until it is true, at most so many seconds."""
    with anyio.move_on_after(seconds):
        while not settled():  # noqa: ASYNC110  # a socket has no event to wait for
            await anyio.sleep(0.001)


@pytest.mark.parametrize("http", LIBRARIES)
@pytest.mark.parametrize("wire", PACED)
async def test_cancellation_at_any_await_leaves_nothing_open(http: str, wire: str) -> None:
    assert await sweep(http, wire, stopped_by_scope) > 5


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("http", LIBRARIES)
@pytest.mark.parametrize("wire", PACED)
async def test_unshielded_cancellation_leaves_nothing_open(http: str, wire: str) -> None:
    assert await sweep(http, wire, stopped_by_asyncio) > 5


@pytest.mark.slow
@pytest.mark.parametrize("http", LIBRARIES)
@pytest.mark.parametrize("wire", PACED)
async def test_ten_thousand_stops_leave_nothing_open(http: str, wire: str) -> None:
    """Over both loops, both libraries and three wires."""
    assert await sweep(http, wire, stopped_by_scope, rounds=70) > 500


async def test_iterator_of_the_caller_is_closed_with_the_stream() -> None:
    closed = False

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal closed
        try:
            for frame in FRAMES:
                yield frame
        finally:
            closed = True

    async with ResponseStream.from_chunks(chunks(), parser("messages")) as stream:
        async for _ in stream:
            break
    assert closed


async def test_cancelled_wait_ends_the_stream_and_its_connection() -> None:
    memory = MemoryTransport([START, 60.0])
    async with (
        make_client("http://memory.example", memory) as client,
        client.stream(make_request("http://memory.example")) as stream,
    ):
        with anyio.move_on_after(0.05):
            async for _ in stream:
                pass
        assert memory.responses[0].closed
        with pytest.raises(StreamError) as raised:
            await anext(stream)
    assert raised.value.kind == "cancelled"
    assert stream.response.usage is not None
    assert stream.response.usage.input_tokens == 7
