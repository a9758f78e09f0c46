"""Sends a log as server-sent events: for ``EventSource``, or as a message of a UI protocol.

    GET /log/{id}/events            id: 1-17
                                    data: {"type":"output_text_delta","index":0,"delta":"Hi"}

    GET /api/chat/{id}/stream       data: {"type":"start","messageId":"m1"} …

The first continues after the client's last event (`Last-Event-ID`). The second begins with the
start of the message, because a reloaded page has nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from streamlib.asgi import SSE_HEADERS, Pings, comments
from streamlib.durable.log import Log
from streamlib.durable.log_exchange import INTERNAL_EVENTS, LogExchange, PublicLines
from streamlib.durable.reader import LogReader
from streamlib.durable.records import Entry, LogCursor, LogError, unreadable
from streamlib.wires.encoders import RunEncoder, Sealer, encoder

REWOUND: Final = b'event: rewound\nid:\ndata: {"type":"rewound"}\n\n'
"""Sent if the engine lost events that the client has; all events follow from the start. The empty
id makes the browser forget its last id."""

OF_RUNS: Final = ("run", "message_id", "model", "page_tools", "approval_tools", "call_ids")

OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "vercel": (*OF_RUNS, "tools", "metadata", "version"),
    "agui": (*OF_RUNS, "thread_id", "run_id"),
    "jsonl": (),
}
"""UI protocol (`wire` of a log's `meta`) -> options of its encoder that `meta` may contain."""


KEEPING_STATE: Final = frozenset({"vercel", "agui"})
"""UI protocols whose pages keep sealed state."""

SealOf: TypeAlias = Callable[[Mapping[str, Any]], Sealer | None]
"""The seal of a log's message, from the `meta` of the log; None: its page gets no signatures."""


def log_encoder(meta: Mapping[str, Any], *, seal: Sealer | None = None) -> RunEncoder:
    """The encoder of a log's message for a page; it is the same for each reader.

    Use it for the response that starts the log, too, so that the page recognizes its message.

    Args:
        meta: the `meta` of the log. `wire`: `vercel` (default), `agui` or `jsonl`; options of
            that encoder: `run` (true for the log of a run), `message_id`, `model`, `page_tools`,
            `approval_tools`, `call_ids`; `tools`, `metadata` and `version` (vercel); `thread_id`
            and `run_id` (agui). `continues`: the log that the message began in, if this one goes on
            with it after an approval: a page that resumes gets both. Other keys are ignored.
            `UIRequest.encoder_options` has those of a request.
        seal: a `streamlib.web.Seal`, for a page that keeps the conversation: signatures and
            encrypted state go to it sealed. It is not in `meta`, since a log holds no keys.

    Raises:
        ValueError: there is no such UI protocol.
    """
    wire = meta.get("wire", "vercel")
    names = OPTIONS.get(wire)
    if names is None:
        raise ValueError(f"no protocol {wire!r} for a page; one of {', '.join(OPTIONS)}")
    options = {name: meta[name] for name in names if meta.get(name) is not None}
    if seal is not None and wire in KEEPING_STATE:
        options["seal"] = seal
    made: Any = encoder(wire, public=True, **options)
    return cast(RunEncoder, made)


class EventStream:
    """Serves ``GET /log/{id}/events``."""

    def __init__(self, exchange: LogExchange, log: Log, log_id: str, *, ping: float | None) -> None:
        self._exchange = exchange
        self._log = log
        self._log_id = log_id
        self._pings = comments(ping)
        self._lines = PublicLines()
        self._rewound_at: LogCursor | None = None
        """How far the reader had come when it was last sent to the start."""

    async def serve(self, after: str | None) -> None:
        """Sends the events after a cursor, until the log ends; 204 if nothing follows.

        Args:
            after: a cursor; None for the start.

        Raises:
            LogError: errors of `Log.read`, before anything is sent.
            ValueError: `after` is not a cursor.
        """
        reader = self._log.read(self._log_id, after)
        first = b""
        try:
            try:
                _, entries = await reader.available()
            except LogError as error:
                if error.kind != "rewound":
                    raise
                reader, entries, first = await self._from_start(reader)
            if reader.is_ended and not entries:
                # EventSource reconnects after the end; status 204 prevents that.
                await self._exchange.respond(204)
                return
            async with self._exchange.while_connected(self._pings):
                await self._exchange.start(200, SSE_HEADERS)
                await self._exchange.write(first + self._frames(entries))
                reader = await self._follow(reader)
            await self._exchange.end()
        finally:
            reader.close()

    async def _from_start(self, reader: LogReader) -> tuple[LogReader, list[Entry], bytes]:
        """A reader of the complete log, after the engine lost events that the client has."""
        reader.close()
        self._rewound_at = reader.cursor
        anew = self._log.read(self._log_id)
        try:
            _, entries = await anew.available()
        except BaseException:
            anew.close()
            raise
        return anew, entries, REWOUND

    async def _follow(self, reader: LogReader) -> LogReader:
        """Sends entries when they are read; returns the last reader."""
        while not reader.is_ended:
            try:
                entries = await reader.next_batch()
                frames = self._frames(entries or [])
            except LogError as error:
                has_come_further = self._rewound_at is None or reader.cursor > self._rewound_at
                if error.kind != "rewound" or not has_come_further:
                    # The client reconnects, and then receives the status.
                    return reader
                reader, entries, frames = await self._from_start(reader)
                frames += self._frames(entries)
            await self._exchange.write(frames)
        return reader

    def _frames(self, entries: list[Entry]) -> bytes:
        frames: list[bytes] = []
        for entry in entries:
            line = self._lines.line(entry.event)
            if line:
                frames.append(b"id: %s\ndata: %s\n\n" % (entry.cursor.encode(), line))
        return b"".join(frames)


class MessageStream:
    """Serves ``GET /api/chat/{id}/stream``: a message from its start, while it is written."""

    def __init__(
        self,
        exchange: LogExchange,
        log: Log,
        log_id: str,
        *,
        ping: float | None,
        seal_of: SealOf | None = None,
    ) -> None:
        self._seal_of = seal_of
        self._exchange = exchange
        self._log = log
        self._log_id = log_id
        self._ping = ping

    async def serve(self, *, replay_ended: bool) -> None:
        """Sends the message; 204 if none is being written.

        Args:
            replay_ended: whether a message that has ended is also sent.

        Raises:
            LogError: `unavailable`, before anything is sent.
        """
        try:
            head = await self._log.head(self._log_id)
        except LogError as error:
            if error.kind != "gone":
                raise
            await self._exchange.respond(204)
            return
        if head.state == "closed" and not replay_ended:
            # The page has loaded the message from its own storage.
            await self._exchange.respond(204)
            return
        earlier = await self._earlier_logs(head.meta)
        meta = dict(head.meta)
        if earlier:
            meta.pop("call_ids", None)  # they are encoded anew, and tell their ids themselves
        seal = None if self._seal_of is None else self._seal_of(head.meta)
        try:
            encode = log_encoder(meta, seal=seal)
        except (TypeError, ValueError) as error:
            raise unreadable(f"its meta is none of a page: {error}") from None
        fields = {**SSE_HEADERS, "content-type": encode.media_type}
        fields.update(getattr(encode, "headers", {}))
        reader = self._log.read(self._log_id)
        try:
            async with self._exchange.while_connected(Pings(encode.ping, self._ping)):
                await self._exchange.start(200, fields)
                for log_id in earlier:
                    await self._send_all(self._log.read(log_id), encode)
                await self._send_all(reader, encode)
                await self._exchange.write(encode.close())
            await self._exchange.end()
        finally:
            reader.close()

    async def _earlier_logs(self, meta: Mapping[str, Any]) -> list[str]:
        """The logs that the message began in, the oldest first.

        After an approval a message goes on in another log, and a reloaded page has nothing of it.
        """
        # A dict keeps their order and finds a circle at once, whatever the number of logs.
        newest_first = {self._log_id: None}
        log_id = meta.get("continues")
        while isinstance(log_id, str) and log_id not in newest_first:
            newest_first[log_id] = None
            log_id = (await self._log.head(log_id)).meta.get("continues")
        del newest_first[self._log_id]
        return list(reversed(newest_first))

    async def _send_all(self, reader: LogReader, encode: RunEncoder) -> None:
        exchange = self._exchange
        while not reader.is_ended:
            try:
                entries = await reader.next_batch()
            except LogError:
                # A partial message cannot be withdrawn, so it ends as a truncated one.
                break
            await exchange.write(_encoded(encode, entries or []))


def _encoded(encode: RunEncoder, entries: list[Entry]) -> bytes:
    parts: list[bytes] = []
    for entry in entries:
        if type(entry.event) not in INTERNAL_EVENTS:
            parts.append(encode.feed(entry.event))
    return b"".join(parts)
