"""Harmony, the channels of gpt-oss, where a server shows them as text.

    <|channel|>analysis<|message|>I look it up.<|end|>                                                     a thought
    <|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"k":1}<|call|>     a call
    <|start|>assistant<|channel|>final<|message|>Paris.<|return|>                                          text

Everything but a header is given out as it comes; a header is held back to its `<|message|>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from streamlib_parsers.dialects.balanced import decoded
from streamlib_parsers.dialects.cursor import Cursor, NoMatch, Parse
from streamlib_parsers.dialects.grammar import Opener, anywhere
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.dialects.sink import GrammarSink
from streamlib_parsers.json_text import dumps

BEGINS: Final = ("<|start|>", "<|channel|>")
ENDS: Final = ("<|end|>", "<|return|>", "<|call|>")
MESSAGE: Final = "<|message|>"
LONGEST_HEADER: Final = 300
NOISE: Final = 120
"""Characters between a leaked recipient and its arguments: a few words, or tokens of nonsense."""
PARALLEL: Final = "multi_tool_use.parallel"


class ChannelCalls(Struct, frozen=True):
    """A whole answer in channels."""

    openers: Sequence[Opener] = anywhere(*BEGINS)
    first: str = ""

    def read(self, text: Cursor, found: GrammarSink) -> Parse[None]:
        """One message after the other."""
        begin = text.opener
        while begin in BEGINS:
            header, _ = yield from text.head(MESSAGE, limit=LONGEST_HEADER, barred="\n")
            channel, recipient = _header(header, channel_first=begin == "<|channel|>")
            if recipient:
                yield from self._call(text, found, recipient)
                end = yield from text.literal(*ENDS)
                found.settle()
            elif channel == "analysis":
                end = yield from text.until((*BEGINS, *ENDS), found.thought)
                found.end_thought()
            else:
                end = yield from self._words(text, found)
            if end in BEGINS:
                begin = end
            else:
                yield from text.spaces()
                begin = yield from text.literal(*BEGINS)

    def _words(self, text: Cursor, found: GrammarSink) -> Parse[str]:
        """Words for the user. A token inside code is spoken of."""
        while True:
            end = yield from text.until((*BEGINS, *ENDS), found.text)
            if not end or not found.in_code:
                text.commit()
                return end
            found.text(end)

    def _call(self, text: Cursor, found: GrammarSink, recipient: str) -> Parse[None]:
        text.opener = (
            text.kept()
        )  # if the arguments break off, the header is not looked through again
        yield from text.spaces()
        found.call(recipient.removeprefix("functions."))
        yield from text.json_object(found.arguments)
        yield from text.spaces()
        if (yield from text.peek()) and not (yield from text.ahead(*BEGINS, *ENDS)):
            raise NoMatch
        found.end_call()


class LeakedChannel(Struct, frozen=True):
    """A call whose tokens were lost: `to=functions.f {…}`. A call only where it ends the message and its JSON is whole."""

    openers: Sequence[Opener] = anywhere("to=functions.", f"to={PARALLEL}")
    first: str = ""

    def read(self, text: Cursor, found: GrammarSink) -> Parse[None]:
        """Name, noise, arguments, the end."""
        found.hold()
        parallel = text.opener.endswith(PARALLEL)
        name = "" if parallel else (yield from text.word()).rstrip(".:/")
        yield from text.head("{", limit=NOISE, barred="", leave=True)
        arguments = StringBuffer()
        yield from text.json(arguments.add)
        yield from text.spaces()
        yield from text.literal(*ENDS)
        yield from text.spaces()
        if (yield from text.peek()):
            raise NoMatch
        for called, given in _uses(arguments.text()) if parallel else [(name, arguments.text())]:
            found.add_call(called, given)
        found.release()


def _header(header: str, *, channel_first: bool) -> tuple[str, str]:
    """Channel and recipient out of `assistant to=functions.f<|channel|>commentary json`."""
    role, has_channel, rest = (
        ("", True, header) if channel_first else header.partition("<|channel|>")
    )
    words = rest.replace("<|", " <|").split() if has_channel else []
    named = [word.removeprefix("to=") for word in (role.split() + words) if word.startswith("to=")]
    recipient = named[-1].partition("<|")[0] if named else ""
    return words[0] if words else "final", recipient


def _uses(text: str) -> list[tuple[str, str]]:
    """The calls of a parallel use."""
    value = decoded(text)
    uses = value.get("tool_uses") if isinstance(value, dict) else None
    if (
        not isinstance(uses, list)
        or not all(
            isinstance(use, dict) and isinstance(use.get("parameters"), dict) for use in uses
        )
        or not uses
    ):
        raise NoMatch
    return [
        (str(use.get("recipient_name", "")).removeprefix("functions."), dumps(use["parameters"]))
        for use in uses
    ]
