"""Reads captured responses: recordings, raw streams and complete bodies.

`inspect`, `replay`, `convert` and `bench` all read files through this module, so that a file
means the same to each of them. A file named `-` is standard input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from streamlib.cli.command_error import CommandError
from streamlib.cli.progress import Progress
from streamlib.recording import Recording, from_body, is_recording, of_another_kind, read
from streamlib.terminal.printable import printable
from streamlib_parsers import WIRE_APIS, ErrorInfo, Failed, ResponseEvent, parse_body, parser
from streamlib_parsers.items import WireApi
from streamlib_parsers.json_text import is_json_bytes

CHUNK_BYTES: Final = 1 << 20
"""Bytes fed to a parser at a time: small enough that the progress line moves."""

SNIFFED_BYTES: Final = 4096
"""Bytes in which `likely_wire` looks for a marker."""

WIRE_MARKERS: Final[tuple[tuple[bytes, WireApi], ...]] = (
    (b'"type":"message_start"', "messages"),
    (b'"type":"response.', "responses"),
    (b"chat.completion", "chat"),
    (b'"candidates"', "gemini"),
    (b'"event_type":"interaction.', "interactions"),
    (b"contentBlock", "converse"),
    (b":event-type\x07\x00\x05chunk", "invoke"),
    (b'"done":', "ollama"),
    (b'"type":"message-start"', "cohere"),
)
"""Bytes that only one wire writes. They are used for hints alone: a wire is never guessed."""


class Capture(Struct, frozen=True):
    """One captured response.

    Attributes:
        name: Its file, with `#2` for the second recording of a file.
        wire_api: The wire that it is read as.
        recording: Its bytes; a raw capture is one chunk.
        is_recorded: It was read from a recording, so the times of its chunks are known.
    """

    name: str
    wire_api: WireApi
    recording: Recording
    is_recorded: bool

    @property
    def is_complete_body(self) -> bool:
        """Whether it is one JSON body or an error body, not a stream."""
        # Providers send an error as one body, also in response to a streaming request.
        return self.recording.status >= 400 or is_json_bytes(self.recording.body)

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments for the parser."""
        if not self.recording.headers:
            return {}
        return {"headers": self.recording.headers}


def for_each_capture(name: str, wire_api: WireApi | None, handle: Callable[[Capture], int]) -> int:
    """Handles every response of a file, and reports what cannot be read.

    Returns:
        The highest exit code of all.
    """
    code = 0
    try:
        for capture in read_captures(name, wire_api):
            code = max(code, handle(capture))
    except CommandError as error:
        # The message may quote the file.
        print(printable(str(error)), file=sys.stderr)
        code = max(code, error.code)
    return code


def read_captures(name: str, wire_api: WireApi | None) -> Iterator[Capture]:
    """Yields the responses of a file.

    Raises:
        CommandError: The file cannot be read, or its wire is unknown. Where a file of recordings
            is truncated, the complete recordings are yielded first.
    """
    data = read_bytes(name)
    if not is_recording(data):
        # An empty body is a valid capture: a response that was truncated before its first byte.
        other = of_another_kind(data) if data.strip() else None
        if other is not None:
            raise CommandError(f"{name}: {other}, not a captured response")
        yield Capture(name, _known_wire(name, wire_api, data), from_body(data), is_recorded=False)
        return
    recordings, problem = read(data)
    # Of a truncated file the number shows how many recordings are complete.
    is_single = len(recordings) == 1 and problem is None
    for number, recording in enumerate(recordings, 1):
        label = name if is_single else f"{name}#{number}"
        known = _known_wire(label, wire_api or recording.wire_api, recording.body)
        yield Capture(label, known, recording, is_recorded=True)
    if problem is not None:
        raise CommandError(f"{name}: it starts as a streamlib recording, but {problem}")


def read_bytes(name: str) -> bytes:
    """Reads a file, or standard input for `-`.

    Raises:
        CommandError: The file cannot be read.
    """
    try:
        if name == "-":
            return sys.stdin.buffer.read()
        return Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from None
    except ValueError as error:
        # The name contains a null byte.
        raise CommandError(f"{name!r}: {error}") from None


def _known_wire(name: str, wire_api: WireApi | None, body: bytes) -> WireApi:
    if wire_api is not None:
        return wire_api
    hint = ""
    likely = likely_wire(body)
    if likely is not None:
        hint = f"; it looks like --wire-api {likely}"
    options = ",".join(WIRE_APIS)
    raise CommandError(
        f"{name}: specify which wire it was captured from, --wire-api {{{options}}}{hint}", 2
    )


def likely_wire(data: bytes) -> WireApi | None:
    """The wire whose marker is among the first bytes; None where there is none."""
    # Some servers write a space after the colon.
    start = data[:SNIFFED_BYTES].replace(b'": "', b'":"')
    for marker, wire_api in WIRE_MARKERS:
        if marker in start:
            return wire_api
    return None


def wrong_wire_hint(capture: Capture) -> str | None:
    """A hint where a capture looks like another wire than it was read as.

    It is shown only for responses that are not complete: a complete one may quote a marker.
    """
    likely = likely_wire(capture.recording.body)
    if likely is None or likely == capture.wire_api:
        return None
    return f"read as {capture.wire_api}, but it looks like --wire-api {likely}"


# --- reading ---


def events_of(capture: Capture, chunk_bytes: int | None = None) -> list[ResponseEvent]:
    """Parses a capture, and shows the progress where that takes long.

    Args:
        capture: The captured response.
        chunk_bytes: Bytes fed to the parser at a time.
    """
    if capture.is_complete_body:
        return body_events(capture)
    body = capture.recording.body
    size = chunk_bytes or CHUNK_BYTES
    parse = parser(capture.wire_api, **capture.options)
    events: list[ResponseEvent] = []
    with Progress(f"reading {capture.name}", len(body)) as progress:
        for offset in range(0, len(body), size):
            events += parse.feed(body[offset : offset + size])
            progress.update(offset)
    return events + parse.close()


def body_events(capture: Capture) -> list[ResponseEvent]:
    """Parses a capture that is a complete body or an error body."""
    return parse_body(
        capture.wire_api, capture.recording.body, status=capture.recording.status, **capture.options
    )


def find_error(events: list[ResponseEvent]) -> ErrorInfo | None:
    """The error of a response that failed; None where it is complete."""
    for event in events:
        if isinstance(event, Failed):
            return event.error
    return None


# --- options ---


def add_wire_option(command: argparse.ArgumentParser) -> None:
    """Adds `--wire-api` to a command that reads captures."""
    names = ", ".join(WIRE_APIS)
    command.add_argument(
        "--wire-api",
        choices=WIRE_APIS,
        metavar="WIRE",
        help=f"the wire it was captured from: {names}. Recordings made by streamlib know theirs; "
        "it is required for anything else",
    )
