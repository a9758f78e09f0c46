"""Reads captured responses: recordings, raw streams and complete bodies.

`inspect`, `replay`, `convert` and `bench` all read files through this module, so that a file
means the same to each of them. A file named `-` is standard input.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from typing import Final

from streamlib.cli.command_error import CommandError
from streamlib.cli.progress import Progress
from streamlib.display.safe_text import printable
from streamlib.inspection.capture import Capture, likely_wire
from streamlib.inspection.capture import events_of as parsed
from streamlib.recording.files import (
    from_body,
    is_inspection,
    is_recording,
    of_another_kind,
    read,
    read_rest,
)
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Failed, ResponseEvent
from streamlib_parsers.items import WireApi
from streamlib_parsers.protocol import WIRE_APIS


def for_each_capture(
    name: str,
    wire_api: WireApi | None,
    handle: Callable[[Capture], int],
    open_document: Callable[[str, bytes], int] | None = None,
) -> int:
    """Handles every response of a file, and reports what cannot be read.

    Args:
        name: the file.
        wire_api: the wire that it was captured from; None: its own.
        handle: handles one response, and returns an exit code.
        open_document: handles a file of inspections instead; None: they are refused.

    Returns:
        The highest exit code of all.
    """
    code = 0
    try:
        data = read_bytes(name)
        if open_document is not None and is_inspection(data):
            return open_document(name, data)
        for capture in _captures_in(name, data, wire_api):
            code = max(code, handle(capture))
    except CommandError as error:
        # The message may quote the file.
        print(printable(str(error)), file=sys.stderr)
        code = max(code, error.code)
    return code


def read_captures(name: str, wire_api: WireApi | None) -> Iterator[Capture]:
    """Yields the responses of a file.

    Raises:
        CommandError: the file cannot be read, or its wire is unknown. Where a file of recordings
            is truncated, the complete recordings are yielded first, then the beginning of the
            truncated one (`Capture.truncation`).
    """
    return _captures_in(name, read_bytes(name), wire_api)


def _captures_in(name: str, data: bytes, wire_api: WireApi | None) -> Iterator[Capture]:
    if is_inspection(data):
        raise CommandError(
            f"{name}: an inspection document (streamlib inspect opens it), not a recording: "
            "it cannot be replayed or converted"
        )
    if not is_recording(data):
        # An empty body is a valid capture: a response that was truncated before its first byte.
        other = of_another_kind(data) if data.strip() else None
        if other is not None:
            raise CommandError(f"{name}: {other}, not a captured response")
        yield Capture(name, _known_wire(name, wire_api, data), from_body(data), is_recorded=False)
        return
    recordings, problem = read(data)
    rest = None if problem is None else read_rest(data, recordings)
    # For a truncated file the numbers show how many recordings are complete.
    is_single = len(recordings) == 1 and problem is None
    for number, recording in enumerate(recordings, 1):
        label = name if is_single else f"{name}#{number}"
        known = _known_wire(label, wire_api or recording.wire_api, recording.body)
        yield Capture(label, known, recording, is_recorded=True)
    if rest is not None:
        label = f"{name}#{len(recordings) + 1}" if recordings else name
        known = _known_wire(label, wire_api or rest.recording.wire_api, rest.recording.body)
        yield Capture(label, known, rest.recording, is_recorded=True, truncation=rest.reason)
    elif problem is not None:
        raise CommandError(f"{name}: it starts as a streamlib recording, but {problem}")


_NO_RECORDINGS: Final = (
    "a directory without recordings; name files of raw captures one by one, with --wire-api"
)


def files_of(name: str) -> list[str]:
    """The file itself; for a directory its recordings by name (our names sort by time)."""
    # `os.path` instead of `pathlib`, because the command then starts sooner.
    if not os.path.isdir(name):
        return [name]
    files: list[str] = []
    for file in sorted(os.listdir(name)):
        path = os.path.join(name, file)
        if os.path.isfile(path) and _is_recording_file(path):
            files.append(path)
    # If the directory has none, reading its name fails with the reason.
    return files or [name]


def _is_recording_file(path: str) -> bool:
    with open(path, "rb") as file:
        return is_recording(file.read(64))


def read_bytes(name: str) -> bytes:
    """Reads a file, or standard input for `-`.

    Raises:
        CommandError: the file cannot be read.
    """
    try:
        if name == "-":
            return sys.stdin.buffer.read()
        with open(name, "rb") as file:
            return file.read()
    except IsADirectoryError:
        raise CommandError(f"{name}: {_NO_RECORDINGS}") from None
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


# --- reading ---


def events_of(capture: Capture) -> list[ResponseEvent]:
    """Parses a capture, and shows the progress where that takes long."""
    with Progress(f"reading {capture.name}", len(capture.recording.body)) as progress:
        return parsed(capture, report=progress.update)


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
