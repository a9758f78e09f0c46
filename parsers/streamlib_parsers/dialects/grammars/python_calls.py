"""Calls written as Python: `[f(k=1, s="x"), g()]`, and `f(k=1)` on lines of its own between tags.

Keyword arguments of literals only. Without tags the complete message must be the list, which is
certain at its end; with tags each call is emitted when its parenthesis closes.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from streamlib_parsers.dialects.cursor import NoMatch, Parse, TextCursor
from streamlib_parsers.dialects.grammars.json_calls import JsonCalls
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.dialects.python_literals import keyword_arguments
from streamlib_parsers.dialects.sink import NAME, GrammarSink, Opener
from streamlib_parsers.json_text import dumps


class PythonCalls(Struct, frozen=True):
    """Calls as Python.

    Args:
        openers: the opening tags; the bracket of the list where there are none.
        closes: the closing tags; none where the message itself is the list.
    """

    openers: Sequence[Opener]
    closes: Sequence[str] = ()
    first: str = NAME + "[{"

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """The list, or the calls between the tags."""
        yield from text.spaces()
        if self.closes:
            if (yield from text.ahead("{", "[{")):
                # LFM2 writes JSON between its tags where the system prompt wants it.
                yield from JsonCalls(self.openers, self.closes).read(text, sink)
                return
            end = ""
            if (yield from text.literal("[")):
                end = "]"
            yield from _calls(text, sink, end)
            yield from text.spaces()
            if not (yield from text.literal(*self.closes)) and (yield from text.peek()):
                raise NoMatch
            sink.end_section()
            return
        sink.defer_calls()
        yield from _calls(text, sink, end="]")
        yield from text.spaces()
        if (yield from text.peek()):
            raise NoMatch
        sink.release_calls()


def _calls(text: TextCursor, sink: GrammarSink, end: str) -> Parse[None]:
    """Calls up to `end`, the bracket that closes their list; without one, as many as there are."""
    while True:
        yield from text.spaces()
        name = yield from text.word()
        yield from text.spaces()
        if not name or not (yield from text.ahead("(")):
            raise NoMatch
        yield from _call(text, sink, name)
        yield from text.spaces()
        comma = yield from text.literal(",")
        if end:
            yield from text.spaces()
            if (yield from text.literal(end)):
                return
            if not comma:
                raise NoMatch
        elif not (yield from text.peek()).isidentifier():
            return


def _call(text: TextCursor, sink: GrammarSink, name: str) -> Parse[None]:
    written = StringBuffer()
    sink.call(name)
    yield from text.parentheses(written.add)
    try:
        arguments = dumps(keyword_arguments(written.text()[1:-1]))
    except ValueError:
        raise NoMatch from None  # an expression, not a literal: nothing is evaluated
    sink.arguments(arguments)
    sink.end_call()
