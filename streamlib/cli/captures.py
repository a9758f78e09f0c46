"""Reads captured responses from files: every form of `streamlib.inspection.forms`.

`inspect`, `replay`, `convert` and `bench` all read files through this module, so that a file
means the same to each of them. A file named `-` is standard input.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, Final

from streamlib.cli.arguments import CommandError
from streamlib.cli.progress import Progress
from streamlib.display.safe_text import printable
from streamlib.inspection.capture import Capture, captures_of
from streamlib.inspection.capture import events_of as parsed
from streamlib.inspection.file_parts import FILE_BYTES, NoResponseFound, UnreadableFile
from streamlib.inspection.wire_markers import likely_wire
from streamlib.recording.files import is_inspection, is_recording
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Failed, ResponseEvent
from streamlib_parsers.items import WireApi
from streamlib_parsers.protocol import WIRE_APIS

READ_BYTES: Final = 1 << 20
"""Bytes that are read at a time: between them the progress is shown."""


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
        CommandError: the file cannot be read, or holds no response. Where a file of recordings is
            truncated, the complete recordings are yielded first, then the beginning of the
            truncated one (`Capture.truncation`).
    """
    return _captures_in(name, read_bytes(name), wire_api)


def _captures_in(name: str, data: bytes, wire_api: WireApi | None) -> Iterator[Capture]:
    if is_inspection(data):
        raise CommandError(
            f"{name}: an inspection document (streamlib inspect opens it), not a recording: "
            "it cannot be replayed or converted"
        )
    try:
        captures = captures_of(name, data, wire_api)
    except NoResponseFound as error:
        raise CommandError(f"{name}: {error}", 2) from None
    except UnreadableFile as error:
        raise CommandError(f"{name}: {error}") from None
    if not captures:
        reason = _NOTHING_FOUND if data.strip() else "it is empty: there is no response in it"
        raise CommandError(f"{name}: {reason}", 2)
    _say_guesses(name, captures)
    yield from captures


_NOTHING_FOUND: Final = (
    "no response was found in it (streamlib inspect --help lists what is opened). "
    f"If it is one, name its wire API: --wire-api {{{','.join(WIRE_APIS)}}}"
)


def _say_guesses(name: str, captures: Sequence[Capture]) -> None:
    """Says on standard error which wires were guessed: the output may be read by a program."""
    guessed: dict[tuple[WireApi, str], list[Capture]] = {}
    for capture in captures:
        if capture.is_guessed:
            reason = "as it looks"
            if likely_wire(capture.recording.body) is None:
                reason = "as it shows no wire API of its own"
            guessed.setdefault((capture.wire_api, reason), []).append(capture)
    for (wire_api, reason), alike in guessed.items():
        read = f"{alike[0].name}: read as"
        if len(alike) > 1:
            read = f"{name}: {len(alike):,} responses, each read as"
        line = f"{read} {wire_api}, {reason} (--wire-api names another)"
        print(printable(line), file=sys.stderr)


_NO_RECORDINGS: Final = "a directory without recordings; name files of other captures one by one"


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
        CommandError: the file cannot be read, or has no end.
    """
    try:
        if name == "-":
            return _read(name, sys.stdin.buffer)
        with open(name, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and not file.isatty():
                raise CommandError(f"{name}: {_A_DEVICE}")
            return _read(name, file)
    except IsADirectoryError:
        raise CommandError(f"{name}: {_NO_RECORDINGS}") from None
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from None
    except ValueError as error:
        # The name contains a null byte.
        raise CommandError(f"{name!r}: {error}") from None


_A_DEVICE: Final = "a device, which may have no end: save what it holds to a file"


def _read(name: str, file: BinaryIO) -> bytes:
    """All bytes of a file; a pipe may have no end, and says nothing about its length."""
    data = bytearray()
    with Progress(f"reading {name}, bytes", None) as progress:
        while chunk := file.read(READ_BYTES):
            data += chunk
            if len(data) > FILE_BYTES:
                raise CommandError(f"{name}: longer than {FILE_BYTES:,} bytes, which is the limit")
            progress.update(len(data))
    return bytes(data)


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
        help=f"the wire it was captured from: {names}. Without it a recording knows its own, and "
        "of anything else it is guessed, which is said",
    )
