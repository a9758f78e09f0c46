"""Engines equal the rules, and `check_engine` notices those that do not."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from streamlib.durable import Engine, open_log
from streamlib.durable.memory import MemoryEngine
from streamlib.durable.records import LogCursor, Record
from streamlib.durable.rules import LogState, Operation, Result
from streamlib.durable.sqlite import SqliteEngine
from streamlib.testing.engines import EngineMismatch, check_engine
from tests.support.client_streams import FRAMES, stream_over


async def test_memory_equals_the_rules() -> None:
    engine = MemoryEngine()
    for seed in range(5):
        await check_engine(engine, operations=400, seed=seed)


async def test_closed_memory_holds_no_log() -> None:
    engine = MemoryEngine()
    async with open_log(engine) as log:
        await log.create("a")
        assert await engine.log_ids(9) == ["a"]
    await engine.aclose()
    assert await engine.log_ids(9) == []


async def test_sqlite_equals_the_rules(tmp_path: Path) -> None:
    engine = SqliteEngine(str(tmp_path / "logs.db"))
    await check_engine(engine, operations=200)
    await engine.aclose()


def is_open(engine: SqliteEngine) -> bool:
    """Whether it has its file open."""
    return engine._connection is not None


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_sqlite_is_closed_behind_a_thread_that_uses_it(tmp_path: Path) -> None:
    """asyncio's own cancellation leaves the thread at work: Python crashed where it lost the file
    meanwhile."""
    engine = SqliteEngine(str(tmp_path / "logs.db"))
    await engine.connect()
    begun, go_on = threading.Event(), threading.Event()
    rows: list[object] = []

    def work() -> None:
        begun.set()
        go_on.wait(5)
        rows.extend(engine._open().execute("SELECT 1"))

    task = asyncio.ensure_future(engine._run(work))
    await asyncio.to_thread(begun.wait, 5)
    task.cancel()
    closing_task = asyncio.ensure_future(engine.aclose())
    await asyncio.wait({task, closing_task}, timeout=0.1)
    assert is_open(engine)
    go_on.set()
    await closing_task
    assert rows == [(1,)]
    assert not is_open(engine)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("method", ["connect", "aclose"])
async def test_sqlite_is_closed_where_that_is_cancelled(method: str, tmp_path: Path) -> None:
    for turns in range(1, 5):
        engine = SqliteEngine(str(tmp_path / "logs.db"))
        if method == "aclose":
            await engine.connect()
        task = asyncio.ensure_future(getattr(engine, method)())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        for _ in range(200):  # its thread may still be at work
            if not is_open(engine) and not engine._lock.locked():
                break
            await asyncio.sleep(0.01)
        assert task.cancelled()
        assert not is_open(engine)


class Forgetful(MemoryEngine):
    """Does not look at the epoch of a reader's place."""

    async def read(
        self, log_id: str, after: LogCursor, most: int
    ) -> tuple[LogState | None, int, list[Record]]:
        return await super().read(log_id, LogCursor(1, after.position), most)


class Generous(MemoryEngine):
    """Takes every append."""

    async def ask(self, log_id: str, operation: Operation, lines: bytes = b"") -> Result:
        result = await super().ask(log_id, operation, lines)
        if result.status == "behind":
            return result._replace(status="ok")
        return result


@pytest.mark.parametrize("engine", [Forgetful(), Generous()], ids=lambda each: type(each).__name__)
async def test_engine_that_differs_is_found(engine: Engine) -> None:
    with pytest.raises(EngineMismatch):
        await check_engine(engine, operations=2000)


async def test_logs_of_a_file_outlive_the_process_that_wrote_them(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'logs.db'}"
    async with open_log(url) as log:
        await log.write("a", stream_over(*FRAMES))
        written = [entry async for entry in log.read("a")]
    async with open_log(url) as log:
        assert [entry async for entry in log.read("a")] == written


async def test_appends_to_a_file_do_not_write_the_meta_again(tmp_path: Path) -> None:
    path = tmp_path / "logs.db"
    async with open_log(f"sqlite:///{path}") as log:
        await log.write("a", stream_over(*FRAMES), {"tools": "x" * 100_000})
        assert len((await log.head("a")).meta["tools"]) == 100_000
        with closing(sqlite3.connect(path)) as connection:
            (size,) = connection.execute("SELECT length(state) FROM streamlib_logs").fetchone()
            assert size < 1000
        await log.delete("a")
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT * FROM streamlib_meta").fetchall() == []
