"""Clients for your own tests: they replay a recording, follow a script, or meet faults.

    async with replay("response.jsonl", wire_api="messages") as client: ...
    async with scripted(["Hello", ErrorInfo("overloaded", "busy")], wire_api="chat") as client: ...
    async with loopback(fault="truncate") as client: ...

They are ordinary clients: `client.stream(prompt, model=MODEL)` is the code that you ship, without a
key or a network. docs/testing.md says more, and describes the pytest fixtures. For code without an
event loop there are `sync_replay` and `sync_loopback`.
"""

from __future__ import annotations

from streamlib.client import ClientOptions
from streamlib.loopback import Behaviour, Fault, ReceivedRequest, Turn, TurnLike, serve
from streamlib.testing.clients import MODEL, ScriptedClient, loopback, replay, scripted
from streamlib.testing.sync_clients import sync_loopback, sync_replay

__all__ = [
    "MODEL",
    "Behaviour",
    "ClientOptions",
    "Fault",
    "ReceivedRequest",
    "ScriptedClient",
    "Turn",
    "TurnLike",
    "loopback",
    "replay",
    "scripted",
    "serve",
    "sync_loopback",
    "sync_replay",
]
