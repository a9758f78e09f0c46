"""Recordings and event logs, and their files.

The file of a recording is JSON lines: a first line (status, headers, method, URL), one line a
chunk, and a line with the reason of the end. A file may hold several recordings, one after the
other. An event log is JSON lines too (`dump_events`, `load_events`).

Of the headers only those on an allow-list are recorded, and of the request only the method and the
URL without its query. `Recorder` masks the keys that were sent if the response repeats them.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from streamlib.request.report import Change
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.items import WireApi
from streamlib_parsers.json_text import DECODE_ERRORS
from streamlib_parsers.protocol import parser
from streamlib_parsers.redaction import redact
from streamlib_parsers.upward import upward

if TYPE_CHECKING:
    from pathlib import Path

VERSION: Final = 1
"""Version of the file format, the same since 0.1.0."""

HEAD: Final = "streamlib_recording"
"""Key by which the first line of a recording is recognized."""

KEPT_HEADERS: Final = (
    "content-type",
    "date",
    "retry-after",
    "request-id",
    "x-request-id",
    "ratelimit",
    "openai-processing-ms",
    "x-should-retry",
)
"""A header is recorded if its name contains one of these: what a parser reads, and nothing that
names an account or a session."""


FIRST_ERROR: Final = 400
"""The lowest HTTP status of an error, whose body is none of a response."""

RECORDING_TRUNCATED: Final = "recording_truncated"
"""`Recording.end` of a recording whose own file was truncated or damaged."""

_UNREADABLE: Final = (ArithmeticError, LookupError, TypeError, ValueError)
"""What reading a line raises that is none of a recording."""


class Chunk(Struct, frozen=True, array_like=True):
    """Bytes that arrived together.

    Attributes:
        at: seconds since the request was sent.
        data: the bytes.
    """

    at: float
    data: bytes


class RecordedRequest(Struct, frozen=True):
    """The request of a recording, where it was kept (by `streamlib gateway --record`).

    Attributes:
        headers: those on the allow-list, names lower-case.
        body: with keys masked.
        changes: what a gateway changed or lost between the client's wire and the target's.
    """

    headers: dict[str, str]
    body: bytes
    changes: tuple[Change, ...] = ()


class Recording(Struct, frozen=True):
    """One response.

    Attributes:
        status: HTTP status; 0 if no response was received.
        headers: those on the allow-list, names lower-case.
        chunks: the body.
        end: None if the body ended; `unread` if its reader stopped; `recording_truncated` if the
            recording itself is; else the name of the exception that ended it.
        method: of the request.
        url: of the request, without its query.
        wire_api: None where the URL does not tell it.
        request: None: it was not kept.
    """

    status: int
    headers: dict[str, str]
    chunks: tuple[Chunk, ...]
    end: str | None = None
    method: str = "POST"
    url: str = ""
    wire_api: WireApi | None = None
    request: RecordedRequest | None = None

    @property
    def body(self) -> bytes:
        """All bytes."""
        return b"".join(chunk.data for chunk in self.chunks)

    def events(self, wire_api: WireApi | None = None, **options: Any) -> list[ResponseEvent]:
        """The events of the recording, parsed chunk by chunk as recorded.

        Args:
            wire_api: None: the recording's own.
            options: arguments of `parser`.

        Raises:
            ValueError: neither the recording nor the caller names the wire.
        """
        events: list[ResponseEvent] = []
        for _, _, of_chunk in self._steps(wire_api, options):
            events += of_chunk
        return events

    def rows(self, wire_api: WireApi | None = None, **options: Any) -> list[dict[str, Any]]:
        """One dict an event, for a table: ``pandas.DataFrame(recording.rows())``.

        Args:
            wire_api: None: the recording's own.
            options: arguments of `parser`.

        Returns:
            With `at` (seconds since the request was sent), `chunk` (its number) and `bytes` (of
            the chunk), then `seq` and `type` of the event, `index` of its item, and `text`, what a
            delta appends; None where an event has none. Events of the end have the last chunk's
            number and time.

        Raises:
            ValueError: neither the recording nor the caller names the wire.
        """
        rows: list[dict[str, Any]] = []
        for number, chunk, events in self._steps(wire_api, options):
            for event in events:
                rows.append(_event_row(event, number, chunk))
        return rows

    def _steps(
        self, wire_api: WireApi | None, options: dict[str, Any]
    ) -> Iterator[tuple[int, Chunk, list[ResponseEvent]]]:
        """Each chunk, with its number and its events; then the last one with those of the end."""
        wire_api = wire_api or self.wire_api
        if wire_api is None:
            raise ValueError("the URL of the recording does not tell its wire API: pass `wire_api`")
        wire_parser = parser(wire_api, headers=self.headers, **options)
        number = 0
        chunk = Chunk(0.0, b"")
        if self.status >= FIRST_ERROR:
            chunk = Chunk(self.chunks[-1].at if self.chunks else 0.0, self.body)
            yield number, chunk, wire_parser.feed_body(self.body, self.status, self.headers)
        else:
            for number, chunk in enumerate(self.chunks):
                yield number, chunk, wire_parser.feed(chunk.data)
        missing = no_response(self)
        if missing is not None:
            yield number, chunk, wire_parser.abort(missing)
        else:
            yield number, chunk, wire_parser.close()

    def _repr_html_(self) -> str:
        return self._table(upward("display.notebook_text", "table_html"))

    def _repr_markdown_(self) -> str:
        return self._table(upward("display.notebook_text", "table_markdown"))

    def _table(self, table: Callable[[Sequence[str], Sequence[Sequence[str]]], str]) -> str:
        """What was recorded, without the body: that may be large, and holds what was said."""
        last = self.chunks[-1].at if self.chunks else 0.0
        rows = (
            ("request", f"{self.method} {self.url}"),
            ("status", str(self.status or "no response")),
            ("wire_api", self.wire_api or "unknown"),
            ("body", f"{len(self.body):,} bytes in {len(self.chunks):,} chunks, {last:.2f} s"),
            ("end", self.end or "complete"),
        )
        return table(("recording", ""), rows)


def _event_row(event: ResponseEvent, number: int, chunk: Chunk) -> dict[str, Any]:
    return {
        "at": chunk.at,
        "chunk": number,
        "bytes": len(chunk.data),
        "seq": event.seq,
        "type": event.__struct_config__.tag,
        "index": getattr(event, "index", None),
        "text": getattr(event, "delta", None),
    }


def from_body(
    body: bytes, *, headers: Mapping[str, str] | None = None, status: int = 200
) -> Recording:
    """A recording of a body that was captured without its times: one chunk.

    Args:
        body: the bytes.
        headers: those of the response; those that no recording has are left out.
        status: HTTP status.
    """
    chunks: tuple[Chunk, ...] = ()
    if body:
        chunks = (Chunk(0.0, body),)
    return Recording(status, kept_headers(headers or {}), chunks)


STOPPED_BY_READER: Final = ("unread", "CancelledError", "Cancelled")
"""Ends of a recording that were caused by the recording program."""


def no_response(recording: Recording) -> ErrorInfo | None:
    """Why a recorded request got no response; None if it got one."""
    if recording.status or recording.chunks:
        return None
    # Imported here, because nearly every recording has a response.
    from streamlib.transport.errors import NO_RESPONSE

    end = recording.end or "unknown"
    if end in STOPPED_BY_READER:
        message = f"{NO_RESPONSE}: the recording program stopped waiting for it"
        return ErrorInfo("cancelled", message, code=end)
    return ErrorInfo("connection", f"{NO_RESPONSE} ({end})", retryable=True, code=end)


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that a recording may contain, names lower-case, keys masked."""
    recorded: dict[str, str] = {}
    for name, value in headers.items():
        lowered = name.lower()
        if any(part in lowered for part in KEPT_HEADERS):
            recorded[lowered] = redact(value)
    return recorded


