"""For your own tests: a client that replays a recording, and a local provider with faults.

    async with replay("response.jsonl", wire_api="messages") as client: ...
    async with loopback(fault="truncate") as client: ...

Both clients are ordinary ones: `client.stream(prompt, model=MODEL)` is the code that you ship,
without a key and without a network.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from streamlib.client import Client
from streamlib.loopback import Behaviour, running, serve
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.recording import Recording, Replay, Split, from_body, load_all
from streamlib_parsers.items import WireApi

__all__ = ["MODEL", "Behaviour", "loopback", "replay", "serve"]

MODEL: Final = "loopback:test"
"""A model name that the clients of this module accept."""


@asynccontextmanager
async def replay(
    recording: Recording | bytes | str | Path,
    wire_api: WireApi | None = None,
    *,
    speed: float = 0.0,
    split: Split = "recorded",
    **options: Any,
) -> AsyncGenerator[Client]:
    """A client that replays a recording.

    Args:
        recording: a recording, its file, or the bytes of a captured body. A file of several
            recordings is replayed one a request, in order.
        wire_api: None: the recording's own, else `messages`.
        speed: 1 is the recorded pace; 0 does not wait.
        split: how the body is split into chunks.
        options: arguments of `Client`.
    """
    if isinstance(recording, bytes):
        recordings = [from_body(recording)]
    elif isinstance(recording, Recording):
        recordings = [recording]
    else:
        recordings = load_all(recording)
    wire_api = wire_api or recordings[0].wire_api or "messages"
    transport = Replay(*recordings, speed=speed, split=split)
    async with Client(http=transport, wire_api=wire_api, **options) as client:
        yield client


@asynccontextmanager
async def loopback(
    wire_api: WireApi = "messages", *, client: dict[str, Any] | None = None, **behaviour: Any
) -> AsyncGenerator[Client]:
    """A client whose provider is a real HTTP server on 127.0.0.1.

    Args:
        wire_api: what the client and the server use.
        client: arguments of `Client`.
        behaviour: fields of `Behaviour`: chunk, pace, fault, at, failing, status and others.
    """
    async with running(Behaviour(**behaviour)) as url:
        base_url = url + WIRE_SPECS[wire_api].root_path
        options = client or {}
        async with Client(base_url=base_url, wire_api=wire_api, **options) as configured:
            yield configured
