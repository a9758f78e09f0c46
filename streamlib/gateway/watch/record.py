"""Records complete exchanges in files, for finding defects: `streamlib gateway --record DIR`.

A file has a recording for each response of an exchange: first the client's request and response,
then those of each target. `streamlib inspect` opens it. Headers with keys are not recorded, as in
every recording. Keys that were sent with the requests are masked everywhere, and texts that look
like keys in all bodies except streams. All other content is recorded.

The memory for exchanges that are not written yet is limited, for one and for all together.
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
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from streamlib.asgi import Message, Receive, Scope, Send
from streamlib.gateway.clients.identity import tokens_of
from streamlib.gateway.log_text import log_error
from streamlib.gateway.paths import response_path
from streamlib.gateway.watch.observer import Exchange, Observer
from streamlib.recording import Chunk, RecordedRequest, Recording, dump
from streamlib.recording.files import kept_headers
from streamlib.recording.masked_bodies import (
    long_keys,
    masked_chunks,
    masked_request,
    masked_text,
    secrets_of,
)
from streamlib.recording.recorder import HttpRecord, RecordingTransport, wire_of_url
from streamlib.request.report import Change

FILES: Final = 1000
"""Limit of files in a folder; above it the oldest are deleted."""

FOLDER_BYTES: Final = 1 << 30
"""Limit of bytes in all files of a folder; above it the oldest are deleted."""

EXCHANGE_BYTES: Final = 32 << 20
"""Limit of bytes recorded of the bodies of one exchange; further bytes are omitted."""

CHANGES: Final = 1000
"""Limit of changes between the two wires that are recorded of an exchange."""

BUFFERED_BYTES: Final = 256 << 20
"""Limit of bytes of all exchanges that are not written yet; further bytes are omitted."""

CHUNK_BYTES: Final = 256
"""Bytes of memory for a chunk apart from its data: a stream may have chunks of one byte."""

WAITING: Final = 100
"""Limit of exchanges that wait to be written; others are omitted, and the log reports it."""

LIMIT_REACHED: Final = "limit"
"""`Recording.end` of a body that exceeded a limit."""

_NAME: Final = re.compile(r"\d{8}T\d{6}\.\d{3}Z-req_[0-9a-f]{24}\.jsonl")
"""Names of our files; other files in the folder are neither counted nor deleted."""

_log: Final = logging.getLogger("streamlib.gateway")


class Buffered:
    """Memory budget of all exchanges that are not written yet; writing one frees its memory."""

    def __init__(self, limit: int) -> None:
        """Makes an empty buffer.

        Args:
            limit: maximum number of bytes.
        """
        self._left = limit
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Reserves some bytes; returns False if that many are not free."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def give_back(self, size: int) -> None:
        """Frees bytes that were reserved."""
        with self._lock:
            self._left += size


class ExchangeRecord(Struct, kw_only=True, eq=False):
    """One exchange while it is recorded.

    Attributes:
        path: path of the client's request, without its query.
        method: method of that request.
        headers: headers of that request, without those that hold keys.
        clock: returns seconds.
        started_at: start of the request, in seconds of the clock.
        secrets: keys to mask, which were sent with requests.
        body: body of the client's request.
        status: HTTP status sent to the client.
        response_headers: headers sent to the client.
        chunks: chunks sent to the client.
        is_complete: whether the client's response was sent to its end.
        upstream: exchanges with targets.
        room: number of bytes that may still be recorded.
        buffered: budget shared by all exchanges.
        taken: number of bytes reserved in that budget.
        is_full: whether anything was omitted.
        is_closed: whether the exchange ended, so that nothing more is recorded.
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
    upstream: list[HttpRecord] = field(default_factory=list[HttpRecord])

    def keep(self, data: bytes) -> bool:
        """Reserves room for further bytes; returns False if there is none."""
        if self.is_closed or self.is_full:
            return False
        size = len(data) + CHUNK_BYTES
        if size > self.room or not self.buffered.take(size):
            self.is_full = True
            return False
        self.room -= size
        self.taken += size
        return True

    def sent(self, record: HttpRecord) -> None:
        """Adds an exchange with a target (see `Sink`)."""
        self.upstream.append(record)

    def closed(self, record: HttpRecord) -> None:
        """Nothing to do: the record is written with the whole exchange (see `Sink`)."""

    def give_back(self) -> None:
        """Frees the reserved bytes, after they were written or dropped."""
        self.buffered.give_back(self.taken)
        self.taken = 0


