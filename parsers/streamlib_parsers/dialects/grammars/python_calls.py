"""Calls written as Python: `[f(k=1, s="x"), g()]`, and `f(k=1)` on lines of its own between tags.

Keyword arguments of literals only. Without tags the whole message must be the list, which is sure at its end; with tags each call
is given out when its parenthesis closes.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from streamlib_parsers.dialects.cursor import Cursor, NoMatch, Parse
from streamlib_parsers.dialects.grammar import NAME, Opener
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.dialects.python_literals import keyword_arguments
from streamlib_parsers.dialects.sink import GrammarSink
from streamlib_parsers.json_text import dumps


class PythonCalls(Struct, frozen=True):
    """closes: the closing tags; none where the message itself is the list, and the opener its bracket."""

    openers: Sequence[Opener]
    closes: Sequence[str] = ()
    first: str = NAME + "["

    def read(self, text: Cursor, found: GrammarSink) -> Parse[None]:
        """The list, or the calls between the tags."""
        yield from text.spaces()
        if self.closes:
            array = yield from text.literal("[")
            yield from _calls(text, found, end="]" if array else "")
            yield from text.spaces()
            if not (yield from text.literal(*self.closes)) and (yield from text.peek()):
                raise NoMatch
            found.settle()
            return
        found.hold()
        yield from _calls(text, found, end="]")
        yield from text.spaces()
        if (yield from text.peek()):
            raise NoMatch
        found.release()


def _calls(text: Cursor, found: GrammarSink, end: str) -> Parse[None]:
    """Calls up to the bracket that ends their list; without one, as many as there are."""
    while True:
        yield from text.spaces()
        name = yield from text.word()
        yield from text.spaces()
        if not name or not (yield from text.ahead("(")):
            raise NoMatch
        yield from _call(text, found, name)
        yield from text.spaces()
        comma = yield from text.literal(",")
        if end and (yield from _ended(text, end)):
            return
        if end and not comma:
            raise NoMatch
        if not end and not (yield from text.peek()).isidentifier():
            return


def _ended(text: Cursor, end: str) -> Parse[bool]:
    yield from text.spaces()
    return bool((yield from text.literal(end)))


def _call(text: Cursor, found: GrammarSink, name: str) -> Parse[None]:
    written = StringBuffer()
    yield from text.parentheses(written.add)
    try:
        arguments = dumps(keyword_arguments(written.text()[1:-1]))
    except ValueError:
        raise NoMatch from None
    found.add_call(name, arguments)
