"""Logs on a real Valkey server: equal to the rules, and through its crash."""

from __future__ import annotations

import gc
import re
import shutil
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from lab.durable.scenarios import counts, run_many
from streamlib.durable import Log, LogError, open_log
from streamlib.testing.engines import check_engine
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import accumulate
from tests.support.client_streams import stream_over
from tests.support.redis_servers import RedisServer, running_server, valkey_binary
from tests.support.response_bodies import frames_of

pytest.importorskip("coredis", reason="no client for Redis: the extra `redis` is not installed")
from streamlib.durable.redis import EVERY_SECOND, RedisEngine, _first_of, _record  # needs the extra

# coredis leaves its in-memory streams open where it cannot connect.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

FRAMES = frames_of(40)
TEXT = "".join(f"word {n} " for n in range(40))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One server for the tests that leave it running."""
    with running_server(valkey_binary(), tmp_path_factory.mktemp("valkey")) as running:
        yield running


@pytest.fixture(autouse=True)
def short_linger(monkeypatch: pytest.MonkeyPatch, frozen_heap: None) -> Iterator[None]:
    """Five seconds behind each log would be most of the time of these tests."""
    monkeypatch.setattr(RedisEngine, "linger", 0.5)
    yield
    gc.collect()  # what is left open warns here, not in the test of another file


def slow_stream(pause: float) -> Any:
    steps: list[bytes | float] = []
    for frame in FRAMES:
        steps += [frame, pause]
    return stream_over(*steps, errors="event", deadlines=Deadlines(idle=1e9))


@asynccontextmanager
async def connected(server: RedisServer) -> AsyncGenerator[RedisEngine]:
    engine = RedisEngine(server.url)
    await engine.connect()
    try:
        yield engine
    finally:
        await engine.aclose()


async def test_script_equals_the_rules(server: RedisServer) -> None:
    async with connected(server) as engine:
        assert engine.durability == EVERY_SECOND
        await check_engine(engine, operations=150, seed=int(time.time()))


async def test_every_reader_sees_the_same_under_every_fault(server: RedisServer) -> None:
    async with connected(server) as engine:
        with anyio.fail_after(30):
            found = counts(await run_many(engine, time.time_ns(), 5, 5, server.url))
    assert found["wrong"] == []


async def test_stop_of_another_process_ends_the_stream(server: RedisServer) -> None:
    log_id = f"stopped-{time.time_ns()}"
    async with (
        open_log(server.url) as ours,
        open_log(server.url.replace("redis", "valkey")) as theirs,
    ):
        await ours.create(log_id)
        async with anyio.create_task_group() as group:
            group.start_soon(ours.write, log_id, slow_stream(1e9))
            async for _ in theirs.read(log_id):
                break
            began = time.monotonic()
            await theirs.stop(log_id)
            with anyio.fail_after(5):
                events: list[Any] = [entry.event async for entry in theirs.read(log_id)]
        assert time.monotonic() - began < 1
    assert events[-1].error.code == "user"


async def test_silent_resubscription_loses_no_event(server: RedisServer) -> None:
    """The trial's failure: the client library subscribes again, and what came between is lost.

    The lease is a minute, so that no reader looks by itself.
    """
    log_id = f"resubscribed-{time.time_ns()}"
    go_on = anyio.Event()

    async def events() -> AsyncGenerator[Any]:
        complete = stream_over(*FRAMES, errors="event")
        async with complete as stream:
            count = 0
            async for event in stream:
                count += 1
                if count == 10:
                    await go_on.wait()
                yield event

    options: dict[str, Any] = {"lease": 60, "interval": 0.001}
    async with (
        open_log(server.url, **options) as ours,
        open_log(server.url, **options) as theirs,
    ):
        await ours.create(log_id)
        found: list[Any] = []

        async def read() -> None:
            found.extend([entry.event async for entry in theirs.read(log_id)])

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(ours.write, log_id, events())
                group.start_soon(read)
                await anyio.sleep(0.2)
                assert server.ask("CLIENT KILL TYPE pubsub") == ":2\r\n"
                go_on.set()
    assert accumulate(found).text == TEXT


async def test_appends_do_not_write_the_meta_again(server: RedisServer) -> None:
    """A gateway's has the tools of a request: tens of kilobytes, twenty times a second."""

    def size() -> int:
        found = re.search(r"aof_current_size:(\d+)", server.ask("INFO persistence"))
        assert found is not None
        return int(found[1])

    log_id = f"meta-{time.time_ns()}"
    async with open_log(server.url, interval=0.0001) as log:
        await log.create(log_id, {"tools": "x" * 100_000})
        before = size()
        await log.write(log_id, slow_stream(0.001))
        assert size() - before < 200_000  # once more, for the writer
        assert len((await log.head(log_id)).meta["tools"]) == 100_000


