"""Calls as a name and pairs of key and value.

GLM 4.5; later models write no line breaks:
    <tool_call>f⏎<arg_key>k</arg_key>⏎<arg_value>v</arg_value>⏎</tool_call>
Hunyuan 3:
    <tool_calls>⏎<tool_call>f<tool_sep>⏎<arg_key>k</arg_key>⏎<arg_value>v</arg_value>⏎</tool_call>⏎
    </tool_calls>

Strings are raw, everything else is JSON; the schema tells which, and without one what parses is
JSON.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from streamlib_parsers.dialects.argument_writer import ArgumentWriter, ValueRules
from streamlib_parsers.dialects.cursor import NoMatch, Parse, TextCursor
from streamlib_parsers.dialects.grammars.keyed_calls import expect
from streamlib_parsers.dialects.grammars.tag_value import ValueTags, tag_value
from streamlib_parsers.dialects.sink import NAME, GrammarSink, Opener, anywhere


class PairCalls(Struct, frozen=True):
    """A name, then pairs of tags.

    Args:
        begin: the tag before a call.
        end: the tag after it.
        key: (opening, closing) of a key.
        value: (opening, closing) of a value.
        wrappers: (opening, closing) around several calls.
        separator: what may be after the name.
    """

    begin: str
    end: str
    key: tuple[str, str]
    value: tuple[str, str]
    wrappers: Sequence[tuple[str, str]] = ()
    separator: str = ""
    first: str = NAME + "<"

    @property
    def openers(self) -> Sequence[Opener]:
        """The call's own tag, and what is around several."""
        return anywhere(self.begin, *(opening for opening, _ in self.wrappers))

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """One call, or a wrapper with its calls."""
        if text.opener != self.begin:
            yield from text.spaces()
            yield from expect(text, self.begin)
        closing = [end for _, end in self.wrappers]
        while True:
            yield from self._call(text, sink)
            if not closing:
                return
            yield from text.spaces()
            part = yield from text.literal(self.begin, *closing)
            if part in closing:
                sink.end_section()
            if part != self.begin:
                return

    def _call(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """Reads one call after its opening tag."""
        yield from text.spaces()
        name = yield from text.word()
        yield from text.spaces()
        if self.separator and (yield from text.literal(self.separator)):
            yield from text.spaces()
        stop = yield from text.literal(self.key[0], self.end)
        if not name or not stop:
            raise NoMatch
        writer = ArgumentWriter(text, sink, name, ValueRules(json_if_untyped=True))
        # GLM's tags are tokens of their own: a value that was not closed ends before the next key.
        tags = ValueTags(
            (self.value[1],), (self.key[0],), (self.end,), (self.begin,), head_end="", private=True
        )
        while stop == self.key[0]:
            key, _ = yield from text.head(self.key[1])
            yield from text.spaces()
            yield from expect(text, self.value[0])
            value = writer.parameter(key.strip())
            stop = yield from tag_value(text, tags, value)
            value.close()
        writer.end()
