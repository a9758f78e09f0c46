"""For your own tests: a client that replays a recording, and a real provider on loopback with faults.

    async with replay("answer.jsonl", wire_api="messages") as client: ...
    async with loopback(fault="truncate") as client: ...

Both clients are ordinary: `client.stream(prompt, model=MODEL)` is the code you ship, without a key and without a network.
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
"""The model name that the clients of this module answer to."""


@asynccontextmanager
async def replay(
    recording: Recording | bytes | str | Path,
    wire_api: WireApi | None = None,
    *,
    speed: float = 0.0,
    split: Split = "recorded",
    **options: Any,
) -> AsyncGenerator[Client]:
    """A client that answers with a recording: one of ours, its file, or the bytes of a captured body.

    A file of several answers one request with each, in turn. wire_api: None is the recording's own, else `messages`.
    """
    if isinstance(recording, bytes):
        recordings = [from_body(recording)]
    else:
        recordings = [recording] if isinstance(recording, Recording) else load_all(recording)
    spoken = wire_api or recordings[0].wire_api or "messages"
    async with Client(
        http=Replay(*recordings, speed=speed, split=split), wire_api=spoken, **options
    ) as client:
        yield client


@asynccontextmanager
async def loopback(
    wire_api: WireApi = "messages", *, client: dict[str, Any] | None = None, **behaviour: Any
) -> AsyncGenerator[Client]:
    """A client whose provider is a real server on 127.0.0.1. `behaviour`: chunk, pace, fault, at, failing, status … of `Behaviour`."""
    async with running(Behaviour(**behaviour)) as url:
        path = WIRE_SPECS[wire_api].root_path
        async with Client(base_url=url + path, wire_api=wire_api, **(client or {})) as made:
            yield made