# --- writing ---


def save(recording: Recording, path: str | Path) -> None:
    """Writes a recording to a file of its own."""
    data = dump(recording)  # before the file is emptied
    # Without `pathlib`: `inspect` starts sooner.
    with open(path, "wb") as file:
        file.write(data)


def append(recording: Recording, path: str | Path) -> None:
    """Adds a recording to the end of a file of recordings."""
    data = dump(recording)
    with open(path, "ab") as file:
        file.write(data)


def dump(recording: Recording) -> bytes:
    """A recording as JSON lines, the content of its file.

    Raises:
        TypeError: it is no recording.
    """
    if not isinstance(recording, Recording):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a `Recording` is saved, not {recording!r:.100}")
    first_line: dict[str, Any] = {
        HEAD: VERSION,  # stays the first key: `is_recording` looks at the beginning of the file
        "method": recording.method,
        "url": recording.url,
        "status": recording.status,
        "headers": recording.headers,
        "wire_api": recording.wire_api,
    }
    if recording.request is not None:
        body = b64encode(recording.request.body).decode("ascii")
        request: dict[str, Any] = {"headers": recording.request.headers, "body": body}
        if recording.request.changes:
            request["changes"] = recording.request.changes
        first_line["request"] = request
    lines = [first_line]
    for chunk in recording.chunks:
        data = b64encode(chunk.data).decode("ascii")
        lines.append({"at": round(chunk.at, 6), "data": data})
    lines.append({"end": recording.end})
    return msgspec.json.Encoder().encode_lines(lines)


