"""A chat's message over HTTP: resumed as `useChat` asks, and in the frameworks people use."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from streamlib import encoder
from streamlib.durable import Log, open_log
from streamlib.durable.http import LogApp, LogSource, log_app, log_encoder
from streamlib.transport.deadlines import Deadlines
from streamlib.web import StreamResponse
from streamlib_parsers import OutputTextDelta, Response
from tests.support.asgi_calls import AsgiCall
from tests.support.client_streams import all_events, stream_over
from tests.support.durable_engines import memory_engine
from tests.support.response_bodies import frames_of
from tests.support.virtual_time import anyio_backend  # noqa: F401  # a fixture

FRAMES = frames_of(6)
PAUSED: list[bytes | float] = [*FRAMES[:5], 40.0, *FRAMES[5:]]
META = {"message_id": "m1", "model": "m", "wire": "vercel", "chat": "secret"}


def stream(*steps: bytes | float) -> Any:
    return stream_over(*steps, errors="event", deadlines=Deadlines(idle=1e9))


def everybody(scope: Any, log_id: str) -> bool:
    return True


@asynccontextmanager
async def writing(meta: dict[str, Any]) -> AsyncGenerator[tuple[Log, LogApp]]:
    """A log `a` in the middle of its response, which goes on after 40 seconds."""
    async with open_log(memory_engine()) as log, anyio.create_task_group() as group:
        await log.create("a", meta)
        group.start_soon(log.write, "a", stream(*PAUSED))
        await anyio.sleep(1)
        yield log, log_app(log, allow=everybody)


async def resume(app: Any, chat_id: str = "a") -> AsgiCall:
    call = AsgiCall(method="GET", path=f"/api/chat/{chat_id}/stream")
    return await call(app)


async def encoded(encode: Any) -> bytes:
    """What the encoder makes of the whole response."""
    events = await all_events(stream(*FRAMES))
    return b"".join([encode.feed(event) for event in events]) + bytes(encode.close())


async def test_message_is_resumed_from_its_start() -> None:
    async with writing(META) as (_, app):
        call = await resume(app)
        assert call.headers["x-vercel-ai-ui-message-stream"] == "v1"
        assert call.headers["content-type"] == "text/event-stream"
        ping = encoder("vercel").ping()
        assert call.body.count(ping) == 2
        expected = await encoded(encoder("vercel", message_id="m1", model="m", public=True))
        assert call.body.replace(ping, b"") == expected
        # What ended is in the page's own store.
        assert (await resume(app)).status == 204


async def test_page_that_leaves_follows_its_log_no_longer() -> None:
    async with open_log(memory_engine()) as log:
        await log.create("a", META)
        app = log_app(log, allow=everybody)
        await AsgiCall(method="GET", path="/api/chat/a/stream", leave_after=1)(app)
        assert not log._hub._followers


async def test_message_that_has_ended_is_replayed_where_asked_for() -> None:
    async with open_log(memory_engine()) as log:
        await log.write("a", stream(*FRAMES), META)
        app = log_app(log, allow=everybody, replay_ended=True)
        assert (await resume(app)).body == await encoded(log_encoder(META))


@pytest.mark.parametrize("wire", ["agui", "jsonl"])
async def test_meta_names_the_protocol_of_a_message(wire: str) -> None:
    options: dict[str, Any] = {"thread_id": "t", "run_id": "r"} if wire == "agui" else {}
    async with writing({"wire": wire, **options}) as (_, app):
        call = await resume(app)
    encode = encoder(wire, public=True, **options)
    assert call.headers["content-type"] == encode.media_type
    # A ping of JSON lines is an empty line.
    sent = call.body.replace(b": keep-alive\n\n", b"").replace(b"}\n\n\n{", b"}\n{")
    assert sent == await encoded(encode)


def test_meta_may_name_no_wire_that_tells_everything() -> None:
    with pytest.raises(ValueError, match="one of vercel, agui, jsonl"):
        log_encoder({"wire": "messages"})


@pytest.mark.parametrize("meta", [{"wire": 5}, {"wire": ["vercel"]}, {"tools": 5}])
async def test_meta_that_somebody_changed_is_unreadable(meta: dict[str, Any]) -> None:
    async with open_log(memory_engine()) as log:
        await log.write("a", stream(*FRAMES), meta)
        call = await resume(log_app(log, allow=everybody, replay_ended=True))
    assert (call.status, call.error["kind"]) == (500, "unreadable")


async def test_log_that_continues_itself_is_sent_once() -> None:
    async with open_log(memory_engine()) as log:
        await log.write("a", stream(*FRAMES), {**META, "continues": "a"})
        body = (await resume(log_app(log, allow=everybody, replay_ended=True))).body
    assert body == await encoded(log_encoder(META))


@pytest.mark.parametrize("is_async", [False, True])
async def test_chat_has_a_log_for_each_response(is_async: bool) -> None:
    logs = {"chat": "a"}

    async def find_later(chat_id: str) -> str | None:
        return logs.get(chat_id)

    find: Any = find_later if is_async else logs.get
    asked: list[str] = []

    def allow(scope: Any, name: str) -> bool:
        asked.append(name)
        return True

    async with writing(META) as (log, _):
        app = log_app(log, allow=allow, chat_log=find, chat_path="/chats")
        missing = AsgiCall(method="GET", path="/chats/b/stream")
        assert (await missing(app)).status == 204
        stop = AsgiCall(method="POST", path="/chats/chat/stop")
        assert (await stop(app)).status == 204
        found = AsgiCall(method="GET", path="/chats/chat/stream")
        assert b'"type":"abort"' in (await found(app)).body
        assert asked == ["b", "chat", "chat"]


def starlette_app(logs: LogApp) -> Any:
    return Starlette(routes=[Mount("/v1", app=logs), Mount("/", app=logs)])


def fastapi_app(logs: LogApp) -> Any:
    app = FastAPI()
    app.mount("/v1", logs)
    app.mount("/", logs)
    return app


@pytest.mark.parametrize("make", [starlette_app, fastapi_app])
async def test_frameworks_mount_it(make: Callable[[LogApp], Any]) -> None:
    async with open_log(memory_engine()) as log:
        await log.write("a b", stream(*FRAMES))
        transport = httpx.ASGITransport(make(log_app(log, allow=everybody)))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
            bodies = []
            for path in ("/log/a%20b", "/v1/log/a%20b"):
                response = await http.get(path)
                assert response.status_code == 200
                bodies.append(response.json())
            assert bodies[0] == bodies[1]
            assert (await http.get("/v2/log/a")).status_code == 404


async def test_first_response_reads_the_log_too() -> None:
    """The page that asked leaves: the response goes on, and is resumed as the same message."""
    done: list[Response] = []
    async with writing(META) as (log, _):
        for leave_after in (2, None):
            response = StreamResponse(
                LogSource(log, "a"), log_encoder(META), on_done=done.append, ping=None
            )
            call = await AsgiCall(leave_after=leave_after)(response)
        assert call.body == await encoded(log_encoder(META))
        assert [response.status for response in done] == ["incomplete", "completed"]


async def test_source_goes_on_in_lists_where_a_loop_was_left() -> None:
    async with open_log(memory_engine()) as log:
        await log.write("a", stream(*FRAMES))
        wanted = [entry.event async for entry in log.read("a")]
        for begun in range(3):
            async with LogSource(log, "a") as source:
                events = [await anext(source) for _ in range(begun)]
                async for batch in source.batches():
                    events += batch
            assert events == wanted


async def test_source_begins_again_when_it_is_entered_again() -> None:
    async with open_log(memory_engine()) as log:
        await log.write("a", stream(*FRAMES))
        wanted = [entry.event async for entry in log.read("a")]
        source = LogSource(log, "a")
        async with source:
            await anext(source)
        async with source:
            assert [event async for event in source] == wanted
        text = "".join(event.delta for event in wanted if isinstance(event, OutputTextDelta))
        assert source.response.text == text != ""


async def test_source_of_a_missing_log_is_an_http_error() -> None:
    async with open_log(memory_engine()) as log:
        call = await AsgiCall()(StreamResponse(LogSource(log, "b"), "jsonl"))
        assert (call.status, call.error["kind"]) == (404, "not_found")


async def test_websocket_is_closed() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async with open_log(memory_engine()) as log:
        app = log_app(log, allow=everybody)
        await app({"type": "websocket", "path": "/log/a"}, receive, send)
        assert [message["type"] for message in sent] == ["websocket.close"]
        with pytest.raises(ValueError, match="lifespan"):
            await app({"type": "lifespan"}, receive, send)
