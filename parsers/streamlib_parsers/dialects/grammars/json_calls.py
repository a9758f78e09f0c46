"""Calls that are JSON objects with the tool's name inside.

    <tool_call>⏎{"name": "f", "arguments": {"k": 1}}⏎</tool_call>          [TOOL_CALLS] [{"name": "f", "arguments": {}}]

The arguments are given out as they come once the name is known; where they stand before the name they wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from streamlib_parsers.dialects.balanced import decoded
from streamlib_parsers.dialects.cursor import Cursor, NoMatch, Parse
from streamlib_parsers.dialects.grammar import Opener
from streamlib_parsers.dialects.sink import GrammarSink

NAMES: Final = frozenset({"name", "tool_name", "tool", "function_name", "recipient_name"})
ARGUMENTS: Final = frozenset({"arguments", "parameters", "args", "input"})
IDS: Final = frozenset({"id", "call_id", "tool_call_id"})
WRAPPER: Final = "function"
"""`{"type": "function", "function": {…}}`, or the name itself."""
KEYS: Final = NAMES | ARGUMENTS | IDS | {WRAPPER, "type", "index"}
"""One of these comes first in an object that is a call."""


class _Call:
    """What is known of one call."""

    __slots__ = ("arguments", "begun", "call_id", "keys", "name")

    def __init__(self) -> None:
        self.name = ""
        self.call_id = ""
        self.arguments = "{}"
        self.begun = False
        self.keys = 0


class JsonCalls(Struct, frozen=True):
    """openers, closes: with no `closes` a call ends with its object. between: what may stand between two objects."""

    openers: Sequence[Opener]
    closes: Sequence[str] = ()
    between: Sequence[str] = (",", ";")
    first: str = "{["

    def read(self, text: Cursor, found: GrammarSink) -> Parse[None]:
        """One object, several, or an array of them."""
        yield from text.spaces()
        array = yield from text.literal("[")
        if array:
            yield from text.spaces()
        if not (yield from text.literal("{")):
            raise NoMatch
        waits = bool(self.closes) and not array
        yield from self._objects(text, found, waits=waits)
        if array:
            if not (yield from text.literal("]")):
                raise NoMatch
            found.settle()
        if self.closes:
            yield from self._close(text, found, waits=waits)

    def _objects(self, text: Cursor, found: GrammarSink, *, waits: bool) -> Parse[None]:
        """Objects from behind the first brace. waits: the last one is not whole before its closing literal."""
        while True:
            yield from call_object(text, found)
            if not waits:
                found.end_call()
            yield from text.spaces()
            if (yield from text.literal(*self.between)):
                yield from text.spaces()
            if not (yield from text.ahead("{")):
                return
            if waits:
                found.end_call()
            text.take(text.at + 1)

    def _close(self, text: Cursor, found: GrammarSink, *, waits: bool) -> Parse[None]:
        """The closing literal; the end of the message and the next opener stand for it."""
        yield from text.spaces()
        closed = yield from text.literal(*self.closes)
        if not waits:
            if closed:
                found.settle()
            return
        if (
            not closed
            and (yield from text.peek())
            and not (yield from text.ahead(*(opener.marker for opener in self.openers)))
        ):
            raise NoMatch
        found.end_call()


class BareJson(Struct, frozen=True):
    """A message that is nothing but calls: sure only at its end."""

    openers: Sequence[Opener] = (Opener("{", "start"),)
    first: str = ""

    def read(self, text: Cursor, found: GrammarSink) -> Parse[None]:
        """Objects, with `;` or white space between them, and nothing else."""
        found.hold()
        while True:
            yield from call_object(text, found)
            found.end_call()
            yield from text.spaces()
            if (yield from text.literal(";", ",")):
                yield from text.spaces()
            if not (yield from text.literal("{")):
                break
        if (yield from text.peek()):
            raise NoMatch
        found.release()


def call_object(text: Cursor, found: GrammarSink) -> Parse[None]:
    """One call, from behind its brace to behind its last; it is told to `found`, but not that it is whole."""
    call = _Call()
    yield from _members(text, found, call)
    if not call.name:
        raise NoMatch
    if not call.begun:
        found.call(call.name, call.call_id)
        found.arguments(call.arguments)


def _members(text: Cursor, found: GrammarSink, call: _Call) -> Parse[None]:
    while True:
        yield from text.spaces()
        if (yield from text.literal("}")):
            return
        if call.keys:
            yield from text.literal(",")
            yield from text.spaces()
        key = yield from _key(text)
        if not call.keys and key not in KEYS:
            raise NoMatch
        call.keys += 1
        yield from _member(text, found, call, key)


def _key(text: Cursor) -> Parse[str]:
    if not (yield from text.ahead('"')):
        raise NoMatch
    key = decoded((yield from text.json_text()))
    yield from text.spaces()
    if not (yield from text.literal(":")):
        raise NoMatch
    yield from text.spaces()
    return str(key)


def _member(text: Cursor, found: GrammarSink, call: _Call, key: str) -> Parse[None]:
    opening = yield from text.ahead("{", '"')
    if key == WRAPPER and opening == "{":
        text.take(text.at + 1)
        yield from _members(text, found, call)
    elif key in ARGUMENTS:
        yield from _arguments(text, found, call, streams=opening == "{")
    else:
        value = decoded((yield from text.json_text()))
        if key in NAMES or key == WRAPPER:
            call.name = str(value).strip() if isinstance(value, str) else ""
        elif key in IDS and isinstance(value, str):
            call.call_id = value


def _arguments(text: Cursor, found: GrammarSink, call: _Call, *, streams: bool) -> Parse[None]:
    if call.begun:
        raise NoMatch
    if call.name and streams:
        call.begun = True
        found.call(call.name, call.call_id)
        yield from text.json(found.arguments)
        return
    value = yield from text.json_text()
    if value in ("null", '""'):
        return
    inner = decoded(value)
    if isinstance(inner, str):  # double-encoded
        value, inner = inner, decoded(inner)
    if not isinstance(inner, dict):
        raise NoMatch
    call.arguments = value
