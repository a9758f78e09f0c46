"""The arguments of a call whose values are raw text, parameter by parameter.

    writer = ArgumentWriter(text, sink, name, rules)
    value = writer.parameter("k")
    stop = yield from tag_value(text, tags, value)
    value.close()
    writer.end()

A call is emitted with its end, but from the first long string on its arguments are emitted while
they are read: a file that a model writes for a minute would otherwise come at once. What is emitted
does not depend on how the text was split.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from streamlib_parsers.dialects.coercion import (
    LONGEST_REFERENCE,
    NESTED,
    Entities,
    Parameter,
    is_text,
    json_object_text,
    parameter_value,
    property_schema,
    unescaped,
    unwrapped,
)
from streamlib_parsers.dialects.cursor import TextCursor
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.dialects.sink import GrammarSink
from streamlib_parsers.json_text import dumps

LONG: Final = 100
"""Characters from which on a string is long. A shorter one may still turn out not to be the value
of a call, and is text then."""
CDATA: Final = "<![CDATA["
CDATA_END: Final = "]]>"

Newlines: TypeAlias = Literal["kept", "paired", "leading"]
"""Which newlines at the ends of a value belong to its tags.

kept: none. paired: one at each end, where both stand. leading: one at its beginning, which the
chat template always writes; and if it is there, one at its end.
"""


class ValueRules(Struct, frozen=True):
    """How the values of a dialect are written.

    Args:
        newlines: which newlines belong to the tags.
        entities: whether character references are read.
        character_data: whether `<![CDATA[...]]>` around a value belongs to the tags.
        json_if_untyped: whether a value without a schema is JSON where it parses.
    """

    newlines: Newlines = "kept"
    entities: Entities = "never"
    character_data: bool = False
    json_if_untyped: bool = False


RAW: Final = ValueRules()
"""Values as they are."""


class ArgumentWriter:
    """The arguments of one call."""

    def __init__(self, text: TextCursor, sink: GrammarSink, name: str, rules: ValueRules) -> None:
        """Begins a call.

        Args:
            text: the message.
            sink: receives the call.
            name: of the tool, as the model wrote it.
            rules: of its dialect.
        """
        self.rules = rules
        self.schema = sink.schema(name)
        self.is_streamed = False
        """Set with the first long string: from then on everything is emitted at once."""
        self._text = text
        self._sink = sink
        self._name = name
        self._members: dict[str, str] = {}
        """The values so far as JSON; empty once the call is streamed."""
        self._keys: set[str] = set()
        """The parameters so far."""
        self._duplicates: list[str] = []
        """Those that came twice and are not reported yet."""
        self._has_member = False
        """Whether a parameter was emitted."""

    def parameter(self, key: str, *, is_string: bool | None = None) -> ParameterValue:
        """Begins the value of a parameter; a second one of the same name wins, with a Notice.

        Args:
            key: its name.
            is_string: the type that the call itself reports; None: none.
        """
        if key in self._keys:
            self._duplicates.append(key)
        self._keys.add(key)
        if self.is_streamed:
            self._report_duplicates()
        # Where its value begins, counted in characters since the last commit.
        offset = self._text.size
        return ParameterValue(self, key, offset, is_string=is_string)

    def may_stream(self, key: str, *, is_string: bool | None) -> bool:
        """Whether a value can be emitted before its end: it is a string whatever follows."""
        if not self._sink.offers(self._name):
            return False
        properties = self.schema.get("properties") or {}
        if key in NESTED and properties and key not in properties:
            return False  # perhaps a wrapper around the arguments
        if is_string is False:
            return False
        own_schema = property_schema(self.schema, key, self.schema)
        json_if_untyped = self.rules.json_if_untyped and is_string is None
        return is_text(own_schema, self.schema, json_if_untyped=json_if_untyped)

    def add(self, key: str, value: str) -> None:
        """A complete value as JSON."""
        if self.is_streamed:
            self.emit_key(key)
            self._sink.arguments(value)
        else:
            self._members[key] = value

    def stream(self, offset: int) -> None:
        """From here on the arguments are emitted as they are read.

        Args:
            offset: text before it is not searched again if this turns out not to be a call.
        """
        self.is_streamed = True
        self._sink.call(self._name, opener_size=offset)
        self._report_duplicates()
        members, self._members = self._members, {}
        for key, value in members.items():
            self.add(key, value)

    def emit_key(self, key: str) -> None:
        """The key of a value that follows."""
        self._sink.arguments(f"{',' if self._has_member else '{'}{dumps(key)}:")
        self._has_member = True

    def emit(self, text: str) -> None:
        """A fragment of a string."""
        if text:
            self._sink.arguments(dumps(text)[1:-1])

    def emit_quote(self) -> None:
        """The quote at an end of a string."""
        self._sink.arguments('"')

    def end(self) -> None:
        """The end of the call was read."""
        if self.is_streamed:
            self._sink.arguments("}")
            self._sink.end_call()
            return
        self._report_duplicates()
        arguments = json_object_text(self._members)
        if len(self._members) == 1:
            arguments = unwrapped(arguments, self.schema)
        self._sink.add_call(self._name, arguments)

    def _report_duplicates(self) -> None:
        for key in self._duplicates:
            self._sink.notice("duplicate_parameter", key)
        self._duplicates.clear()


class ParameterValue:
    """The value of one parameter, as far as it was read."""

    __slots__ = (
        "_buffer",
        "_has_newline",
        "_is_raw",
        "_is_streamed",
        "_is_string",
        "_key",
        "_may_stream",
        "_offset",
        "_waits",
        "_writer",
    )

    def __init__(
        self,
        writer: ArgumentWriter,
        key: str,
        offset: int,
        *,
        is_string: bool | None,
    ) -> None:
        self._writer = writer
        self._key = key
        self._is_string = is_string
        self._may_stream = True
        """Whether it can be emitted before its end; asked once it is long."""
        self._offset = offset
        """Where it begins in the uncommitted text."""
        self._buffer = StringBuffer()
        """What was not emitted."""
        self._is_streamed = False
        """Whether its beginning was emitted."""
        self._has_newline = False
        """Whether a newline that belongs to the tag precedes it; then one after it does, too."""
        self._is_raw = writer.rules.entities == "never"
        """Whether it has no character references to read."""
        self._waits = False
        """Whether the rest begins with what may be a character reference: a `<`, or the end of the
        value, decides whether it is one."""

    def add(self, text: str) -> None:
        """A fragment of the value."""
        self._buffer.add(text)
        if not self._may_stream:
            return
        if self._is_streamed:
            self._emit(text)
        elif self._buffer.size >= LONG and self._can_begin():
            self._begin()

    def close(self) -> None:
        """The end of the value was read."""
        text = self._buffer.text()
        writer = self._writer
        if not self._is_streamed:
            parameter = Parameter(self._key, self._without_tags(text), is_string=self._is_string)
            rules = writer.rules
            value = parameter_value(
                writer.schema, parameter, rules.entities, json_if_untyped=rules.json_if_untyped
            )
            writer.add(self._key, value)
            return
        if self._has_newline:
            text = text.removesuffix("\n")
        if not self._is_raw and (writer.rules.entities == "always" or "&lt;" in text):
            text = unescaped(text)
        writer.emit(text)
        writer.emit_quote()

    def _without_tags(self, text: str) -> str:
        """The text of a complete value without what belongs to its tags."""
        rules = self._writer.rules
        is_paired = text.startswith("\n") and text.endswith("\n")
        if is_paired or (rules.newlines == "leading" and text.startswith("\n")):
            if rules.newlines != "kept":
                text = text.removeprefix("\n").removesuffix("\n")
        if rules.character_data:
            text = _character_data(text)
        return text

    def _can_begin(self) -> bool:
        """Whether the start of the value can be emitted before its end is known."""
        if not self._writer.may_stream(self._key, is_string=self._is_string):
            self._may_stream = False
            return False
        head = self._buffer.text()[:LONG]
        rules = self._writer.rules
        if rules.newlines == "paired" and head.startswith("\n"):
            self._may_stream = False
        elif rules.character_data:
            stripped = head.lstrip()
            if stripped.startswith(CDATA) or CDATA.startswith(stripped):
                self._may_stream = False
        return self._may_stream

    def _begin(self) -> None:
        text = self._buffer.text()
        writer = self._writer
        if not writer.is_streamed:
            writer.stream(self._offset)
        writer.emit_key(self._key)
        writer.emit_quote()
        self._is_streamed = True
        if writer.rules.newlines == "leading" and text.startswith("\n"):
            self._has_newline = True
            text = text.removeprefix("\n")
        self._buffer.clear()
        self._buffer.add(text)
        self._emit(text)

    def _emit(self, text: str) -> None:
        """Emits what no later text can change.

        Args:
            text: the last fragment of the value.
        """
        if self._waits:
            if "<" not in text:
                return  # not joined with what waits: that would be quadratic
            self._is_raw, self._waits = True, False
        buffered = self._buffer.text()
        size = self._certain_size(buffered)
        certain = buffered[:size]
        self._buffer.clear()
        self._buffer.add(buffered[size:])
        if not self._is_raw and self._writer.rules.entities == "always":
            certain = unescaped(certain)
        self._writer.emit(certain)

    def _certain_size(self, text: str) -> int:
        """How many characters no later text can change."""
        if not self._is_raw and self._writer.rules.entities == "escaped":
            if "<" in text:
                self._is_raw = True  # an escaped text has no bare `<`
            elif "&" in text:
                self._waits = True
                return text.index("&")
        elif not self._is_raw:
            last_reference = text.rfind("&")
            if last_reference >= 0 and len(text) - last_reference <= LONGEST_REFERENCE:
                return last_reference
        if self._has_newline and text.endswith("\n"):
            return len(text) - 1
        return len(text)


def _character_data(value: str) -> str:
    """A value without the marks of XML's character data around it, and between its sections."""
    text = value.strip()
    if not (text.startswith(CDATA) and text.endswith(CDATA_END)):
        return value
    inner = text.removeprefix(CDATA).removesuffix(CDATA_END)
    return inner.replace(CDATA_END + CDATA, "")
