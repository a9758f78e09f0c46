"""Calls in Gemma's own notation: bare keys, and strings between two equal tokens, nothing escaped.

    <|tool_call>call:f{k:<|"|>v<|"|>,n:1,l:[true,{a:null}]}<tool_call|>             Gemma 4
    <start_function_call>call:f{k:<escape>v<escape>}<end_function_call>             FunctionGemma

A call is emitted when its closing token was read, with all its arguments.
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
    """Calls between tokens.

    Args:
        openers: the tokens before a call.
        closes: the tokens after it; the end of the message and the next opener stand for them.
        quote: the token at both ends of a string.
    """

    openers: Sequence[Opener]
    closes: Sequence[str]
    quote: str
    first: str = "c"

    def read(self, text: Cursor, sink: GrammarSink) -> Parse[None]:
        """`call:f{...}` and its closing token."""
        yield from text.spaces()
        name = yield from text.word()
        yield from text.spaces()
        if not name.startswith("call:"):
            raise NoMatch
        yield from expect(text, "{")
        arguments = yield from self._object(text, 1)
        yield from text.spaces()
        has_end = bool((yield from text.literal(*self.closes)))
        if not has_end and (yield from text.peek()):
            next_openers = [opener.marker for opener in self.openers]
            if not (yield from text.ahead(*next_openers)):
                raise NoMatch
            has_end = True
        sink.add_call(name.removeprefix("call:"), dumps(arguments), has_end=has_end)

    def _value(self, text: Cursor, depth: int) -> Parse[Any]:
        opening = yield from text.literal(self.quote, "{", "[")
        if opening == self.quote:
            return (yield from self._string(text))
        if opening and depth > DEEPEST:
            raise NoMatch
        if opening == "{":
            return (yield from self._object(text, depth + 1))
        if opening == "[":
            return (yield from self._list(text, depth + 1))
        written = yield from text.json_text()
        if written.startswith('"'):
            return decoded(written)
        try:
            return literal(written)
        except ValueError:
            raise NoMatch from None

    def _string(self, text: Cursor) -> Parse[str]:
        """To behind its closing token. Where that is missing, so is what must follow the string."""
        value = StringBuffer()
        yield from text.until((self.quote,), value.add)
        return value.text()

    def _object(self, text: Cursor, depth: int) -> Parse[dict[str, Any]]:
        """From behind its brace to behind its last."""
        members: dict[str, Any] = {}
        while not (yield from _has_ended(text, "}", first=not members)):
            if (yield from text.literal(self.quote)):
                key = yield from self._string(text)
            else:
                key = yield from _bare_key(text)
            yield from text.spaces()
            yield from expect(text, ":")
            yield from text.spaces()
            members[key] = yield from self._value(text, depth)
        return members

    def _list(self, text: Cursor, depth: int) -> Parse[list[Any]]:
        values: list[Any] = []
        while not (yield from _has_ended(text, "]", first=not values)):
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


def _has_ended(text: Cursor, close: str, *, first: bool) -> Parse[bool]:
    """Whether the list or object ends here; before any element but the first reads a comma."""
    yield from text.spaces()
    if (yield from text.literal(close)):
        return True
    if not first:
        yield from expect(text, ",")
        yield from text.spaces()
    return False
