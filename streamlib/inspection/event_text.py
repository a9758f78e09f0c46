"""Describes events for people: one line each, safe for a terminal."""

from __future__ import annotations

from typing import Final

import msgspec

from streamlib.display.safe_text import printable
from streamlib_parsers.events import (
    DELTA_KEYS,
    Completed,
    Created,
    Failed,
    ItemProgress,
    MediaDelta,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    Passthrough,
    RateLimits,
    ResponseMetadata,
    RunEvent,
    TokenCount,
    Window,
)
from streamlib_parsers.items import ResponseItem, tag
from streamlib_parsers.usage import Usage

MIN_QUOTE: Final = 12
"""Minimum width of a quoted text, in columns, on any terminal."""

BETWEEN: Final = 5
"""Columns of the quotes, and of the " … " that replaces omitted text."""

NAME_COLUMNS: Final = 80
"""Columns of a tool's name, before it is escaped."""


def describe_event(event: RunEvent, text: str, width: int) -> str:
    """Describes one event, or several deltas of one text, on one line.

    Args:
        event: the event; the last one of several deltas. In a run also the output of a call.
        text: the joined text of the deltas.
        width: columns of the line.
    """
    name = type(event).__name__
    if type(event) in DELTA_KEYS:
        start = f"{name} {event.index} "  # type: ignore[union-attr]
        return start + quote(text, width - len(start))
    return shorten(f"{name} {printable(_details(event))}".strip(), width)


def quote(text: str, width: int) -> str:
    """A text as a Python literal; one longer than `width` columns loses its middle."""
    literal = repr(text)
    if len(literal) <= max(width, MIN_QUOTE):
        return literal
    size = f" ({len(text):,} characters)"
    available = width - len(size) - BETWEEN
    if available < MIN_QUOTE:
        # Without room for both, the text is shown and not its size.
        size = ""
        available = max(MIN_QUOTE, width - BETWEEN)
    quoted = _without_middle(text, available)
    # Measured on the literal, where a line feed has two characters.
    excess = len(quoted) + len(size) - width
    if excess > 0:
        quoted = _without_middle(text, max(MIN_QUOTE, available - excess))
    return quoted + size


def _without_middle(text: str, available: int) -> str:
    start = repr(text[: available * 2 // 3])[:-1]
    end = repr(text[-available // 3 :])[1:]
    return f"{start} … {end}"


def shorten(line: str, width: int) -> str:
    """A text on one line of at most `width` columns."""
    line = " ".join(line.split())
    if len(line) <= width:
        return line
    return line[: width - 1] + "…"


def item_label(item: ResponseItem) -> str:
    """An item's kind, and its name where it has one."""
    name = tool_name(getattr(item, "name", ""))
    return f"{tag(type(item))} {name}".strip()


def tool_name(name: str) -> str:
    """A tool's name, escaped and shortened to one line: a model may have made it up."""
    # Escaped last, so that no escape sequence is cut and no blank at the cut is lost.
    return printable(shorten(name[: NAME_COLUMNS * 2], NAME_COLUMNS))


def usage_text(usage: Usage | None) -> str:
    """Input and output tokens, if they are known."""
    # An unknown count is None, and must not be shown as 0.
    counts: list[str] = []
    if usage is not None and usage.input_tokens is not None:
        counts.append(f"{usage.input_tokens:,} in")
    if usage is not None and usage.output_tokens is not None:
        counts.append(f"{usage.output_tokens:,} out")
    return ", ".join(counts)


def remaining_text(window: Window | None, name: str) -> list[str]:
    """What remains of a rate limit, as a list of one text; empty if unknown."""
    if window is None or window.remaining is None:
        return []
    return [f"{window.remaining:,.0f} {name} left"]


def _details(event: RunEvent) -> str:
    """The most important fields of an event, shown after its name."""
    match event:
        case OutputItemAdded() | OutputItemDone() | ItemProgress() | MediaDelta():
            return f"{event.index} {_item_details(event)}"
        case Notice():
            return f"{event.code}: {event.detail}"
        case Passthrough():
            return f"{event.event} {msgspec.json.encode(event.data).decode()}"
        case _:
            return _response_details(event)


def _item_details(event: OutputItemAdded | OutputItemDone | ItemProgress | MediaDelta) -> str:
    match event:
        case OutputItemAdded():
            return item_label(event.item)
        case OutputItemDone():
            if event.item.status == "incomplete":
                return f"{item_label(event.item)} INCOMPLETE"
            return item_label(event.item)
        case ItemProgress():
            return event.status
        case MediaDelta():
            size = f"{len(event.data or ''):,} characters of base64"
            return f"{event.media_type or ''} {size} {event.transcript or ''}"


def _response_details(event: RunEvent) -> str:
    match event:
        case TokenCount():
            return usage_text(event.usage)
        case RateLimits():
            return _limits(event)
        case Created():
            return f"{event.response_id or ''} {event.model or ''}"
        case ResponseMetadata():
            return ", ".join(event.values)
        case Completed():
            return _stop_reasons(event)
        case Failed():
            return f"{event.error.kind}: {event.error.message}"
        case _:
            return getattr(event, "call_id", "")


def _limits(event: RateLimits) -> str:
    facts = [
        *remaining_text(event.requests, "requests"),
        *remaining_text(event.tokens, "tokens"),
        *remaining_text(event.input_tokens, "input"),
        *remaining_text(event.output_tokens, "output"),
    ]
    if event.request_id:
        facts.append(event.request_id)
    return ", ".join(facts)


def _stop_reasons(event: Completed) -> str:
    native = event.native_stop_reason
    if not native or native == event.stop_reason:
        return f"{event.stop_reason}"
    return f"{event.stop_reason} ({native})"
