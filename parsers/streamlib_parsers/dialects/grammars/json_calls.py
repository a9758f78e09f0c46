"""Calls that are JSON objects with the tool's name inside.

    <tool_call>⏎{"name": "f", "arguments": {"k": 1}}⏎</tool_call>
    [TOOL_CALLS] [{"name": "f", "arguments": {}}]

The arguments are emitted as they arrive once the name is known; where they are before the name
they are buffered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from streamlib_parsers.dialects.balanced import decoded
from streamlib_parsers.dialects.coercion import NESTED, unwrapped
from streamlib_parsers.dialects.cursor import NoMatch, Parse, TextCursor
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.dialects.sink import GrammarSink, Opener

NAMES: Final = frozenset({"name", "tool_name", "tool", "function_name", "recipient_name"})
ARGUMENTS: Final = frozenset({"arguments", "parameters", "args", "input"})
IDS: Final = frozenset({"id", "call_id", "tool_call_id"})
WRAPPER: Final = "function"
"""`{"type": "function", "function": {...}}`, or the name itself."""
KEYS: Final = NAMES | ARGUMENTS | IDS | {WRAPPER, "type", "index"}
"""One of these comes first in an object that is a call."""


class _JsonCall:
    """What is known of one call."""

    __slots__ = ("arguments", "call_id", "is_streamed", "key_count", "name")

    def __init__(self) -> None:
        self.name = ""
        self.call_id = ""
        self.arguments = "{}"
        """The arguments, where they are not streamed."""
        self.is_streamed = False
        """Whether the call was reported to the sink already."""
        self.key_count = 0
        """Keys read so far."""


class JsonCalls(Struct, frozen=True):
    """JSON objects after a token.

    Args:
        openers: the tokens before the first object.
        closes: the tokens after the last one; without any a call ends with its object.
        between: what may be between two objects.
    """

    openers: Sequence[Opener]
    closes: Sequence[str] = ()
    between: Sequence[str] = (",", ";")
    first: str = "{["

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """One object, several, or an array of them."""
        yield from text.spaces()
        while (yield from text.literal(text.opener)):
            yield from text.spaces()  # Mistral 7B writes its token twice
        is_array = bool((yield from text.literal("[")))
        if is_array:
            yield from text.spaces()
        if not (yield from text.literal("{")):
            raise NoMatch
        # Outside of an array only the closing token tells that the last call is complete.
        needs_close = bool(self.closes) and not is_array
        yield from self._objects(text, sink, needs_close=needs_close)
        if is_array:
            if not (yield from text.literal("]")):
                raise NoMatch
            sink.end_section()
        if self.closes:
            yield from self._close(text, sink, needs_close=needs_close)

    def _objects(self, text: TextCursor, sink: GrammarSink, *, needs_close: bool) -> Parse[None]:
        """Reads objects, from the end of the first brace on."""
        while True:
            yield from call_object(text, sink)
            if not needs_close:
                sink.end_call()
            yield from text.spaces()
            if (yield from text.literal(*self.between)):
                yield from text.spaces()
            if not (yield from text.ahead("{")):
                return
            if needs_close:
                sink.end_call()
            text.take(text.index + 1)

    def _close(self, text: TextCursor, sink: GrammarSink, *, needs_close: bool) -> Parse[None]:
        """The closing token; the end of the message and the next opener stand for it."""
        yield from text.spaces()
        is_closed = yield from text.literal(*self.closes)
        if not needs_close:
            if is_closed:
                sink.end_section()
            return
        has_end = bool(is_closed)
        if not is_closed and (yield from text.peek()):
            next_openers = [opener.marker for opener in self.openers]
            if not (yield from text.ahead(*next_openers)):
                raise NoMatch
            has_end = True
        sink.end_call(has_end=has_end)


class BareJson(Struct, frozen=True):
    """A message that is nothing but calls, which is certain only at its end."""

    openers: Sequence[Opener] = (Opener("{", "start"),)
    first: str = ""

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """Objects, with `;` or white space between them, and nothing else."""
        sink.defer_calls()
        while True:
            yield from call_object(text, sink)
            sink.end_call()
            yield from text.spaces()
            if (yield from text.literal(";", ",")):
                yield from text.spaces()
            if not (yield from text.literal("{")):
                break
        if (yield from text.peek()):
            raise NoMatch
        sink.release_calls()


def call_object(text: TextCursor, sink: GrammarSink) -> Parse[None]:
    """Reads one call after its opening brace, closing brace included.

    The caller calls `sink.end_call`.
    """
    call = _JsonCall()
    yield from _members(text, sink, call)
    if not call.name:
        raise NoMatch
    if not call.is_streamed:
        sink.call(call.name, call.call_id)
        sink.arguments(unwrapped(call.arguments, sink.schema(call.name)))


def _members(text: TextCursor, sink: GrammarSink, call: _JsonCall) -> Parse[None]:
    while True:
        yield from text.spaces()
        if (yield from text.literal("}")):
            return
        if call.key_count:
            yield from text.literal(",")  # may be missing
            yield from text.spaces()
        key = yield from _key(text)
        if not call.key_count and key not in KEYS:
            raise NoMatch  # at once: a JSON object in text must not be buffered to its end
        call.key_count += 1
        yield from _member(text, sink, call, key)


def _key(text: TextCursor) -> Parse[str]:
    if not (yield from text.ahead('"')):
        raise NoMatch
    key = decoded((yield from text.json_text()))
    yield from text.spaces()
    if not (yield from text.literal(":")):
        raise NoMatch
    yield from text.spaces()
    return str(key)


def _member(text: TextCursor, sink: GrammarSink, call: _JsonCall, key: str) -> Parse[None]:
    opening = yield from text.ahead("{", '"')
    if key == WRAPPER and opening == "{":
        text.take(text.index + 1)
        yield from _members(text, sink, call)
    elif key in ARGUMENTS:
        yield from _arguments(text, sink, call, is_object=opening == "{")
    else:
        value = decoded((yield from text.json_text()))
        if key in NAMES or key == WRAPPER:
            call.name = value.strip() if isinstance(value, str) else ""
        elif key in IDS and isinstance(value, str):
            call.call_id = value


def _arguments(
    text: TextCursor, sink: GrammarSink, call: _JsonCall, *, is_object: bool
) -> Parse[None]:
    if call.is_streamed:
        raise NoMatch  # arguments twice
    if call.name and is_object:
        call.is_streamed = True
        sink.call(call.name, call.call_id)
        head, key = yield from _first_key(text)
        if key in NESTED:
            buffer = StringBuffer()
            yield from text.json(buffer.add, head)
            sink.arguments(unwrapped(buffer.text(), sink.schema(call.name)))
        else:
            yield from text.json(sink.arguments, head)
        return
    arguments = yield from text.json_text()
    if arguments in ("null", '""'):
        return  # no arguments: `{}`
    value = decoded(arguments)
    if isinstance(value, str):  # double-encoded
        arguments, value = value, decoded(value)
    if not isinstance(value, dict):
        raise NoMatch
    call.arguments = arguments


def _first_key(text: TextCursor) -> Parse[tuple[str, str]]:
    """What was read of an object up to its first key, and that key; "" where there is none."""
    text.take(text.index + 1)
    yield from text.spaces()
    if not (yield from text.ahead('"')):
        return "{", ""
    buffer = StringBuffer()
    yield from text.json(buffer.add)
    return "{" + buffer.text(), str(decoded(buffer.text()))
