"""Calls whose name is a key: a list of objects with one member each.

    <|tools_prefix|>[{"f": {"k": 1}}, {"g": {}}]<|tools_suffix|>

The arguments are given out as they come; each call is whole with its object.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from streamlib_parsers.dialects.balanced import decoded
from streamlib_parsers.dialects.cursor import Cursor, NoMatch, Parse
from streamlib_parsers.dialects.grammar import Opener
from streamlib_parsers.dialects.sink import GrammarSink


class KeyedCalls(Struct, frozen=True):
    """openers, closes: what stands around the list; the end of the message may stand for the latter."""

    openers: Sequence[Opener]
    closes: Sequence[str]
    first: str = "["

    def read(self, text: Cursor, found: GrammarSink) -> Parse[None]:
        """The list and its closing literal."""
        yield from text.spaces()
        yield from expect(text, "[")
        while True:
            yield from _call(text, found)
            if not (yield from text.literal(",")):
                break
        yield from expect(text, "]")
        yield from text.spaces()
        if not (yield from text.literal(*self.closes)) and (yield from text.peek()):
            raise NoMatch
        found.settle()


def _call(text: Cursor, found: GrammarSink) -> Parse[None]:
    yield from text.spaces()
    yield from expect(text, "{")
    yield from text.spaces()
    name = decoded((yield from text.json_text()))
    if not isinstance(name, str):
        raise NoMatch
    yield from text.spaces()
    yield from expect(text, ":")
    yield from text.spaces()
    found.call(name)
    yield from text.json_object(found.arguments)
    yield from text.spaces()
    yield from expect(text, "}")
    found.end_call()
    yield from text.spaces()


def expect(text: Cursor, mark: str) -> Parse[None]:
    """Reads a literal that must be there."""
    if not (yield from text.literal(mark)):
        raise NoMatch
