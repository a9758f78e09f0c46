"""Whole exchanges in files, for whoever looks for a mistake: `streamlib gateway --record DIR`.

A file is a recording for each response of an exchange: first what the client sent and got, then
what each target was sent and returned. `streamlib inspect` opens it. No header with a key is
recorded, as in every recording; keys that were sent with the requests are masked wherever they
come again, and what looks like a key is masked in all bodies but streams. What was said is there.

What is kept in memory until it is written is bounded, for one exchange and for all together.
"""

from __future__ import annotations

import logging
import os
import queue
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from starlette.types import Message, Receive, Scope, Send

from streamlib.gateway.identity import tokens_of
from streamlib.gateway.log_text import log_error
from streamlib.gateway.observer import Exchange, Observer
from streamlib.gateway.recorded_bodies import (
    long_keys,
    masked_chunks,
    masked_request,
    masked_text,
    secrets_of,
)
from streamlib.gateway.recording_transport import RecordingTransport, UpstreamRecord
from streamlib.recording import Chunk, RecordedRequest, Recording, dump
from streamlib.recording.files import kept_headers
from streamlib.request.report import Change

FILES: Final = 1000
"""Files that a folder keeps; the oldest go."""

FOLDER_BYTES: Final = 1 << 30
"""Bytes of all files of a folder; the oldest go."""

EXCHANGE_BYTES: Final = 32 << 20
"""Bytes of bodies that are kept of one exchange; what comes then is left out."""

CHANGES: Final = 1000
"""Changes between the two wires that are recorded of an exchange."""

BUFFERED_BYTES: Final = 256 << 20
"""Bytes of all exchanges that are not written yet; what comes then is left out."""

CHUNK_BYTES: Final = 256
"""Memory of a chunk beside its bytes: a stream may have a chunk a byte."""

WAITING: Final = 100
"""Exchanges that wait to be written; more are left out, and the log says so."""

LIMIT_REACHED: Final = "limit"
"""`Recording.end` of a body that was longer than what is kept."""

_NAME: Final = re.compile(r"\d{8}T\d{6}\.\d{3}Z-req_[0-9a-f]{24}\.jsonl")
"""Our files: nothing else in the folder is counted or deleted."""

_log: Final = logging.getLogger("streamlib.gateway")


class Buffered:
    """Memory for all exchanges that are not written yet; the thread that writes gives it back."""

    def __init__(self, limit: int) -> None:
        """Prepares it.

        Args:
            limit: bytes.
        """
        self._left = limit
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Takes some bytes; False where they are not there."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def give_back(self, size: int) -> None:
        """Gives back what was taken."""
        with self._lock:
            self._left += size


class ExchangeRecord(Struct, kw_only=True, eq=False):
    """One exchange while it is recorded.

    Attributes:
        path: of the client's request, without its query.
        method: of that request.
        headers: of that request, those that may be kept.
        clock: seconds.
        started_at: when the request began to arrive, by the clock.
        secrets: keys that were sent, to be masked.
        body: of the client's request.
        status: of the client's response.
        response_headers: of the client's response.
        chunks: sent to the client.
        is_complete: the client's response was sent to its end.
        upstream: the exchanges with targets.
        room: bytes that may still be kept.
        buffered: of all exchanges.
        taken: bytes of those.
        is_full: something was left out.
        is_closed: the exchange has ended, and takes no more.
    """

    path: str
    method: str
    headers: dict[str, str]
    clock: Callable[[], float]
    started_at: float
    secrets: set[str]
    room: int
    buffered: Buffered
    taken: int = 0
    is_full: bool = False
    is_closed: bool = False
    body: bytearray = field(default_factory=bytearray)
    status: int = 0
    response_headers: dict[str, str] = field(default_factory=dict[str, str])
    chunks: list[Chunk] = field(default_factory=list[Chunk])
    is_complete: bool = False
    upstream: list[UpstreamRecord] = field(default_factory=list[UpstreamRecord])

    def keep(self, data: bytes) -> bool:
        """Whether there is room for further bytes; it is taken."""
        if self.is_closed or self.is_full:
            return False
        size = len(data) + CHUNK_BYTES
        if size > self.room or not self.buffered.take(size):
            self.is_full = True
            return False
        self.room -= size
        self.taken += size
        return True

    def give_back(self) -> None:
        """What was kept is written, or never will be."""
        self.buffered.give_back(self.taken)
        self.taken = 0


_current: ContextVar[ExchangeRecord | None] = ContextVar("streamlib_gateway_record", default=None)
"""The exchange that the running task serves."""


