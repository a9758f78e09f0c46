"""`streamlib.web` in the frameworks people use, on real servers: status, headers, disconnects."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.routing import Route

from streamlib import Client, Response, StreamError
from streamlib.client.retry import RetryPolicy
from streamlib.web import (
    StreamResponse,
    UIRequestError,
    error_response,
    iter_bytes,
    on_stream_error,
    parse_ui_request,
)
from tests.support.asgi_servers import serving_app
from tests.support.client_streams import FRAMES
from tests.support.scripted_server import (
    HANG,
    Script,
    Server,
    chunk,
    complete_response,
    head,
    scripted,
)
from tests.support.ui_streams import read_vercel

pytestmark = pytest.mark.usefixtures("asgi_server")

CLOSED_WITHIN: Final = 0.2
BODY: Final = (
    b'{"id":"c","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"hi"}]}]}'
)
WHOLE: Final = complete_response(b"".join(FRAMES))
SILENT: Final = [head(), chunk(b"".join(FRAMES[:3])), HANG]
REFUSED: Final = complete_response(
    b'{"type":"error","error":{"type":"authentication_error","message":"bad key sk-ant-1234567"}}',
    "401 Unauthorized",
    "application/json",
)
LIMITED: Final = complete_response(
    b'{"type":"error","error":{"type":"rate_limit_error","message":"org-17 is limited"}}',
    "429 Too Many Requests",
    "application/json",
    retry_after="7",
)

Chat = Callable[[bytes], StreamResponse]


def starlette_app(chat: Chat) -> Any:
    async def endpoint(request: Request) -> StreamResponse:
        return chat(await request.body())

    routes = [Route("/chat", endpoint, methods=["POST"])]
    return Starlette(routes=routes, exception_handlers={StreamError: on_stream_error})


def middleware_app(chat: Chat) -> Any:
    async def through(request: Request, call_next: Any) -> Any:
        return await call_next(request)

    app = starlette_app(chat)
    routes = app.routes
    return Starlette(
        routes=routes,
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=through)],
        exception_handlers={StreamError: on_stream_error},
    )


def fastapi_app(chat: Chat) -> Any:
    fastapi = pytest.importorskip("fastapi", reason="FastAPI is not installed")
    app = fastapi.FastAPI(exception_handlers={StreamError: on_stream_error})

    async def endpoint(request: Request) -> StreamResponse:
        return chat(await request.body())

    app.post("/chat")(endpoint)
    return app


def litestar_app(chat: Chat) -> Any:
    litestar = pytest.importorskip("litestar", reason="Litestar is not installed")

    async def endpoint(request: Any) -> StreamResponse:
        return chat(await request.body())

    # Litestar reads annotations as objects.
    endpoint.__annotations__ = {"request": litestar.Request, "return": StreamResponse}
    handler = litestar.post("/chat", status_code=200)(endpoint)

    def refused(request: Any, error: StreamError) -> Any:
        sent = error_response(error)
        return litestar.Response(sent.body, status_code=sent.status_code)

    return litestar.Litestar(
        [handler], exception_handlers={StreamError: refused}, logging_config=None
    )


FRAMEWORKS: Final[dict[str, Callable[[Chat], Any]]] = {
    "starlette": starlette_app,
    "starlette-middleware": middleware_app,
    "fastapi": fastapi_app,
    "litestar": litestar_app,
}


class Site:
    """An application in front of a scripted provider, which takes a script for each request."""

    def __init__(self, url: str, provider: Server, done: list[Response]) -> None:
        self.url = url
        self._provider = provider
        self._done = done

    async def post(self, body: bytes = BODY) -> httpx.Response:
        """The response to a page's request."""
        async with httpx.AsyncClient(timeout=5) as http:
            headers = {"content-type": "application/json"}
            return await http.post(f"{self.url}/chat", content=body, headers=headers)

    async def leave(self) -> float:
        """A browser that leaves while the model is silent; seconds until the model is left too."""
        address = urlsplit(self.url)
        request = f"POST /chat HTTP/1.1\r\nhost: {address.netloc}\r\ncontent-length: {len(BODY)}"
        async with await anyio.connect_tcp("127.0.0.1", address.port or 0) as stream:
            await stream.send(request.encode() + b"\r\n\r\n" + BODY)
            received = b""
            with anyio.fail_after(5):
                while b"start-step" not in received:
                    received += await stream.receive()
        started = anyio.current_time()
        await self._provider.quiet(5)
        assert self._provider.open == 0
        return anyio.current_time() - started

    async def next_done(self) -> Response:
        """What `on_done` got, after it was called."""
        with anyio.fail_after(2):
            while not self._done:  # noqa: ASYNC110  # a list has no event to wait for
                await anyio.sleep(0.002)
        return self._done.pop()


