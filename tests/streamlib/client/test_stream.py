"""A response stream: events, the response, timing, the end, misuse."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from streamlib.client.stream import ResponseStream
from streamlib.pipeline import only, pipe, tee
from streamlib.structured import json_items
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
from streamlib_parsers.stream_error import StreamError
from tests.support.cases import each_case
from tests.support.client_streams import FRAMES, all_events, stream_over, until
from tests.support.clients import LIBRARIES, make_client, make_request, open_http
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
    finish,
    part,
    stop,
    text,
)
from tests.support.scripted_server import (
    HANG,
    Wait,
    chunk,
    complete_response,
    head,
    scripted,
)

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


async def test_partial_raises_for_items_that_never_started() -> None:
    async with stream_over(
        CALL, arguments('{"city":'), arguments('"Paris"}'), stop(), finish("tool_use"), LAST
    ) as stream:
        async for event in stream:
            if isinstance(event, FunctionCallArgumentsDelta) and event.delta == '{"city":':
                assert stream.partial(0) == {}
        assert stream.partial(0) == {"city": "Paris"}
        with pytest.raises(LookupError, match="no item with the index 7 has started"):
            stream.partial(7)
    stream = stream_over(MESSAGE)
    await all_events(stream)
    assert stream.partial(0) == {}  # its text is no JSON


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
    # By the clock, with the ten seconds that the caller takes for each event.
    assert (timing.first_token, timing.last) == (33.0, 47.0)
    assert timing.tokens_per_second == pytest.approx(12 / 14.0)


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


READERS: Final[dict[str, Callable[[ResponseStream], AsyncIterable[Any]]]] = {
    "events": lambda stream: stream,
    "batches": lambda stream: stream.batches(),
    "text": lambda stream: stream.text(),
    "json_items": lambda stream: json_items(stream, "/cities", str),
}
CITIES: Final = MESSAGE.replace(b"Hello", rb"{\"cities\": [\"Rome\"").replace(b" there", b"]}")


async def read_by(stream: ResponseStream, name: str) -> list[Any]:
    """Everything that one way to read delivers."""
    return [value async for value in READERS[name](stream)]


@each_case("first", READERS)
@each_case("second", READERS)
async def test_stream_is_read_once(first: str, second: str) -> None:
    """The second loop got nothing, as if the response were empty."""
    async with stream_over(CITIES) as stream:
        assert await read_by(stream, first)
        with pytest.raises(RuntimeError, match=r"read once: .*`stream\.response`"):
            await read_by(stream, second)
        assert stream.snapshot.text == '{"cities": ["Rome"]}'
    with pytest.raises(RuntimeError, match="read once"):
        await read_by(stream, second)
    assert stream.response.status == "completed"


@pytest.mark.parametrize("errors", ["raise", "event"])
@pytest.mark.parametrize("second", ["events", "batches"])
async def test_failed_stream_is_read_once(errors: Any, second: str) -> None:
    async with stream_over(START, errors=errors) as stream:
        with suppress(StreamError):
            await read_by(stream, "events")
        with pytest.raises(RuntimeError, match="read once"):
            await read_by(stream, second)
    assert stream.response.error is not None


async def test_reader_made_before_the_end_reads_nothing_after_it() -> None:
    async with stream_over(MESSAGE) as stream:
        batches, texts = stream.batches(), stream.text()
        await read_by(stream, "events")
        for reader in (batches, texts):
            with pytest.raises(RuntimeError, match="read once"):
                await anext(reader)


async def test_stages_of_a_stream_that_was_read_raise() -> None:
    async with stream_over(MESSAGE) as stream:
        await read_by(stream, "events")
        with pytest.raises(RuntimeError, match="read once"):
            async with pipe(stream, only(OutputTextDelta)):
                pass
        async with tee(stream, 1) as (branch,):
            with pytest.raises(RuntimeError, match="read once"):
                await anext(branch)


@pytest.mark.parametrize("second", ["events", "batches", "text"])
async def test_loop_that_was_left_may_be_followed_by_another(second: str) -> None:
    async with stream_over(*FRAMES) as stream:
        async for event in stream:
            if isinstance(event, OutputTextDelta):
                break
        assert await read_by(stream, second)
    assert stream.response.text == HELLO_TEXT


async def test_iterator_that_ended_stays_ended() -> None:
    """As iterators do: the end by `anext` is no loop, and the same iterator is no second one."""
    async with stream_over(MESSAGE) as stream:
        while await anext(stream, None) is not None:
            pass
        assert await read_by(stream, "events") == []
    async with stream_over(MESSAGE) as stream:
        batches = stream.batches()
        assert [batch async for batch in batches]
        assert [batch async for batch in batches] == []


async def test_second_reader_is_refused_and_the_first_continues() -> None:
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


@pytest.mark.usefixtures("frozen_heap")
async def test_stream_dropped_open_names_the_line_that_created_it() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield MESSAGE

    # Made here, not by the shared helper: the warning names the file of the caller.
    stream = ResponseStream.from_chunks(chunks(), parser("messages"))
    await stream.__aenter__()
    with pytest.warns(ResourceWarning) as warned:  # noqa: PT031  # `del` is what warns
        del stream
        gc.collect()
    assert any(__file__ in str(warning.message) for warning in warned)
    figure("fault/no-with")


@pytest.mark.usefixtures("frozen_heap")
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
