"""A chat page: text, reasoning, tool calls, usage, rate limits and errors while they stream.

Its Stop button closes the connection to the model. A reload keeps the conversation, also in the
middle of an answer, and two tabs of one conversation show the same.

    python examples/web/app.py

Then open http://127.0.0.1:8000. It works offline: the model is the loopback provider. A real model
needs that provider's key in the environment:

    STREAMLIB_MODEL=anthropic:claude-opus-5 python examples/web/app.py

The page is plain files (`page/`), nothing is built. Needs `pip install 'streamlib[gateway]'`; with
`--trio` hypercorn instead of uvicorn.
"""

import argparse
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup
from common import (
    BUSY,
    NOT_LAST,
    EntryEncoder,
    Place,
    Question,
    Stop,
    get_weather,
    question_event,
    refusal,
)
from conversations import Conversation, Conversations
from frameworks import framework_routes
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from streamlib import Client, ErrorInfo, Failed, Prompt, StreamError, agent, encoder, user
from streamlib.pipeline import coalesce, pipe
from streamlib.testing import Behaviour, serve
from streamlib.web import StreamResponse

log = logging.getLogger("examples.web")
HERE = Path(__file__).parent
GRACE = 10.0
"""Seconds that a response goes on when the last tab has left: a reload takes one or two."""

Handler = Callable[[Any, Any], Awaitable[Response]]


class Tab:
    """A tab that reads a conversation: what `StreamResponse` sends."""

    def __init__(
        self, conversation: Conversation, after: int, left: Callable[[Conversation], None]
    ) -> None:
        self.conversation, self.after, self.left = conversation, after, left

    async def __aenter__(self) -> "Tab":
        self.conversation.readers += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self.conversation.readers -= 1
        self.left(self.conversation)

    def __aiter__(self) -> AsyncIterator[list[bytes]]:
        return self.batches()

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """Yield a greeting, then the entries that the tab does not have."""
        # A tab that has more entries than exist was open before the server was restarted.
        is_new = self.after > len(self.conversation.entries)
        hello = {"type": "hello", "reset": is_new}
        yield [msgspec.json.encode({"n": 0, "at": self.conversation.now(), "event": hello})]
        async for entries in self.conversation.follow(0 if is_new else self.after):
            yield entries


class Chat:
    """The conversations, and the turns that run; `tasks` outlives every request."""

    def __init__(self, client: Client, model: str, tasks: TaskGroup, grace: float) -> None:
        self.client, self.model, self.tasks, self.grace = client, model, tasks, grace
        self.find = Conversations().get

    async def ask(self, conversation: Conversation, question: Question) -> Response:
        """Start a turn; its events go to all tabs."""
        turn = len(conversation.before)
        if conversation.turn is not None:
            return refusal(409, BUSY)
        if question.replaces not in (None, turn - 1):
            return refusal(409, NOT_LAST)
        if question.replaces is not None:
            del conversation.history[conversation.before[-1] :]
        conversation.before.append(len(conversation.history))
        scope = conversation.turn = anyio.CancelScope()
        conversation.append(question_event(question, turn))
        self.tasks.start_soon(self.run_turn, conversation, question, scope)
        self.stop_unless_read(conversation)
        return JSONResponse({"turn": turn})

    async def follow(self, conversation: Conversation, place: Place) -> Response:
        """Send a tab the entries that it does not have, and each that comes."""
        tab = Tab(conversation, place.after, self.stop_unless_read)
        return StreamResponse(tab, EntryEncoder())  # type: ignore[arg-type]

    async def stop(self, conversation: Conversation, _: Stop) -> Response:
        """Close the connection to the model, whichever tab asked."""
        if conversation.turn is not None:
            conversation.turn.cancel()
        return JSONResponse({})

    async def run_turn(
        self, conversation: Conversation, question: Question, scope: anyio.CancelScope
    ) -> None:
        """Send requests until the model calls no more tools, or somebody stops it."""
        reason = "stopped"
        with scope:
            reason = await self.answer(conversation, question)
        conversation.turn = None
        conversation.append({"type": "turn_ended", "reason": reason})

    async def answer(self, conversation: Conversation, question: Question) -> str:
        """Append the events of one turn; return how it ended."""
        encode = encoder("jsonl", public=True, run=True)
        history = conversation.history
        asked = [*history, user(question.text)]
        prompt = Prompt(asked, reasoning="low" if question.think else None)
        tools = [get_weather] if question.tools else []
        last: Any = None
        try:
            run = agent(self.client, prompt, tools, self.model, errors="event")
            try:
                async with run, pipe(run, coalesce(1 / 60)) as events:
                    async for last in events:
                        conversation.append(encode.feed(last))
            finally:
                # What was shown stays in the history, after Stop too. A turn that failed leaves no
                # trace there, so that it can be tried again.
                if not isinstance(last, Failed):
                    history[:] = run.history
        except StreamError as error:
            # The request could not be sent at all; a later failure is an event.
            last = Failed(error.info)
            history[:] = asked[:-1]
            conversation.append(encode.feed(last))
        except Exception:
            log.exception("the turn failed")
            last = Failed(ErrorInfo("server_error", "the example failed"))
            history[:] = asked[:-1]
            conversation.append(encode.feed(last))
        return "failed" if isinstance(last, Failed) else "done"

    def stop_unless_read(self, conversation: Conversation) -> None:
        """Stop a turn when no tab has read it for a while: nobody would see what is paid for."""
        if not conversation.readers and conversation.turn is not None:
            self.tasks.start_soon(self.stop_later, conversation, conversation.turn)

    async def stop_later(self, conversation: Conversation, turn: anyio.CancelScope) -> None:
        """Stop the turn after the grace, if there is still nobody."""
        await anyio.sleep(self.grace)
        if not conversation.readers:
            turn.cancel()


