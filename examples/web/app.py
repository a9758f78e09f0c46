"""A chat page: text, thoughts, tool calls, usage, limits and errors while they stream, and a Stop button that closes the upstream.

    python examples/web/app.py        then http://127.0.0.1:8000; offline: the model is the loopback provider
    STREAMLIB_MODEL=anthropic:claude-opus-5 python examples/web/app.py        needs that provider's key in the environment

The page is plain files (`page/`), nothing is built. Needs `pip install 'streamlib[gateway]'`.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from streamlib import (
    Client,
    Failed,
    FunctionCall,
    FunctionCallOutput,
    Prompt,
    ResponseItem,
    StreamError,
    ToolSpec,
    encoder,
    user,
)
from streamlib.loopback import Behaviour, serve
from streamlib.pipeline import coalesce, pipe

WEATHER = ToolSpec(
    "get_weather",
    "The weather in a city, for some days from today.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "default": "Lisbon"},
            "days": {"type": "integer", "default": 3},
            "occasion": {
                "type": "string",
                "default": "a long walk by the river with a stop for coffee",
            },
        },
        "required": ["city"],
    },
)
STREAMED = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


def get_weather(city: str = "?", days: int = 1, occasion: str = "being outside", **_: Any) -> str:
    """What the tool gives: a real one would ask somebody."""
    return f"{city}: 21 °C, a light breeze and sun for the next {days} days. Good for {occasion}."


def answered(call: FunctionCall) -> FunctionCallOutput:
    """Runs a call; what the model got wrong is told to the model."""
    try:
        return call.output(get_weather(**call.parsed()))
    except (TypeError, ValueError) as error:
        return call.output(str(error), is_error=True)


class Ask(msgspec.Struct):
    """What the page sends."""

    conversation: str
    text: str
    think: bool = False
    tools: bool = False


class Answer:
    """One turn, written to the page while it streams. It lives in the request's own task: when the browser goes, so does the upstream."""

    def __init__(self, client: Client, model: str, history: list[ResponseItem], ask: Ask) -> None:
        self.client, self.model, self.history, self.ask = client, model, history, ask

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Streams until the answer ends or the browser goes."""
        async with anyio.create_task_group() as group:

            async def until_the_browser_goes() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            async def write(line: bytes) -> None:
                await send(
                    {
                        "type": "http.response.body",
                        "body": b"data: " + line + b"\n",
                        "more_body": True,
                    }
                )

            group.start_soon(until_the_browser_goes)
            await send({"type": "http.response.start", "status": 200, "headers": STREAMED})
            try:
                await self.turn(write)
            except (
                StreamError
            ) as error:  # it could not be asked at all; what fails later is an event
                await write(encoder("jsonl").feed(Failed(error.info)))
            await send({"type": "http.response.body", "body": b""})
            group.cancel_scope.cancel()

    async def turn(self, write: Any) -> None:
        """Asks until no tool is wanted any more. A turn that fails leaves no trace in the history, so that it can be tried again."""
        said: list[ResponseItem] = [*self.history, user(self.ask.text)]
        while True:
            prompt = Prompt(
                said,
                tools=[WEATHER] if self.ask.tools else [],
                reasoning="low" if self.ask.think else None,
            )
            encode = encoder("jsonl")
            stream = self.client.stream(prompt, self.model, errors="event")
            try:
                async with stream, pipe(stream, coalesce(1 / 60)) as events:
                    async for event in events:
                        await write(encode.feed(event))
            finally:
                said += stream.response.items
                if stream.response.status != "failed":  # kept after Stop too: what was said is said
                    self.history[:] = said
            outputs = [
                answered(call) for call in stream.response.calls if isinstance(call, FunctionCall)
            ]
            for output in outputs:
                await write(msgspec.json.encode(output) + b"\n")
            said += outputs
            if not outputs:
                return


def application(client: Client, model: str) -> Starlette:
    """The page and its one endpoint. Conversations are kept in memory: yours belong into a database (`dump_history`)."""
    conversations: dict[str, list[ResponseItem]] = {}

    async def ask(request: Request) -> Any:
        if (
            request.headers.get("content-type") != "application/json"
        ):  # what a form on another site could send
            return PlainTextResponse("send JSON", 415)
        try:
            asked = msgspec.json.decode(await request.body(), type=Ask)
        except msgspec.DecodeError as error:
            return PlainTextResponse(str(error), 400)
        return Answer(client, model, conversations.setdefault(asked.conversation, []), asked)

    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    page = StaticFiles(directory=Path(__file__).parent / "page", html=True)
    return Starlette(
        routes=[Route("/ask", ask, methods=["POST"]), Mount("/", page)], middleware=[hosts]
    )


async def main(port: int = 8000) -> None:
    """Serves the page on this machine; with the model `loopback:…` the provider too."""
    model, base_url = (
        os.environ.get("STREAMLIB_MODEL", "loopback:echo"),
        os.environ.get("STREAMLIB_BASE_URL"),
    )
    async with anyio.create_task_group() as group:
        if model.startswith("loopback:") and base_url is None:
            base_url = await group.start(serve, Behaviour(pace=0.04))
        async with Client(base_url=base_url) as client:
            config = uvicorn.Config(
                application(client, model), port=port, access_log=False, timeout_graceful_shutdown=1
            )
            await uvicorn.Server(config).serve()
        group.cancel_scope.cancel()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        anyio.run(main)