@asynccontextmanager
async def served(
    make_app: Callable[[Chat], Any], respond: Callable[..., Any], *scripts: Script, **options: Any
) -> AsyncIterator[Site]:
    """Serves an application whose one endpoint streams a model's response."""
    done: list[Response] = []
    async with (
        scripted(*scripts) as provider,
        Client(base_url=provider.url, wire_api="messages", retry=RetryPolicy(retries=0)) as client,
    ):

        def chat(body: bytes) -> Any:
            asked = parse_ui_request("vercel", body)
            stream = client.stream(asked.history, "loopback:m")
            return respond(stream, asked.encoder(), on_done=done.append)

        async with serving_app(make_app(chat), **options) as server:
            yield Site(server.url, provider, done)


@pytest.mark.parametrize(
    ("framework", "anyio_backend"),
    [
        ("starlette", "asyncio"),
        ("starlette", "trio"),
        ("starlette-middleware", "asyncio"),
        ("fastapi", "asyncio"),
        ("litestar", "asyncio"),
    ],
    indirect=["anyio_backend"],
)
async def test_framework_serves_streams(framework: str) -> None:
    """D1, E5: a stream, refusals with their status, a browser that leaves, a bad body."""
    scripts = (WHOLE, REFUSED, LIMITED, SILENT)
    async with served(FRAMEWORKS[framework], StreamResponse, *scripts) as site:
        whole = await site.post()
        assert whole.status_code == 200
        assert whole.headers.get_list("content-type") == ["text/event-stream"]
        assert whole.headers["x-vercel-ai-ui-message-stream"] == "v1"
        assert whole.headers["cache-control"] == "no-cache"
        assert read_vercel(whole.content)[-1]["type"] == "finish"
        assert (await site.next_done()).text == "Hello there"

        for status, wait in ((502, None), (429, "7")):
            refused = await site.post()
            assert refused.status_code == status
            assert refused.headers.get("retry-after") == wait
            assert refused.headers.get_list("content-type") == ["application/json"]
            assert refused.json()["error"]["retryable"] is (status == 429)
            assert "sk-ant" not in refused.text
            assert "org-17" not in refused.text
            assert (await site.next_done()).status == "failed"

        assert await site.leave() < CLOSED_WITHIN
        assert (await site.next_done()).status == "cancelled"

        bad = await site.post(b'{"messages":[{"role":"system","parts":[]}]}')
        assert bad.status_code == 400
        assert "may not send instructions" in bad.json()["error"]["message"]


def django_app(chat: Callable[[bytes], Any]) -> Any:
    pytest.importorskip("django", reason="Django is not installed")
    from django.conf import settings
    from django.core.asgi import get_asgi_application
    from django.http import JsonResponse, StreamingHttpResponse
    from django.urls import path

    async def endpoint(request: Any) -> Any:
        try:
            body = chat(request.body)
        except UIRequestError as error:
            return JsonResponse({"error": error.message}, status=400)
        return StreamingHttpResponse(body, headers=body.headers)

    urls = type(sys)("streamlib_test_urls")
    urls.urlpatterns = [path("chat", endpoint)]  # type: ignore[attr-defined]
    settings.configure(ROOT_URLCONF=urls, ALLOWED_HOSTS=["127.0.0.1"], LOGGING_CONFIG=None)
    return get_asgi_application()


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
async def test_django_serves_streams() -> None:
    """A stream, a refusal as a part of it, a browser that leaves, a bad body."""
    scripts = (WHOLE, LIMITED, SILENT)
    async with served(django_app, iter_bytes, *scripts, lifespan="off") as site:
        whole = await site.post()
        assert whole.headers.get_list("content-type") == ["text/event-stream"]
        assert read_vercel(whole.content)[-1]["type"] == "finish"
        assert (await site.next_done()).text == "Hello there"

        limited = await site.post()
        assert limited.status_code == 200
        assert read_vercel(limited.content)[-1]["errorText"].startswith("Too many")
        assert (await site.next_done()).status == "failed"

        assert await site.leave() < CLOSED_WITHIN
        assert (await site.next_done()).status == "cancelled"
        assert (await site.post(b"[")).status_code == 400
