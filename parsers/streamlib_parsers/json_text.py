"""JSON as providers really send it, for a decoder that is rightly strict.

msgspec refuses two things that real streams contain: half an emoji (`"\\ud83d"`, made by gateways that cut text between UTF-16
units) and invalid UTF-8. `repaired` rewrites such bytes so that the same typed decoder reads them:

    {"text":"Hi \\ud83d"}   ->  {"text":"Hi <mark>"}

A mark is three noncharacters, which Unicode keeps for a program's own use: U+FFFE (high) or U+FFFF (low), then ten bits as two of
the 32 from U+FDD0. Private characters will not do: they are somebody's text. `Halves` joins a high mark with the low one that follows
in the next delta of the same text, and shows U+FFFD for a half that stays alone. Nothing is rewritten on the fast path: a payload is
only touched after the decoder refused it.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

import msgspec

from streamlib_parsers.errors import malformed

_FIRST_DIGIT: Final = 0xFDD0

TextKey: TypeAlias = tuple[int, str, int]
"""Which text a delta belongs to: (item index, kind of text, part)."""

_REPLACEMENT: Final = "\ufffd"
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)",
    re.DOTALL,
)
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_MARK: Final = re.compile("[\ufffe\uffff][\ufdd0-\ufdef]{2}")
_PAIR: Final = re.compile("\ufffe([\ufdd0-\ufdef]{2})\uffff([\ufdd0-\ufdef]{2})")
_HIGH_AT_END: Final = re.compile("\ufffe[\ufdd0-\ufdef]{2}\\Z")


def mark_surrogates(data: bytes) -> bytes | None:
    """`data` with lone surrogate halves marked, invalid UTF-8 replaced and a BOM gone, or None where there was nothing to repair."""
    text = data.removeprefix(b"\xef\xbb\xbf")
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        text = text.decode("utf-8", "replace").encode("utf-8")
    if _HALF.search(text):
        text = _ESCAPE.sub(_mark_half, text)
    return text if text != data else None


def _mark_half(match: re.Match[bytes]) -> bytes:
    escape = match.group()
    if len(escape) != 6 or not _HALF.match(escape):
        return escape
    half = int(escape[2:6], 16) - 0xD800
    mark = (
        "\ufffe\uffff"[half >> 10],
        chr(_FIRST_DIGIT + (half >> 5 & 31)),
        chr(_FIRST_DIGIT + (half & 31)),
    )
    return "".join(mark).encode()


def is_complete_frame(data: bytes) -> bool:
    """Whether the last frame of a stream stands whole: one JSON value, or the `[DONE]` that some wires end with."""
    return is_json_bytes(data) or data.strip().lower() == b"[done]"


def is_truncated_json(data: bytes) -> bool:
    """Whether `data` is the beginning of a JSON object or list that its end is missing of."""
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
    """Whether argument text is whole JSON: `""` counts as `{}`."""
    return not text or is_json_bytes(text.encode("utf-8", "surrogatepass"))


def is_json_bytes(data: bytes) -> bool:
    """Whether `data` is exactly one JSON value."""
    for candidate in (data, mark_surrogates(data)):
        try:
            if candidate is not None:
                msgspec.json.decode(candidate, type=msgspec.Raw)
                return True
        except (msgspec.DecodeError, RecursionError):
            continue
    return False


def decode_any(data: bytes) -> Any:
    """Any JSON value, halves marked. Raises `ParseFailure(malformed)` on what is not JSON."""
    for candidate in (data, mark_surrogates(data)):
        try:
            if candidate is not None:
                return msgspec.json.decode(candidate)
        except (msgspec.DecodeError, UnicodeError):
            continue
        except RecursionError:
            raise malformed("JSON nested too deep", data) from None
    raise malformed("not JSON", data)


def string_or_none(values: dict[str, Any], key: str) -> str | None:
    """The text at `key`; None for anything else, which no typed field may hold."""
    value = values.get(key)
    return value if isinstance(value, str) else None


def objects_at(values: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The objects in the list at `key`; none for anything else."""
    value = values.get(key)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def scrub(value: Any) -> Any:
    """`value` with every mark that stayed alone shown as U+FFFD, and marked pairs joined; dicts, lists and strings, all the way down.

    Never raises, since it runs while a stream is being failed: what is nested past the stack keeps its marks, which are valid text.
    """
    try:
        return _scrubbed(value)
    except RecursionError:
        return value


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return _MARK.sub(_REPLACEMENT, _PAIR.sub(_join, value)) if _MARK.search(value) else value
    if isinstance(value, dict):
        return {_scrubbed(key): _scrubbed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_scrubbed(item) for item in value]
    return value


class SurrogateJoiner:
    """Joins emoji halves over the deltas of one text; one holder for a whole response, keyed by the text they belong to."""

    def __init__(self) -> None:
        self._held: dict[TextKey, str] = {}

    def join(self, key: TextKey, delta: str) -> str:
        """What may be shown of `delta` now: a trailing high half waits for the next delta of the same text."""
        text = self._held.pop(key, "") + delta
        if not _MARK.search(text):
            return text
        text = _PAIR.sub(_join, text)
        if high := _HIGH_AT_END.search(text):
            self._held[key] = high.group()
            text = text[: high.start()]
        return _MARK.sub(_REPLACEMENT, text)

    def rest(self, key: TextKey) -> str:
        """At the end of a text: U+FFFD for a half that stayed alone."""
        return _REPLACEMENT if self._held.pop(key, "") else ""

    def texts(self) -> list[TextKey]:
        """The texts that hold back a half."""
        return list(self._held)


def _join(match: re.Match[str]) -> str:
    high, low = (
        ord(digits[0]) - _FIRST_DIGIT << 5 | ord(digits[1]) - _FIRST_DIGIT
        for digits in match.groups()
    )
    return chr(0x10000 + (high << 10) + low)


def dumps(value: Any) -> str:
    """A JSON value as text, for values that a provider sent decoded where the wire has text."""
    return msgspec.json.encode(value).decode("utf-8")
