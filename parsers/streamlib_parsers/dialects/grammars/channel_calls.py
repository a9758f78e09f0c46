"""Harmony, the channels of gpt-oss, where a server shows them as text.

Reasoning, a call, and text:
    <|channel|>analysis<|message|>I look it up.<|end|>
    <|start|>assistant<|channel|>commentary to=functions.f
    <|constrain|>json<|message|>{"k":1}<|call|>
    <|start|>assistant<|channel|>final<|message|>Paris.<|return|>

All but headers is emitted as it arrives; a header is buffered up to its `<|message|>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from streamlib_parsers.dialects.balanced import decoded
from streamlib_parsers.dialects.cursor import NoMatch, Parse, TextCursor
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.dialects.sink import GrammarSink, Opener, anywhere
from streamlib_parsers.json_text import dumps

BEGINS: Final = ("<|start|>", "<|channel|>")
ENDS: Final = ("<|end|>", "<|return|>", "<|call|>")
MESSAGE: Final = "<|message|>"
LONGEST_HEADER: Final = 300
"""Characters up to `<|message|>`."""
NOISE: Final = 120
"""Characters between a leaked recipient and its arguments: a few words, or meaningless tokens."""
PARALLEL: Final = "multi_tool_use.parallel"
"""The recipient of several calls at once."""


class ChannelCalls(Struct, frozen=True):
    """A complete response in channels."""

    openers: Sequence[Opener] = anywhere(*BEGINS)
    first: str = ""

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """One message after the other."""
        begin = text.opener
        while begin in BEGINS:
            header, _ = yield from text.head(MESSAGE, limit=LONGEST_HEADER, barred="\n")
            channel, recipient = _header(header, channel_first=begin == "<|channel|>")
            if recipient:
                yield from self._call(text, sink, recipient)
                end = yield from text.literal(*ENDS)
                sink.end_section()
            elif channel == "analysis":
                end = yield from text.until((*BEGINS, *ENDS), sink.reasoning)
                sink.end_reasoning()
            else:
                end = yield from self._output_text(text, sink)
            if end in BEGINS:
                begin = end
            else:
                yield from text.spaces()
                begin = yield from text.literal(*BEGINS)

    def _output_text(self, text: TextCursor, sink: GrammarSink) -> Parse[str]:
        """Output text up to a token. A token inside code is only mentioned."""
        while True:
            end = yield from text.until((*BEGINS, *ENDS), sink.text)
            if not end or not sink.in_code:
                text.commit()
                return end
            sink.text(end)

    def _call(self, text: TextCursor, sink: GrammarSink, recipient: str) -> Parse[None]:
        yield from text.spaces()
        sink.call(recipient.removeprefix("functions."))
        yield from text.json_object(sink.arguments)
        yield from text.spaces()
        has_end = bool((yield from text.ahead(*BEGINS, *ENDS)))
        if not has_end and (yield from text.peek()):
            raise NoMatch
        sink.end_call(has_end=has_end)


class LeakedChannel(Struct, frozen=True):
    """A call whose tokens were lost: `to=functions.f {...}`.

    It is one only where it ends the message and its JSON is complete.
    """

    openers: Sequence[Opener] = anywhere("to=functions.", f"to={PARALLEL}")
    first: str = ""

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """Name, noise, arguments, the end of the message."""
        sink.defer_calls()
        name = ""
        is_parallel = text.opener.endswith(PARALLEL)
        if not is_parallel:
            name = (yield from text.word()).rstrip(".:/")
            if not sink.offers(name):
                raise NoMatch  # at once: the JSON after it may be another call's
        # Whatever is between is left out: tokens of the channel that lost their special form.
        yield from text.head("{", limit=NOISE, barred="", leave=True)
        arguments = StringBuffer()
        yield from text.json(arguments.add)
        yield from text.spaces()
        yield from text.literal(*ENDS)
        yield from text.spaces()
        if (yield from text.peek()):
            raise NoMatch
        if is_parallel:
            for called_name, called_arguments in parallel_calls(arguments.text()):
                sink.add_call(called_name, called_arguments)
        else:
            sink.add_call(name, arguments.text())
        sink.release_calls()


def _header(header: str, *, channel_first: bool) -> tuple[str, str]:
    """Channel and recipient of `assistant to=functions.f<|channel|>commentary json`.

    The recipient may be before or after the channel; "" where there is none.
    """
    role, has_channel, rest = "", True, header
    if not channel_first:
        role, mark, rest = header.partition("<|channel|>")
        has_channel = bool(mark)
    fields: list[str] = []
    if has_channel:
        fields = rest.replace("<|", " <|").split()
    recipient = ""
    for field in (*role.split(), *fields):
        if field.startswith("to="):
            recipient = field.removeprefix("to=").partition("<|")[0]
    channel = fields[0] if fields else "final"
    return channel, recipient


def parallel_calls(text: str) -> list[tuple[str, str]]:
    """Name and arguments of each call in the JSON of `multi_tool_use.parallel`.

    Raises:
        NoMatch: it has no calls, or other JSON.
    """
    value = decoded(text)
    uses = value.get("tool_uses") if isinstance(value, dict) else None
    if not isinstance(uses, list) or not uses:
        raise NoMatch
    calls: list[tuple[str, str]] = []
    for use in uses:
        if not isinstance(use, dict) or not isinstance(use.get("parameters"), dict):
            raise NoMatch
        name = str(use.get("recipient_name", "")).removeprefix("functions.")
        calls.append((name, dumps(use["parameters"])))
    return calls