@pytest.mark.parametrize("loses", [False, True])
async def test_log_survives_a_crash_of_the_server(tmp_path: Path, loses: bool) -> None:
    """Also of one that has lost everything: the writer sends it again."""
    with running_server(valkey_binary(), tmp_path) as server:
        async with open_log(server.url, lease=2) as log:
            await log.create("a")
            found: list[Any] = []

            async def read() -> None:
                async for entry in log.read("a"):
                    found.append(entry)

            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    group.start_soon(read)
                    group.start_soon(log.write, "a", slow_stream(0.01))
                    await anyio.sleep(0.2)
                    server.kill()
                    if loses:
                        shutil.rmtree(tmp_path / "appendonlydir")
                    await anyio.to_thread.run_sync(server.start)
            again = [entry async for entry in log.read("a")]
    assert accumulate([entry.event for entry in found]).text == TEXT
    assert found == again


async def test_evicting_server_is_refused(tmp_path: Path) -> None:
    options = ("--maxmemory-policy", "allkeys-lru")
    with running_server(valkey_binary(), tmp_path, *options) as server:
        await refused(server.url, "noeviction")


async def test_server_that_is_away_is_one_named_error(tmp_path: Path) -> None:
    with running_server(valkey_binary(), tmp_path) as server:
        url = server.url.replace("//", "//user:secret-pass@")
    for address in (server.url, url):
        await refused(address, "Redis: ")


async def refused(url: str, message: str) -> None:
    with pytest.raises(LogError, match=message) as info:
        async with open_log(url):
            pass
    assert info.value.kind == "unavailable"
    assert "secret-pass" not in str(info.value)


# --- what somebody changed on the server ---


async def outcome(log: Log, log_id: str, after: str | None = None) -> str:
    """How a reader ends: the name of the last event, or the kind of the error."""
    last = "nothing"
    try:
        async for entry in log.read(log_id, after):
            last = type(entry.event).__name__
    except LogError as error:
        last = error.kind
    return last


async def test_foreign_pushes_end_no_process(server: RedisServer) -> None:
    log_id = f"pushed-{time.time_ns()}"
    found: list[str] = []
    async with open_log(server.url) as log, anyio.create_task_group() as group:
        await log.create(log_id)

        async def read() -> None:
            found.append(await outcome(log, log_id))

        group.start_soon(read)
        log.start(group, log_id, slow_stream(0.02))
        for message in ("x y z\nno event", "1 1\n{}", "1 1 90 \n{}", "1 x 9\n{}"):
            await anyio.sleep(0.1)
            async with connected(server) as engine:
                await engine._client.publish(f"sl:{{{log_id}}}", message)
                await engine._client.publish(f"sl:{{{log_id}}}", b"\xff 1 1\n\xff")
    assert found == ["Completed"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("HSET {h} epoch x", "unreadable"),
        ("HSET {h} last many", "unreadable"),
        ("HSET {h} last inf", "unreadable"),
        ("HSET {h} expires_at nan", "unreadable"),
        ("HDEL {h} epoch", "unreadable"),
        ("HDEL {h} owner", "unreadable"),
        ("HSET {h} last 99999", "unreadable"),
        ("SET {h} text", "unreadable"),
        ("SET {l} text", "unreadable"),
        ("XTRIM {l} MAXLEN 1", "unreadable"),
        ("DEL {l}", "Failed"),
    ],
)
async def test_changed_log_gives_one_end(server: RedisServer, command: str, expected: str) -> None:
    log_id = f"changed-{time.time_ns()}"
    async with open_log(server.url, lease=0.5) as log:
        await log.write(log_id, slow_stream(0.005))
        state, records = f"sl:{{{log_id}}}:h", f"sl:{{{log_id}}}:l"
        server.ask(command.replace("{h}", state).replace("{l}", records))
        with anyio.fail_after(10):
            assert await outcome(log, log_id) == expected


