"""A complete chat: FastAPI, `useChat`, tools on the server, one of which the user approves.

A response goes on while the page is reloaded, and any server may stop it or die. Each user sees
only their own chats. Nothing but logs is stored: each turn is the log of one run, and what led to
it is the log's `meta`. So any number of servers show the same chats:

    python examples/chat/app.py                                  # a file of SQLite: one host
    python examples/chat/app.py --log redis://127.0.0.1:6379     # any number of hosts

Open http://127.0.0.1:8000 and sign in as alice (wonderland) or bob (builder). The model is the
loopback provider (`streamlib serve`), or STREAMLIB_MODEL with that provider's key.
"""

import argparse
import base64
import binascii
import hmac
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import anyio
import msgspec
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import FileResponse

from streamlib import (
    Accumulator,
    Client,
    Completed,
    Failed,
    Message,
    ResponseItem,
    StreamError,
    agent,
)
from streamlib.durable import Head, Log, LogError, open_log
from streamlib.durable.http import LogSource, log_app, log_encoder
from streamlib.tools import needs_approval
from streamlib.web import StreamResponse, on_stream_error, parse_ui_request, to_ui_messages

HERE = Path(__file__).parent
FILES = {
    "chat.js": HERE / "chat.js",
    "use-chat.js": HERE.parent / "web" / "vendor" / "use-chat.js.gz",
}
KEEP = 30 * 24 * 3600.0
"""Seconds for which a chat is kept."""

USERS = {"alice": "wonderland", "bob": "builder"}
"""Your users, and how they sign in."""


@needs_approval
def book_trip(city: str = "Lisbon", days: int = 3) -> str:
    """Book a trip."""
    return f"Booked: {days} days in {city}."


def get_weather(city: str = "Lisbon") -> str:
    """The weather in a city."""
    return f"{city}: 21 °C and sunny."


TOOLS = [book_trip, get_weather]


def user_of(headers: Mapping[str, str]) -> str | None:
    """The user who is signed in; None for nobody, and for requests of other sites."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return None
    kind, _, credentials = headers.get("authorization", "").partition(" ")
    try:
        name, _, password = base64.b64decode(credentials).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    is_known = hmac.compare_digest(USERS.get(name, "").encode(), password.encode())
    return name if kind.lower() == "basic" and name in USERS and is_known else None


def signed_in(request: Request) -> str:
    """The user, or a 401 that makes the browser ask."""
    user = user_of(request.headers)
    if user is None:
        raise HTTPException(401, headers={"www-authenticate": "Basic"})
    return user


User = Annotated[str, Depends(signed_in)]


class Chats:
    """The chats in the logs: turn `n` of a chat is the log `chat-{id}-{n}`."""

    def __init__(self, log: Log) -> None:
        self.log = log

    async def turns(self, chat_id: str) -> list[Head]:
        """The heads of a chat's logs, in their order."""
        heads: list[Head] = []
        for number in count():
            try:
                heads.append(await self.log.head(log_id(chat_id, number)))
            except LogError as error:
                if error.kind != "gone":
                    raise
                return heads
        return heads

    async def of(self, user: str, chat_id: str) -> list[Head]:
        """The turns of a chat, or a 403 where it is another user's."""
        turns = await self.turns(chat_id)
        if turns and turns[0].meta["user"] != user:
            raise HTTPException(403)
        return turns

    async def allow(self, scope: Any, name: str) -> bool:
        """Whether a request may resume or stop a chat."""
        headers = {key.decode(): value.decode("latin-1") for key, value in scope["headers"]}
        user = user_of(headers)
        if user is None or not scope["path"].startswith("/api/chat/"):
            return False  # logs are read through their chats only
        turns = await self.turns(name)
        return not turns or turns[0].meta["user"] == user

    async def newest(self, chat_id: str) -> str | None:
        """The log of the newest turn."""
        turns = await self.turns(chat_id)
        return log_id(chat_id, len(turns) - 1) if turns else None

    async def history(self, chat_id: str, turns: list[Head]) -> list[ResponseItem]:
        """The conversation, without what is still written."""
        items: list[ResponseItem] = []
        for number, head in enumerate(turns):
            items += msgspec.convert(head.meta["question"], list[ResponseItem])
            if head.state == "closed":
                items += await self.made(log_id(chat_id, number))
        return items

    async def made(self, name: str) -> list[ResponseItem]:
        """What a run made: the items of its responses, and the outputs between them."""
        items: list[ResponseItem] = []
        response = Accumulator()
        async for entry in self.log.read(name):
            event: Any = entry.event
            if isinstance(event, ResponseItem):
                items.append(event)
                continue
            response.feed(event)
            if isinstance(event, (Completed, Failed)):
                items += response.response.items
                response = Accumulator()
        return items


