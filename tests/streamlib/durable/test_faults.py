"""Writers that die, freeze, lose the network, or are fenced; engines that lose records."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest

from lab.durable.scenarios import FAULTS, counts, run_many
from streamlib.durable import Log, LogError, open_log
from streamlib.durable.hub import MAX_WAITING, SWEEP_FIRST, Hub
from streamlib.durable.memory import MemoryEngine
from streamlib.durable.records import LogCursor, Record
from streamlib.durable.rules import Append, LogState, Open, Result
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import Completed, OutputItemDone, OutputTextDelta, accumulate
from tests.support.client_streams import stream_over
from tests.support.durable_engines import Connection, loop_milliseconds, lose, memory_engine
from tests.support.response_bodies import frames_of
from tests.support.virtual_time import anyio_backend  # noqa: F401  # a fixture

FRAMES = frames_of(6)
LEASE = 15.0


def stream(*steps: bytes | float) -> Any:
    return stream_over(*steps, errors="event", deadlines=Deadlines(idle=1e9))


async def read(log: Log, log_id: str = "a") -> list[Any]:
    return [entry.event async for entry in log.read(log_id)]


async def test_every_reader_sees_the_same_under_every_fault() -> None:
    """80 logs: five readers each, which leave and come back at random places."""
    found = counts(await run_many(memory_engine(), 0, 80, 80))
    assert found["wrong"] == []
    assert found["faults"].keys() == FAULTS.keys()
    assert {"completed", "user", "writer_lost"} <= found["ends"].keys()


async def test_append_whose_result_is_lost_lands_once() -> None:
    engine = memory_engine()
    connection = Connection(engine)
    steps: list[bytes | float] = []
    for frame in FRAMES:
        steps += [frame, 0.2]
    async with open_log(connection) as log, anyio.create_task_group() as group:
        await log.create("a")
        group.start_soon(log.write, "a", stream(*steps))
        await anyio.sleep(0.3)
        connection.answers_lost = 3
        events = await read(log)
    assert connection.answers_lost == 0
    assert [event.seq for event in events] == list(range(len(events)))


@pytest.mark.parametrize("seconds", [5.0, 100.0])
async def test_frozen_writer_is_fenced_only_after_its_lease(seconds: float) -> None:
    engine = memory_engine()
    connection = Connection(engine)
    ended: list[Any] = []

    async def write(log: Log) -> None:
        try:
            ended.append(await log.write("a", stream(*FRAMES[:4], 1.0, *FRAMES[4:])))
        except LogError as error:
            ended.append(error)

    async with open_log(connection) as writing, open_log(Connection(engine)) as reading:
        await writing.create("a")
        async with anyio.create_task_group() as group:
            group.start_soon(write, writing)
            await anyio.sleep(0.5)
            connection.frozen_until = anyio.current_time() + seconds
            began = anyio.current_time()
            found = await read(reading)
            elapsed = anyio.current_time() - began
    if seconds < LEASE:
        assert ended[0].state == "closed"
        assert accumulate(found).text.startswith("word 0 word 1 ")
        assert found[-1].stop_reason == "stop"
    else:
        assert ended[0].kind == "fenced"
        assert found[-1].error.code == "writer_lost"
        assert elapsed <= 2 * LEASE + 1


async def test_writer_gives_up_on_an_engine_that_is_away() -> None:
    engine = memory_engine()
    connection = Connection(engine)
    async with open_log(connection, outage=30) as log:
        await log.create("a")
        connection.cut = True
        began = anyio.current_time()
        with pytest.raises(LogError) as info:
            await log.write("a", stream(*FRAMES))
        assert info.value.kind == "unavailable"
        connection.cut = False
        silent = stream(*FRAMES[:3], 1e9)

        async def cut_soon() -> None:
            await anyio.sleep(1)
            connection.cut = True

        async with anyio.create_task_group() as group:
            group.start_soon(cut_soon)
            with pytest.raises(LogError) as info:
                await log.write("b", silent)
        assert info.value.kind == "unavailable"
        assert 30 <= anyio.current_time() - began <= 45
        assert silent.response.status == "cancelled"


async def test_reader_waits_for_an_engine_that_restarts() -> None:
    engine = memory_engine()
    connection = Connection(engine)
    found: list[Any] = []
    async with open_log(engine) as ours, open_log(connection, outage=30) as theirs:
        await ours.write("a", stream(*FRAMES))
        connection.cut = True

        async def read_behind() -> None:
            found.extend(await read(theirs))

        async with anyio.create_task_group() as group:
            group.start_soon(read_behind)
            await anyio.sleep(10)
            connection.cut = False
        assert found == await read(ours)
        connection.cut = True
        with pytest.raises(LogError) as info:
            await read(theirs)
        assert info.value.kind == "unavailable"


async def test_engine_without_linger_is_not_waited_for() -> None:
    engine = memory_engine()
    async with open_log(engine) as log:
        began = anyio.current_time()
        await log.write("a", stream(*FRAMES))
        assert anyio.current_time() - began < 0.1


async def test_engine_that_lost_a_closed_log_gets_it_again() -> None:
    """The trial's failure: lines were dropped before `linger` was over."""
    for keep in (0, None):
        engine = memory_engine()
        engine.linger = 5.0
        async with open_log(engine, interval=0.01) as log, anyio.create_task_group() as group:
            await log.create("a")
            group.start_soon(log.write, "a", stream(*FRAMES[:3], 0.1, *FRAMES[3:]))
            before = await read(log)
            lose(engine, "a", keep)
            await anyio.sleep(2)
            assert await read(log) == before


