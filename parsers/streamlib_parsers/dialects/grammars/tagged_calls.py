"""Calls written as tags, one tag a parameter.

    <function_calls>⏎<invoke name="f">⏎<parameter name="k">v</parameter>⏎</invoke>⏎</function_calls>          attribute style
    <tool_call>⏎<function=f>⏎<parameter=k>⏎v⏎</parameter>⏎</function>⏎</tool_call>                           equals style

Values are raw text, typed by the tool's schema, so a call is given out when its closing tag is there, with all its arguments. The
wrapper may be missing at either end. A call tag directly inside a call makes both of them text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from streamlib_parsers.dialects.coercion import Entities, Parameter, arguments_text
from streamlib_parsers.dialects.cursor import Cursor, NestedMatch, NoMatch, Parse
from streamlib_parsers.dialects.grammar import NAME, Opener, anywhere
from streamlib_parsers.dialects.grammars.tag_value import ValueTags, tag_value
from streamlib_parsers.dialects.sink import GrammarSink


class TaggedCalls(Struct, frozen=True):
    """wrappers: (opening, closing). calls, parameters: opening tags up to the name, and closing tags; several spellings of each.

    equals: `<function=f>` instead of `<invoke name="f">`. bare: a call needs no wrapper. stray: words that models write on a line of
    their own before a call without wrapper, and do not mean. between: what may stand around each call in a wrapper.
    newlines: one at either end of a value belongs to the tags.
    entities: whether character references in values are read. lenient: closing tags of values may be missing.
    json_without_schema: the values of a tool that was offered without any properties are JSON where they parse; else they stay text.
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
    newlines: bool = False
    entities: Entities = "never"
    lenient: bool = False
    json_without_schema: bool = False
    first: str = "<"

    @property
    def openers(self) -> Sequence[Opener]:
        """Wrappers, calls without one, and stray words before those."""
        words = [Opener(f"\n{word}\n{call}", keep=1) for word in self.stray for call in self.calls]
        at_start = [
            Opener(f"{word}\n{call}", "start") for word in self.stray for call in self.calls
        ]
        return [
            *anywhere(*(begin for begin, _ in self.wrappers), *(self.calls if self.bare else ())),
            *words,
            *at_start,
        ]

    def read(self, text: Cursor, found: GrammarSink) -> Parse[None]:
        """A wrapper with its calls, or one call."""
        closing = tuple(end for _, end in self.wrappers)
        several = text.opener in dict(self.wrappers)
        told = not several
        if told:
            yield from self._call(text, found)
        while closing:
            yield from text.spaces()
            part = yield from text.literal(
                *closing, *((*self.calls, *self.between) if several else ())
            )
            if part in self.between:
                continue
            if part in self.calls:
                yield from self._call(text, found)
                told = True
                continue
            if not told:
                raise NoMatch
            if part:
                found.settle()
            return

    def _call(self, text: Cursor, found: GrammarSink) -> Parse[None]:
        """From behind `<invoke`."""
        head, _ = yield from text.head(
            *((">", "\n") if self.equals else (">",)), barred="<" if self.equals else "\n<"
        )
        name = _name(head, equals=self.equals)
        if head.endswith("/"):
            found.add_call(name, "{}")
            return
        yield from text.spaces()
        if (yield from text.ahead("{")):
            yield from self._json(text, found, name)
            return
        stop = yield from text.literal(*self.parameters, *self.call_ends, *self.calls)
        yield from self._parameters(text, found, name, stop)

    def _parameters(self, text: Cursor, found: GrammarSink, name: str, stop: str) -> Parse[None]:
        parameters: list[Parameter] = []
        outer = tuple(end for _, end in self.wrappers)
        tags = ValueTags(
            self.parameter_ends,
            self.parameters,
            self.call_ends,
            self.calls,
            outer,
            lenient=self.lenient,
        )
        while stop in self.parameters:
            head, _ = yield from text.head(">")
            attributes = {} if self.equals else attributes_of(head)
            key = _name(head, equals=self.equals)
            value, stop = yield from tag_value(text, tags)
            parameters.append(
                Parameter(
                    key,
                    _trimmed(value) if self.newlines else value,
                    is_string=_STRING.get(attributes.get("string", "")),
                )
            )
        if stop in self.calls:
            raise NestedMatch
        if not stop and not parameters:
            raise NoMatch
        schema = found.schema(name)
        free = self.json_without_schema and not schema.get("properties")
        found.add_call(
            name,
            arguments_text(schema, parameters, self.entities, found.notice, json_if_untyped=free),
        )

    def _json(self, text: Cursor, found: GrammarSink, name: str) -> Parse[None]:
        """The body of a call as one JSON object."""
        found.call(name)
        yield from text.json_object(found.arguments)
        yield from text.spaces()
        if not (yield from text.literal(*self.call_ends)):
            raise NoMatch
        found.end_call()


KEY_LETTERS: Final = frozenset(NAME + "-_:.")
"""What an attribute's name is made of."""
_STRING: Final = {"true": True, "false": False}


def attributes_of(head: str) -> dict[str, str]:
    """` name="f" string='true' n=1` -> a dict. `Broken` on what is no list of attributes."""
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
    """The name of a tool or parameter out of what follows the tag's own name."""
    if equals:
        return _known(head.removesuffix("/").strip().strip("\"'"))
    return _known(attributes_of(head).get("name", ""))


def _known(name: str) -> str:
    if not name:
        raise NoMatch
    return name


def _trimmed(value: str) -> str:
    return value.removeprefix("\n").removesuffix("\n")
