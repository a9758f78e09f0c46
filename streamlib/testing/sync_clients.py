"""Clients for tests of code without an event loop."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

from anyio.from_thread import start_blocking_portal

from streamlib.client import ClientOptions
from streamlib.client.sync import SyncClient
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.recording import Recording, Replay, Split, from_body, load_all
from streamlib.testing.provider.behaviour import Behaviour
from streamlib.testing.provider.server import running
from streamlib_parsers.items import WireApi


def sync_replay(
    recording: Recording | bytes | str | PathLike[str],
    wire_api: WireApi | None = None,
    *,
    speed: float = 0.0,
    split: Split = "recorded",
    **client: Unpack[ClientOptions],
) -> SyncClient:
    """A client that replays a recording, like `replay`, for code without an event loop.

    Args:
        recording: a recording, its file, or the bytes of a captured body.
        wire_api: None: the recording's own wire, else `messages`.
        speed: factor of the recorded pace; 0 does not wait.
        split: how the body is split: "recorded", "whole", "random", or the bytes of a chunk.
        **client: options of `Client` but `http`.

    Raises:
        ValueError: the file is not a recording.
        TypeError: `http` is among the options.
        OSError: the file cannot be read.
    """
    if isinstance(recording, bytes):
        recordings = [from_body(recording)]
    elif isinstance(recording, Recording):
        recordings = [recording]
    else:
        recordings = load_all(Path(recording))
    wire_api = wire_api or recordings[0].wire_api or "messages"
    if "http" in client:
        raise TypeError("a replayed recording is the transport: there is no other one")
    client["http"] = Replay(*recordings, speed=speed, split=split)
    return SyncClient(wire_api=wire_api, **client)


@contextmanager
def sync_loopback(
    wire_api: WireApi = "messages", *, client: ClientOptions | None = None, **behaviour: Any
) -> Generator[SyncClient]:
    """A client of a real HTTP server, like `loopback`; the server runs in its own thread.

    Args:
        wire_api: wire of the client and the server.
        client: options of `Client`.
        behaviour: fields of `Behaviour`: turns, chunk, pace, fault, at, failing, status …
    """
    with (
        start_blocking_portal(name="loopback") as portal,
        portal.wrap_async_context_manager(running(Behaviour(**behaviour))) as url,
    ):
        base_url = url + WIRE_SPECS[wire_api].root_path
        options: ClientOptions = client or {}
        with SyncClient(base_url=base_url, wire_api=wire_api, **options) as configured:
            yield configured