_current: ContextVar[ExchangeRecord | None] = ContextVar("streamlib_gateway_record", default=None)
"""The exchange that the current task serves."""


class ExchangeFiles(Observer):
    """Records exchanges into a folder. Used with `with`, around the gateway's `async with`.

    Args:
        folder: folder of the files; created with mode 0700 if missing. Files have mode 0600.
        files: limit of files.
        folder_bytes: limit of bytes in all files.
        exchange_bytes: limit of bytes in the bodies of one exchange.
        buffered_bytes: limit of bytes of all exchanges that are not written yet.

    Raises:
        OSError: the folder cannot be created.
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
        """Request id -> its record, until the request ended."""
        self._queue: queue.Queue[tuple[Exchange, ExchangeRecord] | None] = queue.Queue(WAITING)
        """Exchanges for the writing thread; None ends the thread."""
        self._thread: threading.Thread | None = None
        self._written: deque[tuple[Path, int]] = deque()
        """Files of the folder with their sizes in bytes, the oldest first."""

    def __enter__(self) -> ExchangeFiles:
        for path in sorted(self._folder.iterdir()):
            if _NAME.fullmatch(path.name):
                self._written.append((path, path.stat().st_size))
        self._thread = threading.Thread(target=self._write_all, name="record", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    # --- recording ---

    def transport(self, http: Any, connections: int | None) -> RecordingTransport:
        """A transport that records the exchanges with targets.

        Args:
            http: as in ``Client(http=…)``.
            connections: as in ``Client(connections=…)``.
        """
        return RecordingTransport(http, connections, _current.get)

    def watch(
        self, request_id: str, scope: Scope, receive: Receive, send: Send
    ) -> tuple[Receive, Send]:
        """Records the client's request and response, and the exchanges with targets in this task.

        Args:
            request_id: id in the name of the file.
            scope: ASGI scope of the request.
            receive: receives the ASGI messages of the request.
            send: sends the ASGI messages of the response.

        Returns:
            Functions to use in place of `receive` and `send`.
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
        """Passes the exchange to the writing thread."""
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

    # --- the writing thread ---

    def _write_all(self) -> None:
        while True:
            waiting = self._queue.get()
            if waiting is None:
                return
            exchange, record = waiting
            try:
                self._write(exchange.request_id, dump_exchange(exchange, record))
            except Exception as error:  # noqa: BLE001  # e.g. a full disk; continue
                _log.error("%s is not recorded: %s", exchange.request_id, log_error(error))
            finally:
                record.give_back()

    def _write(self, request_id: str, data: bytes) -> None:
        time_text = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
        path = self._folder / f"{time_text}Z-{request_id}.jsonl"
        # O_EXCL: does not follow a link that somebody placed there.
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
        """Whether the oldest file must be deleted; the newest remains, whatever its size."""
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
    """The recordings of an exchange as bytes, the client's first."""
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
        recordings.append(_upstream_recording(upstream, secrets))
    return b"".join([dump(recording) for recording in recordings])


def _upstream_recording(record: HttpRecord, secrets: set[str]) -> Recording:
    """The recording of an exchange with a target, with these keys masked."""
    return Recording(
        status=record.status,
        headers=record.headers,
        chunks=masked_chunks(record.chunks, secrets, is_stream=_is_stream(record.headers)),
        end=record.end,
        method=record.method,
        url=masked_text(record.url, secrets),
        # A count of tokens is recorded as a request of its wire.
        wire_api=wire_of_url(response_path(record.url)),
        request=RecordedRequest(record.request_headers, masked_request(record.body, secrets)),
    )


def _masked_change(change: Change, secrets: set[str]) -> Change:
    # A path may contain keys of the client's JSON.
    path, reason = masked_text(change.path, secrets), masked_text(change.reason, secrets)
    return msgspec.structs.replace(change, path=path, reason=reason)


def _text_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in raw}


def _is_stream(headers: Mapping[str, str]) -> bool:
    kind = headers.get("content-type", "")
    return "event-stream" in kind or "ndjson" in kind or "eventstream" in kind
