"""Captured answers, opened: our own recordings, raw streams, whole bodies; from files or from standard input.

`inspect`, `replay` and `convert` all read through here, so that a file means the same to each of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from streamlib.cli.progress import Progress
from streamlib.cli.terminal import printable
from streamlib.recording import Recording, from_body, is_recording, of_another_kind, read
from streamlib_parsers import WIRE_APIS, ErrorInfo, Failed, ResponseEvent, parse_body, parser
from streamlib_parsers.items import WireApi
from streamlib_parsers.json_text import is_json_bytes

PIECE: Final = 1 << 20
"""Bytes given to a parser at a time: often enough to say how far it is."""

SIGNS: Final[tuple[tuple[bytes, WireApi], ...]] = (
    (b'"type":"message_start"', "messages"),
    (b'"type":"response.', "responses"),
    (b"chat.completion", "chat"),
    (b'"candidates"', "gemini"),
    (b"contentBlock", "converse"),
    (b":event-type\x07\x00\x05chunk", "invoke"),
    (b'"done":', "ollama"),
)
"""What only one wire writes, looked for in the first kilobytes. Never believed without being asked for: a hint to a person."""


class Unreadable(Exception):
    """A file that cannot be looked at, in words for a person. `code`: what the program exits with."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class Capture(Struct, frozen=True):
    """One captured answer. ours: a recording, with the times of its chunks."""

    name: str
    wire_api: WireApi
    recording: Recording
    ours: bool

    @property
    def whole(self) -> bool:
        """Whether it is one whole body, not a stream."""
        return self.recording.status >= 400 or is_json_bytes(self.recording.body)

    @property
    def options(self) -> dict[str, Any]:
        """What a parser is told beside the bytes."""
        return {"headers": self.recording.headers} if self.recording.headers else {}


def each(name: str, wire_api: WireApi | None, look: Callable[[Capture], int]) -> int:
    """Looks at every answer in a file, and says what could not be read; the worst exit code."""
    code = 0
    try:
        for capture in opened(name, wire_api):
            code = max(code, look(capture))
    except Unreadable as error:
        print(printable(str(error)), file=sys.stderr)
        code = max(code, error.code)
    return code


def opened(name: str, wire_api: WireApi | None) -> Iterator[Capture]:
    """The answers in a file (`-`: standard input). Raises `Unreadable`; where recordings break off, behind the whole ones."""
    data = file_bytes(name)
    if not is_recording(data):
        other = (
            of_another_kind(data) if data.strip() else None
        )  # an empty body is an answer that was cut before it began
        if other is not None:
            raise Unreadable(f"{name}: {other}, and no captured answer")
        yield Capture(name, wire_api or _unsaid(name, data), from_body(data), ours=False)
        return
    found, broken = read(data)
    names = (
        [name]
        if len(found) == 1 and broken is None
        else [f"{name}#{n}" for n in range(1, len(found) + 1)]
    )
    for one, recording in zip(names, found, strict=True):
        yield Capture(
            one,
            wire_api or recording.wire_api or _unsaid(one, recording.body),
            recording,
            ours=True,
        )
    if broken is not None:
        raise Unreadable(f"{name}: it begins as a recording of ours, but {broken}")


def file_bytes(name: str) -> bytes:
    """A file, or standard input for `-`. Raises `Unreadable`."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise Unreadable(f"{name}: {error.strerror}") from None
    except ValueError as error:  # a name with a null byte
        raise Unreadable(f"{name!r}: {error}") from None


def _unsaid(name: str, data: bytes) -> WireApi:
    """Nobody said which wire it is: an error, with a hint where its first bytes give one."""
    looks = likely(data)
    hint = f"; it looks like --wire-api {looks}" if looks else ""
    raise Unreadable(
        f"{name}: say which wire it was captured from, --wire-api {{{','.join(WIRE_APIS)}}}{hint}",
        2,
    )


def likely(data: bytes) -> WireApi | None:
    """The wire that the first bytes look like."""
    plain = data[:4096].replace(b'": "', b'":"')
    return next((wire_api for sign, wire_api in SIGNS if sign in plain), None)


def other_wire(capture: Capture) -> str | None:
    """A hint where a capture looks like another wire than it was read as. It is for answers that did not turn out whole."""
    looks = likely(capture.recording.body)
    return (
        f"read as {capture.wire_api}, but it looks like --wire-api {looks}"
        if looks not in (None, capture.wire_api)
        else None
    )


# --- reading ---


def events_of(capture: Capture, chunk: int | None = None) -> list[ResponseEvent]:
    """The events of a captured answer, fed `chunk` bytes at a time; says how far it is where that takes long."""
    body = capture.recording.body
    if capture.whole:
        return body_events(capture)
    parse = parser(capture.wire_api, **capture.options)
    events: list[ResponseEvent] = []
    with Progress(f"reading {capture.name}", len(body)) as progress:
        for at, piece in _pieces(body, chunk or PIECE):
            events += parse.feed(piece)
            progress.at(at)
    return events + parse.close()


def body_events(capture: Capture) -> list[ResponseEvent]:
    """The events of a whole body, or of the error it is."""
    return parse_body(
        capture.wire_api, capture.recording.body, status=capture.recording.status, **capture.options
    )


def _pieces(body: bytes, size: int) -> Iterator[tuple[int, bytes]]:
    return ((at, body[at : at + size]) for at in range(0, len(body), size))


def failure(events: list[ResponseEvent]) -> ErrorInfo | None:
    """Why the answer is not whole; None where it is."""
    return next((event.error for event in events if isinstance(event, Failed)), None)


# --- words of the command line ---


def add_wire(command: argparse.ArgumentParser) -> None:
    """`--wire-api`, for commands that read captures."""
    known = ", ".join(WIRE_APIS)
    told = f"the wire it was captured from: {known}. A recording of ours knows its own, anything else must be told"
    command.add_argument("--wire-api", choices=WIRE_APIS, metavar="WIRE", help=told)
