"""Calls written as tags, one tag a parameter.

Attribute style:
    <function_calls>⏎<invoke name="f">⏎<parameter name="k">v</parameter>⏎</invoke>⏎</function_calls>
Equals style:
    <tool_call>⏎<function=f>⏎<parameter=k>⏎v⏎</parameter>⏎</function>⏎</tool_call>

Values are raw text, typed by the tool's schema. A call is emitted when its closing tag was read,
with all its arguments; one with a long string is emitted from there on. The wrapper may be missing
at either end. A call tag directly inside a call makes both of them text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from streamlib_parsers.dialects.argument_writer import RAW, ArgumentWriter, ValueRules
from streamlib_parsers.dialects.cursor import NestedMatch, NoMatch, Parse, TextCursor
from streamlib_parsers.dialects.grammars.tag_value import ValueTags, tag_value
from streamlib_parsers.dialects.sink import NAME, GrammarSink, Opener, anywhere
from streamlib_parsers.items import JsonObject


class TaggedCalls(Struct, frozen=True):
    """Calls as tags. Opening tags are given up to the name; each may have several spellings.

    Args:
        wrappers: (opening, closing) around several calls.
        calls: opening tags of a call.
        call_ends: closing tags of a call.
        parameters: opening tags of a parameter.
        parameter_ends: closing tags of a parameter.
        equals: whether the name follows as in `<function=f>`, not as in `<invoke name="f">`.
        bare: whether a call needs no wrapper.
        stray: words that models write on a line of their own before a call without wrapper, and do
            not mean.
        between: what may be around each call in a wrapper.
        rules: how values are written.
        lenient: whether closing tags of values may be missing.
        private: whether the tags are tokens of the model's vocabulary, which no value contains.
        json_without_schema: whether the values of a tool that was offered without any properties
            are JSON where they parse; else they stay text.
    """

    wrappers: Sequence[tuple[str, str]]
    calls: tuple[str, ...]
    call_ends: tuple[str, ...]
    parameters: tuple[str, ...]
    parameter_ends: tuple[str, ...]
    equals: bool = False
    bare: bool = True
    stray: Sequence[str] = ()
    between: Sequence[str] = ()
    rules: ValueRules = RAW
    lenient: bool = False
    private: bool = False
    json_without_schema: bool = False
    first: str = "<"

    @property
    def openers(self) -> Sequence[Opener]:
        """Wrappers, calls without one, and stray words before those."""
        openers = [Opener(opening) for opening, _ in self.wrappers]
        if self.bare:
            openers += anywhere(*self.calls)
        for stray in self.stray:
            for call in self.calls:
                openers.append(Opener(f"\n{stray}\n{call}", keep=1))
                openers.append(Opener(f"{stray}\n{call}", "start"))
        return openers

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """A wrapper with its calls, or one call."""
        closing = tuple(end for _, end in self.wrappers)
        in_wrapper = text.opener in dict(self.wrappers)
        has_call = False
        parts = closing
        if in_wrapper:
            parts = (*closing, *self.calls, *self.between)
        else:
            yield from self._call(text, sink)
            has_call = True
            if not closing:
                return
        while True:
            yield from text.spaces()
            part = yield from text.literal(*parts)
            if part in self.between:
                continue
            if part in self.calls:
                yield from self._call(text, sink)
                has_call = True
                continue
            if not has_call:
                raise NoMatch
            if part:
                sink.end_section()
            return

    def _call(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """Reads a call after `<invoke`."""
        if self.equals:
            # `<function=f` may end with its line instead of `>`.
            head, _ = yield from text.head(">", "\n", barred="<")
        else:
            head, _ = yield from text.head(">")
        name = _name(head, equals=self.equals)
        if head.endswith("/"):
            sink.add_call(name, "{}")
            return
        yield from text.spaces()
        if (yield from text.ahead("{")):
            yield from self._json(text, sink, name)
            return
        stop = yield from text.literal(*self.parameters, *self.call_ends, *self.calls)
        yield from self._parameters(text, sink, name, stop)

    def _parameters(self, text: TextCursor, sink: GrammarSink, name: str, stop: str) -> Parse[None]:
        """Reads parameters after the tag of the first one, `stop`, to the end of the call."""
        writer = ArgumentWriter(text, sink, name, self._rules_for(sink.schema(name)))
        tags = ValueTags(
            self.parameter_ends,
            self.parameters,
            self.call_ends,
            self.calls,
            tuple(end for _, end in self.wrappers),
            lenient=self.lenient,
            private=self.private,
        )
        while stop in self.parameters:
            head, _ = yield from text.head(">")
            is_string = None
            if not self.equals:
                # DeepSeek's string="false"
                is_string = _STRING.get(attributes_of(head).get("string", ""))
            key = _name(head, equals=self.equals)
            value = writer.parameter(key, is_string=is_string)
            stop = yield from tag_value(text, tags, value)
            value.close()
        if stop in self.calls:
            raise NestedMatch  # the outer call lost its end, or the text only shows tags
        if not stop:
            raise NoMatch
        writer.end()

    def _rules_for(self, schema: JsonObject) -> ValueRules:
        """How the values of a tool are written."""
        if self.json_without_schema and not schema.get("properties"):
            return replace(self.rules, json_if_untyped=True)
        return self.rules

    def _json(self, text: TextCursor, sink: GrammarSink, name: str) -> Parse[None]:
        """The body of a call as one JSON object."""
        sink.call(name)
        yield from text.json_object(sink.arguments)
        yield from text.spaces()
        if not (yield from text.literal(*self.call_ends)):
            raise NoMatch
        sink.end_call()


def read_section(
    text: TextCursor,
    sink: GrammarSink,
    read_call: Callable[[TextCursor, GrammarSink], Parse[None]],
    call: str,
    end: str,
) -> Parse[None]:
    """Calls up to the end of their section, which may be missing; so may its beginning.

    Args:
        text: the text, behind the opener: the section's or that of a call.
        sink: what the calls are reported to.
        read_call: reads a call behind its opener.
        call: the opener of a call.
        end: what ends the section.
    """
    has_call = text.opener == call
    if has_call:
        yield from read_call(text, sink)
    while True:
        yield from text.spaces()
        part = yield from text.literal(call, end)
        if part == call:
            yield from read_call(text, sink)
            has_call = True
            continue
        if not has_call:
            raise NoMatch
        if part:
            sink.end_section()
        return


KEY_LETTERS: Final = frozenset(NAME + "-_:.")
"""What an attribute's name is made of."""
_STRING: Final = {"true": True, "false": False}


def attributes_of(head: str) -> dict[str, str]:
    """` name="f" string='true' n=1` as a dict.

    Raises:
        NoMatch: it is not a list of attributes.
    """
    attributes: dict[str, str] = {}
    rest = head.removesuffix("/").strip()
    while rest:
        key, equals, rest = rest.partition("=")
        key, rest = key.strip(), rest.lstrip()
        if not equals or not key or not KEY_LETTERS.issuperset(key):
            raise NoMatch
        if rest[:1] in ('"', "'"):
            value, _, rest = rest[1:].partition(rest[0])
        else:
            value, _, rest = rest.partition(" ")
        attributes[key] = value
        rest = rest.strip()
    return attributes


def _name(head: str, *, equals: bool) -> str:
    """The name of a tool or parameter in what follows the tag's own name."""
    if equals:
        name = head.removesuffix("/").strip().strip("\"'")
    else:
        name = attributes_of(head).get("name", "")
    if not name:
        raise NoMatch
    return name
