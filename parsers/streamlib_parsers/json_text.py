"""JSON as providers send it, for a strict decoder.

msgspec refuses two things that real streams contain: half of a surrogate pair (`"\\ud83d"`, made by
gateways that split text between UTF-16 units) and invalid UTF-8. `mark_surrogates` rewrites such
bytes so that the same typed decoder reads them:

    {"text":"Hi \\ud83d"}   ->  {"text":"Hi <mark>"}

A mark is three noncharacters, which Unicode reserves for a program's own use: U+FFFE (high) or
U+FFFF (low), then ten bits as two of the 32 from U+FDD0. Private-use characters will not do: they
are somebody's text. `SurrogateJoiner` joins a high mark with the low one that follows in the next
delta of the same text, and replaces a half that stays alone by U+FFFD. The fast path rewrites
nothing: a payload is only touched after the decoder refused it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from streamlib_parsers.errors import malformed

_FIRST_DIGIT: Final = 0xFDD0

TextKey: TypeAlias = tuple[int, str, int]
"""The text of a delta: (item index, kind of text, part)."""

_REPLACEMENT: Final = "\ufffd"
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)",
    re.DOTALL,
)

DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What a msgspec decoder raises on bytes that are not of its type."""

_skip: Final = msgspec.json.Decoder(msgspec.Raw).decode
_REFUSALS: Final = (msgspec.DecodeError, UnicodeError)
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_TOO_DEEP: Final = "JSON nested too deep"
_TOKENS: Final = re.compile(rb'[\[\]{}]|"(?:[^"\\]|\\.)*+"?', re.DOTALL)
"""Brackets, and the strings that may hold others."""
_DEEP: Final = 500
"""Levels: half of the stack that Python has."""
_LOOKED_AT: Final = 1 << 16
"""Bytes: each takes a step in Python, of a body that may have megabytes."""
_MARK: Final = re.compile("[\ufffe\uffff][\ufdd0-\ufdef]{2}")
_PAIR: Final = re.compile("\ufffe([\ufdd0-\ufdef]{2})\uffff([\ufdd0-\ufdef]{2})")
_HIGH_AT_END: Final = re.compile("\ufffe[\ufdd0-\ufdef]{2}\\Z")


def mark_surrogates(data: bytes) -> bytes | None:
    """The data with lone surrogates marked, invalid UTF-8 replaced and a byte order mark removed.

    None where there is nothing to change.
    """
    text = data.removeprefix(b"\xef\xbb\xbf")
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        text = text.decode("utf-8", "replace").encode("utf-8")
    # Two plain searches take a tenth of the time of one that knows all digits.
    if b"\\ud" in text or b"\\uD" in text:
        text = _ESCAPE.sub(_mark_half, text)
    if text == data:
        return None
    return text


def _mark_half(match: re.Match[bytes]) -> bytes:
    escape = match.group()
    if len(escape) != 6 or not _HALF.match(escape):
        return escape
    half = int(escape[2:6], 16) - 0xD800
    kind = "\ufffe"
    if half >= 0x400:  # a low surrogate
        kind = "\uffff"
    first = chr(_FIRST_DIGIT + (half >> 5 & 31))
    second = chr(_FIRST_DIGIT + (half & 31))
    return f"{kind}{first}{second}".encode()


def is_complete_frame(data: bytes) -> bool:
    """Whether the last frame of a stream is complete: one JSON value, or the ``[DONE]`` of some
    wires."""
    return is_json_bytes(data) or data.strip().lower() == b"[done]"


def is_truncated_json(data: bytes) -> bool:
    """Whether `data` is the beginning of a JSON object or list whose end is missing."""
    if data.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        return "truncated" in str(error)
    except RecursionError:
        pass
    return False


def is_json(text: str) -> bool:
    """Whether argument text is complete JSON: `""` counts as `{}`."""
    return not text or is_json_bytes(text.encode("utf-8", "surrogatepass"))


def is_json_bytes(data: bytes) -> bool:
    """Whether `data` is exactly one JSON value."""
    if _is_valid(data):
        return True
    marked = mark_surrogates(data)
    return marked is not None and _is_valid(marked)


