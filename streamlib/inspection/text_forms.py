"""Opens responses that stand in other text: JSON values, logs, escaped text, tables."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from typing import Any, Final

from streamlib.inspection.file_parts import FilePart, bytes_of, text_of
from streamlib.inspection.gathering import (
    DONE,
    NEXT_EVENT,
    Gathering,
    json_bytes,
    object_at,
    objects_in,
    one_line,
)
from streamlib.inspection.http_forms import is_compressed
from streamlib.inspection.string_lists import strings_in
from streamlib.inspection.wire_markers import likely_wire, marker_in, marker_of
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib_parsers.json_text import is_complete_frame, is_truncated_json

_FIELD: Final = rb"(?:data|event|id|retry)\s?:"
_STREAM_START: Final = re.compile(rb"[\r\n]*(?:" + _FIELD + rb"|:)")
_DATA_LINE: Final = re.compile(rb"^data:", re.MULTILINE)
_BLANK_LINE: Final = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")

_CUT_OBJECT: Final = re.compile(r'\{\s*"')
_INSIDE_DEPTH: Final = 8
"""Levels of objects and lists in which a body is searched: a log nests a few."""

_REQUEST_KEYS: Final = ("request", "prompt", "input")
"""Beginnings of keys of a log that hold what was sent, not what came back."""

_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(\n|.))", re.DOTALL
)
_SHORT_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "\n": ""}
_ESCAPED: Final = re.compile(r'\{\s*\\+"|\\x22|\\u0022|\\n\s*(?:data|event):|\\n\\n')
"""What shows that a body was escaped: its quotes or its line ends."""

_BASE64: Final = re.compile(rb"[A-Za-z0-9+/\r\n]{24,}+={0,2}")
_CELL: Final = re.compile(rb'(?:^|[,;\t])"((?:[^"]|"")*+)"(?=[,;\t\r\n]|$)', re.MULTILINE)
"""A quoted cell of a table: of each pair of quotes in it, one is text."""
_CELL_OBJECT: Final = re.compile(rb'\{\s*""\w')

_FENCE: Final = re.compile(r"^ {0,9}(?:```|~~~)\w{0,20}[ \t]*\r?$", re.MULTILINE)


# --- a response as it is ---


def is_response(data: bytes) -> bool:
    """Whether the bytes are one stream or one body, or the beginning of one, and nothing else."""
    if not data.strip() or _is_aws(data):
        return True
    if _STREAM_START.match(data):
        # On one line, with its line ends escaped, it was copied from a log.
        is_one_line = b"\n" not in data.strip()
        return not (is_one_line and is_escaped(data)) or _is_one_frame(data)
    start = data[:1000].lstrip()
    if not start.startswith((b"{", b"[")):
        return False
    text = text_of(data)
    offset = len(text) - len(text.lstrip())
    if text[offset] == "[":
        # Gemini streams one list.
        offset = text.find("{", offset)
        return offset >= 0 and likely_wire(data) == "gemini" and _is_marked_first(text, offset)
    value, end = object_at(text, offset)
    if value is None and _CUT_OBJECT.match(text, offset) is None:
        return False
    if value is None:
        # It is cut: what is inside is no response of its own, but an entry of a log has a stream.
        return likely_wire(data) is not None and NEXT_EVENT.search(data[:1000]) is None
    marker = marker_of(value)
    if text[end:].strip():
        return marker is not None and WIRE_SPECS[marker.wire_api].frames == "ndjson"
    return marker is not None or _is_error(value)


def _is_one_frame(data: bytes) -> bool:
    """Whether a line is one frame, or its beginning: its text may have line ends of its own."""
    payload = data.partition(b":")[2]
    return is_complete_frame(payload) or is_truncated_json(payload)


def _is_aws(data: bytes) -> bool:
    return data[:2] == b"\0\0" and b":event-type\x07" in data[:200]


def _is_marked_first(text: str, offset: int) -> bool:
    first, _ = object_at(text, offset)
    return first is None or marker_of(first) is not None


def _is_error(value: dict[str, Any]) -> bool:
    return isinstance(value.get("error"), (dict, str)) or "detail" in value


# --- a stream whose blank lines are gone ---


def lacks_blank_lines(data: bytes) -> bool:
    """Whether it is a stream without the blank lines between its events, as a copy may be."""
    if not _STREAM_START.match(data) or _BLANK_LINE.search(data.strip()):
        return False
    first = next((line for line in data.splitlines() if line.startswith(b"data:")), b"")
    if len(_DATA_LINE.findall(data)) < 2:
        return False
    try:
        json.loads(first[5:])
    except (ValueError, RecursionError):
        return False
    return True


def open_lines(part: FilePart) -> list[FilePart]:
    """The stream, with a blank line after each line of data."""
    lines: list[bytes] = []
    for line in part.body.splitlines():
        lines.append(line)
        if line.startswith(b"data:"):
            lines.append(b"")
    return [part.holding(b"\n".join(lines) + b"\n")]


# --- JSON values in a text ---


def open_json(part: FilePart) -> list[FilePart]:
    """The responses in the JSON objects of a text; nothing where there are none.

    An object may be a body, a frame of a stream, or an entry of a log that has either inside.
    """
    text = text_of(part.body)
    gathering = Gathering(part)
    strings, is_cut = strings_in(text.strip())
    if strings:
        _gather_inside(gathering, strings)
        gathering.end()
        if is_cut and gathering.parts:
            last = gathering.parts[-1]
            gathering.parts[-1] = last.holding(last.body, "its list of strings has no end")
        return gathering.parts
    previous = 0
    for entry in objects_in(text):
        if not entry.is_certain and marker_of(entry.value) is None:
            _gather_inside(gathering, entry.value)
            continue
        gathering.done(text.count(DONE, previous, entry.start))
        previous = entry.end
        if not gathering.add_object(entry.value, one_line(text, entry), ""):
            _gather_inside(gathering, entry.value)
    rest = text[previous:]
    gathering.done(rest.count(DONE))
    gathering.end()
    parts = gathering.parts
    if len(parts) == 1 and parts[0].body.strip() == part.body.strip():
        return []
    return _with_rest(part, parts, rest)


def _with_rest(part: FilePart, parts: list[FilePart], rest: str) -> list[FilePart]:
    """The parts, and what a text holds behind them that is cut: a body, a frame, or a log's entry
    with either."""
    data = bytes_of(rest)
    is_escaped_alone = marker_in(data) is None
    if not _holds_body(data):
        return parts
    if parts and not is_escaped_alone:
        truncation = f"its last {len(rest):,} characters are no complete JSON"
        parts[-1] = parts[-1].holding(parts[-1].body, truncation)
    elif parts:
        parts.append(part.holding(data, "its entry of the log is cut"))
    else:
        start = _CUT_OBJECT.search(rest)
        if start is not None and start.start() > 0 and not is_escaped_alone:
            parts.append(part.holding(bytes_of(rest[start.start() :])))
    return parts


def _gather_inside(gathering: Gathering, value: Any, key: str = "", depth: int = 0) -> None:
    """Finds bodies, frames and texts of them inside an entry of a log."""
    if depth > _INSIDE_DEPTH:
        return
    if isinstance(value, dict):
        if key and gathering.add_object(value, json_bytes(value), key):
            return
        for name, inner in value.items():
            if not name.lower().startswith(_REQUEST_KEYS):
                _gather_inside(gathering, inner, name, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _gather_inside(gathering, inner, key, depth + 1)
    elif isinstance(value, str):
        _gather_text(gathering, value, key)


def _gather_text(gathering: Gathering, text: str, key: str) -> None:
    data = bytes_of(text)
    if gathering.continues(key):
        gathering.add_text(data, key)
    elif _STREAM_START.match(data):
        if b"{" in data or DONE in text:
            gathering.add_text(data, key)
    elif text.rstrip().endswith(DONE) and "{" not in text:  # maybe behind words
        gathering.done(1)
    elif gathering.add_only_object(text, key):
        return
    elif _holds_body(data):
        gathering.add_whole(data)
    elif is_base64(data):
        gathering.add_whole(b64decode(data))


def _holds_body(data: bytes) -> bool:
    """Whether a text holds a body, as it is or escaped."""
    return marker_in(data) is not None or marker_in(data.replace(b"\\", b"")) is not None


def holds_json(data: bytes) -> bool:
    """Whether there is an object in it."""
    return b"{" in data


# --- escapes ---


def is_escaped(data: bytes) -> bool:
    """Whether its quotes or line ends are escaped."""
    return _ESCAPED.search(text_of(data)) is not None


def open_escaped(part: FilePart) -> list[FilePart]:
    """The same text without one level of escapes."""
    return [part.holding(unescaped(text_of(part.body).strip().strip('"'), as_bytes=True))]


def unescaped(text: str, *, as_bytes: bool) -> bytes:
    r"""A text without its escapes.

    Args:
        text: the text.
        as_bytes: whether `\xe9` is a byte, as in a Python bytes literal and a log of nginx; else
            it is a character, as in a Python string.
    """

    def character(match: re.Match[str]) -> str:
        short, octal = match[5], match[4]
        if short is not None:
            return _SHORT_ESCAPES.get(short, short)
        code = int(octal, 8) if octal is not None else int(match[1] or match[2] or match[3], 16)
        is_byte = match[1] is None and match[3] is None and as_bytes
        if is_byte and 0x80 <= code <= 0xFF:
            return chr(0xDC00 + code)  # as `text_of` has a byte
        return chr(code) if code <= 0x10FFFF else "\ufffd"

    unescaped = _ESCAPE.sub(character, text)
    # Halves of pairs that became neighbours are one character.
    return bytes_of(unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass"))


# --- base64, Markdown, tables ---


def is_base64(data: bytes) -> bool:
    """Whether it is a body in base64."""
    if not _BASE64.fullmatch(data.strip()):
        return False
    stripped = b"".join(data.split())
    if len(stripped) % 4:
        return False
    start = b64decode(stripped[:400])
    is_text = start.lstrip().startswith((b"{", b"[", b"data:", b"event:", b"HTTP/", b":"))
    return is_text or is_compressed(start) or _is_aws(start)


def open_base64(part: FilePart) -> list[FilePart]:
    """What it encodes."""
    return [part.holding(b64decode(b"".join(part.body.split())))]


def is_fenced(data: bytes) -> bool:
    """Whether it is Markdown with a fenced block."""
    return (b"```" in data or b"~~~" in data) and _FENCE.search(text_of(data)) is not None


def open_fences(part: FilePart) -> list[FilePart]:
    """The text of each fenced block that may be a response; the last may lack its end."""
    text = text_of(part.body)
    fences = list(_FENCE.finditer(text))
    ends = [*(fence.start() for fence in fences[1::2]), len(text)]
    parts: list[FilePart] = []
    for opening, end in zip(fences[::2], ends, strict=False):
        block = bytes_of(text[opening.end() + 1 : end])
        if _holds_body(block):
            parts.append(part.holding(block))
    return parts


def is_table(data: bytes) -> bool:
    """Whether it is CSV, with commas, semicolons or tabs, with JSON in its cells."""
    return _CELL_OBJECT.search(data) is not None and _CELL.search(data) is not None


def open_cells(part: FilePart) -> list[FilePart]:
    """The text of each cell that may be a response."""
    parts: list[FilePart] = []
    for cell in _CELL.finditer(part.body):
        text = cell[1].replace(b'""', b'"')
        if b"{" in text:
            parts.append(part.holding(text))
    return parts