def log_id(chat_id: str, number: int) -> str:
    """The id of the log of a turn."""
    return f"chat-{chat_id}-{number}"


def create_app(log_url: str, model: str, lease: float = 15.0, **client_options: Any) -> FastAPI:
    """The application."""
    log = open_log(log_url, keep=KEEP, max_age=KEEP, lease=lease)
    chats = Chats(log)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # The tasks outlive the requests that start them.
        async with Client(**client_options) as client, log, anyio.create_task_group() as tasks:
            app.state.client, app.state.tasks = client, tasks
            yield
            tasks.cancel_scope.cancel()

    app = FastAPI(lifespan=lifespan, exception_handlers={StreamError: on_stream_error})

    @app.post("/api/chat")
    async def chat(request: Request, user: User) -> StreamResponse:
        asked = parse_ui_request("vercel", await request.body(), tools=TOOLS)
        chat_id = asked.chat_id or ""
        turns = await chats.of(user, chat_id)
        if turns and turns[-1].state != "closed":
            raise HTTPException(409, "a response is written already")
        # The page sends its last message alone: calls, with their arguments, are the server's own.
        question = [
            item for item in asked.history if isinstance(item, Message) and item.role == "user"
        ]
        history = [*await chats.history(chat_id, turns), *question]
        run = agent(request.app.state.client, history, TOOLS, model, approve=asked.approve)
        shown = to_ui_messages(history, prefix=f"{chat_id}-", tools=TOOLS)
        number = len(shown) - 1 if shown[-1]["role"] == "assistant" else len(shown)
        meta = {
            **asked.encoder_options,
            "message_id": f"{chat_id}-{number}",
            "user": user,
            "question": msgspec.to_builtins(question),
            # After an approval the same message goes on.
            "continues": None if question else log_id(chat_id, len(turns) - 1),
        }
        name = log_id(chat_id, len(turns))
        try:
            await log.create(name, meta)  # of two at the same time one is refused
        except LogError as error:
            raise HTTPException(409 if error.kind == "held" else 503) from None
        log.start(request.app.state.tasks, name, run)
        return StreamResponse(LogSource(log, name), log_encoder(meta))

    @app.get("/api/chat/{chat_id}")
    async def stored(chat_id: str, user: User) -> list[dict[str, Any]]:
        history = await chats.history(chat_id, await chats.of(user, chat_id))
        return to_ui_messages(history, prefix=f"{chat_id}-", tools=TOOLS)

    add_pages(app)
    app.mount("/", log_app(log, allow=chats.allow, chat_log=chats.newest))
    return app


def add_pages(app: FastAPI) -> None:
    """The page and its scripts."""

    @app.get("/")
    async def page(user: User) -> FileResponse:
        return FileResponse(HERE / "index.html")

    @app.get("/files/{name}")
    async def file(name: str, user: User) -> FileResponse:
        if name not in FILES:
            raise HTTPException(404)
        headers = {"content-encoding": "gzip"} if FILES[name].suffix == ".gz" else {}
        return FileResponse(FILES[name], media_type="text/javascript", headers=headers)


if __name__ == "__main__":
    import uvicorn

    options = argparse.ArgumentParser(description="A chat on this machine.")
    options.add_argument("--port", type=int, default=8000)
    options.add_argument("--log", metavar="URL", default="sqlite:///chats.db")
    options.add_argument("--lease", type=float, default=15.0, help="seconds")
    given = options.parse_args()
    uvicorn.run(
        create_app(
            given.log,
            os.environ.get("STREAMLIB_MODEL", "loopback:echo"),
            given.lease,
            base_url=os.environ.get("STREAMLIB_BASE_URL"),
        ),
        port=given.port,
    )
