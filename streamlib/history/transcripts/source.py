"""What `load_transcript` is given, as JSON: a file, bytes, or the objects of another library."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import mark_surrogates, scrub

TranscriptSource: TypeAlias = (
    str | os.PathLike[str] | bytes | list[Any] | tuple[Any, ...] | dict[str, Any]
)
"""A path, the bytes of a file, or Python objects."""

MAX_BYTES: Final = 1 << 30
"""Bytes of a file. Sessions of months have a tenth of it, and as items they take ten times more."""

ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""The first bytes of a file that is compressed with zstd, as Codex does with old sessions."""

UNFINISHED: Final = "not JSON, or only its beginning"


class SourceEntry(NamedTuple):
    """One object of a source: a line of a file, or an element of a list.

    path: how an error or a report names it.
    raw: its bytes: calls keep the bytes of their arguments.
    """

    path: str
    value: JsonObject
    raw: bytes


class JsonSource:
    """A conversation as JSON, before its format is known.

    Attributes:
        value: the JSON value; of a file of lines, the list of their objects.
        raw: its bytes.
    """

    def __init__(self, value: Any, raw: bytes, lines: list[SourceEntry] | None = None) -> None:
        self.value = value
        self.raw = raw
        self._lines = lines
        """Those of a file of lines; None: it is one value."""

    def entries(self, key: str = "") -> Iterator[SourceEntry]:
        """The objects of the list: of the value itself, or at a key of it.

        Raises:
            ValueError: there is no such list, or an element is no object.
        """
        if self._lines is not None:
            yield from self._lines
            return
        value, raw = self.value, self.raw
        if isinstance(value, dict) and key in value:
            raw = bytes(msgspec.json.decode(raw, type=dict[str, Raw])[key])
            value, prefix = value[key], f"/{key}"
        elif isinstance(value, dict):
            yield SourceEntry("", value, raw)  # a file of one line
            return
        else:
            prefix = ""
        if not isinstance(value, list):
            raise mistake(prefix, "not a list")
        raws = msgspec.json.decode(raw, type=list[Raw])
        for index, (element, bytes_of) in enumerate(zip(value, raws, strict=True)):
            path = f"{prefix}/{index}"
            yield SourceEntry(path, object_at(element, path), bytes(bytes_of))


def mistake(path: str, what: str) -> ValueError:
    """The error of a value that is not of the format.

    Args:
        path: the line, or the JSON pointer; "" is the value itself.
        what: what is wrong there.
    """
    return ValueError(f"{path or '/'}: {what}")


def object_at(value: Any, path: str) -> JsonObject:
    """The value, if it is a JSON object.

    Raises:
        ValueError: it is not; the error names the place.
    """
    if not isinstance(value, dict):
        raise mistake(path, "not a JSON object")
    return value


def list_at(value: JsonObject, key: str, path: str) -> list[Any]:
    """The list at a key; () where it is missing or null.

    Raises:
        ValueError: it is something else.
    """
    result = value.get(key)
    if result is None:
        return []
    if not isinstance(result, list):
        raise mistake(f"{path}/{key}", "not a list")
    return result


def text_at(value: JsonObject, key: str, path: str, default: str = "") -> str:
    """The text at a key; the default where it is missing or null.

    Raises:
        ValueError: it is something else.
    """
    result = value.get(key)
    if result is None:
        return default
    if not isinstance(result, str):
        raise mistake(f"{path}/{key}", "not a text")
    return result


def read_source(value: TranscriptSource) -> JsonSource:
    """What was given, as JSON.

    Raises:
        OSError: a file cannot be read.
        ValueError: it is not JSON, or larger than `MAX_BYTES`; the error names the place.
        TypeError: it is none of the three.
    """
    if isinstance(value, (str, os.PathLike)):
        return _read_bytes(_file(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _read_bytes(bytes(value))
    anything: Any = value
    if not isinstance(anything, (list, tuple, dict)):
        raise TypeError(
            f"a transcript is a path, bytes, a list or a dict, not a {type(value).__name__}"
        )
    try:
        raw = msgspec.json.encode(value, enc_hook=_fields)
        return JsonSource(msgspec.json.decode(raw), raw)
    except (TypeError, ValueError, UnicodeError, RecursionError) as error:
        raise ValueError(f"cannot be written as JSON: {error}") from None


def _file(path: str | os.PathLike[str]) -> bytes:
    if isinstance(path, str) and path.lstrip()[:1] in ("{", "["):
        raise ValueError("a text is the path of a file: pass JSON as bytes, or as Python objects")
    file = Path(path)
    size = file.stat().st_size
    if size > MAX_BYTES:
        raise ValueError(f"the file has {size:,} bytes, more than {MAX_BYTES:,}")
    return file.read_bytes()


def _fields(value: Any) -> Any:
    """An object of another library as JSON: of pydantic, as most SDKs have."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"a {type(value).__name__} has no model_dump()")
    return dump(mode="json", exclude_none=True)


def _read_bytes(data: bytes) -> JsonSource:
    if data.startswith(ZSTD):
        raise ValueError("the file is compressed: unpack it first, with `zstd -d`")
    marked = mark_surrogates(data)
    if marked is not None:
        # Half of a surrogate pair, which JavaScript writes, becomes U+FFFD: no request takes it.
        data = scrub(marked.decode()).encode()
    try:
        return JsonSource(msgspec.json.decode(data), data)
    except (msgspec.DecodeError, UnicodeError):
        pass
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    lines = [(n, line) for n, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    if len(lines) < 2 or not _is_object(lines[0][1]):
        raise ValueError(f"{_position_of(data)}: {UNFINISHED}")
    entries = [_line(number, line) for number, line in lines]
    return JsonSource([entry.value for entry in entries], data, entries)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def _line(number: int, line: bytes) -> SourceEntry:
    path = f"line {number}"
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise ValueError(f"{path}: {UNFINISHED}") from None
    return SourceEntry(path, object_at(value, path), line)


def _position_of(data: bytes) -> str:
    """Where JSON stops being JSON."""
    if not data.strip():
        return "the file is empty"
    try:
        json.loads(data.decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}"
    except RecursionError:
        return "the JSON is nested too deeply"
    return "line 1"