def _is_valid(data: bytes) -> bool:
    """Whether the decoder takes `data` as it is."""
    try:
        _skip(data)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def decode_any(data: bytes) -> Any:
    """Any JSON value, with lone surrogates marked.

    Raises:
        ParseFailure: `malformed`, where the data is not JSON or nested too deep.
    """
    try:
        return msgspec.json.decode(data)
    except _REFUSALS:
        # Only now are halves of surrogate pairs looked for: nearly every payload has none.
        marked = mark_surrogates(data)
    except RecursionError:
        raise malformed(_TOO_DEEP, data) from None
    if marked is None:
        raise malformed(_why_no_json(data), data)
    try:
        return msgspec.json.decode(marked)
    except _REFUSALS:
        raise malformed(_why_no_json(data), data) from None
    except RecursionError:
        raise malformed(_TOO_DEEP, data) from None


def _why_no_json(data: bytes) -> str:
    """The reason why a decoder refused bytes.

    Where they are broken and nested too deep, the decoder meets one of the two first, by how much
    of the stack the caller left: the reason must not depend on that.
    """
    level = 0
    for token in _TOKENS.finditer(data, 0, _LOOKED_AT):
        if token.group() in b"[{":
            level += 1
        elif token.group() in b"]}":
            level -= 1
        if level > _DEEP:
            return _TOO_DEEP
    return "not JSON"


def string_or_none(values: dict[str, Any], key: str) -> str | None:
    """The text at `key`; None for anything else, which no typed field may hold."""
    value = values.get(key)
    if isinstance(value, str):
        return value
    return None


def string_at(values: Mapping[str, Any], key: str) -> str:
    """The text at `key`; "" for anything else."""
    value = values.get(key)
    if isinstance(value, str):
        return value
    return ""


def rest_of(values: Mapping[str, Any], *typed_keys: str) -> dict[str, Any] | None:
    """The keys of an object that no typed field holds; None if there are none."""
    rest: dict[str, Any] | None = None
    for key, value in values.items():
        if key not in typed_keys:
            if rest is None:
                rest = {}
            rest[key] = value
    return rest


def objects_at(values: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The objects in the list at `key`; none for anything else."""
    return objects_in(values.get(key))


def objects_in(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; none if it is not a list."""
    if not isinstance(value, list):
        return []
    return [element for element in value if isinstance(element, dict)]


def first_text(values: Mapping[str, Any], *keys: str) -> str | None:
    """The first text that is not empty at one of the keys."""
    for key in keys:
        value = values.get(key)
        if isinstance(value, str) and value:
            return value
    return None


def text_or_json(value: Any) -> str:
    """A text as it is, any other value as JSON."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def scrub(value: Any) -> Any:
    """A JSON value with marked pairs joined and every other mark replaced by U+FFFD.

    Never raises, because it runs while a stream is failing: a value nested deeper than the stack
    keeps its marks, which are valid text.
    """
    try:
        return _scrubbed(value)
    except RecursionError:
        return value


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        if not _MARK.search(value):
            return value
        return _MARK.sub(_REPLACEMENT, _PAIR.sub(_join, value))
    if isinstance(value, dict):
        return {_scrubbed(key): _scrubbed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_scrubbed(item) for item in value]
    return value


class SurrogateJoiner:
    """Joins surrogate pairs that are split over deltas; one for all texts of a response."""

    def __init__(self) -> None:
        self._buffered: dict[TextKey, str] = {}
        """The high half at the end of a text's last delta, until its next delta."""

    def join(self, key: TextKey, delta: str) -> str:
        """The delta without a trailing high half, which waits for the text's next delta."""
        text = self._buffered.pop(key, "") + delta
        if not _MARK.search(text):
            return text
        text = _PAIR.sub(_join, text)
        if high := _HIGH_AT_END.search(text):
            self._buffered[key] = high.group()
            text = text[: high.start()]
        return _MARK.sub(_REPLACEMENT, text)

    def rest(self, key: TextKey) -> str:
        """At the end of a text: U+FFFD for a half that stayed alone."""
        if self._buffered.pop(key, ""):
            return _REPLACEMENT
        return ""

    def texts(self) -> list[TextKey]:
        """The texts with a buffered half."""
        return list(self._buffered)


def _join(match: re.Match[str]) -> str:
    return chr(0x10000 + (_bits(match[1]) << 10) + _bits(match[2]))


def _bits(digits: str) -> int:
    """The ten bits of a mark."""
    return (ord(digits[0]) - _FIRST_DIGIT << 5) | (ord(digits[1]) - _FIRST_DIGIT)


def dumps(value: Any) -> str:
    """A JSON value as text, for values that a provider sends decoded where the wire has text."""
    return msgspec.json.encode(value).decode("utf-8")
