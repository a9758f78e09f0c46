"""Logs over HTTP without a server: an application over a log in memory, and its responses."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio

from streamlib.durable import Log, LogError, open_log
from streamlib.durable.http import LogApp, log_app
from streamlib.transport.deadlines import Deadlines
from tests.support.asgi_calls import AsgiCall
from tests.support.client_streams import stream_over
from tests.support.durable_engines import memory_engine
from tests.support.response_bodies import frames_of

FRAMES: Final = frames_of(6)
FOREVER: Final = 1e9
ROUTES: Final = [
    ("GET", "/log/{}"),
    ("HEAD", "/log/{}"),
    ("GET", "/log/{}?offset=-1&live=long-poll"),
    ("GET", "/log/{}?offset=-1&live=sse"),
    ("GET", "/log/{}/events"),
    ("POST", "/log/{}/stop"),
    ("DELETE", "/log/{}"),
    ("GET", "/api/chat/{}/stream"),
    ("POST", "/api/chat/{}/stop"),
]


def stream(*steps: bytes | float) -> Any:
    """With a deadline, so that closing it wakes its reader at once, as over HTTP."""
    return stream_over(*steps, errors="event", deadlines=Deadlines(idle=FOREVER))


def everybody(scope: Any, log_id: str) -> bool:
    """Allows everything."""
    return True


def app_of(log: Log, **options: Any) -> LogApp:
    """An application that allows everything."""
    return log_app(log, **{"allow": everybody, **options})


async def ask(app: Any, method: str, path: str, **options: Any) -> AsgiCall:
    """One request."""
    with anyio.fail_after(600):
        return await AsgiCall(method=method, path=path, **options)(app)


async def get(app: Any, path: str, *, leave_after: int | None = None, **headers: str) -> AsgiCall:
    """A GET; headers are named with underscores."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return await ask(app, "GET", path, leave_after=leave_after, headers=fields)


@asynccontextmanager
async def written(*steps: bytes | float, **options: Any) -> AsyncGenerator[tuple[Log, LogApp]]:
    """A log `a` that was written, or still is if the steps do not end."""
    async with open_log(memory_engine(), **options) as log, anyio.create_task_group() as group:
        await log.create("a", {"message_id": "m1"})
        source = stream(*(steps or FRAMES))
        if FOREVER in steps:
            group.start_soon(log.write, "a", source)
            await anyio.sleep(1)
        else:
            await log.write("a", source)
        yield log, app_of(log)
        group.cancel_scope.cancel()


async def cursors(log: Log) -> list[str]:
    """The cursor of each entry, once the log has ended."""
    return [entry.cursor async for entry in log.read("a")]


def sse(body: bytes) -> list[dict[str, str]]:
    """The server-sent events of a body; comments are left out."""
    found: list[dict[str, str]] = []
    for block in body.decode().split("\n\n"):
        fields = [line.partition(":") for line in block.splitlines() if not line.startswith(":")]
        if fields:
            found.append({name: value.removeprefix(" ") for name, _, value in fields})
    return found


def controls(body: bytes) -> list[dict[str, Any]]:
    """The `control` events of the Durable Streams protocol."""
    return [json.loads(event["data"]) for event in sse(body) if event["event"] == "control"]


def messages_in(body: bytes) -> list[Any]:
    """The messages in its `data` events."""
    found: list[Any] = []
    for event in sse(body):
        if event["event"] == "data":
            found += json.loads(event["data"])
    return found


class HeldStream:
    """A response whose end waits until `may_end` is set."""

    def __init__(self) -> None:
        self.may_end = anyio.Event()

    async def __aiter__(self) -> AsyncIterator[Any]:
        async with stream(*FRAMES) as events:
            held = [event async for event in events]
        for event in held[:-1]:
            yield event
        await self.may_end.wait()
        yield held[-1]


async def kinds(log: Log, after: str | None = None) -> list[str]:
    """What a reader gets: the names of events, at the end the kind of an error."""
    found: list[str] = []
    try:
        async for entry in log.read("a", after):
            found.append(type(entry.event).__name__)
    except LogError as error:
        found.append(error.kind)
    return found
