"""One JSON array of objects, read while it arrives: Gemini's streamGenerateContent without `alt=sse`.

    [{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}\\n
    ,\\n
    {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{…}}\\n
    ]

An element is given as soon as its last brace is here; until then it is held back. The scanner is lexical: it counts braces
outside strings and leaves the rest to the JSON decoder, which sees every element whole. It remembers where it stopped, so that
no byte is looked at twice, and it crosses strings by `bytes.find`: an image is megabytes of base64 in one string.

A body that is one object instead of an array is one element (errors come like that). A missing `]` after a whole element is no
failure: whether the answer is complete is the wire's question, and every element was given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from streamlib_parsers.errors import ParseFailure, limit_exceeded, malformed, truncated
from streamlib_parsers.framing import Frame
from streamlib_parsers.limits import LIMITS, Limits

_BLANK: Final = b" \t\r\n\xef\xbb\xbf"  # white space, and the bytes of a byte order mark
_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_SPACE_OR_BOM: Final = re.compile(rb"[ \t\r\n\xef\xbb\xbf]*")
# A run of whole strings without escapes and what stands between them is crossed in one step, else one structural byte. The run
# has a bound because `re` keeps a record of each repetition.
_STEP: Final = re.compile(rb'(?:"[^"\\]*"[^"{}]*){1,16}|["{}]')
_QUOTE, _OPEN, _BACKSLASH = b'"{\\'

# What is not JSON is worth showing: this much of it, whatever the split.
_EXCERPT_BYTES: Final = 200


class _State(Enum):
    START = auto()
    FIRST = auto()  # after `[`
    NEXT = auto()  # after an element
    COMMA = auto()  # after `,`
    END = auto()
    ELEMENT = auto()
    ONLY = auto()  # inside the object that is the whole body
    FOREIGN = auto()  # not JSON: collecting an excerpt


_GRAMMAR: Final[Mapping[_State, Mapping[int, _State]]] = {
    _State.START: {ord("["): _State.FIRST, ord("{"): _State.ONLY},
    _State.FIRST: {ord("{"): _State.ELEMENT, ord("]"): _State.END},
    _State.COMMA: {ord("{"): _State.ELEMENT},
    _State.NEXT: {ord(","): _State.COMMA, ord("]"): _State.END},
    _State.END: {},
}
"""What may stand between elements, and where it leads. Everything else is not JSON."""

_AFTER: Final[Mapping[_State, _State]] = {_State.ELEMENT: _State.NEXT, _State.ONLY: _State.END}

_CUT: Final = frozenset({_State.FIRST, _State.COMMA, _State.ELEMENT, _State.ONLY})
"""Where the end of input cuts something off."""


class JsonArrayFraming:
    """`Framing` of one JSON array. `limits.event_bytes` is the ceiling of an element."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.failure: ParseFailure | None = None
        self.blank = True
        self._ceiling = limits.event_bytes
        self._state = _State.START
        self._held = bytearray()
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, chunk: bytes) -> list[Frame]:
        """One frame for each element that `chunk` completes."""
        if self.blank:
            self.blank = not chunk.strip(_BLANK)
        frames: list[Frame] = []
        at = 0
        while at < len(chunk) and self.failure is None:
            if self._state in _AFTER:
                at = self._element(chunk, at, frames)
            elif self._state is _State.FOREIGN:
                at = self._foreign(chunk, at)
            else:
                at = self._between(chunk, at)
        return frames

    def close(self) -> list[Frame]:
        """End of input. Gives nothing; sets `failure` where an element was cut, or awaited after a comma, or the text was no JSON."""
        if self.failure is not None:
            return []
        if self._state is _State.FOREIGN:
            self.failure = _not_json(self._held)
        elif self._state in _CUT:
            self.failure = truncated(
                "the stream ended inside a JSON array",
                detail=f"{len(self._held)} bytes into an element",
            )
        return []

    def _between(self, chunk: bytes, at: int) -> int:
        space = _SPACE_OR_BOM if self._state is _State.START else _SPACE
        found = space.match(chunk, at)
        at = found.end() if found else at
        if at == len(chunk):
            return at
        self._state = _GRAMMAR[self._state].get(chunk[at], _State.FOREIGN)
        # The brace that opens an element, and text that is no JSON, are kept: the next state reads them.
        return at if self._state in _AFTER or self._state is _State.FOREIGN else at + 1

    def _element(self, chunk: bytes, at: int, frames: list[Frame]) -> int:
        end = self._scan(chunk, at)
        piece = chunk[at:end]
        if len(self._held) + len(piece) > self._ceiling:
            self.failure = limit_exceeded("event_bytes", self._ceiling)
            self._held.clear()
        elif self._depth:
            self._held += piece
        else:
            frames.append(Frame(None, b"".join((self._held, piece))))
            self._held.clear()
            self._state = _AFTER[self._state]
        return end

    def _scan(self, chunk: bytes, at: int) -> int:
        """Moves on to the end of the element (the depth is 0 there) or of `chunk`, whichever comes first."""
        while True:
            if self._in_string:
                at = self._string(chunk, at)
            found = _STEP.search(chunk, at)
            if found is None:
                return len(chunk)
            start, at = found.span()
            byte = chunk[start]
            if byte == _QUOTE:
                self._in_string = at - start == 1
            elif byte == _OPEN:
                self._depth += 1
            else:
                self._depth -= 1
                if not self._depth:
                    return at

    def _string(self, chunk: bytes, at: int) -> int:
        """The index after the quote that ends the string, or the end of `chunk` if it goes on."""
        at += self._escaped  # the escaped character is the first of this chunk
        self._escaped = False
        while True:
            quote = chunk.find(b'"', at)
            end = quote if quote >= 0 else len(chunk)
            escaped = _is_escaped(chunk, at, end)
            if quote < 0:
                self._escaped = escaped
                return end
            at = quote + 1
            if not escaped:
                self._in_string = False
                return at

    def _foreign(self, chunk: bytes, at: int) -> int:
        self._held += chunk[at : at + _EXCERPT_BYTES - len(self._held)]
        if len(self._held) >= _EXCERPT_BYTES:
            self.failure = _not_json(self._held)
        return len(chunk)


def _is_escaped(data: bytes, start: int, end: int) -> bool:
    """Whether an odd number of backslashes stands right before `end`, none of them before `start`."""
    if end == start or data[end - 1] != _BACKSLASH:
        return False
    if end - start == 1 or data[end - 2] != _BACKSLASH:
        return True
    run = data[start:end]
    return (len(run) - len(run.rstrip(b"\\"))) % 2 == 1


def _not_json(data: bytearray) -> ParseFailure:
    return malformed("the body is not a JSON array", bytes(data))
