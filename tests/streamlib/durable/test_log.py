"""Writing, reading and stopping a log, on both engines of the standard library."""

from __future__ import annotations

import math
import pickle
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from streamlib.client.stream import ResponseStream
from streamlib.durable import Entry, Log, LogError, open_log
from streamlib.durable.records import START, LogCursor, encode_event, endings
from streamlib.durable.settings import COMMIT_BYTES
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import (
    Completed,
    Created,
    ErrorInfo,
    Failed,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    accumulate,
)
from tests.support.client_streams import stream_over
from tests.support.response_bodies import frames_of

FRAMES = frames_of(6)
TEXT = "".join(f"word {n} " for n in range(6))
BEGINNING = FRAMES[:5]
FOREVER = 1e9

OpenLog = Callable[..., Log]


@pytest.fixture(params=["memory", "sqlite"])
def make_log(request: pytest.FixtureRequest, tmp_path: Path) -> OpenLog:
    """Opens logs of one engine; those of SQLite share a file."""
    url = "memory:"
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'logs.db'}"

    def make(**options: Any) -> Log:
        options = {"lease": 0.3, "interval": 0.005, **options}
        return open_log(url, **options)

    return make


def stream(*steps: bytes | float | BaseException) -> ResponseStream:
    """With a deadline, so that closing it wakes its reader at once, as over HTTP."""
    return stream_over(*steps, errors="event", deadlines=Deadlines(idle=FOREVER))


async def entries(log: Log, log_id: str, after: str | None = None) -> list[Entry]:
    with anyio.fail_after(5):
        return [entry async for entry in log.read(log_id, after)]


def events(found: list[Entry]) -> list[Any]:
    return [entry.event for entry in found]


@asynccontextmanager
async def writing(log: Log, log_id: str, *steps: bytes | float) -> AsyncGenerator[list[Any]]:
    """A writer beside the block, which must end by itself; its head, or what it raised."""
    with suppress(LogError):
        await log.create(log_id)
    ends: list[Any] = []

    async def write() -> None:
        try:
            ends.append(await log.write(log_id, stream(*steps)))
        except LogError as error:
            ends.append(error)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            yield ends


async def test_reader_gets_every_event_from_any_place(make_log: OpenLog) -> None:
    async with make_log() as log:
        await log.create("a", {"chat": 7})
        assert (await log.head("a")).state == "open"
        async with writing(log, "a", *FRAMES):
            alongside = await entries(log, "a")
        assert accumulate(events(alongside)).text == TEXT
        assert alongside == await entries(log, "a")
        for index, entry in enumerate(alongside):
            assert await entries(log, "a", entry.cursor) == alongside[index + 1 :]
        head = await log.head("a")
        assert (head.state, head.cursor, head.meta) == (
            "closed",
            alongside[-1].cursor,
            {"chat": 7},
        )


async def test_cursor_of_a_reader_cannot_be_moved(make_log: OpenLog) -> None:
    """Set forward, it would skip events without a word."""
    async with make_log() as log:
        await log.create("a")
        reader = log.read("a")
        with pytest.raises(AttributeError):
            reader.cursor = LogCursor(1, 5)  # type: ignore[misc]
        assert reader.cursor == START


async def test_events_arrive_while_the_response_is_written(make_log: OpenLog) -> None:
    async with make_log() as log, writing(log, "a", *BEGINNING, FOREVER):
        texts: list[str] = []
        async for entry in log.read("a"):
            if isinstance(entry.event, OutputTextDelta):
                texts.append(entry.event.delta)
                break
        assert texts == ["word 0 "]
        assert (await log.head("a")).state == "open"
        await log.stop("a")


async def test_first_token_waits_for_no_other_events(make_log: OpenLog) -> None:
    """It comes with the response's beginning, which was appended just before."""
    seen: list[str] = []
    async with make_log(lease=60, interval=60) as log, anyio.create_task_group() as group:
        await log.create("r")
        group.start_soon(log.write, "r", stream(BEGINNING[0], 0.02, *BEGINNING[1:], FOREVER))
        with anyio.move_on_after(5):
            async for entry in log.read("r"):
                if isinstance(entry.event, OutputTextDelta):
                    seen.append(entry.event.delta)
                    break
        group.cancel_scope.cancel()
    assert seen == ["word 0 "]


