"""The read side of the Durable Streams protocol 1.0, in JSON mode: each event is a message.

    GET /log/{id}?offset=-1                       available messages: 200, a JSON array
    GET /log/{id}?offset=…&live=long-poll         next messages: 200, or 204 after some seconds
    GET /log/{id}?offset=…&live=sse               all messages, when they are written
    HEAD /log/{id}                                the last offset

An offset is a cursor with leading zeros, so that offsets compare as texts in the right order.

Wire source: ``PROTOCOL.md`` of ``durable-streams/durable-streams``, sections 5.4 to 5.8, 8 to 10.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Iterable
from typing import Final, Protocol
from urllib.parse import quote

import anyio
import msgspec

from streamlib.asgi import SSE_HEADERS, comments
from streamlib.durable.log import Log
from streamlib.durable.log_exchange import LogExchange, PublicLines
from streamlib.durable.reader import LogReader
from streamlib.durable.records import START, Entry, LogCursor, parse_cursor

STREAM_HEADERS: Final = (
    "stream-next-offset",
    "stream-up-to-date",
    "stream-closed",
    "stream-cursor",
    "etag",
)
"""Response headers that pages of other sites need: ``Access-Control-Expose-Headers``."""

INTERVAL_EPOCH: Final = 1_728_432_000
"""2024-10-09 UTC in Unix seconds: `Stream-Cursor` counts intervals from then."""

INTERVAL_SECONDS: Final = 20
JITTER_SECONDS: Final = 3600

PRIVATE: Final = "private, no-cache"
"""Allows a browser to store a response, but it must ask each time whether it still may (304)."""

NO_STORE: Final = "no-store"


class Messages(Protocol):
    """Converts entries into messages, and messages into bodies."""

    content_type: str

    def of(self, entries: Iterable[Entry]) -> list[bytes]:
        """The messages of entries; an entry may have no message."""
        ...

    def body(self, messages: list[bytes]) -> bytes:
        """The body of a response with these messages."""
        ...

    def data_lines(self, messages: list[bytes]) -> list[bytes]:
        """The `data` lines of one server-sent event."""
        ...


class JsonMessages:
    """Events as JSON, without fields that a browser must not see."""

    content_type = "application/json"

    def __init__(self) -> None:
        self._lines = PublicLines()

    def of(self, entries: Iterable[Entry]) -> list[bytes]:
        """See `Messages.of`."""
        lines = [self._lines.line(entry.event) for entry in entries]
        return [line for line in lines if line]

    def body(self, messages: list[bytes]) -> bytes:
        """See `Messages.body`."""
        return b"[" + b",".join(messages) + b"]"

    def data_lines(self, messages: list[bytes]) -> list[bytes]:
        """See `Messages.data_lines`."""
        return [self.body(messages)]


class BadRequest(Exception):
    """A parameter is wrong; the message names it."""


class StreamRequest:
    """One request of this protocol.

    Args:
        exchange: the request.
        log: the logs.
        log_id: id of the log, which the client may read.
        messages: converts events into messages.
        poll: seconds for which a long poll waits.
        ping: seconds without data after which an SSE response sends a comment.
        lifetime: seconds after which an SSE response ends, so that the client reconnects.
    """

    def __init__(
        self,
        exchange: LogExchange,
        log: Log,
        log_id: str,
        messages: Messages,
        *,
        poll: float,
        ping: float | None,
        lifetime: float | None,
    ) -> None:
        self._exchange = exchange
        self._log = log
        self._log_id = log_id
        self._messages = messages
        self._poll = poll
        self._ping = ping
        self._lifetime = lifetime
        self._cursor_sent = self._single("cursor")
        """The `Stream-Cursor` that the client sent."""

    async def head(self) -> None:
        """Serves HEAD.

        Raises:
            LogError: errors of `Log.head`.
        """
        head = await self._log.head(self._log_id)
        fields = {
            "content-type": self._messages.content_type,
            "cache-control": NO_STORE,
            "stream-next-offset": offset_of(parse_cursor(head.cursor)),
        }
        if head.state == "closed":
            fields["stream-closed"] = "true"
        await self._exchange.respond(200, fields)

    async def get(self) -> None:
        """Serves GET.

        Raises:
            LogError: errors of `Log.read`.
            BadRequest: a parameter is wrong.
        """
        live = self._single("live")
        offset = self._single("offset")
        if live not in {None, "long-poll", "sse"}:
            raise BadRequest("live is long-poll or sse")
        if offset is None and live is not None:
            raise BadRequest("live needs an offset")
        after = await self._cursor_of(offset)
        reader = self._log.read(self._log_id, str(after))
        try:
            _, entries = await reader.available()
            if live == "sse":
                await self._serve_events(reader, entries)
            elif live == "long-poll" and not entries:
                await self._wait_for_entries(reader, after)
            else:
                is_now = offset == "now"
                await self._respond(reader, after, entries, is_live=live is not None, is_now=is_now)
        finally:
            reader.close()

    def _single(self, name: str) -> str | None:
        """The value of a parameter that may occur once.

        Raises:
            BadRequest: it occurs twice.
        """
        values = self._exchange.query(name)
        if len(values) > 1:
            raise BadRequest(f"{name} is there twice")
        if not values:
            return None
        return values[0]

    async def _cursor_of(self, offset: str | None) -> LogCursor:
        match offset:
            case None | "-1":
                return START
            case "now":
                head = await self._log.head(self._log_id)
                return parse_cursor(head.cursor)
            case _:
                try:
                    return parse_cursor(offset)
                except ValueError:
                    message = "an offset is -1, now, or what a response named"
                    raise BadRequest(message) from None

    # --- one response ---

    async def _respond(
        self,
        reader: LogReader,
        after: LogCursor,
        entries: list[Entry],
        *,
        is_live: bool,
        is_now: bool = False,
    ) -> None:
        """Sends the available entries."""
        fields = self._position(reader)
        fields["content-type"] = self._messages.content_type
        # An empty response is only valid now, so it must not be stored.
        fields["cache-control"] = PRIVATE if entries else NO_STORE
        if is_live and not reader.is_ended:
            fields["stream-cursor"] = self._stream_cursor()
        if not is_now:
            etag = self._etag(reader, after)
            fields["etag"] = etag
            if _matches(self._exchange.header("if-none-match"), etag):
                await self._exchange.respond(304, fields)
                return
        body = self._messages.body(self._messages.of(entries))
        await self._exchange.respond(200, fields, body)

    def _etag(self, reader: LogReader, after: LogCursor) -> str:
        closed = ":c" if reader.is_ended else ""
        name = quote(self._log_id, safe="")
        return f'"{name}:{offset_of(after)}:{offset_of(reader.cursor)}{closed}"'

    def _position(self, reader: LogReader) -> dict[str, str]:
        fields = {"stream-next-offset": offset_of(reader.cursor)}
        if reader.is_caught_up:
            fields["stream-up-to-date"] = "true"
        if reader.is_ended:
            fields["stream-closed"] = "true"
        return fields

    async def _wait_for_entries(self, reader: LogReader, after: LogCursor) -> None:
        """Serves a long poll without available entries."""
        entries: list[Entry] | None = None
        async with self._exchange.while_connected():
            if not reader.is_ended:
                entries = await reader.next_batch(self._poll)
        if self._exchange.client_left:
            return
        if entries:
            await self._respond(reader, after, entries, is_live=True)
            return
        fields = {**self._position(reader), "stream-up-to-date": "true"}
        fields["cache-control"] = NO_STORE
        if not reader.is_ended:
            fields["stream-cursor"] = self._stream_cursor()
        await self._exchange.respond(204, fields)

    # --- server-sent events ---

    async def _serve_events(self, reader: LogReader, entries: list[Entry]) -> None:
        """Sends each record as a `data` event, followed by a `control` event."""
        exchange = self._exchange
        ends_at = math.inf
        if self._lifetime is not None:
            ends_at = anyio.current_time() + self._lifetime
        async with exchange.while_connected(comments(self._ping, ends_at)):
            await exchange.start(200, SSE_HEADERS)
            await exchange.write(self._data(entries) + self._control(reader))
            while not reader.is_ended and anyio.current_time() < ends_at:
                following = await reader.next_batch(ends_at - anyio.current_time())
                if following is not None or reader.is_ended:
                    await exchange.write(self._data(following or []) + self._control(reader))
        await exchange.end()

    def _data(self, entries: list[Entry]) -> bytes:
        messages = self._messages.of(entries)
        if not messages:
            return b""
        lines = [b"data:" + line + b"\n" for line in self._messages.data_lines(messages)]
        return b"event: data\n" + b"".join(lines) + b"\n"

    def _control(self, reader: LogReader) -> bytes:
        fields: dict[str, str | bool] = {"streamNextOffset": offset_of(reader.cursor)}
        if reader.is_caught_up:
            fields["upToDate"] = True
        if reader.is_ended:
            fields["streamClosed"] = True
        else:
            fields["streamCursor"] = self._stream_cursor()
        return b"event: control\ndata:" + msgspec.json.encode(fields) + b"\n\n"

    def _stream_cursor(self) -> str:
        """A number that grows and exceeds the client's, so that no cache repeats a response."""
        current = int((time.time() - INTERVAL_EPOCH) // INTERVAL_SECONDS)
        theirs = -math.inf
        text = self._cursor_sent
        if text is not None and text.isascii() and text.isdigit() and len(text) <= 15:
            theirs = int(text)
        if theirs < current:
            return str(current)
        jitter = 1 + secrets.randbelow(JITTER_SECONDS)
        return str(int(theirs) + max(1, jitter // INTERVAL_SECONDS))


def offset_of(cursor: LogCursor) -> str:
    """The cursor as an offset; offsets compare as texts in the order of positions."""
    return f"{cursor.epoch:08d}-{cursor.position:012d}"


def _matches(wanted: str | None, etag: str) -> bool:
    """Whether ``If-None-Match`` contains the tag."""
    if wanted is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in wanted.split(",")]
    return etag in tags or "*" in tags
