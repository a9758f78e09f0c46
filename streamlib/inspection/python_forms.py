"""Opens responses that Python printed: literals of bytes and strings, and dicts."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any, Final

from streamlib.inspection.file_parts import FilePart, text_of
from streamlib.inspection.gathering import DONE, Gathering, json_bytes
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
_CLOSING: Final = {"{": "}", "[": "]", "(": ")"}
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
    """The same as JSON, of all of it or line by line, whatever stands around it; nothing where
    there are no literals."""
    text = text_of(part.body)
    value = _dict_in(text)
    if value is not None:
        return [part.holding(json_bytes(value))]
    values = [_dict_in(line) for line in text.splitlines()]
    lines = [json_bytes(each) for each in values if isinstance(each, dict)]
    return [part.holding(b"\n".join(lines))] if lines else []


def _dict_in(text: str) -> Any:
    """The dict or list from the first bracket to the last one of its kind; None if it is none."""
    start = _DICT_START.search(text)
    if start is None:
        return None
    end = text.rfind(_CLOSING[start[0][0]])
    return _literal(text[start.start() : end + 1])


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