async def test_stop_ends_the_response_of_a_silent_model(make_log: OpenLog) -> None:
    async with make_log() as log:
        async with writing(log, "a", *BEGINNING, FOREVER) as ends:
            await anyio.sleep(0.05)
            await log.stop("a", "user")
            await log.stop("a", "too late")
        assert (ends[0].state, ends[0].reason) == ("closed", "user")
        last = events(await entries(log, "a"))[-1]
        assert isinstance(last, Failed)
        assert (last.error.kind, last.error.code) == ("cancelled", "user")
        assert accumulate(events(await entries(log, "a"))).items[0].status == "incomplete"


async def test_stop_before_the_writer_starts_no_response(make_log: OpenLog) -> None:
    async with make_log() as log:
        await log.create("a")
        await log.stop("a", "changed my mind")
        unused = stream(RuntimeError("it was read"))
        head = await log.write("a", unused)
        assert head.reason == "changed my mind"
        assert [type(event) for event in events(await entries(log, "a"))] == [Failed]


async def test_cancelled_writer_ends_its_log(make_log: OpenLog) -> None:
    async with make_log() as log:
        with anyio.move_on_after(0.1):
            await log.write("a", stream(*BEGINNING, FOREVER))
        found = events(await entries(log, "a"))
        assert found[-1].error.kind == "cancelled"
        assert accumulate(found).text == "word 0 word 1 word 2 "


async def test_created_log_is_read_before_its_writer_comes(make_log: OpenLog) -> None:
    """The trial's failure: an id was given out before its log existed, and was not found."""
    async with make_log() as log:
        await log.create("a")
        found: list[Entry] = []

        async def read() -> None:
            found.extend(await entries(log, "a"))

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await anyio.sleep(0.02)
            group.start_soon(log.write, "a", stream(*FRAMES))
        assert accumulate(events(found)).text == TEXT


async def test_readers_end_the_log_of_a_dead_writer(make_log: OpenLog) -> None:
    async with make_log() as log:
        await log.create("a")
        began = anyio.current_time()
        found: list[list[Any]] = []

        async def read() -> None:
            found.append(events(await entries(log, "a")))

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(read)
        assert all(each == found[0] for each in found)
        assert [event.error.code for event in found[0]] == ["writer_lost"]
        assert anyio.current_time() - began >= 0.3
        with pytest.raises(LogError, match="already") as info:
            await log.write("a", stream(*FRAMES))
        assert info.value.kind == "held"


async def test_id_is_used_once(make_log: OpenLog) -> None:
    async with make_log() as log:
        await log.create("a")
        with pytest.raises(LogError, match="already"):
            await log.create("a")
        await log.write("a", stream(*FRAMES))
        with pytest.raises(LogError, match="already"):
            await log.write("a", stream(*FRAMES))


async def test_deleted_log_is_gone_and_its_writer_ends(make_log: OpenLog) -> None:
    async with make_log() as log:
        async with writing(log, "a", *BEGINNING, FOREVER) as ends:
            await anyio.sleep(0.05)
            await log.delete("a")
        assert (ends[0].kind, ends[0].known) == ("gone", True)
        for call in (log.head("a"), log.delete("a"), log.stop("a"), entries(log, "a")):
            with pytest.raises(LogError) as info:
                await call
            assert (info.value.kind, info.value.known) == ("gone", True)
        with pytest.raises(LogError) as info:
            await log.head("never was")
        assert (info.value.kind, info.value.known) == ("gone", False)


async def test_cursor_of_a_former_log_is_rewound(make_log: OpenLog) -> None:
    async with make_log() as log:
        await log.write("a", stream(*FRAMES))
        await log.delete("a")
        await log.write("a", stream(*FRAMES))
        assert (await log.head("a")).epoch == 2
        with pytest.raises(LogError) as info:
            await entries(log, "a", "1-99")
        assert info.value.kind == "rewound"
        assert accumulate(events(await entries(log, "a"))).text == TEXT


