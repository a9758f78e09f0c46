"""Logs over HTTP where something goes wrong, and what no response may have."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import suppress

import anyio
import pytest
from msgspec.structs import replace

from streamlib.durable import LogError, open_log
from streamlib.durable.memory import MemoryEngine
from streamlib_parsers import (
    Created,
    ErrorInfo,
    Failed,
    Origin,
    OutputItemAdded,
    OutputItemDone,
    Passthrough,
    RateLimits,
    Reasoning,
    ResponseEvent,
    ResponseMetadata,
)
from tests.support.asgi_calls import AsgiCall
from tests.support.durable_engines import Connection, lose, memory_engine
from tests.support.durable_http import (
    FOREVER,
    FRAMES,
    ROUTES,
    app_of,
    ask,
    cursors,
    get,
    sse,
    stream,
    written,
)
from tests.support.virtual_time import anyio_backend  # noqa: F401  # a fixture

# --- what goes wrong ---


async def test_missing_is_404_and_deleted_is_410() -> None:
    async with written() as (log, app):
        for method, route in ROUTES:
            missing = await ask(app, method, route.format("b"))
            assert missing.status == (204 if "chat" in route else 404), route
        assert (await ask(app, "DELETE", "/log/a")).status == 204
        for method, route in ROUTES:
            deleted = await ask(app, method, route.format("a"))
            assert deleted.status == (204 if "chat" in route else 410), route
        with pytest.raises(LogError):
            await log.head("a")


async def test_stop_ends_the_response_of_another_host() -> None:
    for path in ("/log/a/stop", "/api/chat/a/stop"):
        async with written(*FRAMES[:4], FOREVER) as (log, app):
            for _ in range(2):
                assert (await ask(app, "POST", path)).status == 204
                await cursors(log)
            assert (await log.head("a")).reason == "user"
            last = json.loads((await get(app, "/log/a")).body)[-1]
            assert (last["type"], last["error"]["kind"]) == ("failed", "cancelled")


def lose_and_close(engine: MemoryEngine, keep: int) -> None:
    """The engine loses the end of a log, whose writer is gone."""
    lose(engine, "a", keep)
    state = engine._states["a"]
    engine._states["a"] = replace(state, closed=True, expires_at=FOREVER)


async def test_lost_events_are_reported_and_read_again() -> None:
    engine = memory_engine()
    async with open_log(engine) as log:
        await log.write("a", stream(*FRAMES[:4], 1.0, *FRAMES[4:]))
        app = app_of(log)
        ids = await cursors(log)
        lose_and_close(engine, 1)
        response = await get(app, "/log/a/events", last_event_id=ids[-1])
        first, *rest = sse(response.body)
        assert (first["event"], first["id"]) == ("rewound", "")
        assert 0 < len(rest) < len(ids)
        assert [event["id"] for event in rest] == ids[: len(rest)]
        page = await get(app, "/log/a?offset=00000001-000000000009&live=long-poll")
        assert (page.status, page.error["kind"]) == (410, "rewound")


async def test_log_that_loses_events_under_a_reader_begins_anew() -> None:
    engine = memory_engine()
    async with open_log(engine) as log, anyio.create_task_group() as group:
        await log.create("a")

        async def write() -> None:
            with suppress(LogError):  # it is fenced
                await log.write("a", stream(*FRAMES[:3], 0.5, FRAMES[3], FOREVER))

        group.start_soon(write)
        await anyio.sleep(1)
        app = app_of(log)
        calls: dict[str, AsgiCall] = {}

        async def read(path: str) -> None:
            calls[path] = await get(app, path)

        for path in ("/log/a/events", "/log/a?offset=-1&live=sse", "/api/chat/a/stream"):
            group.start_soon(read, path)
        await anyio.sleep(1)
        lose_and_close(engine, 1)
    before, _, after = calls["/log/a/events"].body.partition(b"event: rewound\nid:\n")
    again = sse(b"event: again\n" + after)[1:]
    assert 0 < len(again) < len(sse(before))
    assert again == sse(before)[: len(again)]
    assert calls["/log/a?offset=-1&live=sse"].is_complete
    message = calls["/api/chat/a/stream"].body
    assert b'"type":"error"' in message
    assert message.endswith(b"data: [DONE]\n\n")


async def test_engine_that_does_not_answer_is_503() -> None:
    connection = Connection(memory_engine())
    connection.cut = True
    async with open_log(connection, outage=3) as log:
        for method, route in ROUTES:
            response = await ask(app_of(log), method, route.format("a"))
            assert response.status == 503, route
            assert response.headers["retry-after"] == "1"


# --- what is sent ---

SECRETS = ("secret.example", "sk-secret", "acct-secret", "signed-secret", "raw-secret")
ORIGIN = Origin("messages", "p", endpoint="https://secret.example", account="acct-secret")


async def secret_events() -> AsyncIterator[ResponseEvent]:
    thought = Reasoning(content="hm", signature="signed-secret", origin=ORIGIN)
    yield RateLimits(raw={"x-org": "acct-secret"})
    yield Created(response_id="r", model="m")
    yield Passthrough("odd", {"raw": "raw-secret"})
    yield ResponseMetadata({"raw": "raw-secret"})
    yield OutputItemAdded(0, Reasoning(status="incomplete", origin=ORIGIN))
    yield OutputItemDone(0, thought)
    await anyio.sleep(5)
    yield Failed(
        ErrorInfo("authentication", "key sk-secret at https://secret.example", code="raw-secret")
    )


async def test_no_route_sends_what_is_the_servers_own() -> None:
    async with open_log(memory_engine()) as log, anyio.create_task_group() as group:
        await log.create("a", {"chat": "acct-secret"})
        group.start_soon(log.write, "a", secret_events())
        await anyio.sleep(1)
        app = app_of(log)
        calls = [await get(app, "/api/chat/a/stream")]
        for method, route in ROUTES[:5]:
            calls.append(await ask(app, method, route.format("a")))
    for call in calls:
        sent = repr(call.messages)
        assert [secret for secret in SECRETS if secret in sent] == []
        assert call.headers["x-content-type-options"] == "nosniff"
    assert b"authentication" in calls[-1].body
