"""A captured response: its bytes, and the wire to read them as."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msgspec import Struct

from streamlib.inspection.document import Finding
from streamlib.inspection.file_parts import FilePart, part_of
from streamlib.inspection.forms import open_file
from streamlib.inspection.wire_markers import likely_wire
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.recording.files import Recording, no_response
from streamlib_parsers.errors import truncated
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.items import WireApi
from streamlib_parsers.json_text import is_json_bytes
from streamlib_parsers.protocol import Parser, parse_body, parser

CHUNK_BYTES: Final = 1 << 20
"""Bytes fed to a parser at a time: small enough that progress can be shown."""

ANY_WIRE: Final[WireApi] = "chat"
"""What is read as no wire of its own: a page, an error, nothing. All wires read these alike."""

Report: TypeAlias = Callable[[int], None]
"""Called with the number of bytes that were read so far."""


class Capture(Struct, frozen=True):
    """One captured response.

    Attributes:
        name: name of its file, with `#2` for the second recording of a file.
        wire_api: the wire to read it as.
        recording: the recording; a raw capture is one chunk.
        is_recorded: whether it was read from a recording, so that the times of chunks are known.
        truncation: what the recording itself lacks, in words; None: nothing.
        forms: the forms that its file was opened from, the outermost first (`FORMS`).
        is_guessed: whether the wire is what its content looks like, and nobody named it.
        remarks: what else its file shows of it or behind it (findings of `STORED`).
    """

    name: str
    wire_api: WireApi
    recording: Recording
    is_recorded: bool
    truncation: str | None = None
    forms: tuple[str, ...] = ()
    is_guessed: bool = False
    remarks: tuple[Finding, ...] = ()

    @property
    def is_complete_body(self) -> bool:
        """Whether it is one JSON body or an error body, not a stream."""
        # Providers also send an error as one body in response to a streaming request.
        if self.recording.status >= 400:
            return True
        # Gemini's may as well be a chunk of a stream. So may Ollama's, but it says which.
        spec = WIRE_SPECS[self.wire_api]
        tells = spec.json_is_complete_body or spec.frames == "ndjson"
        return tells and is_json_bytes(self.recording.body)

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments for the parser."""
        if not self.recording.headers:
            return {}
        return {"headers": self.recording.headers}


def capture_of_part(name: str, part: FilePart, wire_api: WireApi | None) -> Capture:
    """The capture of a response that was found in a file.

    Args:
        name: what it is called.
        part: the response.
        wire_api: the wire to read it as; None: its own, else the one that it looks like.
    """
    known = wire_api or part.recording.wire_api
    return Capture(
        name,
        known or likely_wire(part.body) or ANY_WIRE,
        part.recording,
        part.is_recorded,
        part.truncation,
        part.forms,
        is_guessed=known is None,
        remarks=part.remarks,
    )


def captures_of(name: str, data: bytes, wire_api: WireApi | None) -> list[Capture]:
    """The captures of the responses of a file; several are numbered.

    Args:
        name: the file.
        data: its bytes.
        wire_api: the wire to read them as, and the file itself if no response is found in it. None:
            see `capture_of_part`; then there may be none.

    Raises:
        UnreadableFile: it cannot be opened, or is known to hold no response.
    """
    parts = open_file(data)
    if not parts and wire_api is not None:
        parts = [part_of(data)]
    if len(parts) == 1:
        return [capture_of_part(name, parts[0], wire_api)]
    captures: list[Capture] = []
    for number, part in enumerate(parts, 1):
        captures.append(capture_of_part(f"{name}#{number}", part, wire_api))
    return captures


def no_report(_: int) -> None:
    """Does nothing; used if no progress is shown."""


def events_of(
    capture: Capture, chunk_bytes: int | None = None, report: Report = no_report
) -> list[ResponseEvent]:
    """Parses a capture.

    Args:
        capture: the captured response.
        chunk_bytes: bytes fed to the parser at a time.
        report: called with the number of bytes parsed so far.
    """
    if capture.is_complete_body:
        return body_events(capture)
    body = capture.recording.body
    size = chunk_bytes or CHUNK_BYTES
    parse = parser(capture.wire_api, **capture.options)
    events: list[ResponseEvent] = []
    for offset in range(0, len(body), size):
        events += parse.feed(body[offset : offset + size])
        report(offset)
    return events + end_of_input(capture, parse)


def end_of_input(capture: Capture, parse: Parser) -> list[ResponseEvent]:
    """The events of the end of a capture.

    Of a recording that does not hold all nobody knows what followed: its response is complete only
    where the wire allows nothing behind what completes it.

    Args:
        capture: the captured response.
        parse: the parser that was fed its bytes.
    """
    if capture.truncation is None:
        missing = no_response(capture.recording)
        return parse.close() if missing is None else parse.abort(missing)
    if parse.complete and not WIRE_SPECS[capture.wire_api].has_tail:
        return parse.close()
    return parse.abort(truncated(capture.truncation).info)


def body_events(capture: Capture) -> list[ResponseEvent]:
    """Parses a capture that is a complete body or an error body."""
    return parse_body(
        capture.wire_api, capture.recording.body, status=capture.recording.status, **capture.options
    )


def wrong_wire_hint(capture: Capture) -> str | None:
    """A hint if a capture looks like another wire than the one it was read as.

    It is shown only for incomplete responses, because a complete one may quote a marker.
    """
    likely = likely_wire(capture.recording.body)
    if capture.is_guessed or likely is None or likely == capture.wire_api:
        return None
    return f"read as {capture.wire_api}, but it looks like --wire-api {likely}"
