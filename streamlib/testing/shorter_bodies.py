"""Ways to make the JSON in a body shorter, for a body that fails and shall be small."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_TOKENS: Final = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[][{},]')
"""Texts, brackets and commas."""

EVERYWHERE: Final = (
    (re.compile(rb'"[^"\n]+"'), b'""'),
    (re.compile(rb"(?<=[:,{\[]) +"), b""),
    (re.compile(rb'"":(?:""|\[\]|\{\}|[-\w.]+),'), b""),
    (re.compile(rb'\{"":'), b"["),
)
"""Patterns, and what may stand for all they match at once: of a body that must be deep no single
level can be left out."""


def ends_of_values(body: bytes) -> dict[int, int]:
    """Start -> end of each object and array that has an end."""
    ends: dict[int, int] = {}
    starts: list[int] = []
    for token in _TOKENS.finditer(body):
        sign = token.group()
        if sign in (b"{", b"["):
            starts.append(token.start())
        elif sign in (b"}", b"]") and starts:
            ends[starts.pop()] = token.end()
    return ends


def shorter_values(body: bytes, start: int, end: int) -> Iterator[tuple[int, int, bytes]]:
    """Ways to shorten an object or array: from where to where, and the bytes for that."""
    if end - start == 2:  # it is empty
        return
    yield start + 1, end - 1, b""
    members, children = _parts(body, start, end)
    for child_start, child_end in children:
        yield start, end, body[child_start:child_end]
    if len(members) > 1:
        # The last goes with the comma before it, the others with the one after it.
        yield members[-1][0] - 1, end - 1, b""
        for member_start, member_end in members[:-1]:
            yield member_start, member_end, b""


def _parts(
    body: bytes, start: int, end: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Start and end of the members of a value, each with its comma, and of the objects and arrays
    that are members or their values."""
    members: list[tuple[int, int]] = []
    children: list[tuple[int, int]] = []
    member = child = start + 1
    depth = 0
    for token in _TOKENS.finditer(body, start + 1, end - 1):
        sign = token.group()
        if sign in (b"{", b"["):
            if depth == 0:
                child = token.start()
            depth += 1
        elif sign in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                children.append((child, token.end()))
        elif sign == b"," and depth == 0:
            members.append((member, token.end()))
            member = token.end()
    members.append((member, end - 1))
    return members, children