async def test_failure_of_the_stream_is_in_the_log(make_log: OpenLog) -> None:
    async with make_log() as log:
        for number, errors in enumerate(("raise", "event")):
            broken = stream_over(*BEGINNING, errors=errors)
            await log.write(f"a{number}", broken)
            last = events(await entries(log, f"a{number}"))[-1]
            assert (last.error.kind, last.error.code) == ("truncated", None)


async def test_exception_of_a_stage_closes_the_log_and_is_raised(make_log: OpenLog) -> None:
    async def stage(source: ResponseStream) -> AsyncIterator[Any]:
        async with source:
            async for event in source:
                yield event
                if isinstance(event, OutputTextDelta):
                    raise ZeroDivisionError

    async with make_log() as log:
        with pytest.raises(ZeroDivisionError):
            await log.write("a", stage(stream(*FRAMES)))
        found = events(await entries(log, "a"))
        assert accumulate(found).text == "word 0 "
        assert (found[-1].error.kind, found[-1].error.retryable) == ("truncated", False)


async def test_log_holds_64_mebibytes_by_default() -> None:
    async with open_log() as log:
        assert log._settings.max_bytes == 64 * 1024 * 1024


async def test_log_over_its_limit_ends_honestly(make_log: OpenLog) -> None:
    async with make_log(max_bytes=600) as log:
        await log.write("a", stream(*frames_of(200)))
        found = events(await entries(log, "a"))
        assert (found[-1].error.kind, found[-1].error.code) == ("limit_exceeded", "max_bytes")
        assert accumulate(found).items[0].status == "incomplete"


async def test_long_open_item_ends_a_log_over_its_limit(make_log: OpenLog) -> None:
    """What ended it was longer than a record, so that the engine refused it again and again."""

    async def some() -> AsyncIterator[Any]:
        yield OutputItemAdded(0, Message("assistant"))
        for _ in range(100):
            yield OutputTextDelta(0, 0, "x" * COMMIT_BYTES)

    async with make_log(max_bytes=3 * COMMIT_BYTES) as log:
        with anyio.fail_after(5):
            await log.write("a", some())
        found = events(await entries(log, "a"))
        assert found[-1].error.code == "max_bytes"
        assert len(accumulate(found).text) == 2 * COMMIT_BYTES


async def test_batches_go_on_where_single_entries_stopped(make_log: OpenLog) -> None:
    async with make_log() as log:
        await log.write("a", stream(*FRAMES))
        reader = log.read("a")
        found = [await anext(reader), await anext(reader)]
        async for batch in reader.batches():
            found += batch
        assert found == await entries(log, "a")


async def test_any_events_of_one_response_can_be_written(make_log: OpenLog) -> None:
    async def some() -> AsyncIterator[Any]:
        yield Completed(seq=0)

    async with make_log() as log:
        await log.write("a", some())
        assert [type(event) for event in events(await entries(log, "a"))] == [Completed]


async def test_two_responses_are_one_log(make_log: OpenLog) -> None:
    async def run() -> AsyncIterator[Any]:
        for _ in range(2):
            async with stream(*FRAMES) as one:
                async for event in one:
                    yield event

    async with make_log() as log:
        head = await log.write("a", run())
        assert head.state == "closed"
        found = events(await entries(log, "a"))
        middle = len(found) // 2
        assert accumulate(found[:middle]).text == accumulate(found[middle:]).text == TEXT


async def test_exception_in_the_block_comes_out_as_it_is(make_log: OpenLog) -> None:
    async def fail() -> None:
        async with make_log() as log:
            await log.create("a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()


async def test_two_processes_share_a_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'logs.db'}"
    async with open_log(url) as ours, open_log(url) as theirs:
        async with writing(ours, "a", *BEGINNING, FOREVER) as ends:
            async for entry in theirs.read("a"):
                if isinstance(entry.event, OutputTextDelta):
                    break
            await theirs.stop("a", "from elsewhere")
            found = await entries(theirs, "a")
        assert ends[0].reason == "from elsewhere"
        assert found == await entries(ours, "a")


