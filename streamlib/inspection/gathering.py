"""Joins the frames and texts of one stream, which a log has one by one; finds JSON in a text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from msgspec import Raw

from streamlib.inspection.file_parts import FilePart, bytes_of
from streamlib.inspection.wire_markers import likely_wire, marker_of
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.wires.bedrock_frames import event_frame
from streamlib_parsers.items import WireApi

NEXT_EVENT: Final = re.compile(rb"(?:data|event):")
_OBJECT: Final = re.compile(r"\{")
DONE: Final = "[DONE]"
_DECODE: Final = json.JSONDecoder().raw_decode
_WINDOW: Final = 4096
"""Characters in which an object is looked for at first."""


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


def object_at(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
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
        value, end = object_at(text, start)
        if value is None:
            budget -= end - start
            offset = start + 1
        else:
            yield JsonInText(start, end, value, is_certain)
            offset = end
        is_certain = value is not None


class Gathering:
    """Joins the frames and texts of one stream, which a log has one by one."""

    def __init__(self, part: FilePart) -> None:
        self._part = part
        self.parts: list[FilePart] = []
        """What is complete."""
        self._wire: WireApi | None = None
        """The wire of the frames that are being joined; None: they are text."""
        self._fragments: list[bytes] = []
        """The frames or texts that are being joined."""
        self._text_wire: WireApi | None = None
        """The wire of the texts that are being joined, where an event of theirs tells it."""
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

    def add_only_object(self, text: str, key: str) -> bool:
        """Adds the one object of a text, if it is a body or a frame: `got {"id": …}`.

        What has lines in front of it, such as headers, is a form of its own.
        """
        entries = list(islice(objects_in(text), 2))
        if len(entries) != 1 or not entries[0].is_certain:
            return False
        [entry] = entries
        if "\n" in text[: entry.start].strip():
            return False
        return self.add_object(entry.value, one_line(text, entry), key)

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
        """Adds a piece of a stream, which may end anywhere; an event of another wire begins a
        stream."""
        is_event = NEXT_EVENT.match(data) is not None
        wire_api = likely_wire(data) if is_event else None
        is_other = self._text_wire is not None and wire_api not in (None, self._text_wire)
        if self._wire is not None or is_other:
            self.end()
        self._key = key
        self._text_wire = self._text_wire or wire_api
        if self._fragments and is_event and not self._fragments[-1].endswith(b"\n"):
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
        self._wire = self._text_wire = None


def _is_api_error(value: dict[str, Any]) -> bool:
    """Whether an object is an error of an API. A log calls its own errors so, too."""
    error = value.get("error")
    return isinstance(error, dict) and "message" in error


def _aws_message(data: bytes) -> bytes:
    """A message of Converse from what its SDK prints: `{"contentBlockDelta": {…}}`."""
    event: dict[str, Any] = json.loads(data)
    name = next(iter(event), "")
    return event_frame(Raw(json_bytes(event.get(name))), name[:100])


def json_bytes(value: Any) -> bytes:
    """A value as JSON on one line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Half of a pair: as an escape it stays what it was.
        return json.dumps(value, separators=(",", ":")).encode()


def one_line(text: str, entry: JsonInText) -> bytes:
    """The bytes of an object, without line ends."""
    raw = bytes_of(text[entry.start : entry.end])
    return raw if b"\n" not in raw else json_bytes(entry.value)
