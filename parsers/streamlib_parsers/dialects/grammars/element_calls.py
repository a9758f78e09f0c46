"""Calls as nested elements; before every tag is a mark that no text contains.

MiniMax M3; the mark is written M here:
    M<tool_call>⏎M<invoke name="f">M<city>ParisM</city>M<days>M<day>1M</day>M<day>2M</day>M</days>
    M</invoke>⏎M</tool_call>

An element's name is the parameter's; elements inside make an object, repeated ones an array, text
beside them is `$text`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from streamlib_parsers.dialects.coercion import (
    coerced,
    is_array,
    json_object_text,
    property_schema,
)
from streamlib_parsers.dialects.cursor import NoMatch, Parse, TextCursor
from streamlib_parsers.dialects.grammars.tagged_calls import attributes_of, read_section
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.dialects.sink import GrammarSink, Opener, anywhere
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import dumps

DEEPEST: Final = 50
"""Elements inside each other: each is a frame of the reader's stack."""


class _Element:
    """An element as far as it was read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = StringBuffer()
        """The text beside its children."""
        self.children: list[_Element] = []
        """The elements inside of it, in order."""


class ElementCalls(Struct, frozen=True):
    """Calls as nested elements.

    Args:
        mark: precedes every tag.
        wrapper: name of the element around all calls.
        call: name of the element of one call.
    """

    mark: str
    wrapper: str = "tool_call"
    call: str = "invoke"
    first: str = ""

    @property
    def openers(self) -> Sequence[Opener]:
        """The wrapper, or a call without one."""
        return anywhere(f"{self.mark}<{self.wrapper}>", f"{self.mark}<{self.call}")

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """A wrapper with its calls, or one call."""
        begin, end = f"{self.mark}<{self.call}", f"{self.mark}</{self.wrapper}>"
        yield from read_section(text, sink, self._call, begin, end)

    def _call(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        head, _ = yield from text.head(">")
        name = attributes_of(head).get("name", "")
        call = _Element(self.call)
        yield from self._content(text, call, 0)
        schema = sink.schema(name)
        sink.add_call(name, json_object_text(_members(call, schema, schema)))

    def _content(self, text: TextCursor, element: _Element, depth: int) -> Parse[None]:
        """Reads from the end of an element's tag to the end of its closing tag."""
        if depth > DEEPEST:
            raise NoMatch
        while True:
            yield from text.until((self.mark,), element.text.add)
            if not (yield from text.literal("<")):
                raise NoMatch
            tag, _ = yield from text.head(">", barred="\n<")
            if tag.startswith("/"):
                if tag[1:] != element.name:
                    raise NoMatch  # mixed up: which value belongs where cannot be known
                return
            child = _Element(tag)
            element.children.append(child)
            yield from self._content(text, child, depth + 1)


def _members(element: _Element, schema: JsonObject, root: JsonObject) -> dict[str, str]:
    """The children as JSON texts by name."""
    by_name: dict[str, list[_Element]] = {}
    for child in element.children:
        by_name.setdefault(child.name, []).append(child)
    members: dict[str, str] = {}
    for name, children in by_name.items():
        own_schema = property_schema(schema, name, root)
        if len(children) == 1:
            members[name] = _value(children[0], own_schema, root)
        else:
            members[name] = _array(children, own_schema, root)
    return members


def _value(element: _Element, schema: JsonObject, root: JsonObject) -> str:
    if not element.children:
        return coerced(element.text.text(), schema, root)
    if is_array(schema, root):
        return _array(element.children, schema, root)
    members = _members(element, schema, root)
    text_beside = element.text.text().strip()
    if text_beside:
        members["$text"] = dumps(text_beside)
    return json_object_text(members)


def _array(elements: list[_Element], schema: JsonObject, root: JsonObject) -> str:
    item_schema = property_schema(schema, 0, root)
    return f"[{','.join(_value(element, item_schema, root) for element in elements)}]"
