"""Opens responses that stand in other text: JSON values, logs, Python literals, escaped text."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from streamlib.inspection.file_parts import FilePart, bytes_of, text_of
from streamlib.inspection.http_forms import is_compressed
from streamlib.inspection.string_lists import strings_in
from streamlib.inspection.wire_markers import likely_wire, marker_in, marker_of
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib_parsers.framing.eventstream import encode_message
from streamlib_parsers.items import WireApi

_FIELD: Final = rb"(?:data|event|id|retry)\s?:"
_STREAM_START: Final = re.compile(rb"[\r\n]*(?:" + _FIELD + rb"|:)")
_NEXT_EVENT: Final = re.compile(rb"(?:data|event):")
_DATA_LINE: Final = re.compile(rb"^data:", re.MULTILINE)
_BLANK_LINE: Final = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")

_OBJECT: Final = re.compile(r"\{")
_CUT_OBJECT: Final = re.compile(r'\{\s*"')
_DONE: Final = "[DONE]"
_DECODE: Final = json.JSONDecoder().raw_decode
_WINDOW: Final = 4096
"""Characters in which an object is looked for at first."""

_INSIDE_DEPTH: Final = 8
"""Levels of objects and lists in which a body is searched: a log nests a few."""

_REQUEST_KEYS: Final = ("request", "prompt", "input")
"""Beginnings of keys of a log that hold what was sent, not what came back."""

_LITERAL: Final = re.compile(
    r"(?P<prefix>(?<!\w)[bB]?)(?P<quote>['\"])"
    r"(?P<text>(?:[^'\"\\\n]|\\.|(?!(?P=quote))['\"])*+)(?P<end>(?P=quote)|$)",
    re.MULTILINE,
)
_LITERAL_START: Final = re.compile(
    r"""(?:(?<!\w)[bB]['"]|(?<![\w\\"])')(?:data:|event:|id:|:|\{\s*"|\[\s*\{|HTTP/)"""
    r"""|[bB]['"]\\x00\\x00"""
)
"""What begins with a quote that JSON has not: a Python literal with a body in it."""

_DICT_START: Final = re.compile(r"\s*[\[{(]+\s*'")
_DICT_CHARACTERS: Final = 4 << 20
"""Maximum of a printed dict: Python's own parser takes fifty times its size."""
_DICT_NESTING: Final = 100

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
        return b"\\n" not in data or b"\n" in data.strip() or not is_escaped(data)
    start = data[:1000].lstrip()
    if not start.startswith((b"{", b"[")):
        return False
    text = text_of(data)
    offset = len(text) - len(text.lstrip())
    if text[offset] == "[":
        # Gemini streams one list.
        offset = text.find("{", offset)
        return offset >= 0 and likely_wire(data) == "gemini" and _is_marked_first(text, offset)
    value, end = _object_at(text, offset)
    if value is None and _CUT_OBJECT.match(text, offset) is None:
        return False
    if value is None:
        # It is cut: what is inside is no response of its own, but an entry of a log has a stream.
        return likely_wire(data) is not None and _NEXT_EVENT.search(data[:1000]) is None
    marker = marker_of(value)
    if text[end:].strip():
        return marker is not None and WIRE_SPECS[marker.wire_api].frames == "ndjson"
    return marker is not None or _is_error(value)


def _is_aws(data: bytes) -> bool:
    return data[:2] == b"\0\0" and b":event-type\x07" in data[:200]


def _is_marked_first(text: str, offset: int) -> bool:
    first, _ = _object_at(text, offset)
    return first is None or marker_of(first) is not None


def _is_api_error(value: dict[str, Any]) -> bool:
    """Whether an object is an error of an API. A log calls its own errors so, too."""
    error = value.get("error")
    return isinstance(error, dict) and "message" in error


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


class JsonInText(NamedTuple):
    """A JSON object in a text.

    Attributes:
        start: where it begins.
        end: where it ends.
        value: what it is.
        is_certain: whether nothing before it failed to be one: else it may be the inside of an
            object that was cut.
    """

    start: int
    end: int
    value: dict[str, Any]
    is_certain: bool


def _object_at(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    """The JSON object that begins at a brace, and its end; None, and how far it was looked for.

    It is decoded from a window that grows: `json` counts the lines of its text for each error.
    """
    size = _WINDOW
    while True:
        window = text[start : start + size]
        try:
            value, length = _DECODE(window)
        except (ValueError, RecursionError) as error:
            # A number that is too long, and deep nesting, have no position.
            line_end = window.find("\n", getattr(error, "pos", 0))
        else:
            return value, start + length
        if line_end >= 0:
            return None, start + line_end
        if start + size >= len(text):
            return None, len(text)
        size *= 4


def objects_in(text: str) -> Iterator[JsonInText]:
    """The JSON objects of a text, whatever stands between them.

    What cannot be decoded is tried from its next brace on, until that has cost four times the
    text: then the text is hostile, or no JSON.
    """
    offset = 0
    budget = 4 * len(text) + 1000
    is_certain = True
    while True:
        brace = _OBJECT.search(text, offset)
        if brace is None or budget < 0:
            return
        start = brace.start()
        value, end = _object_at(text, start)
        if value is None:
            budget -= end - start
            offset = start + 1
        else:
            yield JsonInText(start, end, value, is_certain)
            offset = end
        is_certain = value is not None


class _Gathering:
    """Joins the frames and texts of one stream, which a log has one by one."""

    def __init__(self, part: FilePart) -> None:
        self._part = part
        self.parts: list[FilePart] = []
        """What is complete."""
        self._wire: WireApi | None = None
        """The wire of the frames that are being joined; None: they are text."""
        self._fragments: list[bytes] = []
        """The frames or texts that are being joined."""
        self._key = ""
        """The key under which the last frame or text was, if in an entry of a log."""

    def add_object(self, value: dict[str, Any], data: bytes, key: str) -> bool:
        """Adds a JSON object, if it is a body or a frame.

        Args:
            value: the object.
            data: its bytes.
            key: the key under which it is; "" where it is no entry of a log.
        """
        marker = marker_of(value)
        if marker is not None and marker.is_body:
            self.add_whole(data)
        elif marker is not None:
            self._add_frame(marker.wire_api, data, key)
        elif self._wire is not None and key == self._key:
            # An error, a ping, or what nobody knows: frames without a marker are none to lose.
            self._add_frame(self._wire, data, key)
        elif _is_api_error(value):
            self.add_whole(data)
        else:
            return False
        return True

    def _add_frame(self, wire_api: WireApi, data: bytes, key: str) -> None:
        if self._wire != wire_api:
            self.end()
        self._wire = wire_api
        self._key = key
        frames = WIRE_SPECS[wire_api].frames
        if frames == "sse":
            self._fragments.append(b"data: " + data + b"\n\n")
        elif frames == "ndjson":
            self._fragments.append(data + b"\n")
        else:
            self._fragments.append(_aws_message(data))

    def continues(self, key: str) -> bool:
        """Whether a text under a key is the next piece of a stream: the last one ended inside an
        event."""
        if self._wire is not None or not self._fragments or key != self._key:
            return False
        return not self._fragments[-1].endswith((b"\n\n", b"\r\n\r\n"))

    def add_text(self, data: bytes, key: str) -> None:
        """Adds a piece of a stream, which may end anywhere."""
        if self._wire is not None:
            self.end()
        self._key = key
        if self._fragments and _NEXT_EVENT.match(data) and not self._fragments[-1].endswith(b"\n"):
            self._fragments.append(b"\n\n")
        self._fragments.append(data)

    def add_whole(self, data: bytes) -> None:
        """Adds a response of its own."""
        self.end()
        self.parts.append(self._part.holding(data))

    def done(self, count: int) -> None:
        """Adds the mark that ends a stream of Chat, as often as it is there: several streams may
        be mixed."""
        if self._wire == "chat":
            self._fragments += [b"data: [DONE]\n\n"] * count

    def end(self) -> None:
        """What was joined is complete."""
        if self._fragments:
            self.parts.append(self._part.holding(b"".join(self._fragments)))
        self._fragments = []
        self._wire = None


def _aws_message(data: bytes) -> bytes:
    """A message of Converse from what its SDK prints: `{"contentBlockDelta": {…}}`."""
    event: dict[str, Any] = json.loads(data)
    name = next(iter(event), "")
    headers = {
        ":event-type": name[:100],
        ":content-type": "application/json",
        ":message-type": "event",
    }
    return encode_message(headers, _json(event.get(name)))


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Half of a pair: as an escape it stays what it was.
        return json.dumps(value, separators=(",", ":")).encode()


def open_json(part: FilePart) -> list[FilePart]:
    """The responses in the JSON objects of a text; nothing where there are none.

    An object may be a body, a frame of a stream, or an entry of a log that has either inside.
    """
    text = text_of(part.body)
    gathering = _Gathering(part)
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
        gathering.done(text.count(_DONE, previous, entry.start))
        previous = entry.end
        if not gathering.add_object(entry.value, _one_line(text, entry), ""):
            _gather_inside(gathering, entry.value)
    rest = text[previous:]
    gathering.done(rest.count(_DONE))
    gathering.end()
    parts = gathering.parts
    if len(parts) == 1 and parts[0].body == part.body.strip():
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


def _gather_inside(gathering: _Gathering, value: Any, key: str = "", depth: int = 0) -> None:
    """Finds bodies, frames and texts of them inside an entry of a log."""
    if depth > _INSIDE_DEPTH:
        return
    if isinstance(value, dict):
        if key and gathering.add_object(value, _json(value), key):
            return
        for name, inner in value.items():
            if not name.lower().startswith(_REQUEST_KEYS):
                _gather_inside(gathering, inner, name, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _gather_inside(gathering, inner, key, depth + 1)
    elif isinstance(value, str):
        _gather_text(gathering, value, key)


def _gather_text(gathering: _Gathering, text: str, key: str) -> None:
    data = bytes_of(text)
    if gathering.continues(key):
        gathering.add_text(data, key)
    elif _STREAM_START.match(data):
        if b"{" in data or _DONE in text:
            gathering.add_text(data, key)
    elif text.strip() == _DONE:
        gathering.done(1)
    elif _gather_only_object(gathering, text, key):
        return
    elif _holds_body(data):
        gathering.add_whole(data)
    elif is_base64(data):
        gathering.add_whole(b64decode(data))


def _gather_only_object(gathering: _Gathering, text: str, key: str) -> bool:
    """Adds the one object of a text, if it is a body or a frame: `got {"id": …}`.

    What has lines in front of it, such as headers, is a form of its own.
    """
    found = list(islice(objects_in(text), 2))
    if len(found) != 1 or not found[0].is_certain or "\n" in text[: found[0].start].strip():
        return False
    return gathering.add_object(found[0].value, _one_line(text, found[0]), key)


def _one_line(text: str, found: JsonInText) -> bytes:
    raw = bytes_of(text[found.start : found.end])
    return raw if b"\n" not in raw else _json(found.value)


def _holds_body(data: bytes) -> bool:
    """Whether a text holds a body, as it is or escaped."""
    return marker_in(data) is not None or marker_in(data.replace(b"\\", b"")) is not None


def holds_json(data: bytes) -> bool:
    """Whether there is an object in it."""
    return b"{" in data


# --- Python ---


def holds_literal(data: bytes) -> bool:
    """Whether there is a Python literal with a body in it: `b'data: …'`."""
    return _LITERAL_START.search(text_of(data)) is not None


def open_literals(part: FilePart) -> list[FilePart]:
    """What Python literals hold. Neighbours are the chunks of one stream."""
    text = text_of(part.body)
    start = _LITERAL_START.search(text)
    parts: list[FilePart] = []
    fragments: list[bytes] = []
    end = -1
    truncation = None
    offset = start.start() if start is not None else len(text)
    for literal in _LITERAL.finditer(text, offset):
        is_next = end >= 0 and not text[end : literal.start()].strip("\r\n\t ,;[]()")
        if not is_next and not _LITERAL_START.match(text, literal.start()):
            continue
        if fragments and not is_next:
            parts.append(part.holding(b"".join(fragments)))
            fragments = []
        fragments.append(_unescaped(literal["text"], as_bytes=bool(literal["prefix"])))
        end = literal.end()
        truncation = None if literal["end"] else "its Python literal has no end"
    if fragments:
        parts.append(part.holding(b"".join(fragments), truncation))
    return parts


def is_printed_dict(data: bytes) -> bool:
    """Whether it is a dict or a list as Python prints it: `{'id': …}`."""
    return len(data) <= _DICT_CHARACTERS and _DICT_START.match(text_of(data[:1000])) is not None


def open_printed_dict(part: FilePart) -> list[FilePart]:
    """The same as JSON, of all of it or line by line; nothing where there are no literals."""
    text = text_of(part.body).strip()
    value = _literal(text)
    if value is not None:
        return [part.holding(_json(value))]
    values = [_literal(line) for line in text.splitlines()]
    lines = [_json(each) for each in values if isinstance(each, dict)]
    return [part.holding(b"\n".join(lines))] if lines else []


def _literal(text: str) -> Any:
    """The value of a Python literal; None where the text is none."""
    # Imported here, because few captures need it.
    import ast

    nesting = deepest = 0
    for bracket in re.finditer(r"[\[({]|[\])}]", text):
        nesting += 1 if bracket[0] in "[({" else -1
        deepest = max(deepest, nesting)
    if deepest > _DICT_NESTING:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


# --- escapes ---


def is_escaped(data: bytes) -> bool:
    """Whether its quotes or line ends are escaped."""
    return _ESCAPED.search(text_of(data)) is not None


def open_escaped(part: FilePart) -> list[FilePart]:
    """The same text without one level of escapes."""
    return [part.holding(_unescaped(text_of(part.body).strip().strip('"'), as_bytes=True))]


def _unescaped(text: str, *, as_bytes: bool) -> bytes:
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