async def test_provider_waits_for_a_slow_engine() -> None:
    """At most `ahead` events and one read are taken from the provider."""
    engine = memory_engine()
    connection = Connection(engine)
    async with open_log(connection, ahead=50) as log, anyio.create_task_group() as group:
        await log.create("a")
        source = stream(*frames_of(1000))
        connection.frozen_until = anyio.current_time() + 5
        group.start_soon(log.write, "a", source)
        await anyio.sleep(4)
        assert len(source.response.text.split()) <= 2 * 60
        assert accumulate(await read(log)).text.split()[-1] == "999"


async def test_events_wait_for_others_but_the_first_and_ends_do_not() -> None:
    engine = memory_engine()
    connection = Connection(engine)
    steps: list[bytes | float] = []
    for frame in frames_of(100):
        steps += [frame, 0.01]
    async with open_log(connection, interval=0.05) as log:
        await log.write("a", stream(*steps))
    appends = [op for op in connection.operations if isinstance(op, Append) and op.size]
    assert appends[0].last <= 2  # one read
    assert 18 <= len(appends) <= 28
    assert [append.closes for append in appends].index(True) == len(appends) - 1


async def test_end_of_an_item_does_not_wait_for_others() -> None:
    """A tool can begin then, and the model may be silent for long."""
    *frames, item_end, stop_reason, last = frames_of(6)
    times: dict[type[Any], float] = {}
    async with open_log(memory_engine(), interval=10) as log, anyio.create_task_group() as group:
        await log.create("a")
        source = stream(*frames, 1.0, item_end, 60.0, stop_reason, last)
        group.start_soon(log.write, "a", source)
        async for entry in log.read("a"):
            times[type(entry.event)] = anyio.current_time()
    assert times[OutputItemDone] - times[OutputTextDelta] < 2


async def test_silent_writer_gives_signs_of_life() -> None:
    engine = memory_engine()
    connection = Connection(engine)
    async with open_log(connection, lease=15) as log:
        await log.write("a", stream(*FRAMES[:4], 60.0, *FRAMES[4:]))
        events = await read(log)
    signs = [op for op in connection.operations if isinstance(op, Append) and not op.size]
    assert 11 <= len(signs) <= 13
    assert events[-1].stop_reason == "stop"


class Rounded(Connection):
    """Tells its readers the lease in whole seconds, as an engine's expiry may be."""

    async def read(
        self, log_id: str, after: LogCursor, most: int
    ) -> tuple[LogState | None, int, list[Record]]:
        state, now, records = await super().read(log_id, after, most)
        if state is not None:
            lease_until = state.lease_until // 1000 * 1000
            state = msgspec.structs.replace(state, lease_until=lease_until)
        return state, now, records


async def test_reader_does_not_trust_a_rounded_lease() -> None:
    """The trial's failure: a reader ended the log of a writer that was alive.

    The lease looks lapsed and unchanged for a whole second, in which the writer renews it ten
    times. Only the engine, which has not rounded it, decides.
    """
    engine = memory_engine()
    readers = Rounded(engine)
    options: dict[str, Any] = {"lease": 0.3}
    async with (
        open_log(engine, **options) as writing,
        open_log(readers, **options) as reading,
        anyio.create_task_group() as group,
    ):
        await writing.create("a")
        group.start_soon(writing.write, "a", stream(*FRAMES[:4], 20.0, *FRAMES[4:]))
        found = await read(reading)
    takeovers = [op for op in readers.operations if isinstance(op, Open)]
    assert len(takeovers) > 5  # the reader took the writer for dead
    assert found[-1].stop_reason == "stop"


async def test_slow_reader_holds_few_records_and_misses_none() -> None:
    engine = memory_engine()
    async with open_log(engine, interval=0.001) as log:
        await log.create("a")
        steps: list[bytes | float] = []
        for frame in frames_of(300):
            steps += [frame, 0.002]
        async with anyio.create_task_group() as group:
            group.start_soon(log.write, "a", stream(*steps))
            reader = log.read("a")
            events = [(await anext(reader)).event]
            await anyio.sleep(60)
            assert len(reader._follower.records) <= MAX_WAITING
            events += [entry.event async for entry in reader]
    assert events == await read_all(engine)


async def read_all(engine: MemoryEngine) -> list[Any]:
    async with open_log(Connection(engine)) as log:
        return await read(log)


