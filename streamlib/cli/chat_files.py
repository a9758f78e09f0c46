"""Files of a chat: its history, the tools it offers, images, and recordings of its responses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from streamlib.cli.arguments import CommandError
from streamlib.request.conversation import History
from streamlib_parsers import ResponseItem, ToolSpec
from streamlib_parsers.items import WireApi

if TYPE_CHECKING:
    from streamlib.recording import Recording


def open_history(name: str) -> list[ResponseItem]:
    """Loads the items of a history; a file that is missing or empty is a new one.

    Raises:
        CommandError: the file is not a history, or its folder does not exist.
    """
    path = Path(name)
    if not path.exists():
        _check_folder(name)
        return []
    data = _read(name)
    if not data.strip():
        return []
    try:
        return History.loads(data)
    except ValueError as error:
        raise CommandError(f"{name}: {error}; it was left unchanged") from None


def save_history(name: str, items: list[ResponseItem]) -> None:
    """Replaces the file atomically: after a crash it holds the previous history."""
    History(items).save(name)


def read_tools(name: str) -> list[ToolSpec]:
    """Reads a JSON list of tools: `[{"name": …, "description": …, "schema": {…}}, …]`.

    Raises:
        CommandError: the file is not such a list, or a tool has an unknown key.
    """
    known = ToolSpec.__struct_fields__
    keys = ", ".join(known)
    try:
        objects = msgspec.json.decode(_read(name), type=list[dict[str, Any]])
        tools = msgspec.convert(objects, list[ToolSpec])
    except msgspec.DecodeError as error:
        raise CommandError(
            f"{name}: expected a JSON list of tools, each with {keys}: {error}"
        ) from None
    # Decoding ignores unknown keys, and a misspelt `schema` would be lost in silence.
    for index, tool in enumerate(objects):
        for key in tool:
            if key not in known:
                raise CommandError(
                    f"{name}: tool {index} has an unknown key {key!r}; the keys are {keys}"
                )
    return tools


def check_record_file(name: str) -> None:
    """Checks that responses can be appended to a file.

    Raises:
        CommandError: it is a folder, or a file that holds something other than recordings.
    """
    from streamlib.recording import load_all

    path = Path(name)
    _check_folder(name)
    if path.is_dir():
        raise CommandError(f"{name}: it is a folder, not a file")
    if not path.exists() or not path.stat().st_size:
        return
    try:
        load_all(path)
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from None
    except ValueError:
        raise CommandError(
            f"{name}: the file exists and is not a recording; it was left unchanged"
        ) from None


def append_recordings(name: str, recordings: list[Recording], wire_api: WireApi | None) -> None:
    """Appends recordings to a file.

    Args:
        name: the file.
        recordings: the responses of one request and its retries.
        wire_api: the wire of the request; None keeps the wire that each recording names.
    """
    from streamlib.recording import append

    for recording in recordings:
        known = wire_api or recording.wire_api
        append(msgspec.structs.replace(recording, wire_api=known), name)


def _check_folder(name: str) -> None:
    folder = Path(name).parent
    if not folder.is_dir():
        raise CommandError(f"{name}: the folder {folder} does not exist")


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from None
