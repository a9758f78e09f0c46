"""Calls in Gemma's own notation: bare keys, and strings between two equal tokens, with nothing escaped inside them.

    <|tool_call>call:f{k:<|"|>v<|"|>,n:1,l:[true,{a:null}]}<tool_call|>           Gemma 4
    <start_function_call>call:f{k:<escape>v<escape>}<end_function_call>            FunctionGemma

A call is given out when its closing token is there, with all its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from streamlib_parsers.dialects.balanced import decoded
from streamlib_parsers.dialects.cursor import Cursor, NoMatch, Parse
from streamlib_parsers.dialects.grammar import Opener
from streamlib_parsers.dialects.grammars.keyed_calls import expect
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.dialects.python_literals import literal
from streamlib_parsers.dialects.sink import GrammarSink
from streamlib_parsers.json_text import dumps

DEEPEST: Final = 50
"""Lists and objects inside each other: each is a frame of the reader's stack."""


class BraceCalls(Struct, frozen=True):
    """quote: the token at both ends of a string. closes: the end of the message and the next opener stand for it."""

    openers: Sequence[Opener]
    closes: Sequence[str]
    quote: str
    first: str = "c"

    def read(self, text: Cursor, found: GrammarSink) -> Parse[None]:
        """`call:f{…}` and its closing token."""
        yield from text.spaces()
        name = yield from text.word()
        yield from text.spaces()
        if not name.startswith("call:") or not (yield from text.literal("{")):
            raise NoMatch
        arguments = yield from self._object(text, 1)
        yield from text.spaces()
        closed = yield from text.literal(*self.closes)
        if (
            not closed
            and (yield from text.peek())
            and not (yield from text.ahead(*(opener.marker for opener in self.openers)))
        ):
            raise NoMatch
        found.add_call(name.removeprefix("call:"), dumps(arguments))

    def _value(self, text: Cursor, depth: int) -> Parse[Any]:
        opening = yield from text.literal(self.quote, "{", "[")
        if opening == self.quote:
            return (yield from self._string(text))
        if opening and depth > DEEPEST:
            raise NoMatch
        if opening:
            return (yield from (self._object if opening == "{" else self._list)(text, depth + 1))
        written = yield from text.json_text()
        try:
            return decoded(written) if written.startswith('"') else literal(written)
        except ValueError:
            raise NoMatch from None

    def _string(self, text: Cursor) -> Parse[str]:
        """To behind its closing token; what must follow is missing where that is."""
        value = StringBuffer()
        yield from text.until((self.quote,), value.add)
        return value.text()

    def _object(self, text: Cursor, depth: int) -> Parse[dict[str, Any]]:
        """From behind its brace to behind its last."""
        members: dict[str, Any] = {}
        while not (yield from _ended(text, "}", first=not members)):
            key = (
                (yield from self._string(text))
                if (yield from text.literal(self.quote))
                else (yield from _bare_key(text))
            )
            yield from text.spaces()
            yield from expect(text, ":")
            yield from text.spaces()
            members[key] = yield from self._value(text, depth)
        return members

    def _list(self, text: Cursor, depth: int) -> Parse[list[Any]]:
        values: list[Any] = []
        while not (yield from _ended(text, "]", first=not values)):
            values.append((yield from self._value(text, depth)))
        return values


def _bare_key(text: Cursor) -> Parse[str]:
    key, _ = yield from text.head(":", barred="\n{}[],<", leave=True)
    key = key.strip()
    if key.startswith('"'):
        key = str(decoded(key))
    if not key:
        raise NoMatch
    return key


def _ended(text: Cursor, close: str, *, first: bool) -> Parse[bool]:
    """Whether the list or object ends here; before any element but the first a comma is due."""
    yield from text.spaces()
    if (yield from text.literal(close)):
        return True
    if not first:
        yield from expect(text, ",")
        yield from text.spaces()
    return False
