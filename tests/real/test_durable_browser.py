"""A chat page that is loaded again, in headless Chromium: the real `useChat({resume: true})`, and
the browser's own `EventSource`."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import uuid4

import anyio
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route

from lab.real.ui_readers import HOME, absence, chromium
from streamlib import accumulate
from streamlib.durable import Log, open_log
from streamlib.durable.http import LogSource, log_app, log_encoder
from streamlib.transport.deadlines import Deadlines
from streamlib.web import StreamResponse, parse_ui_request
from tests.real.conftest import ABSENT
from tests.support.asgi_servers import serving_app
from tests.support.client_streams import stream_over
from tests.support.durable_http import everybody
from tests.support.response_bodies import frames_of
from tests.support.shared import ROOT

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("asgi_server")]

HERE: Final = ROOT / "lab" / "real" / "streams"
BUNDLE: Final = ROOT / "examples" / "web" / "vendor" / "use-chat.js.gz"
PAGE: Final = '<!doctype html><body><script type="module" src="/page.js"></script></body>'
WORDS: Final = 60
TEXT: Final = "".join(f"word {n} " for n in range(WORDS))
PACE: Final = 0.08
CUT_AFTER: Final = 6
"""Messages of a response after which the cutting server closes the connection."""


class Chats:
    """A server of chats, as docs/durable.md shows it; it stores what the user wrote."""

    def __init__(self, log: Log, tasks: anyio.abc.TaskGroup) -> None:
        self.log = log
        self.tasks = tasks
        self.cutting = Cutting(log_app(log, allow=everybody))
        self.newest: dict[str, str] = {}
        """The log of each chat's newest response."""
        self.stored: dict[str, list[Any]] = {}

    def app(self) -> Starlette:
        logs = log_app(self.log, allow=everybody, chat_log=self.newest.get)
        return Starlette(
            routes=[
                Route("/", self.page),
                Route("/page.js", self.script),
                Route("/use-chat.js", self.script),
                Route("/stored/{chat}", self.messages),
                Route("/api/chat", self.chat, methods=["POST"]),
                Mount("/cutting", app=self.cutting),
                Mount("/", app=logs),
            ]
        )

    async def page(self, request: Request) -> Response:
        return HTMLResponse(PAGE)

    async def script(self, request: Request) -> Response:
        source = gzip.decompress(BUNDLE.read_bytes())
        if request.url.path == "/page.js":
            source = (HERE / "page.js").read_bytes()
        return Response(source, media_type="text/javascript")

    async def messages(self, request: Request) -> Response:
        return JSONResponse(self.stored.get(request.path_params["chat"], []))

    async def chat(self, request: Request) -> Response:
        body = await request.json()
        asked = parse_ui_request("vercel", body)
        assert asked.chat_id is not None
        self.stored[asked.chat_id] = body["messages"]
        log_id = uuid4().hex
        meta = {"message_id": log_id}
        await self.log.create(log_id, meta)
        self.newest[asked.chat_id] = log_id
        self.tasks.start_soon(self.log.write, log_id, slow_stream())
        return StreamResponse(LogSource(self.log, log_id), log_encoder(meta))


def slow_stream() -> Any:
    steps: list[bytes | float] = []
    for frame in frames_of(WORDS):
        steps += [frame, PACE]
    return stream_over(*steps, errors="event", deadlines=Deadlines(idle=1e9))


class Cutting:
    """Cuts each response after some messages, as a proxy or a bad network does."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.connections = 0
        self.used = anyio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.connections += 1
        self.used.set()
        count = 0

        async def send_some(message: Any) -> None:
            nonlocal count
            count += 1
            if count == CUT_AFTER:
                raise OSError("cut")
            if message.get("body") and count == 2:
                # The browser would wait three seconds before it comes back.
                message = {**message, "body": b"retry: 20\n\n" + message["body"]}
            await send(message)

        await self.app(scope, receive, send_some)


@asynccontextmanager
async def serving_chats() -> AsyncGenerator[tuple[Chats, str]]:
    async with open_log(interval=0.02) as log, anyio.create_task_group() as tasks:
        chats = Chats(log, tasks)
        async with serving_app(chats.app()) as server:
            yield chats, server.url
        tasks.cancel_scope.cancel()


async def test_page_continues_after_each_reload() -> None:
    why = absence() or (None if chromium() else "there is no chromium")
    if why is not None:
        pytest.skip(f"{ABSENT}: browser, {why}")
    async with serving_chats() as (chats, url):
        await chats.log.create("cut")

        async def write_when_used() -> None:
            await chats.cutting.used.wait()
            await chats.log.write("cut", slow_stream())

        chats.tasks.start_soon(write_when_used)
        command = ["node", str(HERE / "browse.mjs"), str(HOME), chromium() or "", url]
        with anyio.fail_after(90):
            done = await anyio.run_process([*command, f"{url}/cutting/log/cut/events"], check=False)
        assert done.returncode == 0, done.stderr.decode()
        ids = [entry.cursor async for entry in chats.log.read("cut")]
        two = [entry.event async for entry in chats.log.read(chats.newest["two"])]
    seen = json.loads(done.stdout)
    assert seen["complaints"] == []
    message_id = chats.newest["one"]
    for answers in seen["reloaded"]:
        ((found_id, text),) = answers
        assert found_id == message_id
        assert TEXT.startswith(text)
    assert seen["whole"] == [[message_id, TEXT]]
    # Nothing runs any more; the server of this test stores only what the user wrote.
    assert seen["ended"] == []
    ((_, stopped),) = seen["stopped"]
    assert accumulate(two).status == "cancelled"
    assert stopped == accumulate(two).text
    # Each event once, over many connections, and none after the 204.
    assert seen["ids"] == ids
    assert chats.cutting.connections > 5
