"""`streamlib log`: the head, the readers and the tail of a log, and stopping its model."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from streamlib.cli import main
from streamlib.durable import open_log
from streamlib.transport.deadlines import Deadlines
from tests.support.client_streams import stream_over
from tests.support.redis_servers import running_server, valkey_binary
from tests.support.response_bodies import frames_of

FRAMES = frames_of(20)


def write(url: str, log_id: str, *steps: bytes | float, **options: Any) -> None:
    """A log with a response."""

    async def run() -> None:
        async with open_log(url) as log:
            await log.write(log_id, stream_over(*steps, errors="event"), **options)

    anyio.run(run)


def create(url: str, log_id: str) -> None:
    """A log that nobody writes yet."""

    async def run() -> None:
        async with open_log(url) as log:
            await log.create(log_id)

    anyio.run(run)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Two logs in a file: one that is complete, one that is truncated."""
    found = f"sqlite:///{tmp_path / 'logs.db'}"
    write(found, "whole", *FRAMES, meta={"title": "a\x1b[2Jb"})
    write(found, "cut", *FRAMES[:5])
    return found


def test_log_lists_every_log(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    create(url, "new")
    assert main(["log", url]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert [line.split("  ")[:2] for line in lines] == [
        ["cut", "closed"],
        ["new", "open"],
        ["whole", "closed"],
    ]
    assert lines[1].endswith("  awaited")
    assert "logs: 3. An appended event survives" in printed.err
    assert main(["log", url, "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [head["id"] for head in found] == ["cut", "new", "whole"]
    assert found[2]["meta"] == {"title": "a\x1b[2Jb"}


def test_log_shows_the_head_and_the_last_events(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["log", url, "whole", "--tail", "3"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("whole: closed\n")
    assert "writer ended" in printed
    assert "who follows it is not known" in printed
    assert "\x1b" not in printed
    events = printed.partition("\n\n")[2].splitlines()
    assert len(events) == 3
    assert "Completed stop" in events[-1]
    assert main(["log", url, "whole", "--json", "--tail", "0"]) == 0
    head = json.loads(capsys.readouterr().out)
    assert (head["tail"], head["cursor"]) == ([], f"1-{head['events']}")
    assert main(["log", url, "whole", "--json", "--tail", "1000"]) == 0
    tail = json.loads(capsys.readouterr().out)["tail"]
    assert [entry["cursor"] for entry in tail] == [f"1-{n}" for n in range(1, head["events"] + 1)]


def test_log_follows_to_the_end_and_tells_how_it_ended(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["log", url, "whole", "--follow"]) == 0
    assert capsys.readouterr().out.count("Completed") == 1
    assert main(["log", url, "cut", "--follow", "--tail", "0"]) == 0
    assert main(["log", url, "cut", "--follow"]) == 1
    assert "the response failed (truncated)" in capsys.readouterr().err


class Pipe(io.StringIO):
    """What was written, and what of it a reader has seen after each flush."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.has_reader_seen = threading.Event()

    def flush(self) -> None:
        if self.getvalue() not in self.seen:
            self.seen.append(self.getvalue())
        self.has_reader_seen.set()


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_log_shows_each_event_when_it_comes(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'logs.db'}"
    create(url, "a")
    pipe = Pipe()
    monkeypatch.setattr(sys, "stdout", pipe)

    def write_behind_the_head() -> None:
        pipe.has_reader_seen.wait(5)
        write(url, "a", *FRAMES)

    writer = threading.Thread(target=write_behind_the_head)
    writer.start()
    assert main(["log", url, "a", "--follow", *options]) == 0
    writer.join(timeout=10)
    head, *events = [seen.splitlines() for seen in pipe.seen]
    assert head[0].startswith("{" if options else "a: open")
    assert head[-1] == (head[0] if options else "")  # the head, and nothing behind it
    assert [len(seen) for seen in events] == [len(head) + n for n in range(1, len(events) + 1)]
    assert len(events) > 20


def test_log_stops_a_model_of_another_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'logs.db'}"
    create(url, "a")
    silent = stream_over(*FRAMES[:5], 1e9, errors="event", deadlines=Deadlines(idle=1e9))

    async def run() -> None:
        async with open_log(url) as log:
            await log.write("a", silent)

    writer = threading.Thread(target=anyio.run, args=(run,))
    writer.start()
    command = [sys.executable, "-m", "streamlib", "log", url, "a", "--stop", "--follow"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    writer.join(timeout=10)
    assert not writer.is_alive()
    assert found.returncode == 1
    assert found.stdout.startswith("a: stopping, stopped: user\n")
    assert found.stderr == "the response failed (cancelled): stopped: user\n"


def test_looking_at_a_log_does_not_end_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'logs.db'}"

    async def abandon() -> None:
        async with open_log(url, lease=0.001) as log:
            await log.create("a")

    anyio.run(abandon)
    for _ in range(2):
        assert main(["log", url, "a"]) == 0
        assert "writer silent" in capsys.readouterr().out


def test_log_tells_mistakes_in_one_line(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    password = "secret-pass"
    cases: list[tuple[list[str], int, str]] = [
        ([url, "another"], 1, "there is no log 'another'"),
        ([url.replace("logs.db", "other.db")], 1, "No such file"),
        ([url, "--follow"], 2, "need the ID"),
        ([url, "--stop"], 2, "need the ID"),
        (["memory:", "a"], 2, "its own process"),
        ([f"mysql://user:{password}@host"], 2, "an engine is"),
        ([f"redis+ring://user:{password}@host"], 2, "redis+cluster://"),
    ]
    for arguments, code, message in cases:
        assert main(["log", *arguments]) == code, arguments
        printed = capsys.readouterr()
        assert printed.out == ""
        assert message in printed.err
        assert printed.err.count("\n") == 1
        assert password not in printed.err


def test_log_counts_the_processes_that_follow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("coredis", reason="no client for Redis: streamlib[redis] is not installed")
    with running_server(valkey_binary(), tmp_path) as server:

        async def show() -> None:
            async with open_log(server.url) as log, anyio.create_task_group() as group:
                await log.create("a{b}")
                group.start_soon(anext, log.read("a{b}"))
                await anyio.sleep(0.1)
                command = ["log", server.url, "a{b}", "--json"]
                assert await anyio.to_thread.run_sync(main, command) == 0
                assert await anyio.to_thread.run_sync(main, ["log", server.url, "--json"]) == 0
                group.cancel_scope.cancel()

        anyio.run(show)
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(head["id"], head["followers"]) for head in found] == [("a{b}", 1)] * 2