async def test_two_writers_leave_the_events_of_one() -> None:
    for pause in range(20):
        engine = memory_engine()
        ends: list[Any] = []

        async def write(log: Log, ends: list[Any] = ends) -> None:
            try:
                ends.append(await log.write("a", stream(*FRAMES[:3], 0.01, *FRAMES[3:])))
            except LogError as error:
                ends.append(error.kind)

        async with open_log(Connection(engine)) as ours, open_log(Connection(engine)) as theirs:
            async with anyio.create_task_group() as group:
                group.start_soon(write, ours)
                await anyio.sleep(pause * 0.001)
                group.start_soon(write, theirs)
            events = await read(ours)
        assert accumulate(events).text == "".join(f"word {n} " for n in range(6))
        assert "held" in ends


async def test_dropped_reader_is_forgotten() -> None:
    engine = memory_engine()
    hub = Hub(engine)
    follower = hub.follow("a")
    assert engine._followed == {"a"}
    del follower
    hub._receive("a", None)
    assert engine._followed == set()


async def test_readers_leave_no_trace_in_a_process_that_only_reads() -> None:
    """Most leave their loop at the terminal event, or before; nothing is pushed behind it."""
    async with open_log() as log, open_log(log._engine) as readers:
        await log.write("a", stream(*FRAMES))
        async for entry in readers.read("a"):
            if isinstance(entry.event, Completed):
                break
        assert not readers._hub._followers
        for number in range(500):
            await anext(readers.read("a"))
            readers._hub.follow(f"dropped {number}")
        assert len(readers._hub._followers) <= SWEEP_FIRST


async def test_sweep_waits_until_the_logs_have_doubled() -> None:
    hub = Hub(memory_engine())
    kept = [hub.follow(f"kept {number}") for number in range(SWEEP_FIRST)]
    most = 0
    for number in range(3 * SWEEP_FIRST):
        hub.follow(f"dropped {number}")
        most = max(most, len(hub._followers))
    assert most == 2 * len(kept)


async def test_reader_of_a_lost_log_waits_for_one_lease() -> None:
    """Its writer may be there still, and restore it."""
    engine = memory_engine()
    async with open_log(engine, lease=LEASE) as log:
        await log.create("a")
        reader = log.read("a")
        assert await reader.next_batch(1) is None
        lose(engine, "a", None)
        began = anyio.current_time()
        with pytest.raises(LogError) as info:
            await anext(reader)
        assert info.value.kind == "gone"
        assert LEASE <= anyio.current_time() - began <= 3 * LEASE


async def test_engine_without_any_room_ends_the_writer() -> None:
    class Full(MemoryEngine):
        async def ask(self, log_id: str, operation: Any, lines: bytes = b"") -> Result:
            if isinstance(operation, Append) and operation.size:
                return Result("full", 1, 0)
            return await super().ask(log_id, operation, lines)

    async with open_log(Full()) as log:
        with anyio.fail_after(5), pytest.raises(LogError) as caught:
            await log.write("a", stream(*FRAMES))
        assert caught.value.kind == "full"


async def test_logs_whose_time_is_over_leave_the_memory() -> None:
    engine = MemoryEngine(clock=loop_milliseconds)
    async with open_log(engine, keep=10) as log:
        for number in range(50):
            await log.write(f"a{number}", stream(*FRAMES))
        await anyio.sleep(11)
        await log.create("b")
        assert engine._records == {}
        with pytest.raises(LogError) as info:
            await read(log, "a0")
        assert (info.value.kind, info.value.known) == ("gone", True)
        await anyio.sleep(25 * 3600)
        with pytest.raises(LogError) as info:
            await read(log, "a0")
        assert (info.value.kind, info.value.known) == ("gone", False)


async def test_reader_in_short_steps_notices_a_dead_writer() -> None:
    """As over HTTP, where a step ends with a ping: the lease never passed within one."""
    engine = memory_engine()
    connection = Connection(engine)
    async with open_log(connection) as writing, open_log(engine) as log:
        async with anyio.create_task_group() as group:
            group.start_soon(writing.write, "a", stream(*FRAMES[:4], 1e9))
            await anyio.sleep(1)
            connection.cut = True
            group.cancel_scope.cancel()
        events: list[Any] = []
        reader = log.read("a")
        with anyio.fail_after(2 * LEASE + 1):
            while not reader.is_ended:
                entries = await reader.next_batch(LEASE / 2)
                events += [entry.event for entry in entries or ()]
        assert events[-1].error.code == "writer_lost"


async def test_step_that_was_given_up_is_read_again() -> None:
    connection = Connection(memory_engine())
    async with open_log(connection) as log:
        await log.write("a", stream(*FRAMES))
        batches = log.read("a").batches()
        connection.frozen_until = anyio.current_time() + 1
        with anyio.move_on_after(0.5):
            await anext(batches)
        with anyio.fail_after(1):
            assert await anext(batches)
