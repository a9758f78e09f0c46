"""Calls whose name stands before their JSON, each between tokens of its own, often in a section.

    <|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"k":1}<|tool_call_end|><|tool_calls_section_end|>
    <|tool_calls_begin|><|tool_call_begin|>f<|tool_sep|>{"k":1}<|tool_call_end|><|tool_calls_end|>     (DeepSeek writes | and _ wide)

The arguments are given out as they come. A call without a usable name is left out, and said in a Notice; the rest of its section stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from streamlib_parsers.dialects.cursor import Cursor, NoMatch, Parse
from streamlib_parsers.dialects.grammar import NAME, Opener, anywhere
from streamlib_parsers.dialects.sink import GrammarSink


class NamedCalls(Struct, frozen=True):
    """sections, section_ends: around several calls, and may be missing. calls, ends: around one.

    after_name: what ends the name. separator: the name stands behind it. fence: stands behind the JSON. numbered: the name is
    `functions.NAME:NUMBER`, and all of it is the call's id.
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

    def read(self, text: Cursor, found: GrammarSink) -> Parse[None]:
        """A section."""
        if text.opener in self.sections:
            yield from text.spaces()
            if not (yield from text.literal(*self.calls)):
                raise NoMatch
        while True:
            yield from self._call(text, found)
            yield from text.spaces()
            part = yield from text.literal(*self.calls, *self.section_ends)
            if part in self.section_ends:
                found.settle()
            if part not in self.calls:
                return

    def _call(self, text: Cursor, found: GrammarSink) -> Parse[None]:
        header, _ = yield from text.head(*self.after_name, barred="" if self.fence else "\n<")
        name, call_id = self._named(header, found)
        yield from text.spaces()
        if name:
            found.call(name, call_id)
        yield from text.json_object(found.arguments if name else len)
        yield from text.spaces()
        if self.fence and (yield from text.literal(self.fence)):
            yield from text.spaces()
        ended = yield from text.literal(*self.ends)
        if (
            not ended
            and (yield from text.peek())
            and not (yield from text.ahead(*self.calls, *self.section_ends))
        ):
            raise NoMatch
        if name:
            found.end_call()
        else:
            found.drop(f"a call without a usable name was left out: {header.strip()}")

    def _named(self, header: str, found: GrammarSink) -> tuple[str, str]:
        """Name and id; ("", "") where the header names no tool."""
        header = header.strip()
        if not self.numbered:
            return (header.rpartition(self.separator)[2] if self.separator else header).strip(), ""
        name, _, number = header.rpartition(":")
        if number.isdecimal() and name:
            return name.removeprefix("functions."), header
        return (header, "") if found.offers(header) else ("", "")


class MistralCalls(Struct, frozen=True):
    """`[TOOL_CALLS]f[ARGS]{…}`, with `[CALL_ID]id` between on some models, and `[TOOL_CALLS]f{…}` on others."""

    openers: Sequence[Opener] = anywhere("[TOOL_CALLS]")
    first: str = NAME

    def read(self, text: Cursor, found: GrammarSink) -> Parse[None]:
        """One call; the next one has an opener of its own."""
        yield from text.spaces()
        name = yield from text.word()
        call_id = ""
        part = yield from text.literal("[CALL_ID]", "[ARGS]")
        if part == "[CALL_ID]":
            call_id, _ = yield from text.head("[ARGS]", barred="\n{")
        yield from text.spaces()
        found.call(name, call_id.strip())
        yield from text.json_object(found.arguments)
        found.end_call()
