"""Opens responses that Python printed: literals of bytes and strings, and dicts."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any, Final

from streamlib.inspection.file_parts import FilePart, text_of
from streamlib.inspection.gathering import DONE, Gathering, json_bytes, object_at
from streamlib.inspection.text_forms import unescaped

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

_PREFIX_CHARACTERS: Final = 200
"""Maximum of characters in front of a literal that tell which stream of a log it is of."""
_DIGITS: Final = re.compile(r"\d+")

_DICT_START: Final = re.compile(r"(?<![\[{(])[\[{(]++\s*+'")
_START: Final = re.compile(rf"{_DICT_START.pattern}|[\[{{]\s*+\"")
"""What begins a dict or a list of Python, or one of JSON, whose strings are no place to look in."""

_STRING_OR_BRACKET: Final = re.compile(
    r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|[\[({\])}]""", re.DOTALL
)
"""A string, or a bracket that is in none."""
_OPENING: Final = ("(", "[", "{")
_CLOSING: Final = (")", "]", "}")
_DICT_CHARACTERS: Final = 4 << 20
"""Maximum of a printed dict: Python's own parser takes fifty times its size."""
_DICT_NESTING: Final = 100


def holds_literal(data: bytes) -> bool:
    """Whether there is a Python literal with a body in it: `b'data: …'`."""
    return _LITERAL_START.search(text_of(data)) is not None


def open_literals(part: FilePart) -> list[FilePart]:
    """What Python literals hold.

    Neighbours are the chunks of one stream, and so are those that stand behind the same prefix in
    the lines of a log.
    """
    text = text_of(part.body)
    start = _LITERAL_START.search(text)
    gatherings: dict[str, Gathering] = {}
    prefix = ""
    end = -1
    truncation = None
    offset = start.start() if start is not None else len(text)
    for literal in _LITERAL.finditer(text, offset):
        is_next = end >= 0 and not text[end : literal.start()].strip("\r\n\t ,;[]()")
        before = prefix if is_next else _prefix_of(text, literal.start())
        is_start = is_next or _LITERAL_START.match(text, literal.start()) is not None
        gathering = gatherings.get(before)
        if gathering is None and is_start:
            gathering = gatherings[before] = Gathering(part)
        is_more = is_start or literal["text"] == DONE
        if gathering is None or not (is_more or gathering.continues(before)):
            continue
        prefix = before
        _gather(gathering, unescaped(literal["text"], as_bytes=bool(literal["prefix"])), prefix)
        end = literal.end()
        truncation = None if literal["end"] else "its Python literal has no end"
    for gathering in gatherings.values():
        gathering.end()
    parts = {before: gathering.parts for before, gathering in gatherings.items()}
    if truncation is not None and parts[prefix]:
        parts[prefix][-1] = parts[prefix][-1].holding(parts[prefix][-1].body, truncation)
    return list(chain.from_iterable(parts.values()))


def _prefix_of(text: str, offset: int) -> str:
    """What stands in front of a literal in its line, without the digits of times and numbers."""
    line = text[max(offset - _PREFIX_CHARACTERS, 0) : offset].rpartition("\n")[2]
    return _DIGITS.sub("0", line)


def _gather(gathering: Gathering, data: bytes, prefix: str) -> None:
    """Adds a piece of a stream, or the object of one frame: that has no line end behind it."""
    text = text_of(data)
    if text == DONE:
        gathering.done(1)
        return
    is_object = text.startswith("{") and text.endswith("}")
    if not (is_object and gathering.add_only_object(text, prefix)):
        gathering.add_text(data, prefix)


def is_printed_dict(data: bytes) -> bool:
    """Whether there is a dict or a list as Python prints it: `{'id': …}`."""
    return len(data) <= _DICT_CHARACTERS and _DICT_START.search(text_of(data)) is not None


def open_printed_dict(part: FilePart) -> list[FilePart]:
    """The dicts and lists of a text as JSON, with the JSON objects among them, a line each.

    Nothing where there are no dicts. What is none is tried from its next bracket on, until that has
    cost four times the text.
    """
    text = text_of(part.body)
    lines: list[bytes] = []
    is_printed = False
    offset = 0
    budget = 4 * len(text)
    while budget >= 0 and (start := _START.search(text, offset)):
        is_json = start[0].endswith('"')
        value, end = (object_at if is_json else _literal_at)(text, start.start())
        if value is None:
            budget -= end - start.start()
            offset = start.end()
            continue
        lines.append(json_bytes(value))
        is_printed = is_printed or not is_json
        offset = end
    return [part.holding(b"\n".join(lines))] if is_printed else []


def _literal_at(text: str, start: int) -> tuple[Any, int]:
    """The Python literal that begins at a bracket, and its end; None where it is none of JSON's
    values, and how far it was looked for."""
    # Imported here, because few captures need it.
    import ast

    end = _end_of(text, start)
    if end is None:
        return None, len(text)
    try:
        value = ast.literal_eval(text[start:end])
        json_bytes(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None, end
    return value, end


def _end_of(text: str, start: int) -> int | None:
    """Where the bracket at the start is closed; None if nowhere, or if it holds too many levels."""
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text, start):
        if token[0] in _CLOSING:
            depth -= 1
        elif token[0] in _OPENING:
            depth += 1
        if depth == 0:
            return token.end()
        if depth > _DICT_NESTING:
            return None
    return None