async def test_unreadable_reason_is_our_error(server: RedisServer) -> None:
    log_id = f"reason-{time.time_ns()}"
    async with open_log(server.url) as log:
        await log.create(log_id)
        async with connected(server) as engine:
            await engine._client.hset(f"sl:{{{log_id}}}:h", {"stop": b"\xff"})
            await engine._client.set("sl:{\udcff}:h".encode(errors="surrogateescape"), "x")
            await engine.log_ids(10**6)
        with pytest.raises(LogError, match="state was changed"):
            await log.stop(log_id)


@pytest.mark.parametrize(
    "command",
    [
        "HDEL {h} epoch",
        "HDEL {h} owner",
        "HDEL {h} size",
        "SET {h} x",
        "SET {l} x",
        "HSET {h} last nan",
    ],
)
async def test_unreadable_log_can_be_deleted(server: RedisServer, command: str) -> None:
    log_id = f"broken-{time.time_ns()}"
    async with open_log(server.url) as log:
        await log.write(log_id, slow_stream(0))
        cursor = (await log.head(log_id)).cursor
        state, records = f"sl:{{{log_id}}}:h", f"sl:{{{log_id}}}:l"
        server.ask(command.replace("{h}", state).replace("{l}", records))
        assert await outcome(log, log_id) == "unreadable"
        await log.delete(log_id)
        assert await outcome(log, log_id) == "gone"
        await log.write(log_id, slow_stream(0))
        assert await outcome(log, log_id) == "Completed"
        assert await outcome(log, log_id, cursor) == "rewound", "it is of the deleted log"


async def test_log_whose_state_is_lost_can_be_written(server: RedisServer) -> None:
    """A cursor of the lost one is no cursor of the new one."""
    log_id = f"headless-{time.time_ns()}"
    async with open_log(server.url) as log:
        await log.write(log_id, slow_stream(0))
        cursor = (await log.head(log_id)).cursor
        server.ask(f"DEL sl:{{{log_id}}}:h")
        await log.write(log_id, slow_stream(0))
        assert await outcome(log, log_id) == "Completed"
        assert await outcome(log, log_id, cursor) == "rewound"


async def test_lost_records_are_appended_again(server: RedisServer) -> None:
    log_id = f"halved-{time.time_ns()}"
    async with open_log(server.url, lease=1.5) as log, anyio.create_task_group() as group:
        await log.create(log_id)
        log.start(group, log_id, slow_stream(0.02))
        await anyio.sleep(0.3)
        server.ask(f"DEL sl:{{{log_id}}}:l")
        with anyio.fail_after(10):
            found: list[Any] = [entry.event async for entry in log.read(log_id)]
    assert accumulate(found).text == TEXT


async def test_full_server_is_waited_for(tmp_path: Path) -> None:
    with running_server(valkey_binary(), tmp_path) as own:
        async with open_log(own.url, lease=2) as log, anyio.create_task_group() as group:
            await log.create("a")
            log.start(group, "a", slow_stream(0.02))
            await anyio.sleep(0.2)
            own.ask("CONFIG SET maxmemory 1")
            await anyio.sleep(1)
            own.ask("CONFIG SET maxmemory 0")
            with anyio.fail_after(10):
                assert await outcome(log, "a") == "Completed"


async def test_missing_log_with_a_cursor_is_gone_at_once(server: RedisServer) -> None:
    async with open_log(server.url) as log:
        with anyio.fail_after(2):
            assert await outcome(log, f"none-{time.time_ns()}", "1-500") == "gone"


def test_record_whose_fields_are_no_pairs_is_refused() -> None:
    fields = [b"f", b"1", b"l", b"{}\n"]
    assert _record([b"2-3", fields]).lines == b"{}\n"
    with pytest.raises(ValueError, match="zip"):
        _record([b"2-3", [*fields, b"x"]])


def test_cause_of_nested_groups_is_their_first_exception() -> None:
    cause = ConnectionError("lost")
    inner = ExceptionGroup("inner", [cause, ValueError()])
    assert _first_of(ExceptionGroup("outer", [inner, ValueError()])) is cause
