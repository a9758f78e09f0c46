"""Kimi K3: tags made of special tokens, attributes with character references, values raw.

    <|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>
    <|open|>argument key="k" type="string"<|sep|>v<|close|>argument<|sep|>
    <|close|>call<|sep|><|close|>tools<|sep|>

Or, inside the call: <|open|>json<|sep|>{"k":"v"}<|close|>json<|sep|>
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from streamlib_parsers.dialects.argument_writer import RAW, ArgumentWriter
from streamlib_parsers.dialects.coercion import unescaped
from streamlib_parsers.dialects.cursor import NoMatch, Parse, TextCursor
from streamlib_parsers.dialects.grammars.keyed_calls import expect
from streamlib_parsers.dialects.grammars.tagged_calls import attributes_of, read_section
from streamlib_parsers.dialects.sink import GrammarSink, Opener, anywhere

SEP: Final = "<|sep|>"
SECTION: Final = f"<|open|>tools{SEP}"
SECTION_END: Final = f"<|close|>tools{SEP}"
CALL: Final = "<|open|>call "
CALL_END: Final = f"<|close|>call{SEP}"
ARGUMENT: Final = "<|open|>argument "
ARGUMENT_END: Final = f"<|close|>argument{SEP}"
JSON: Final = f"<|open|>json{SEP}"
JSON_END: Final = f"<|close|>json{SEP}"


class OpenCloseCalls(Struct, frozen=True):
    """The tokens are special in the model's vocabulary: no value contains them."""

    openers: Sequence[Opener] = anywhere(SECTION, CALL)
    first: str = ""

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """A section, or a call without one."""
        yield from read_section(text, sink, self._call, CALL, SECTION_END)

    def _call(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        attributes = yield from _attributes(text)
        name = attributes.get("tool", "")
        yield from text.spaces()
        if not name:
            raise NoMatch
        if (yield from text.literal(JSON)):
            sink.call(name)
            yield from text.spaces()
            yield from text.json_object(sink.arguments)
            yield from text.spaces()
            yield from expect(text, JSON_END)
            yield from text.spaces()
            yield from expect(text, CALL_END)
            sink.end_call()
            return
        writer = ArgumentWriter(text, sink, name, RAW)
        part = yield from text.literal(ARGUMENT)
        while part:
            part = yield from _argument(text, writer)
            if part == ARGUMENT_END:
                yield from text.spaces()
                part = yield from text.literal(ARGUMENT)
        yield from expect(text, CALL_END)
        writer.end()


def _argument(text: TextCursor, writer: ArgumentWriter) -> Parse[str]:
    """Reads an argument and what ends it: its own end, or the next argument."""
    attributes = yield from _attributes(text)
    if not attributes.get("key"):
        raise NoMatch
    is_string = None
    if "type" in attributes:
        is_string = attributes["type"] == "string"
    value = writer.parameter(attributes["key"], is_string=is_string)
    stop = yield from text.until((ARGUMENT_END, ARGUMENT, CALL, SECTION), value.add)
    if stop not in (ARGUMENT_END, ARGUMENT):
        raise NoMatch  # the call lost its end
    value.close()
    return stop


def _attributes(text: TextCursor) -> Parse[dict[str, str]]:
    head, _ = yield from text.head(SEP)
    return {key: unescaped(value) for key, value in attributes_of(head).items()}
