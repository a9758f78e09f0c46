"""Calls whose name precedes their JSON, each between tokens of its own, often in a section.

Kimi K2:
    <|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"k":1}
    <|tool_call_end|><|tool_calls_section_end|>
DeepSeek, which writes | and _ wide:
    <|tool_calls_begin|><|tool_call_begin|>f<|tool_sep|>{"k":1}<|tool_call_end|><|tool_calls_end|>

The arguments are emitted as they arrive. A call without a usable name is left out, with a Notice;
the rest of its section stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from streamlib_parsers.dialects.cursor import NoMatch, Parse, TextCursor
from streamlib_parsers.dialects.sink import NAME, GrammarSink, Opener, anywhere


class NamedCalls(Struct, frozen=True):
    """A name, then JSON, between tokens.

    Args:
        sections: the tokens before several calls, which may be missing.
        section_ends: the tokens after them, which may be missing.
        calls: the tokens before a call.
        after_name: the tokens that end the name.
        ends: the tokens after a call.
        separator: precedes the name; "" where the name comes first.
        fence: follows the JSON; "" for nothing.
        numbered: whether the name is `functions.NAME:NUMBER`, and all of it is the call's id.
    """

    sections: Sequence[str]
    section_ends: Sequence[str]
    calls: Sequence[str]
    after_name: Sequence[str]
    ends: Sequence[str]
    separator: str = ""
    fence: str = ""
    numbered: bool = False
    first: str = ""

    @property
    def openers(self) -> Sequence[Opener]:
        """A section, or a call without one."""
        return anywhere(*self.sections, *self.calls)

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """A section, or calls without one."""
        if text.opener in self.sections:
            yield from text.spaces()
            if not (yield from text.literal(*self.calls)):
                raise NoMatch
        while True:
            yield from self._call(text, sink)
            yield from text.spaces()
            part = yield from text.literal(*self.calls, *self.section_ends)
            if part in self.section_ends:
                sink.end_section()
            if part not in self.calls:
                return

    def _call(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        # A name before a fence ends with its line, any other one stays on it.
        barred = "" if self.fence else "\n<"
        header, _ = yield from text.head(*self.after_name, barred=barred)
        name, call_id = self._named(header, sink)
        yield from text.spaces()
        add_arguments: Callable[[str], object] = len  # read over
        if name:
            sink.call(name, call_id)
            add_arguments = sink.arguments
        if (yield from text.ahead(*self.ends)):
            add_arguments("{}")  # a call without arguments
        else:
            yield from text.json_object(add_arguments)
        yield from text.spaces()
        if self.fence and (yield from text.literal(self.fence)):
            yield from text.spaces()
        has_end = bool((yield from text.literal(*self.ends)))
        if not has_end and (yield from text.peek()):
            if not (yield from text.ahead(*self.calls, *self.section_ends)):
                raise NoMatch
            has_end = True
        if name:
            sink.end_call(has_end=has_end)
        else:
            sink.drop_call(f"a call without a usable name was left out: {header.strip()}")

    def _named(self, header: str, sink: GrammarSink) -> tuple[str, str]:
        """Name and id; ("", "") where the header names no tool."""
        header = header.strip()
        if not self.numbered:
            if self.separator:
                header = header.rpartition(self.separator)[2]
            return header.strip(), ""
        # Kimi's own form; a bare name is accepted only if it is a tool's, as text may be there.
        name, _, number = header.rpartition(":")
        if number.isdecimal() and name:
            return name.removeprefix("functions."), header
        if sink.offers(header):
            return header, ""
        return "", ""


class MistralCalls(Struct, frozen=True):
    """`[TOOL_CALLS]f[ARGS]{...}`; some models add `[CALL_ID]id`, others leave `[ARGS]` out."""

    openers: Sequence[Opener] = anywhere("[TOOL_CALLS]")
    first: str = NAME

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """One call; the next one has an opener of its own."""
        yield from text.spaces()
        name = yield from text.word()
        yield from text.spaces()
        call_id = ""
        part = yield from text.literal("[CALL_ID]", "[ARGS]")
        if part == "[CALL_ID]":
            call_id, _ = yield from text.head("[ARGS]", barred="\n{")
        yield from text.spaces()
        sink.call(name, call_id.strip())
        yield from text.json_object(sink.arguments)
        sink.end_call()
