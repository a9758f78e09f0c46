"""Reports finished messages that show the syntax of a call.

No dialect read it, or it was truncated.

    "to=functions.shell {\\"cmd\\"..."   ->   Notice("leaked_tool_call"), and the message ends
    incomplete:
                                          the caller should send the request again

This filter costs nothing while text streams: it looks once, when a message is done, and only where
tools were offered.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from streamlib_parsers.dialects.code_spans import CodeSpans
from streamlib_parsers.dialects.definitions import DIALECTS
from streamlib_parsers.dialects.grammars.channel_calls import BEGINS
from streamlib_parsers.dialects.literal_search import LiteralSearch
from streamlib_parsers.dialects.scanner import OpenerTable
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Notice, OutputItemDone, ResponseEvent
from streamlib_parsers.filter_assembler import FilterAssembler
from streamlib_parsers.items import Message

CLOSERS: Final = (
    "</tool_call>",
    "</function_calls>",
    "</invoke>",
    "</function>",
    "</xai:function_call>",
    "<|tool_call_end|>",
)
"""A closing tag alone is evidence enough."""


def _markers() -> tuple[str, ...]:
    """What begins calls in any dialect, and `CLOSERS`."""
    markers = OpenerTable(list(DIALECTS.values())).markers
    # Channels are around text as well: they are no evidence of a call.
    return tuple(marker for marker in markers if marker not in BEGINS) + CLOSERS


MARKERS: Final = _markers()
UNREADABLE: Final = "to="
"""Markers that begin so are Harmony calls that lost their tokens: no dialect can read them, and no
text is near them."""

_SEARCH: Final = LiteralSearch(MARKERS)


class LeakFilter:
    """The events of one response for which tools were offered."""

    def __init__(self) -> None:
        self.failure: ErrorInfo | None = None
        """Always None: this filter has no limit."""
        self._assembler: FilterAssembler | None = None
        """Renumbers the events from the first Notice on; None before it."""
        self._reported: set[int] = set()
        """Indexes of messages about which a dialect emitted the Notice already: one is enough."""

    def feed(self, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """The same events, with a Notice before the end of each message that shows a call."""
        types = set(map(type, events))
        if Notice in types:
            self._remember(events)
        if self._assembler is not None:
            for event in events:
                self._forward(event, self._assembler)
            return self._assembler.take()
        if OutputItemDone not in types:  # most batches
            return events
        for index, event in enumerate(events):
            if self._leaked_marker(event):
                # Events up to here keep their numbers: they were passed on as they are.
                self._assembler = FilterAssembler(first_seq=event.seq)
                return [*events[:index], *self.feed(events[index:])]
        return events

    def close(self) -> list[ResponseEvent]:
        """Nothing is buffered."""
        return []

    def _remember(self, events: list[ResponseEvent]) -> None:
        """Notes the messages that a dialect has reported."""
        for event in events:
            if isinstance(event, Notice) and event.code == "leaked_tool_call":
                if event.index is not None:
                    self._reported.add(event.index)

    def _leaked_marker(self, event: ResponseEvent) -> str:
        """The marker of a call in a finished message; "" for none, or where nothing is to do."""
        if not isinstance(event, OutputItemDone):
            return ""
        marker = _marker_in(event)
        if event.index in self._reported and not marker.startswith(UNREADABLE):
            return ""
        return marker

    def _forward(self, event: ResponseEvent, assembler: FilterAssembler) -> None:
        """Forwards the event, after a Notice where it ends a message that shows a call."""
        marker = self._leaked_marker(event)
        if marker and isinstance(event, OutputItemDone):
            detail = f"text looks like a tool call: {marker}"
            if event.index not in self._reported:
                assembler.forward(Notice("leaked_tool_call", detail, event.index))
            if marker.startswith(UNREADABLE):
                event = replace(event, item=replace(event.item, status="incomplete"))
        assembler.forward(event)


def _marker_in(event: OutputItemDone) -> str:
    """The marker of a call outside of code in a finished message of the assistant; "" for none."""
    item = event.item
    if not isinstance(item, Message) or item.role != "assistant":
        return ""
    text = item.text
    if not any(marker in text for marker in MARKERS):  # usual, and much faster than the search
        return ""
    code, start = CodeSpans(), 0
    for index, marker in _SEARCH.matches(text, 0, final=True):
        code.add(text[start:index])
        start = index
        if marker and not code.inside:
            return marker
    return ""
