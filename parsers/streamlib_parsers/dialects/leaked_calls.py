"""Says where a finished message shows the syntax of a call: with no dialect enabled, or in one that broke off.

    "to=functions.shell {\\"cmd\\"…"   ->   Notice("leaked_tool_call"), and the message ends incomplete: the answer is to be asked for again

A stage that costs nothing while text streams: it looks once, when a message is done, and only where tools were offered.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from streamlib_parsers.dialects.code_spans import CodeSpans
from streamlib_parsers.dialects.definitions import DIALECTS
from streamlib_parsers.dialects.grammars.channel_calls import BEGINS
from streamlib_parsers.dialects.grammars.channel_marks import Marks
from streamlib_parsers.dialects.literal_search import LiteralSearch
from streamlib_parsers.dialects.scanner import OpenerTable
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Notice, OutputItemDone, ResponseEvent
from streamlib_parsers.items import Message

CLOSERS: Final = (
    "</tool_call>",
    "</function_calls>",
    "</invoke>",
    "</function>",
    "</xai:function_call>",
    "<|tool_call_end|>",
)
"""A closing tag alone says as much."""


def _markers() -> tuple[str, ...]:
    """What calls begin with in any dialect. Channels and marks stand around words as well."""
    around = {
        mark
        for dialect in DIALECTS.values()
        for grammar in dialect.grammars
        if isinstance(grammar, Marks)
        for mark in grammar.marks
    }
    return (
        tuple(
            marker
            for marker in OpenerTable(list(DIALECTS.values())).markers
            if marker not in around.union(BEGINS)
        )
        + CLOSERS
    )


MARKERS: Final = _markers()
LEAKED: Final = "to="
"""Markers that begin so are calls of Harmony that lost their tokens: nothing of them can be read, and no text is near them."""

_NEEDLES: Final = LiteralSearch(MARKERS)


class LeakFilter:
    """The events of one response for which tools were offered."""

    def __init__(self) -> None:
        self.failure: ErrorInfo | None = None
        self._added = 0

    def feed(self, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """The same events, with a Notice before a message that shows a call."""
        if not self._added and OutputItemDone not in map(type, events):
            return events
        out: list[ResponseEvent] = []
        for event in events:
            marker = _leak(event) if type(event) is OutputItemDone else ""
            if marker and isinstance(event, OutputItemDone):
                notice = Notice(
                    "leaked_tool_call",
                    f"text looks like a tool call: {marker}",
                    event.index,
                    seq=event.seq + self._added,
                )
                self._added += 1
                out.append(notice)
                if marker.startswith(LEAKED):
                    event = replace(event, item=replace(event.item, status="incomplete"))  # noqa: PLW2901  # the same event, told better
            out.append(replace(event, seq=event.seq + self._added) if self._added else event)
        return out

    def close(self) -> list[ResponseEvent]:
        """Nothing is held back."""
        return []


def _leak(event: OutputItemDone) -> str:
    """The marker of a call outside of code in a message of the assistant; "" where there is none."""
    item = event.item
    if not isinstance(item, Message) or item.role != "assistant":
        return ""
    text = item.text
    if not any(marker in text for marker in MARKERS):
        return ""
    code, at = CodeSpans(), 0
    for place, marker in _NEEDLES.hits(text, 0, over=True):
        code.say(text[at:place])
        at = place
        if marker and not code.inside:
            return marker
    return ""