def conversation_route(chat: Chat, action: str, handle: Handler, body_type: type) -> Route:
    """The route of something that a page does with a conversation."""

    async def endpoint(request: Request) -> Response:
        # A form on another site could send any other type.
        if request.headers.get("content-type") != "application/json":
            return refusal(415, "Send JSON.")
        try:
            body = msgspec.json.decode(await request.body(), type=body_type)
        except msgspec.DecodeError as error:
            return refusal(400, str(error))
        return await handle(chat.find(request.path_params["name"]), body)

    return Route(f"/conversations/{{name}}/{action}", endpoint, methods=["POST"])


async def vendor(request: Request) -> Response:
    """A vendored file; the larger ones are stored compressed."""
    path = HERE / "vendor" / request.path_params["name"]
    packed = path.with_name(path.name + ".gz")
    headers = {"cache-control": "no-cache"}
    if packed.is_file():
        headers["content-encoding"] = "gzip"
        return FileResponse(packed, media_type="text/javascript", headers=headers)
    if path.suffix == ".js" and path.is_file():
        return FileResponse(path, media_type="text/javascript", headers=headers)
    return Response("no such file", 404)


def application(
    client: Client,
    model: str,
    tasks: TaskGroup,
    grace: float = GRACE,
) -> Starlette:
    """The pages and their endpoints. Answers are written in `tasks`."""
    chat = Chat(client, model, tasks, grace)
    routes = [
        conversation_route(chat, "questions", chat.ask, Question),
        conversation_route(chat, "events", chat.follow, Place),
        conversation_route(chat, "stop", chat.stop, Stop),
        *framework_routes(client, model),
        Route("/vendor/{name}", vendor),
        Mount("/", StaticFiles(directory=HERE / "page", html=True)),
    ]
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    return Starlette(routes=routes, middleware=[hosts])


async def serve_page(app: Starlette, port: int, backend: str) -> None:
    """Serve an application on this machine: with uvicorn on asyncio, with hypercorn on trio."""
    if backend == "trio":
        from hypercorn.config import Config
        from hypercorn.trio import serve as hypercorn_serve

        config = Config()
        config.bind = [f"127.0.0.1:{port}"]
        config.graceful_timeout = 1
        await hypercorn_serve(app, config)
    else:
        import uvicorn

        options = uvicorn.Config(app, port=port, access_log=False, timeout_graceful_shutdown=1)
        await uvicorn.Server(options).serve()


async def main(
    port: int = 8000,
    backend: str = "asyncio",
) -> None:
    """Serve the pages, and the provider of a model `loopback:…`."""
    model = os.environ.get("STREAMLIB_MODEL", "loopback:echo")
    base_url = os.environ.get("STREAMLIB_BASE_URL")
    async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
        if model.startswith("loopback:") and base_url is None:
            base_url = await tasks.start(serve, Behaviour(pace=0.04))
        client = await stack.enter_async_context(Client(base_url=base_url))
        async with anyio.create_task_group() as writers:
            app = application(client, model, writers)
            await serve_page(app, port, backend)
            writers.cancel_scope.cancel()
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="A chat page on this machine.")
    options.add_argument("--port", type=int, default=8000)
    options.add_argument("--trio", action="store_true", help="with hypercorn on trio")
    given = options.parse_args()
    loop = "trio" if given.trio else "asyncio"
    with suppress(KeyboardInterrupt):
        anyio.run(main, given.port, loop, backend=loop)
