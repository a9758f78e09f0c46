"""Logs that somebody changed, or lost a half of: one named error, one end, at once."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from streamlib.durable import LogError, open_log
from streamlib.durable.memory import MemoryEngine
from streamlib.durable.records import Record
from streamlib.durable.rules import Operation, Result
from streamlib_parsers import accumulate
from tests.support.durable_engines import memory_engine
from tests.support.durable_http import FRAMES, HeldStream, app_of, get, kinds, sse, stream
from tests.support.virtual_time import anyio_backend  # noqa: F401  # a fixture

# --- writers in the background ---


async def test_deleted_log_ends_no_other(caplog: pytest.LogCaptureFixture) -> None:
    streams = {name: HeldStream() for name in "abc"}
    async with open_log(memory_engine()) as log, anyio.create_task_group() as group:
        for name, source in streams.items():
            await log.create(name)
            log.start(group, name, source)
        log.start(group, "\n", HeldStream())  # no id: reported, too
        await anyio.sleep(0.5)
        with caplog.at_level(logging.WARNING, "streamlib.durable"):
            await log.delete("b")
            await anyio.sleep(0.5)
        for name in "ac":
            streams[name].may_end.set()
            events = [entry.event async for entry in log.read(name)]
            assert accumulate(events).status == "completed"  # type: ignore[arg-type]
    assert any("'b'" in record.getMessage() for record in caplog.records)


async def test_engine_that_is_away_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    class Away(MemoryEngine):
        async def ask(self, log_id: str, operation: Operation, lines: bytes = b"") -> Result:
            raise LogError("unavailable", "away")

    async with open_log(Away(), outage=0.1) as log, anyio.create_task_group() as group:
        log.start(group, "a", stream(*FRAMES))
    assert "away" in caplog.text


# --- memory that is full for a while ---


class Full(MemoryEngine):
    """Raises as a server without memory does, while `is_full`."""

    is_full = False

    async def ask(self, log_id: str, operation: Operation, lines: bytes = b"") -> Result:
        if self.is_full:
            raise LogError("full", "no memory left")
        return await super().ask(log_id, operation, lines)


async def test_full_memory_is_waited_for() -> None:
    engine = Full()
    async with open_log(engine, outage=5) as log, anyio.create_task_group() as group:
        await log.create("a")
        group.start_soon(log.write, "a", stream(*FRAMES[:4], 0.4, *FRAMES[4:]))
        await anyio.sleep(0.1)
        engine.is_full = True
        await anyio.sleep(0.6)
        engine.is_full = False
        assert (await kinds(log))[-1] == "Completed"


async def test_reader_waits_for_memory_to_end_a_log() -> None:
    engine = Full()
    async with open_log(engine, lease=0.2, outage=5) as log, anyio.create_task_group() as group:
        await log.create("a")
        engine.is_full = True

        async def free() -> None:
            await anyio.sleep(0.8)
            engine.is_full = False

        group.start_soon(free)
        assert await kinds(log) == ["Failed"]


# --- records that cannot be read ---


@pytest.mark.parametrize(
    "lines", [b"no event\n", b"\xff\xfe\n", b'{"type":"\xff"}\n', b"{}\n" * 3, b"", b"[" * 9999]
)
async def test_unreadable_record_is_an_error_of_its_own(lines: bytes) -> None:
    engine = memory_engine()
    async with open_log(engine) as log:
        await log.write("a", stream(*FRAMES[:4], 1.0, *FRAMES[4:]))
        whole = await kinds(log)
        bad = engine._records["a"][-1]
        engine._records["a"][-1] = Record(bad.epoch, bad.first, bad.last, lines)
        with anyio.fail_after(5):
            found = await kinds(log)
            again = await kinds(log, f"1-{bad.first - 1}")
        # What is before it is delivered, once.
        assert found == [*whole[: bad.first - 1], "unreadable"]
        assert again == ["unreadable"]


async def test_unreadable_record_ends_every_route() -> None:
    engine = memory_engine()
    async with open_log(engine) as log:
        await log.create("a")
        await log.write("a", numbered(300))
        bad = engine._records["a"][80]
        engine._records["a"][80] = Record(bad.epoch, bad.first, bad.last, b"no event\n")
        app = app_of(log, replay_ended=True)
        with anyio.fail_after(20):
            events = await get(app, "/log/a/events")
            after = await get(app, "/log/a/events", last_event_id=f"1-{bad.first - 1}")
            poll = await get(app, f"/log/a?offset=1-{bad.first - 1}&live=long-poll")
            live = await get(app, "/log/a?offset=-1&live=sse")
            message = await get(app, "/api/chat/a/stream")
    assert sse(events.body)[-1]["id"] == f"1-{bad.first - 1}"
    assert b"rewound" not in events.body
    # EventSource does not come back after a status of 500.
    assert (after.status, after.error["kind"]) == (500, "unreadable")
    assert (poll.status, poll.error["kind"]) == (500, "unreadable")
    assert live.is_complete
    assert message.body.count(b'"type":"error"') == 1


async def numbered(count: int) -> AsyncIterator[Any]:
    async with stream(*FRAMES) as events:
        held = [event async for event in events]
    body = [event for event in held if type(event).__name__ == "OutputTextDelta"]
    start = held.index(body[0])
    for event in held[:start]:
        yield event
    for _ in range(count):
        yield body[0]
        await anyio.sleep(0.06)  # a record of its own
    for event in held[held.index(body[-1]) + 1 :]:
        yield event


async def test_push_that_cannot_be_read_is_a_hint() -> None:
    engine = memory_engine()
    source = HeldStream()
    async with open_log(engine) as log, anyio.create_task_group() as group:
        await log.create("a")
        log.start(group, "a", source)
        await anyio.sleep(0.5)
        for receive in list(engine._listeners):
            receive("a", Record(1, 1, 10**6, b"no event\n"))
        source.may_end.set()
        assert (await kinds(log))[-1] == "Completed"


async def test_rewinding_ends_without_progress() -> None:
    engine = memory_engine()
    async with open_log(engine) as log:
        await log.write("a", stream(*FRAMES[:4], 1.0, *FRAMES[4:]))
        del engine._records["a"][-1]
        state = engine._states["a"]
        engine._states["a"] = replace(state, last=1)  # fewer than it has
        with anyio.fail_after(5):
            response = await get(app_of(log), "/log/a/events")
        assert response.body.count(b"event: rewound") <= 1


# --- states that somebody changed ---


async def test_closed_log_without_an_end_is_unreadable() -> None:
    engine = memory_engine()
    async with open_log(engine) as log:
        await log.write("a", stream(*FRAMES[:4], 1.0, *FRAMES[4:]))
        last = engine._records["a"].pop()
        state = engine._states["a"]
        assert (await kinds(log))[-1] == "unreadable"
        engine._states["a"] = replace(state, last=last.first - 1)
        assert (await kinds(log))[-1] == "unreadable"


async def test_hole_in_a_log_is_unreadable() -> None:
    engine = memory_engine()
    async with open_log(engine) as log:
        await log.write("a", numbered(5))
        del engine._records["a"][2]
        found = await kinds(log)
        assert found[-1] == "unreadable"
        del engine._records["a"][0]
        assert await kinds(log) == ["unreadable"]


async def test_missing_log_with_a_cursor_is_gone_at_once() -> None:
    async with open_log(memory_engine()) as log:
        with anyio.fail_after(0.5):
            assert await kinds(log, "1-500") == ["gone"]
