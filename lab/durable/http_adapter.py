"""What the conformance suite of Durable Streams needs beside our read side: PUT and POST of bytes.

    python -m lab.durable.http_adapter       # prints its address; for the suite of npm

A stream of anybody's bytes is a log here whose events carry the messages. Only what reads it is
ours: `streamlib.durable.stream_protocol`. Forks, times to live and webhooks are not there.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote

import anyio
import uvicorn

from streamlib.asgi import Receive, Scope, Send
from streamlib.durable import Log, LogError, open_log
from streamlib.durable.log_exchange import LogExchange
from streamlib.durable.records import Entry, LogCursor, encode_event, parse_cursor
from streamlib.durable.rules import Append, Open
from streamlib.durable.stream_protocol import BadRequest, Messages, StreamRequest, offset_of
from streamlib_parsers.events import Completed, Passthrough, ResponseEvent

LEASE_MS: Final = 3_600_000
OWNER: Final = "adapter"


class TextMessages:
    """Messages of a stream of text: joined without anything between."""

    def __init__(self, content_type: str) -> None:
        self.content_type = content_type

    def of(self, entries: Iterable[Entry]) -> list[bytes]:
        events = [entry.event for entry in entries]
        return [base64.b64decode(e.data) for e in events if isinstance(e, Passthrough)]

    def body(self, messages: list[bytes]) -> bytes:
        return b"".join(messages)

    def data_lines(self, messages: list[bytes]) -> list[bytes]:
        text = self.body(messages).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return text.split(b"\n")


class JsonValues:
    """Messages of a stream of JSON values."""

    content_type = "application/json"

    def of(self, entries: Iterable[Entry]) -> list[bytes]:
        events = [entry.event for entry in entries]
        return [base64.b64decode(e.data) for e in events if isinstance(e, Passthrough)]

    def body(self, messages: list[bytes]) -> bytes:
        return b"[" + b",".join(messages) + b"]"

    def data_lines(self, messages: list[bytes]) -> list[bytes]:
        return [self.body(messages)]


def messages_of(meta: dict[str, Any]) -> Messages:
    content_type = meta["type"]
    if content_type.split(";")[0].strip().lower() == "application/json":
        return JsonValues()
    return TextMessages(content_type)


class Adapter:
    """The application under test, with a way to write."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.writing = anyio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError("HTTP only")
        exchange = LogExchange(scope, receive, send)
        name = scope["path"].removeprefix("/v1/stream/").replace("/", "~")
        try:
            await self._serve(exchange, name, receive)
        except LogError:
            # The suite deletes and creates streams of one name; it knows no 410.
            await exchange.refuse(404, "gone", "there is no such stream")
        except BadRequest as error:
            await exchange.refuse(400, "invalid_request", str(error))

    async def _serve(self, exchange: LogExchange, name: str, receive: Receive) -> None:
        match exchange.method:
            case "GET" | "HEAD":
                await self._read(exchange, name)
            case "DELETE":
                await self.log.delete(name)
                await exchange.respond(204)
            case "OPTIONS":
                await exchange.respond(204, {"access-control-allow-headers": "*"})
            case "PUT":
                await self._create(exchange, name, await body_of(receive))
            case "POST":
                await self._append(exchange, name, await body_of(receive))
            case _:
                await exchange.respond(405)

    async def _read(self, exchange: LogExchange, name: str) -> None:
        head = await self.log.head(name)
        request = StreamRequest(
            exchange,
            self.log,
            name,
            messages_of(dict(head.meta)),
            poll=2.0,
            ping=15.0,
            lifetime=60.0,
        )
        if exchange.method == "HEAD":
            await request.head()
        else:
            await request.get()

    # --- writing ---

    async def _create(self, exchange: LogExchange, name: str, body: bytes) -> None:
        content_type = exchange.header("content-type") or "application/octet-stream"
        meta = {"type": content_type}
        closes = is_closing(exchange)
        status = 201
        async with self.writing:
            try:
                head = await self.log.head(name)
            except LogError:
                await self._open(name, meta)
                values = values_of(body, content_type, may_be_empty=True)
                await self._write(name, values, closes=closes)
            else:
                same = head.meta["type"].lower() == content_type.lower()
                if not same or (head.state == "closed") != closes:
                    await exchange.respond(409)
                    return
                status = 200
        fields = {"content-type": content_type}
        if status == 201:
            fields["location"] = f"http://{exchange.header('host')}{quote(exchange.path)}"
        await self._done(exchange, name, status, fields)

    async def _append(self, exchange: LogExchange, name: str, body: bytes) -> None:
        async with self.writing:
            head = await self.log.head(name)
            closes = is_closing(exchange)
            if head.state == "closed":
                status = 204 if closes and not body else 409
                await self._done(exchange, name, status, {})
                return
            if not body and not closes:
                raise BadRequest("an empty body")
            content_type = exchange.header("content-type")
            if body and content_type is None:
                raise BadRequest("no content type")
            mine = head.meta["type"].split(";")[0].lower()
            if body and (content_type or "").split(";")[0].strip().lower() != mine:
                await exchange.respond(409)
                return
            sequence = exchange.header("stream-seq")
            last = SEQUENCES.get((name, head.epoch))
            if sequence is not None and last is not None and sequence <= last:
                await exchange.respond(409)
                return
            values = values_of(body, mine) if body else []
            await self._write(name, values, closes=closes)
            if sequence is not None:
                SEQUENCES[name, head.epoch] = sequence
        await self._done(exchange, name, 204, {})

    async def _done(
        self, exchange: LogExchange, name: str, status: int, fields: dict[str, str]
    ) -> None:
        head = await self.log.head(name)
        fields["stream-next-offset"] = offset_of(parse_cursor(head.cursor))
        if head.state == "closed":
            fields["stream-closed"] = "true"
        await exchange.respond(status, fields)

    async def _open(self, name: str, meta: dict[str, Any]) -> None:
        await self.log._engine.ask(name, Open(OWNER, LEASE_MS, meta=json.dumps(meta)))

    async def _write(self, name: str, values: list[bytes], *, closes: bool) -> None:
        """One record; behind the last message of a closed stream an event that is none."""
        cursor: LogCursor = parse_cursor((await self.log.head(name)).cursor)
        events: list[ResponseEvent] = []
        for value in values:
            events.append(Passthrough("m", base64.b64encode(value).decode()))
        if closes:
            events.append(Completed(stop_reason="stop"))
        if not events:
            return
        lines = b"".join([encode_event(event) for event in events])
        first = cursor.position + 1
        record = Append(
            OWNER,
            cursor.epoch,
            first,
            cursor.position + len(events),
            size=len(lines),
            lease_ms=LEASE_MS,
            closes=closes,
            keep_ms=LEASE_MS,
            max_bytes=1 << 30,
        )
        result = await self.log._engine.ask(name, record, lines)
        assert result.status == "ok", result


SEQUENCES: Final[dict[tuple[str, int], str]] = {}
"""The newest ``Stream-Seq`` of a stream."""


async def body_of(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def is_closing(exchange: LogExchange) -> bool:
    return (exchange.header("stream-closed") or "").lower() == "true"


def values_of(body: bytes, content_type: str, *, may_be_empty: bool = False) -> list[bytes]:
    """The messages of a body: of JSON one for each element of an array."""
    if not body:
        return []
    if content_type.split(";", maxsplit=1)[0].strip().lower() != "application/json":
        return [body]
    try:
        value = json.loads(body)
    except ValueError:
        raise BadRequest("no JSON") from None
    if value == [] and not may_be_empty:
        raise BadRequest("an empty array")
    if not isinstance(value, list):
        value = [value]
    return [json.dumps(element).encode() for element in value]


async def main() -> None:
    async with open_log("memory:", lease=3600) as log:
        config = uvicorn.Config(Adapter(log), port=0, log_level="warning", access_log=False)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110  # uvicorn has no event for it
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        sys.stdout.write(f"LISTEN http://127.0.0.1:{port}\n")
        sys.stdout.flush()
        await serving


if __name__ == "__main__":
    asyncio.run(main())
