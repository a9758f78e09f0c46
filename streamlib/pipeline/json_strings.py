"""The string values of a JSON text that still grows: each a text of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from streamlib.pipeline.units import TextMachine

_STRUCTURE: Final = re.compile(r'["{}\[\],:]')

_STRING_END: Final = re.compile(r'(?:[^"\\]|\\.)*+(?P<end>")?', re.DOTALL)

_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)

_BEFORE_OPEN_ESCAPE: Final = re.compile(
    r"(?:[^\\]|\\[^u]"
    r"|\\u(?![0-9a-fA-F]{0,3}\Z)"
    r"(?![dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z))*+",
    re.DOTALL,
)
"""What comes before an escape sequence that is open at the end, or before half of a pair that is
one character. From the first sequence on, so that the end of one is not taken for a beginning."""

_VALID: Final = re.compile(r'(?:[^\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
"""What JSON allows in a string."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_CHARACTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
"""Escape sequences that do not stand for their own letter."""


class JsonStrings:
    """A text machine that passes each string value, not the keys, through a machine of its own.

    Strings are decoded and encoded again; everything else stays as it is. A text that does not
    begin as JSON (a program, say) is one text.

    Args:
        make: makes the machine of a string.
    """

    def __init__(self, make: Callable[[], TextMachine]) -> None:
        self._make = make
        self._machine: TextMachine | None = None
        """That of the open string value, or of a text that is no JSON."""
        self._is_json: bool | None = None
        """Whether the text begins as JSON; None while it has no character."""
        self._is_key = False
        """The open string is a key."""
        self._expects_key = False
        """The next string is a key."""
        self._containers: list[str] = []
        """Opening brackets."""
        self._raw = ""
        """Of the open string what cannot be decoded yet."""
        self._in_string = False

    @property
    def buffered(self) -> int:
        """Characters whose fate is not known yet."""
        count = len(self._raw)
        if self._machine is not None:
            count += self._machine.buffered
        return count

    def feed(self, text: str) -> list[str]:
        """Takes text; returns what is known now."""
        if self._is_json is None and text.strip():
            self._is_json = text.lstrip()[0] in '{["'
            if not self._is_json:
                self._machine = self._make()
        if self._is_json is False and self._machine is not None:
            return self._machine.feed(text)
        output: list[str] = []
        position = 0
        while position < len(text):
            if self._in_string:
                position = self._read_string(text, position, output)
            else:
                position = self._read_structure(text, position, output)
        return _joined(output)

    def close(self) -> list[str]:
        """The text has ended, maybe inside a string, which then stays open."""
        output: list[str] = []
        if self._machine is not None:
            output = self._machine.close()
            if self._is_json:
                output = [_encoded(fragment) for fragment in output]
            self._machine = None
        output.append(self._raw)
        self._raw = ""
        return _joined(output)

    def _read_structure(self, text: str, position: int, output: list[str]) -> int:
        """Reads up to the beginning of a string; returns where it stopped."""
        start = position
        for mark in _STRUCTURE.finditer(text, position):
            match mark[0]:
                case '"':
                    self._in_string = True
                    self._is_key = self._expects_key
                    if not self._is_key:
                        self._machine = self._make()
                    output.append(text[start : mark.end()])
                    return mark.end()
                case "{" | "[":
                    self._containers.append(mark[0])
                    self._expects_key = mark[0] == "{"
                case "}" | "]":
                    if self._containers:
                        self._containers.pop()
                    self._expects_key = False
                case ",":
                    self._expects_key = self._containers[-1:] == ["{"]
                case _:
                    self._expects_key = False
        output.append(text[start:])
        return len(text)

    def _read_string(self, text: str, position: int, output: list[str]) -> int:
        """Reads up to the end of the string; returns where it stopped."""
        raw = self._raw + text[position:]
        ending = _STRING_END.match(raw)
        has_ended = ending is not None and ending["end"] is not None
        if has_ended and ending is not None:
            content = raw[: ending.end() - 1]
            next_position = position + ending.end() - len(self._raw)
            self._raw = ""
        else:
            before = _BEFORE_OPEN_ESCAPE.match(raw)
            known = before.end() if before is not None else 0
            content = raw[:known]
            next_position = len(text)
            self._raw = raw[known:]
        self._read_content(content, output)
        if has_ended:
            if self._machine is not None:
                output += map(_encoded, self._machine.close())
            output.append('"')
            self._machine = None
            self._in_string = False
        return next_position

    def _read_content(self, content: str, output: list[str]) -> None:
        """Reads a part of a string, without half an escape sequence."""
        position = 0
        while self._machine is not None and position < len(content):
            valid = _VALID.match(content, position)
            end = position if valid is None else valid.end()
            output += map(_encoded, self._machine.feed(_decoded(content[position:end])))
            if end == len(content):
                return
            # What JSON forbids has to stay, or an invalid call would become a valid one.
            output += map(_encoded, self._machine.close())
            self._machine = self._make()
            position = end + (2 if content[end] == "\\" else 1)
            output.append(content[end:position])
        output.append(content[position:])


def _joined(output: list[str]) -> list[str]:
    joined = "".join(output)
    if not joined:
        return []
    return [joined]


def _decoded(raw: str) -> str:
    if "\\" not in raw:
        return raw
    decoded = _ESCAPE.sub(_character, raw)
    # Two escape sequences may be one character.
    return decoded.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _character(escape: re.Match[str]) -> str:
    if escape[1] is not None:
        return chr(int(escape[1], 16))
    return _CHARACTERS.get(escape[2], escape[2])


def _encoded(text: str) -> str:
    encoded = json.dumps(text, ensure_ascii=False)[1:-1]
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", encoded)