# --- reading ---


def load(path: str | Path) -> Recording:
    """Reads the only recording of a file.

    Raises:
        ValueError: the file has several recordings, or is not a recording.
    """
    recordings = load_all(path)
    if len(recordings) != 1:
        raise ValueError(f"{path} holds {len(recordings)} recordings: use `load_all`")
    return recordings[0]


def load_all(path: str | Path) -> list[Recording]:
    """Reads a file of recordings, in their order.

    Raises:
        ValueError: the file is not a recording.
    """
    try:
        with open(path, "rb") as file:
            return parse(file.read())
    except ValueError as error:
        raise ValueError(f"{path} is not a recording: {error}") from None


def parse(data: bytes) -> list[Recording]:
    """The recordings in the bytes of a file.

    Raises:
        ValueError: the bytes are not recordings, or an incomplete one.
    """
    if not is_recording(data):
        raise ValueError(of_another_kind(data) or f"it does not begin with {HEAD}")
    recordings, problem = read(data)
    if problem is not None:
        raise ValueError(problem)
    return recordings


def read(data: bytes) -> tuple[list[Recording], str | None]:
    """The complete recordings at the beginning of a file.

    Returns:
        The recordings, and why the rest of the file cannot be read; None if there is no rest.
    """
    recordings: list[Recording] = []
    lines: list[dict[str, Any]] = []  # of the recording that is being read
    number = 0
    try:
        for line in data.splitlines():
            number += 1
            lines.append(msgspec.json.decode(line, type=dict[str, Any]))
            if "end" in lines[-1]:
                recordings.append(_from_lines(lines))
                lines = []
    except _UNREADABLE as error:
        return recordings, f"line {number} cannot be read: {error}"
    if lines or not recordings:
        return recordings, f"it stops before the end of a recording, at line {number}"
    return recordings, None


class TruncatedRecording(Struct, frozen=True):
    """The beginning of a recording whose own file was truncated or damaged.

    Attributes:
        recording: what can be read; its `end` is `recording_truncated`.
        reason: what is wrong with the file, in words.
    """

    recording: Recording
    reason: str


