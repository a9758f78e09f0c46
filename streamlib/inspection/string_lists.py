"""Reads a list of strings in JSON, also one that is cut: the chunks that a program has kept."""

from __future__ import annotations

import json
import re
from typing import Final

_STRING: Final = re.compile(
    r"""\s*(?P<text>"(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*+)"""
    r"""(?:"\s*,?|(?P<cut>\\?(?:u[0-9a-fA-F]*)?\Z))"""
)
"""A string with its comma, or the last one of a list that is cut, perhaps inside an escape."""


def strings_in(text: str) -> tuple[list[str], bool]:
    """The strings that a text is, and whether the text is cut.

    Args:
        text: a JSON string, or a list of strings. A comma behind the last one does not matter.

    Returns:
        No strings where it is anything else.
    """
    if not text.startswith(('"', "[")):
        return [], False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _strings_of_broken_list(text)
    strings = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in strings):
        return [], False
    return strings, False


def _strings_of_broken_list(text: str) -> tuple[list[str], bool]:
    strings: list[str] = []
    offset = 1
    while text.startswith("[") and (match := _STRING.match(text, offset)):
        try:
            # Line ends inside a string may be as a console prints them.
            string: str = json.loads(match["text"] + '"', strict=False)
        except ValueError:
            return [], False
        strings.append(string)
        offset = match.end()
        if match["cut"] is not None:
            break
    rest = text[offset:].strip()
    if rest not in ("", "]"):
        return [], False
    return strings, rest == ""
