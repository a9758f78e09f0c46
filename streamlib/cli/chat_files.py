"""Files of a chat: the history that goes on, tools to offer, images to show, and the recording of what came."""

from __future__ import annotations

import os
import shutil
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

import msgspec

from streamlib.cli.captures import Unreadable
from streamlib.recording import Recording, append, load_all
from streamlib.request.history import dump_history, load_history
from streamlib.request.media import SIGNATURES
from streamlib_parsers import Image, ResponseItem, ToolSpec
from streamlib_parsers.items import WireApi

IMAGE_BYTES: Final = 20 << 20
"""More than any provider takes in one image."""


def open_history(name: str) -> list[ResponseItem]:
    """The items of a history; none where there is no such file yet."""
    path = Path(name)
    if not path.exists():
        if not path.parent.is_dir():
            raise Unreadable(f"{name}: there is no folder {path.parent}")
        return []
    data = _read(name)
    try:
        return load_history(data) if data.strip() else []
    except ValueError as error:
        raise Unreadable(f"{name}: {error}; it was left as it is") from None


def save_history(name: str, items: list[ResponseItem]) -> None:
    """Writes the history whole or not at all: a crash leaves the one before."""
    path = Path(name).resolve()
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(dump_history(items) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, part)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def read_tools(name: str) -> list[ToolSpec]:
    """A JSON list of tools: `[{"name": …, "description": …, "schema": {…}}, …]`."""
    known = ToolSpec.__struct_fields__
    try:
        listed = msgspec.json.decode(_read(name), type=list[dict[str, Any]])
        tools = msgspec.convert(listed, list[ToolSpec])
    except msgspec.DecodeError as error:
        raise Unreadable(
            f"{name}: a JSON list of tools is wanted, each with {', '.join(known)}: {error}"
        ) from None
    for at, tool in enumerate(listed):
        for key in tool:
            if key not in known:
                raise Unreadable(
                    f"{name}: tool {at} has an unknown key {key!r}; there are {', '.join(known)}"
                )
    return tools


def read_image(name: str) -> Image:
    """An image, with the type that its bytes say."""
    data = _read(name)
    if len(data) > IMAGE_BYTES:
        raise Unreadable(f"{name}: {len(data):,} bytes; an image may have {IMAGE_BYTES:,}")
    text = b64encode(data).decode("ascii")
    kind = next(
        (
            kind
            for sign, kind in SIGNATURES.items()
            if text.startswith(sign) and kind.startswith("image/")
        ),
        None,
    )
    if kind is None:
        raise Unreadable(f"{name}: not an image of a kind that models take (PNG, JPEG, GIF, WebP)")
    return Image(data=text, media_type=kind)


def check_recordings(name: str) -> None:
    """Answers are added to a file of recordings, and to no other."""
    path = Path(name)
    if not path.parent.is_dir():
        raise Unreadable(f"{name}: there is no folder {path.parent}")
    if path.is_dir():
        raise Unreadable(f"{name}: it is a folder; name a file")
    if path.exists() and path.stat().st_size:
        try:
            load_all(path)
        except OSError as error:
            raise Unreadable(f"{name}: {error.strerror}") from None
        except ValueError:
            raise Unreadable(
                f"{name}: there is a file of that name that is no recording; it was left as it is"
            ) from None


def record(name: str, recordings: list[Recording], wire_api: WireApi | None) -> None:
    """Adds what came to the file."""
    for one in recordings:
        append(msgspec.structs.replace(one, wire_api=wire_api or one.wire_api), name)


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise Unreadable(f"{name}: {error.strerror}") from None
