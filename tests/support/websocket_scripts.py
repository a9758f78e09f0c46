"""A WebSocket server that follows a script: messages, pings, closes and lost connections.

    async with scripted_socket([EXPECT, {"type": "response.created", …}, Drop()]) as server:
        client.connect("loopback:m", base_url=server.url)

One script a connection, in the order in which they are opened; the last one is repeated.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import msgspec
import pytest
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.tls import TLSListener

from streamlib.client import Client
from streamlib.client.websocket import Connection
from streamlib.testing.provider.connections import reset_on_close
from streamlib.transport.websocket import SILENT, SocketClosed, WebSocket
from tests.support.shared import SHARED, require

EXPECT: Final = "expect"
"""A step: waits for the next message of the client."""

FOREVER: Final = "forever"
"""A step: sends nothing more and reads nothing more."""

MAX_SIZE: Final = 64 * 2**20
KEY: Final = "sk-canary-0123456789abcdef"


@dataclass(frozen=True)
class Drop:
    """A step: the connection is reset."""


@dataclass(frozen=True)
class Close:
    """A step: the connection is closed with a code."""

    code: int
    reason: str = ""


@dataclass(frozen=True)
class Ping:
    """A step: pings, and waits for the answer."""

    data: bytes = b"are you there"


@dataclass(frozen=True)
class Raw:
    """A step: sends bytes that bypass the protocol."""

    data: bytes


@dataclass(frozen=True)
class Pause:
    """A step: waits."""

    seconds: float


Step = Any
"""A message to send (a dict, or text as bytes), or one of the classes above."""


@dataclass
class ScriptedSocket:
    """Everything that the server received."""

    url: str = ""
    messages: list[Any] = field(default_factory=list)
    """Decoded messages of all connections, in order."""
    handshakes: list[dict[str, str]] = field(default_factory=list)
    """Headers of each handshake."""
    pongs: list[bytes] = field(default_factory=list)
    """Answers to pings."""
    sizes: list[int] = field(default_factory=list)
    """Bytes of each frame with text that was received."""


@asynccontextmanager
async def scripted_socket(
    *scripts: Sequence[Step], status: bytes = b"", tls: ssl.SSLContext | None = None
) -> AsyncIterator[ScriptedSocket]:
    """Serves the scripts. `status`: what is sent in place of a handshake."""
    pytest.importorskip("websockets", reason="websockets is not installed: dev extra")
    server = ScriptedSocket()

    async def serve(stream: SocketStream) -> None:
        script = scripts[min(len(server.handshakes), len(scripts) - 1)] if scripts else ()
        async with stream:
            try:
                await _serve(server, stream, script, status)
            except (SocketClosed, anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass
            except anyio.EndOfStream:
                pass

    listener: Any = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    scheme = "http"
    if tls is not None:
        scheme = "https"
        listener = TLSListener(listener, tls, standard_compatible=False)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        server.url = f"{scheme}://127.0.0.1:{port}/v1"
        yield server
        group.cancel_scope.cancel()


async def _serve(
    server: ScriptedSocket, stream: SocketStream, script: Sequence[Step], status: bytes
) -> None:
    from websockets.server import ServerProtocol

    protocol = ServerProtocol(max_size=MAX_SIZE, logger=SILENT)
    while not (events := protocol.events_received()):
        protocol.receive_data(await stream.receive())
    server.handshakes.append({name.lower(): value for name, value in events[0].headers.raw_items()})
    if status:
        await stream.send(status)
        return
    protocol.send_response(protocol.accept(events[0]))
    await stream.send(b"".join(protocol.data_to_send()))
    connection = _Played(server, stream, protocol)
    for step in script:
        if not await connection.play(step):
            return
    while True:  # until the client closes
        await connection.read()


class _Played:
    """One connection of the server."""

    def __init__(self, server: ScriptedSocket, stream: SocketStream, protocol: Any) -> None:
        self.server = server
        self.stream = stream
        self.protocol = protocol
        self.socket = WebSocket(stream, protocol, [], MAX_SIZE)
        self.waiting: list[bytes] = []

    async def read(self) -> None:
        data = await self.socket.read()
        self.protocol.receive_data(data)
        events = self.protocol.events_received()
        for event in events:
            if event.opcode.name == "PONG":
                self.server.pongs.append(bytes(event.data))
            elif event.opcode.name in ("TEXT", "CONT"):
                self.server.sizes.append(len(event.data))
        self.socket._early = events
        self.waiting.extend(self.socket.feed(b""))
        await self.socket.flush()

    async def play(self, step: Step) -> bool:
        """Makes a step; False if it ended the connection."""
        if step == EXPECT:
            while not self.waiting:
                await self.read()
            self.server.messages.append(json.loads(self.waiting.pop(0)))
        elif step == FOREVER:
            await anyio.sleep_forever()
        elif isinstance(step, Drop):
            reset_on_close(self.stream)
            return False
        elif isinstance(step, Close):
            self.protocol.send_close(step.code, step.reason)
            await self.socket._write()
        elif isinstance(step, Ping):
            seen = len(self.server.pongs)
            self.protocol.send_ping(step.data)
            await self.socket._write()
            while len(self.server.pongs) == seen:
                await self.read()
        elif isinstance(step, Pause):
            await anyio.sleep(step.seconds)
        elif isinstance(step, Raw):
            await self.stream.send(step.data)
        else:
            message = step if isinstance(step, bytes) else msgspec.json.encode(step)
            await self.socket.send(message)
        return True


@asynccontextmanager
async def connected(
    url: str, *, provider: str = "loopback", client: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[Connection]:
    """A connection of a client with a key."""
    async with (
        Client(**{"jitter": lambda: 0.0, **(client or {})}) as opened,
        opened.connect(f"{provider}:m", base_url=url, **{"api_key": KEY, **options}) as connection,
    ):
        yield connection


# --- frames ---


def response_frames(
    response_id: str, *texts: str, lane: str | None = None, end: str = "completed"
) -> list[dict[str, Any]]:
    """The messages of one response with one text, made of these deltas."""
    text = "".join(texts)
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {
        "id": f"msg_{response_id}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    response = {"id": response_id, "object": "response", "model": "m", "status": "in_progress"}
    skeleton = {**item, "status": "in_progress", "content": []}
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    frames: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": skeleton},
    ]
    for delta in texts:
        frames.append({"type": "response.output_text.delta", **place, "delta": delta})
    frames.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    ended = {**response, "status": end, "output": [item], "usage": None}
    if end == "incomplete":
        ended["incomplete_details"] = {"reason": "max_output_tokens"}
    frames.append({"type": f"response.{end}", "response": ended})
    for number, frame in enumerate(frames):
        frame["sequence_number"] = number
        if lane is not None:
            frame["stream_id"] = lane
    return frames


def error_frame(code: str, *, lane: str | None = None, status: int = 400) -> dict[str, Any]:
    """An `error` of the server."""
    error = {"type": "invalid_request_error", "code": code, "message": f"no: {code}"}
    frame: dict[str, Any] = {"type": "error", "status": status, "error": error}
    if lane is not None:
        frame["stream_id"] = lane
    return frame


# --- derived conversations ---


def conversations() -> dict[str, list[dict[str, Any]]]:
    """The derived conversations by name: messages with their direction, in order."""
    folder = require(SHARED / "corpus-2" / "responses-ws")
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.frames.jsonl")):
        name = path.name.removesuffix(".frames.jsonl").removeprefix("derived__")
        lines = path.read_text(encoding="utf-8").splitlines()
        found[name] = [json.loads(line) for line in lines if line]
    assert len(found) == 8
    return found


def received(conversation: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the server sent."""
    return [line["frame"] for line in conversation if line["dir"] == "recv"]


def as_script(conversation: list[dict[str, Any]]) -> list[Step]:
    """The server's side of a conversation."""
    script: list[Step] = []
    for line in conversation:
        script.append(EXPECT if line["dir"] == "send" else line["frame"])
    return script
