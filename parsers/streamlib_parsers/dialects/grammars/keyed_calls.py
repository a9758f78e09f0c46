"""Calls whose name is a key: a list of objects with one member each.

    <|tools_prefix|>[{"f": {"k": 1}}, {"g": {}}]<|tools_suffix|>

The arguments are emitted as they arrive; each call is complete with its object.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from streamlib_parsers.dialects.balanced import decoded
from streamlib_parsers.dialects.cursor import NoMatch, Parse, TextCursor
from streamlib_parsers.dialects.sink import GrammarSink, Opener


class KeyedCalls(Struct, frozen=True):
    """A list of calls between tokens.

    Args:
        openers: the tokens before the list.
        closes: the tokens after it; the end of the message may stand for them.
    """

    openers: Sequence[Opener]
    closes: Sequence[str]
    first: str = "["

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """The list and its closing token."""
        yield from text.spaces()
        yield from expect(text, "[")
        while True:
            yield from _call(text, sink)
            if not (yield from text.literal(",")):
                break
        yield from expect(text, "]")
        yield from text.spaces()
        if not (yield from text.literal(*self.closes)) and (yield from text.peek()):
            raise NoMatch
        sink.end_section()


def _call(text: TextCursor, sink: GrammarSink) -> Parse[None]:
    yield from text.spaces()
    yield from expect(text, "{")
    yield from text.spaces()
    name = decoded((yield from text.json_text()))
    if not isinstance(name, str):
        raise NoMatch  # a list of something else
    yield from text.spaces()
    yield from expect(text, ":")
    yield from text.spaces()
    sink.call(name)
    yield from text.json_object(sink.arguments)
    yield from text.spaces()
    yield from expect(text, "}")
    sink.end_call()
    yield from text.spaces()


def expect(text: TextCursor, mark: str) -> Parse[None]:
    """Reads a literal that must come next.

    Raises:
        NoMatch: it does not.
    """
    if not (yield from text.literal(mark)):
        raise NoMatch