@pytest.mark.parametrize("wrong", ["", "x" * 201, "a\nb"])
async def test_id_that_cannot_be_one_is_a_value_error(wrong: str) -> None:
    async with open_log() as log:
        with pytest.raises(ValueError, match="a log's id"):
            await log.create(wrong)


@pytest.mark.parametrize("wrong", ["x", "1-", "-1", "1-2-3x", "1-²", "9" * 16])
async def test_cursor_that_is_none_is_a_value_error(wrong: str) -> None:
    async with open_log() as log:
        with pytest.raises(ValueError, match="a cursor is"):
            log.read("a", wrong)


@pytest.mark.parametrize("url", ["", "postgres://x", "sqlite:", "redis"])
def test_unknown_engine_is_a_value_error(url: str) -> None:
    with pytest.raises(ValueError, match="an engine is"):
        open_log(url)


def test_log_without_an_end_is_ended_with_its_open_items() -> None:
    begun = [
        Created("r", "m"),
        OutputItemAdded(0, Message("assistant")),
        OutputTextDelta(0, 0, "Hel"),
    ]
    error = ErrorInfo("truncated", "its writer died")
    item, failed = endings([encode_event(event) for event in begun], error)
    assert isinstance(item, OutputItemDone)
    assert (item.item.text, item.item.status) == ("Hel", "incomplete")
    assert isinstance(failed, Failed)
    assert failed.error == error


async def test_log_is_used_inside_of_its_block() -> None:
    log = open_log()
    with pytest.raises(RuntimeError, match="async with"):
        log.read("a")
    for call in (log.create("a"), log.write("a", stream()), log.stop("a"), log.head("a")):
        with pytest.raises(RuntimeError, match="async with"):
            await call


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lease": 0}, "lease is more than 0 seconds, not 0"),
        ({"lease": "5"}, "lease is more than 0 seconds, not '5'"),
        ({"keep": math.inf}, "keep is at most 1e+12 seconds"),
        ({"max_age": 1e300}, "max_age is at most 1e+12 seconds"),
        ({"ahead": 0.5}, "ahead is a whole number from 1, not 0.5"),
        ({"max_bytes": "1"}, "max_bytes is a whole number from 1, not '1'"),
        ({"url": None}, "an engine is a URL, as a text, or an `Engine`, not None"),
    ],
)
def test_wrong_option_of_a_log_is_refused(options: dict[str, Any], message: str) -> None:
    """A time that no engine can store failed when the log was to be closed."""
    with pytest.raises((TypeError, ValueError)) as raised:
        open_log(**options)
    assert str(raised.value) == message


def test_error_of_a_log_survives_pickle() -> None:
    error = pickle.loads(pickle.dumps(LogError("gone", "there is no log", known=True)))
    assert (error.kind, str(error), error.known) == ("gone", "there is no log", True)


async def test_wrong_argument_of_a_log_is_refused() -> None:
    wrong: Any = [Completed("r")]
    async with open_log() as log:
        calls: list[tuple[Any, str]] = [
            (lambda: log.create(wrong), "a log's id is a text, not "),
            (lambda: log.create("a", wrong), "meta is a dict of what can be JSON, not "),
            (lambda: log.create("a", {"a": object()}), "meta cannot be written as JSON: "),
            (lambda: log.write("a", wrong), "a log is written from what `async for` reads, not "),
            (lambda: log.stop("a", wrong), "the reason is a text, not "),
        ]
        for call, message in calls:
            with pytest.raises(TypeError) as raised:
                await call()
            assert str(raised.value).startswith(message)
        with pytest.raises(TypeError, match="a cursor is the text `cursor` of an `Entry`"):
            log.read("a", wrong)
        with pytest.raises(LogError, match="there is no log"):  # the id is still free
            await log.head("a")
