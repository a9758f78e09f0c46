"""Serves the web example: the real page, a real server, a loopback provider.

The provider counts the clients that disconnect before their response is complete.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream

from streamlib import Client
from streamlib.testing import Behaviour, echo_response
from streamlib.testing.provider.provider import Loopback
from streamlib.testing.provider.server import serve_connection
from tests.support.asgi_servers import serving_app
from tests.support.shared import ROOT


@cache
def example(path: str) -> ModuleType:
    """Imports an example: examples are files to read and run, not a package."""
    file = ROOT / "examples" / path
    spec = spec_from_file_location(f"examples_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    sys.path.insert(0, str(file.parent))  # as Python does for a file that it runs
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    return module


class Provider:
    """The loopback provider.

    Attributes:
        disconnects: how many clients disconnected before their response was complete.
        prompts: of all requests, in order.
    """

    def __init__(
        self, behaviour: Behaviour, respond: Callable[..., Sequence[Any]] = echo_response
    ) -> None:
        self.disconnects = 0
        self.prompts: list[Any] = []
        self._disconnected = anyio.Event()
        self._responder = respond
        self._inner = Loopback(behaviour, self._respond)

    def _respond(self, prompt: Any, wire_api: Any) -> Sequence[Any]:
        self.prompts.append(prompt)
        return self._responder(prompt, wire_api)

    async def connection(self, stream: SocketStream) -> None:
        """One connection."""
        await serve_connection(self._inner, Watched(stream, self))  # type: ignore[arg-type]

    def count_disconnect(self) -> None:
        """A client disconnected."""
        self.disconnects += 1
        self._disconnected.set()

    async def wait_for_disconnect(self) -> None:
        """Waits until a client disconnects; TimeoutError after five seconds."""
        with anyio.fail_after(5):
            await self._disconnected.wait()


class Watched:
    """A socket that notices when a client disconnects in the middle of a response."""

    def __init__(self, stream: SocketStream, provider: Provider) -> None:
        self._stream = stream
        self._provider = provider
        self._responding = False

    async def __aenter__(self) -> Watched:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stream.aclose()

    async def send(self, data: bytes) -> None:
        self._responding = not data.endswith(b"0\r\n\r\n")
        try:
            await self._stream.send(data)
        except anyio.BrokenResourceError:
            self._provider.count_disconnect()
            raise

    async def receive(self, most: int = 65536) -> bytes:
        try:
            return await self._stream.receive(most)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            if self._responding:
                self._provider.count_disconnect()
            raise

    def extra(self, attribute: Any) -> Any:
        return self._stream.extra(attribute)


@asynccontextmanager
async def web(
    behaviour: Behaviour | None = None, **options: Any
) -> AsyncIterator[tuple[str, Provider]]:
    """The page's URL and its provider. Options: `respond`, `model`, `grace`, those of `Client`."""
    model = options.pop("model", "loopback:echo")
    grace = options.pop("grace", 5.0)
    provider = Provider(behaviour or Behaviour(), options.pop("respond", echo_response))
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
        Client(
            base_url=f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}", **options
        ) as client,
    ):
        group.start_soon(listener.serve, provider.connection)
        app = example("web/app.py").application(client, model, group, grace)
        async with serving_app(app, lifespan="off", ws="none") as server:
            yield server.url, provider
        group.cancel_scope.cancel()
