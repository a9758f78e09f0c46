"""A chat page: text, reasoning, tool calls, usage, rate limits and errors while they stream.

Its Stop button closes the connection to the model.

    python examples/web/app.py

Then open http://127.0.0.1:8000. It works offline: the model is the loopback provider. A real model
needs that provider's key in the environment:

    STREAMLIB_MODEL=anthropic:claude-opus-5 python examples/web/app.py

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
SSE_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # nginx would buffer the stream
]


def get_weather(city: str = "?", days: int = 1, occasion: str = "being outside", **_: Any) -> str:
    """The output of the tool; a real one would call a weather service."""
    return f"{city}: 21 °C, a light breeze and sun for the next {days} days. Good for {occasion}."


def run(call: FunctionCall) -> FunctionCallOutput:
    """Run a call; a mistake of the model is reported to the model."""
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


class StreamedResponse:
    """Streams one turn in the request's own task, and stops the model when the browser leaves."""

    def __init__(self, client: Client, model: str, history: list[ResponseItem], ask: Ask) -> None:
        self.client, self.model, self.history, self.ask = client, model, history, ask

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Stream until the response ends or the browser disconnects."""
        async with anyio.create_task_group() as group:

            async def until_the_browser_leaves() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            async def write(line: bytes) -> None:
                data = b"data: " + line + b"\n"
                await send({"type": "http.response.body", "body": data, "more_body": True})

            group.start_soon(until_the_browser_leaves)
            await send({"type": "http.response.start", "status": 200, "headers": SSE_HEADERS})
            try:
                await self.turn(write)
            except StreamError as error:
                # The request could not be sent at all; a later failure is an event.
                await write(encoder("jsonl", public=True).feed(Failed(error.info)))
            await send({"type": "http.response.body", "body": b""})
            group.cancel_scope.cancel()

    async def turn(self, write: Any) -> None:
        """Send requests until the model calls no more tools."""
        items: list[ResponseItem] = [*self.history, user(self.ask.text)]
        tools = [WEATHER] if self.ask.tools else []
        while True:
            prompt = Prompt(items, tools=tools, reasoning="low" if self.ask.think else None)
            encode = encoder("jsonl", public=True, run=True)
            stream = self.client.stream(prompt, self.model, errors="event")
            try:
                async with stream, pipe(stream, coalesce(1 / 60)) as events:
                    async for event in events:
                        await write(encode.feed(event))
            finally:
                items += stream.response.items
                # What was shown stays in the history, after Stop too. A turn that failed leaves no
                # trace there, so that it can be tried again.
                if stream.response.status != "failed":
                    self.history[:] = items
            calls = [call for call in stream.response.calls if isinstance(call, FunctionCall)]
            if not calls:
                return
            for call in calls:
                output = run(call)
                items.append(output)
                await write(encode.feed(output))


def application(client: Client, model: str) -> Starlette:
    """The page and its one endpoint."""
    # Kept in memory here: store yours in a database (`dump_history`).
    conversations: dict[str, list[ResponseItem]] = {}

    async def ask(request: Request) -> Any:
        # A form on another site could send any other type.
        if request.headers.get("content-type") != "application/json":
            return PlainTextResponse("send JSON", 415)
        try:
            body = msgspec.json.decode(await request.body(), type=Ask)
        except msgspec.DecodeError as error:
            return PlainTextResponse(str(error), 400)
        history = conversations.setdefault(body.conversation, [])
        return StreamedResponse(client, model, history, body)

    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    page = StaticFiles(directory=Path(__file__).parent / "page", html=True)
    return Starlette(
        routes=[Route("/ask", ask, methods=["POST"]), Mount("/", page)], middleware=[hosts]
    )


async def main(port: int = 8000) -> None:
    """Serve the page on this machine, and the provider of a model `loopback:…`."""
    model = os.environ.get("STREAMLIB_MODEL", "loopback:echo")
    base_url = os.environ.get("STREAMLIB_BASE_URL")
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
