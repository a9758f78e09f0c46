"""A response stream that is stopped: wherever that happens, no socket and no task is left."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import suppress
from typing import Any, Final

import anyio
import anyio.lowlevel
import msgspec
import pytest

from streamlib.client.retry import RetryPolicy
from streamlib.client.stream import ResponseStream
from streamlib_parsers import Completed, Failed, OutputItemDone, accumulate, parser
from streamlib_parsers.stream_error import StreamError
from tests.support.cases import each_case
from tests.support.client_streams import FRAMES, all_events, stream_over, until
from tests.support.clients import LIBRARIES, MemoryTransport, make_client, make_request, open_http
from tests.support.loops import asyncio_alone
from tests.support.metrics import figure
from tests.support.response_bodies import (
    CHAT,
    HELLO_TEXT,
    MESSAGE,
    OPENED,
    OVERLOADED,
    START,
    converse,
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

        with anyio.fail_after(10):  # the server never ends it
            async with anyio.create_task_group() as group:
                stream = client.stream(make_request(server.url))
                group.start_soon(reading, stream)
                await anyio.sleep(delay)
                await stream.aclose()
        assert kinds in (["cancelled"], [])
        assert stream.response.status in {"cancelled", "incomplete"}
        await server.quiet(2)  # 0.1 s is enough on a machine that does nothing else
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
        await until(lambda: stream._pause is not None, 10)  # its delay of 100 s has begun
        with anyio.fail_after(10):
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


@pytest.mark.usefixtures("frozen_heap")
@pytest.mark.parametrize("http", LIBRARIES)
@pytest.mark.parametrize("wire", PACED)
async def test_cancellation_at_any_await_leaves_nothing_open(http: str, wire: str) -> None:
    assert await sweep(http, wire, stopped_by_scope) > 5


@asyncio_alone
@pytest.mark.usefixtures("frozen_heap")
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


# --- the closing events (C9) ---


def one_terminal_at_the_end(events: Sequence[Any]) -> bool:
    terminal = [type(event) in (Completed, Failed) for event in events]
    return terminal.count(True) == 1 and terminal[-1]


async def test_rest_gives_the_closing_events_to_a_cancelled_reader() -> None:
    """C9: the ends of open items and `Failed` belong to a complete log."""
    memory = MemoryTransport([OPENED, text("Hello"), 60.0])
    delivered: list[Any] = []
    async with (
        make_client("http://memory.example", memory) as client,
        client.stream(make_request("http://memory.example")) as stream,
    ):
        with anyio.move_on_after(0.05):
            async for event in stream:
                delivered.append(event)
        assert delivered
        rest = stream.rest()
    assert one_terminal_at_the_end([*delivered, *rest])
    assert isinstance(rest[0], OutputItemDone)
    assert isinstance(rest[-1], Failed)
    assert rest[-1].error.kind == "cancelled"
    assert [event.seq for event in (*delivered, *rest)] == list(range(len(delivered) + len(rest)))
    assert accumulate([*delivered, *rest]) == without_timing(stream)


async def test_rest_gives_what_a_reader_left_unread() -> None:
    """C9."""
    delivered: list[Any] = []
    async with stream_over(MESSAGE) as stream:
        async for event in stream:
            delivered.append(event)
            break
        assert stream.rest() == []
    assert one_terminal_at_the_end([*delivered, *stream.rest()])
    assert accumulate([*delivered, *stream.rest()]) == without_timing(stream)


async def test_rest_is_empty_after_a_complete_iteration() -> None:
    """C9."""
    stream = stream_over(MESSAGE)
    await all_events(stream)
    assert stream.rest() == []


def without_timing(stream: ResponseStream) -> Any:
    return msgspec.structs.replace(stream.response, timing=None)


@pytest.mark.parametrize("script", [[OVERLOADED], [ConnectionResetError("gone")]])
async def test_reader_cancelled_before_a_retry_ends_cancelled(script: list[Any]) -> None:
    """C9: it ended `incomplete` without an error."""
    memory = MemoryTransport(script)
    retry = RetryPolicy(retries=1, base=60, jitter=0)
    async with (
        make_client("http://memory.example", memory, retry=retry) as client,
        client.stream(make_request("http://memory.example")) as stream,
    ):
        with anyio.move_on_after(0.05):
            await anext(stream)
        assert stream.response.status == "cancelled"
        assert stream.response.error is not None
        assert one_terminal_at_the_end(stream.rest())
        assert len(stream.retried) == 1


class LateTransport(MemoryTransport):
    """Its headers, or a failure, arrive though the task that waits was just interrupted."""

    def __init__(self, *scripts: Any, fails: bool = False, **options: Any) -> None:
        super().__init__(*scripts, **options)
        self.fails = fails
        self.waits = anyio.Event()
        self.arrives = anyio.Event()

    async def send(self, *args: Any) -> Any:
        response = await super().send(*args)
        if len(self.sent) == len(self.scripts):
            self.waits.set()
            with anyio.CancelScope(shield=True):
                await self.arrives.wait()
            if self.fails:
                raise OSError("the connection was reset")
        return response


@each_case("mode", ["raise", "event"])
@each_case("retried", [False, True])
@each_case("fails", [False, True])
async def test_nothing_follows_the_end_when_closing_races_the_headers(
    mode: Any, *, retried: bool, fails: bool
) -> None:
    """C9: rate limits from the headers came after `Failed`."""
    scripts = [[OVERLOADED], [MESSAGE]] if retried else [[MESSAGE]]
    limits = {"anthropic-ratelimit-requests-limit": "5"}
    late = LateTransport(*scripts, fails=fails, headers=limits)
    retry = RetryPolicy(retries=1, base=0, jitter=0)
    delivered: list[Any] = []
    async with make_client("http://memory.example", late, retry=retry) as client:
        stream = client.stream(make_request("http://memory.example"), errors=mode)

        async def read() -> None:
            with suppress(StreamError):
                async with stream:
                    async for event in stream:
                        delivered.append(event)

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await late.waits.wait()
            await stream.aclose()
            late.arrives.set()
        if not fails:
            # Before the client, which would close what was left open.
            assert late.responses[-1].closed
    assert stream.response.status == "cancelled"
    if mode == "event":
        assert one_terminal_at_the_end([*delivered, *stream.rest()])
    assert stream.response.rate_limits is None