def read_rest(data: bytes, complete: Sequence[Recording]) -> TruncatedRecording | None:
    """The recording behind the complete ones of a file, as far as it can be read.

    It is for programs that explain a file: `read` and `load` promise complete recordings.

    Args:
        data: the file.
        complete: what `read` returned for it.

    Returns:
        None where not even the first line of a recording can be read.
    """
    all_lines = data.splitlines()
    # Each has a first line, and one for its end.
    number = sum(len(recording.chunks) + 2 for recording in complete)
    lines: list[dict[str, Any]] = []
    end = {"end": RECORDING_TRUNCATED}
    is_readable = True
    for line in all_lines[number:]:
        number += 1
        try:
            fields = msgspec.json.decode(line, type=dict[str, Any])
            if lines:
                _chunk_of(fields)
            else:
                _from_lines([fields, end])
        except _UNREADABLE:
            is_readable = False
            break
        lines.append(fields)
    if not lines:
        return None
    reason = f"the recording itself is truncated at line {number}"
    # Only a last line without its line end was cut in the middle.
    if not is_readable and (number < len(all_lines) or data.endswith(b"\n")):
        reason = f"the recording itself cannot be read from line {number} on"
    return TruncatedRecording(_from_lines([*lines, end]), reason)


def _chunk_of(line: dict[str, Any]) -> tuple[float, bytes]:
    return float(line["at"]), b64decode(line["data"], validate=True)


def _from_lines(lines: list[dict[str, Any]]) -> Recording:
    first = lines[0]
    if first[HEAD] != VERSION:
        raise ValueError(f"version {first[HEAD]} of the format")
    chunks: list[tuple[float, bytes]] = []
    for line in lines[1:-1]:
        chunks.append(_chunk_of(line))
    request: dict[str, Any] | None = first.get("request")
    if request is not None:
        request = {**request, "body": b64decode(request["body"], validate=True)}
    fields = {
        "method": first["method"],
        "url": first["url"],
        "status": first["status"],
        "headers": first["headers"],
        "wire_api": first.get("wire_api"),  # the earliest files have none
        "chunks": chunks,
        "end": lines[-1]["end"],
        "request": request,
    }
    return msgspec.convert(fields, Recording)


def is_recording(data: bytes) -> bool:
    """Whether the bytes of a file begin as a recording does."""
    return data.startswith(b'{"%s"' % HEAD.encode())


def of_another_kind(data: bytes) -> str | None:
    """Names what a file without recordings is, for error messages; None where that is unknown."""
    if not data.strip():
        return "it is empty"
    first_line = data.partition(b"\n")[0]
    if first_line.startswith(b'{"streamlib_history"'):
        return "it is a saved history (read it with History.load)"
    if first_line.startswith(b'{"type":') and _is_event(first_line):
        return "it is an event log (read it with load_events)"
    if is_inspection(data):
        return "it is an inspection document (streamlib inspect opens it)"
    return None


def is_inspection(data: bytes) -> bool:
    """Whether the bytes of a file begin as an inspection does (`streamlib.inspection.encode`)."""
    # Without blanks, which a program that indents JSON adds.
    start = b"".join(data[:200].split())
    return start.startswith(b'{"format":"streamlib.inspection/')


# --- event logs ---


def dump_events(events: Iterable[ResponseEvent]) -> bytes:
    """An event log: one JSON object a line, `type` and `seq` in each."""
    return msgspec.json.Encoder().encode_lines(list(events))


def load_events(data: bytes) -> list[ResponseEvent]:
    """The events of an event log.

    Raises:
        ValueError: the data is not an event log.
    """
    # Type checkers accept classes there, not unions.
    decoder: Any = msgspec.json.Decoder(ResponseEvent)
    try:
        return [decoder.decode(line) for line in data.splitlines() if line.strip()]
    except DECODE_ERRORS as error:
        raise ValueError(f"not an event log: {error}") from None


def _is_event(line: bytes) -> bool:
    try:
        return bool(load_events(line))
    except ValueError:
        return False
