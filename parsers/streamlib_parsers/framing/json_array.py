"""One JSON array of objects, read while it arrives: streamGenerateContent without `alt=sse`.

    [{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}\\n
    ,\\n
    {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{…}}\\n
    ]

Gemini streams like this by default. An element is emitted as soon as its last brace has arrived;
until then it is buffered. The scanner is lexical: it counts braces outside strings and leaves the
rest to the JSON decoder, which reads each element as a whole. It remembers where it stopped, so
that no byte is scanned twice, and it crosses strings by `bytes.find`: an image is megabytes of
base64 in one string.

A body that is one object instead of an array is one element (errors come like that). A missing `]`
after a complete element is not a failure: every element was emitted, and the wire decides whether
the response is complete.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from streamlib_parsers.errors import ParseFailure, limit_exceeded, malformed, truncated
from streamlib_parsers.framing import Frame, NamedPayload
from streamlib_parsers.limits import LIMITS, Limits

_BLANK: Final = b" \t\r\n\xef\xbb\xbf"  # white space, and the bytes of a byte order mark
_NOT_SPACE: Final = re.compile(rb"[^ \t\r\n]")
_NOT_SPACE_OR_BOM: Final = re.compile(rb"[^ \t\r\n\xef\xbb\xbf]")

# One step crosses a run of complete strings without escapes and what is between them, or else
# one structural byte. The run is bounded because `re` keeps a record of each repetition.
_STEP: Final = re.compile(rb'(?:"[^"\\]*"[^"{}]*){1,16}|["{}]')

_QUOTE: Final = ord('"')
_OPENING_BRACE: Final = ord("{")
_BACKSLASH: Final = ord("\\")

# An error shows this many bytes of a body that is not JSON, however it was split into chunks.
_EXCERPT_BYTES: Final = 200


class _State(Enum):
    START = auto()
    FIRST = auto()  # after `[`
    NEXT = auto()  # after an element
    COMMA = auto()  # after `,`
    END = auto()
    ELEMENT = auto()
    SINGLE_OBJECT = auto()  # inside the object that is the entire body
    NOT_JSON = auto()  # collecting an excerpt for the error


_TRANSITIONS: Final[Mapping[_State, Mapping[int, _State]]] = {
    _State.START: {ord("["): _State.FIRST, ord("{"): _State.SINGLE_OBJECT},
    _State.FIRST: {ord("{"): _State.ELEMENT, ord("]"): _State.END},
    _State.COMMA: {ord("{"): _State.ELEMENT},
    _State.NEXT: {ord(","): _State.COMMA, ord("]"): _State.END},
    _State.END: {},
}
"""Bytes allowed between elements, and the state each leads to; any other byte is not JSON."""

_STATE_AFTER: Final[Mapping[_State, _State]] = {
    _State.ELEMENT: _State.NEXT,
    _State.SINGLE_OBJECT: _State.END,
}
"""States inside an object, and the state after its last brace."""

_INCOMPLETE_STATES: Final = frozenset(
    {_State.FIRST, _State.COMMA, _State.ELEMENT, _State.SINGLE_OBJECT}
)
"""States in which the end of input means that the array was truncated."""


class JsonArrayFraming:
    """`Framing` of one JSON array. `limits.event_bytes` limits an element."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        # Set once, when an element exceeds the limit, is truncated, or the body is not JSON.
        self.failure: ParseFailure | None = None
        # True until a byte other than white space or a byte order mark arrives.
        self.blank = True
        # Longest element in bytes; never changes.
        self._limit = limits.event_bytes
        # Position in the grammar of the array; changes with each structural byte.
        self._state = _State.START
        # The element read so far, or the excerpt of a body that is not JSON.
        self._buffered = bytearray()
        # Open braces of the element.
        self._depth = 0
        # Whether the last chunk ended inside a string of the element.
        self._in_string = False
        # Whether the last chunk ended in a backslash that escapes the next byte.
        self._escaped = False

    def single(self, chunk: bytes) -> NamedPayload | None:
        """None: what is between the elements belongs to no frame."""
        return None

    def feed(self, chunk: bytes) -> list[Frame]:
        """One frame for each element that `chunk` completes."""
        if self.blank:
            self.blank = not chunk.strip(_BLANK)
        frames: list[Frame] = []
        offset = 0
        while offset < len(chunk) and self.failure is None:
            if self._state in _STATE_AFTER:
                offset = self._read_element(chunk, offset, frames)
            elif self._state is _State.NOT_JSON:
                offset = self._collect_excerpt(chunk, offset)
            else:
                offset = self._read_between(chunk, offset)
        return frames

    def close(self) -> list[Frame]:
        """Ends the input and returns no frame.

        Sets `failure` where an element is truncated or missing after a comma, or where the text
        is not JSON.
        """
        if self.failure is not None:
            return []
        if self._state is _State.NOT_JSON:
            self.failure = _not_json(self._buffered)
        elif self._state in _INCOMPLETE_STATES:
            self.failure = truncated(
                "the stream ended inside a JSON array",
                detail=f"{len(self._buffered)} bytes into an element",
            )
        return []

    def _read_between(self, chunk: bytes, offset: int) -> int:
        """Reads white space and one structural byte; returns the offset after them."""
        structural = _NOT_SPACE
        if self._state is _State.START:
            structural = _NOT_SPACE_OR_BOM
        match = structural.search(chunk, offset)
        if match is None:
            return len(chunk)
        offset = match.start()
        self._state = _TRANSITIONS[self._state].get(chunk[offset], _State.NOT_JSON)
        if self._state in _STATE_AFTER or self._state is _State.NOT_JSON:
            # The next state reads this byte: it belongs to the element or to the excerpt.
            return offset
        return offset + 1

    def _read_element(self, chunk: bytes, offset: int, frames: list[Frame]) -> int:
        """Reads up to the end of the element or of `chunk`; returns the offset of that end."""
        end = self._scan(chunk, offset)
        fragment = chunk[offset:end]
        if len(self._buffered) + len(fragment) > self._limit:
            self.failure = limit_exceeded("event_bytes", self._limit)
            self._buffered.clear()
        elif self._depth:
            self._buffered += fragment
        else:
            frames.append(Frame(None, b"".join((self._buffered, fragment))))
            self._buffered.clear()
            self._state = _STATE_AFTER[self._state]
        return end

    def _scan(self, chunk: bytes, offset: int) -> int:
        """The offset of the element's end (depth 0) or of the chunk's end."""
        while True:
            if self._in_string:
                offset = self._skip_string(chunk, offset)
            match = _STEP.search(chunk, offset)
            if match is None:
                return len(chunk)
            start, offset = match.span()
            byte = chunk[start]
            if byte == _QUOTE:
                # A quote alone opens a string that holds an escape or reaches past the chunk.
                self._in_string = offset - start == 1
            elif byte == _OPENING_BRACE:
                self._depth += 1
            else:
                self._depth -= 1
                if not self._depth:
                    return offset

    def _skip_string(self, chunk: bytes, offset: int) -> int:
        """The offset after the string's last quote, or the end of `chunk`."""
        if self._escaped:
            offset += 1  # the backslash ended the last chunk, the byte it escapes begins this one
            self._escaped = False
        while True:
            quote = chunk.find(b'"', offset)
            if quote < 0:
                self._escaped = _is_escaped(chunk, offset, len(chunk))
                return len(chunk)
            escaped = _is_escaped(chunk, offset, quote)
            offset = quote + 1
            if not escaped:
                self._in_string = False
                return offset

    def _collect_excerpt(self, chunk: bytes, offset: int) -> int:
        """Collects bytes for the error until they are enough; returns the end of `chunk`."""
        missing = _EXCERPT_BYTES - len(self._buffered)
        self._buffered += chunk[offset : offset + missing]
        if len(self._buffered) >= _EXCERPT_BYTES:
            self.failure = _not_json(self._buffered)
        return len(chunk)


def _is_escaped(data: bytes, start: int, end: int) -> bool:
    """Tells whether an odd number of backslashes, none before `start`, precedes `end`."""
    if end == start or data[end - 1] != _BACKSLASH:
        return False
    # Nearly always there is one backslash: decided without copying the string.
    if end - start == 1 or data[end - 2] != _BACKSLASH:
        return True
    text = data[start:end]
    backslashes = len(text) - len(text.rstrip(b"\\"))
    return backslashes % 2 == 1


def _not_json(excerpt: bytearray) -> ParseFailure:
    return malformed("the body is not a JSON array", bytes(excerpt))