class ExchangeFiles(Observer):
    """Records exchanges into a folder. Used with `with`, around the gateway's `async with`.

    Args:
        folder: made with mode 0700 if it is missing; files have mode 0600.
        files: kept at most.
        folder_bytes: of all files, at most.
        exchange_bytes: of the bodies of one exchange, at most.
        buffered_bytes: of all exchanges that are not written yet, at most.

    Raises:
        OSError: the folder cannot be made.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        files: int = FILES,
        folder_bytes: int = FOLDER_BYTES,
        exchange_bytes: int = EXCHANGE_BYTES,
        buffered_bytes: int = BUFFERED_BYTES,
    ) -> None:
        self._folder = Path(folder)
        self._files = files
        self._folder_bytes = folder_bytes
        self._exchange_bytes = exchange_bytes
        self._buffered = Buffered(buffered_bytes)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._open: dict[str, ExchangeRecord] = {}
        """Request id -> its record, until it has ended."""
        self._queue: queue.Queue[tuple[Exchange, ExchangeRecord] | None] = queue.Queue(WAITING)
        """What the thread writes; None ends it."""
        self._thread: threading.Thread | None = None
        self._written: deque[tuple[Path, int]] = deque()
        """Files of the folder with their sizes, the oldest first."""

    def __enter__(self) -> ExchangeFiles:
        for path in sorted(self._folder.iterdir()):
            if _NAME.fullmatch(path.name):
                self._written.append((path, path.stat().st_size))
        self._thread = threading.Thread(target=self._write_all, name="record", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    # --- what is recorded ---

    def transport(self, http: Any, connections: int | None) -> RecordingTransport:
        """A transport that records what is sent to targets.

        Args:
            http: as in ``Client(http=…)``.
            connections: as in ``Client(connections=…)``.
        """
        return RecordingTransport(http, connections, _current.get)

    def watch(
        self, request_id: str, scope: Scope, receive: Receive, send: Send
    ) -> tuple[Receive, Send]:
        """Records what a client sends and gets, and what its targets are sent in this task.

        Args:
            request_id: names the file.
            scope: of the request (ASGI); so are the next two.
            receive: its messages.
            send: takes those for it.

        Returns:
            What to use in place of `receive` and `send`.
        """
        clock = time.monotonic
        headers = _text_headers(scope["headers"])
        record = ExchangeRecord(
            path=scope["path"],
            method=scope["method"],
            headers=kept_headers(headers),
            clock=clock,
            started_at=clock(),
            secrets=secrets_of(headers) | long_keys(tokens_of(scope)),
            room=self._exchange_bytes,
            buffered=self._buffered,
        )
        self._open[request_id] = record
        _current.set(record)

        async def receiving() -> Message:
            message = await receive()
            data: bytes = message.get("body", b"")
            if data and record.keep(data):
                record.body += data
            return message

        async def sending(message: Message) -> None:
            await send(message)
            _note_sent(record, message)

        return receiving, sending

    def ended(self, exchange: Exchange) -> None:
        """Hands the exchange to the thread that writes."""
        record = self._open.pop(exchange.request_id, None)
        if record is None:
            return
        _current.set(None)
        record.is_closed = True
        try:
            self._queue.put_nowait((exchange, record))
        except queue.Full:
            record.give_back()
            _log.warning("%s is not recorded: the disk is too slow", exchange.request_id)

    # --- the thread that writes ---

    def _write_all(self) -> None:
        while True:
            waiting = self._queue.get()
            if waiting is None:
                return
            exchange, record = waiting
            try:
                self._write(exchange.request_id, dump_exchange(exchange, record))
            except Exception as error:  # noqa: BLE001  # of a full disk, the next may be written
                _log.error("%s is not recorded: %s", exchange.request_id, log_error(error))
            finally:
                record.give_back()

    def _write(self, request_id: str, data: bytes) -> None:
        time_text = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
        path = self._folder / f"{time_text}Z-{request_id}.jsonl"
        # Not through a link that somebody has put there.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        self._written.append((path, len(data)))
        size = sum(length for _, length in self._written)
        while self._is_too_much(size):
            oldest, length = self._written.popleft()
            size -= length
            oldest.unlink(missing_ok=True)

    def _is_too_much(self, size: int) -> bool:
        """Whether the oldest file must go; the newest stays, however large."""
        count = len(self._written)
        return count > self._files or (size > self._folder_bytes and count > 1)


def _note_sent(record: ExchangeRecord, message: Message) -> None:
    if message["type"] == "http.response.start":
        record.status = message["status"]
        record.response_headers = kept_headers(_text_headers(message["headers"]))
        return
    data = message.get("body", b"")
    if data and record.keep(data):
        record.chunks.append(Chunk(record.clock() - record.started_at, data))
    record.is_complete = not message.get("more_body", False)


def dump_exchange(exchange: Exchange, record: ExchangeRecord) -> bytes:
    """The recordings of an exchange, the client's first."""
    secrets = set(record.secrets)
    for upstream in record.upstream:
        secrets |= upstream.secrets
    end = None if record.is_complete else "unread"
    if record.is_full:
        end = LIMIT_REACHED
    client = Recording(
        status=record.status,
        headers=record.response_headers,
        chunks=masked_chunks(record.chunks, secrets, is_stream=_is_stream(record.response_headers)),
        end=end,
        method=record.method,
        url=masked_text(record.path, secrets),
        wire_api=exchange.wire_api,
        request=RecordedRequest(
            record.headers,
            masked_request(bytes(record.body), secrets),
            tuple(_masked_change(change, secrets) for change in exchange.report[:CHANGES]),
        ),
    )
    recordings = [client]
    for upstream in record.upstream:
        recordings.append(upstream.recording(secrets, is_stream=_is_stream(upstream.headers)))
    return b"".join([dump(recording) for recording in recordings])


def _masked_change(change: Change, secrets: set[str]) -> Change:
    # A path has the keys of the client's JSON in it.
    path, reason = masked_text(change.path, secrets), masked_text(change.reason, secrets)
    return msgspec.structs.replace(change, path=path, reason=reason)


def _text_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in raw}


def _is_stream(headers: Mapping[str, str]) -> bool:
    kind = headers.get("content-type", "")
    return "event-stream" in kind or "ndjson" in kind or "eventstream" in kind
