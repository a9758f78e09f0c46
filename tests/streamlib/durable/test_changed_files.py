"""Files of SQLite that somebody changed, or lost a half of: one named error or one end, at once."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import anyio
import pytest

from streamlib.durable import LogError, open_log
from streamlib_parsers import Failed, accumulate
from tests.support.durable_http import FRAMES, HeldStream, kinds, stream


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE streamlib_logs SET state = 'x'",
        "UPDATE streamlib_logs SET state = 7",
        """UPDATE streamlib_logs SET state = '{"epoch":"1"}'""",
        """UPDATE streamlib_logs SET state = CAST(x'7b22ff223a317d' AS BLOB)""",  # invalid UTF-8
        """UPDATE streamlib_records SET lines = CAST(x'7b2274797065223a22ff227d0a' AS BLOB)""",
        "UPDATE streamlib_records SET lines = 7",
        "UPDATE streamlib_records SET first = 'one'",
        "UPDATE streamlib_meta SET meta = '{'",
    ],
)
async def test_changed_file_gives_one_named_error(tmp_path: Path, change: str) -> None:
    path = tmp_path / "logs.db"
    async with open_log(f"sqlite:///{path}") as log:
        await log.write("a", stream(*FRAMES), {"user": "alice"})
        with sqlite3.connect(path) as connection:
            connection.execute(change)
        connection.close()
        with anyio.fail_after(5):
            found = await kinds(log)
        assert found[-1] in ("unreadable", "Completed")
        if "meta" in change:
            with pytest.raises(LogError, match="meta"):
                await log.head("a")
        else:
            assert found[-1] == "unreadable"
        await log.write("b", stream(*FRAMES))  # the other logs are as they were


# --- records that are lost alone ---


async def test_writer_appends_lost_records_again(tmp_path: Path) -> None:
    path = tmp_path / "logs.db"
    source = HeldStream()
    async with open_log(f"sqlite:///{path}", lease=1.0) as log, anyio.create_task_group() as group:
        await log.create("a")
        log.start(group, "a", source)
        await anyio.sleep(0.3)
        delete_records(path)
        source.may_end.set()
        with anyio.fail_after(5):
            events = [entry.event async for entry in log.read("a")]
        assert accumulate(events).status == "completed"  # type: ignore[arg-type]


async def test_lost_records_without_a_writer_are_one_end(tmp_path: Path) -> None:
    path = tmp_path / "logs.db"
    async with open_log(f"sqlite:///{path}", lease=0.3) as log:
        await log.write("a", stream(*FRAMES))
        delete_records(path)
        with anyio.fail_after(5):
            for _ in range(2):
                [entry] = [entry async for entry in log.read("a")]
                assert isinstance(entry.event, Failed)
                assert entry.event.error.code == "writer_lost"


def delete_records(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM streamlib_records")
    connection.close()
