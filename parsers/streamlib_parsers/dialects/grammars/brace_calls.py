"""Calls in Gemma's own notation: bare keys, and strings between two equal tokens, nothing escaped.

    <|tool_call>call:f{k:<|"|>v<|"|>,n:1,l:[true,{a:null}]}<tool_call|>             Gemma 4
    <start_function_call>call:f{k:<escape>v<escape>}<end_function_call>             FunctionGemma

The schema gives the types of values; without one a bare value is JSON where it parses and text
where it does not. A call is emitted when its closing token was read, with all its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from streamlib_parsers.dialects.balanced import decoded
from streamlib_parsers.dialects.coercion import coerced, json_object_text, property_schema
from streamlib_parsers.dialects.cursor import NoMatch, Parse, TextCursor
from streamlib_parsers.dialects.grammars.keyed_calls import expect
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.dialects.sink import GrammarSink, Opener
from streamlib_parsers.items import JsonObject

DEEPEST: Final = 50
"""Lists and objects inside each other: each is a frame of the reader's stack."""
BARE_ENDS: Final = (",", "}", "]")
"""What ends a value without quotes."""
CONSTANTS: Final = {"True": "true", "False": "false", "None": "null"}
"""Python's spellings of JSON constants."""


class BraceCalls(Struct, frozen=True):
    """Calls between tokens.

    Args:
        openers: the tokens before a call.
        closes: the tokens after it; the end of the message and the next opener stand for them.
        quote: the token at both ends of a string.
        turn_ends: other tokens that stand for the closing one, or follow it.
    """

    openers: Sequence[Opener]
    closes: Sequence[str]
    quote: str
    turn_ends: Sequence[str] = ()
    first: str = "c:"

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """`call:f{...}` and its closing token."""
        yield from text.spaces()
        prefixed_name = yield from text.word()
        # Some checkpoints of Gemma 4 leave the word out and keep the colon.
        prefix, colon, name = prefixed_name.partition(":")
        yield from text.spaces()
        if prefix not in ("call", "") or not colon:
            raise NoMatch
        brace = yield from text.literal("{", "(")
        if not brace:
            raise NoMatch
        close = "}" if brace == "{" else ")"
        next_openers = tuple(opener.marker for opener in self.openers)
        reader = _BraceReader(text, self.quote, sink.schema(name))
        reader.bare_ends = tuple(dict.fromkeys((*BARE_ENDS, close)))
        reader.foreign = (self.quote, *next_openers, *self.closes)
        arguments = yield from reader.members(reader.schema, close, 1)
        yield from text.spaces()
        has_end = bool((yield from text.literal(*self.closes)))
        if not has_end and (yield from text.peek()):
            if not (yield from text.ahead(*next_openers, *self.turn_ends)):
                raise NoMatch
            has_end = True
        sink.add_call(name, arguments, has_end=has_end)
        yield from self._end(text, sink)

    def _end(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """Tokens that end the call once more, and what a server then leaves of the next turn."""
        while True:
            yield from text.spaces()
            if not (yield from text.literal(*self.closes, *self.turn_ends)):
                return
            sink.end_section()


class _BraceReader:
    """Reads the arguments of one call as JSON text."""

    def __init__(self, text: TextCursor, quote: str, schema: JsonObject) -> None:
        """Begins after the name.

        Args:
            text: the message.
            quote: the token at both ends of a string.
            schema: of the tool's arguments.
        """
        self.schema = schema
        self.bare_ends: tuple[str, ...] = BARE_ENDS
        """What ends a value without quotes."""
        self.foreign: tuple[str, ...] = ()
        """Tokens that are in no value without quotes: its end was lost."""
        self._text = text
        self._quote = quote

    def members(self, schema: JsonObject, close: str, depth: int) -> Parse[str]:
        """Reads an object after its opening bracket, closing bracket included."""
        text = self._text
        members: dict[str, str] = {}
        while not (yield from _has_ended(text, close, first=not members)):
            if (yield from text.literal(self._quote)):
                key = yield from self._string()
            else:
                key = yield from _bare_key(text)
            yield from text.spaces()
            yield from expect(text, ":")
            yield from text.spaces()
            own_schema = property_schema(schema, key, self.schema)
            members[key] = yield from self._value(own_schema, depth)
        return json_object_text(members)

    def _value(self, schema: JsonObject, depth: int) -> Parse[str]:
        text = self._text
        opening = yield from text.literal(self._quote, "{", "[")
        if opening == self._quote:
            return coerced((yield from self._string()), schema, self.schema)
        if opening and depth > DEEPEST:
            raise NoMatch
        if opening == "{":
            return (yield from self.members(schema, "}", depth + 1))
        if opening == "[":
            return (yield from self._list(property_schema(schema, 0, self.schema), depth + 1))
        if (yield from text.ahead('"')):
            value = decoded((yield from text.json_text()))
            return coerced(str(value), schema, self.schema)
        buffer = StringBuffer()
        stop = yield from text.until((*self.bare_ends, *self.foreign), buffer.add)
        if stop not in self.bare_ends:
            raise NoMatch
        text.index -= len(stop)  # it is read by the list or object that it ends
        bare = buffer.text().strip()
        bare = CONSTANTS.get(bare, bare)
        return coerced(bare, schema, self.schema, json_if_untyped=True)

    def _string(self) -> Parse[str]:
        """Reads a string, closing token included.

        Where that token is missing, what must follow a string is missing too.
        """
        value = StringBuffer()
        yield from self._text.until((self._quote,), value.add)
        return value.text()

    def _list(self, schema: JsonObject, depth: int) -> Parse[str]:
        values: list[str] = []
        while not (yield from _has_ended(self._text, "]", first=not values)):
            values.append((yield from self._value(schema, depth)))
        return f"[{','.join(values)}]"


def _bare_key(text: TextCursor) -> Parse[str]:
    key, _ = yield from text.head(":", barred="\n{}[],<", leave=True)
    key = key.strip()
    if key.startswith('"'):
        key = str(decoded(key))
    if not key:
        raise NoMatch
    return key


def _has_ended(text: TextCursor, close: str, *, first: bool) -> Parse[bool]:
    """Whether the list or object ends here; before any element but the first reads a comma."""
    yield from text.spaces()
    if (yield from text.literal(close)):
        return True
    if not first:
        yield from expect(text, ",")
        yield from text.spaces()
    return False
