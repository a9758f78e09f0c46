"""Events in words: one line each, harmless on a terminal."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from streamlib.cli.terminal import printable
from streamlib.pipeline import DELTA_KEYS
from streamlib_parsers import (
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
    ResponseEvent,
    ResponseItem,
    ResponseMetadata,
    TokenCount,
    Usage,
)
from streamlib_parsers.items import tag


def described(event: ResponseEvent, text: str, width: int) -> str:
    """One event, or many that make one text longer, on one line."""
    words = _WORDS.get(type(event))
    name = type(event).__name__
    if type(event) in DELTA_KEYS:
        head = f"{name} {event.index} "  # type: ignore[union-attr]
        return head + quoted(text, width - len(head))
    return shortened(f"{name} {printable(words(event)) if words else ''}".strip(), width)


def quoted(text: str, width: int) -> str:
    """A text in quotes, as Python writes it, its middle left out where it is long."""
    whole = repr(text)
    if len(whole) <= max(width, 12):
        return whole
    size = f" ({len(text):,} characters)"
    room = max(12, width - len(size) - 6)
    return f"{repr(text[: room * 2 // 3])[:-1]} … {repr(text[-room // 3 :])[1:]}{size}"


def shortened(line: str, width: int) -> str:
    """One line of at most so many characters."""
    line = " ".join(line.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def item_words(item: ResponseItem) -> str:
    """Its kind, and its name where it has one."""
    name = getattr(item, "name", "")
    return f"{tag(type(item))} {name}".strip()


def _limits(event: RateLimits) -> str:
    named = {
        "requests": event.requests,
        "tokens": event.tokens,
        "input": event.input_tokens,
        "output": event.output_tokens,
    }
    left = [
        f"{window.remaining:,.0f} {name} left"
        for name, window in named.items()
        if window and window.remaining is not None
    ]
    return ", ".join([*left, *([event.request_id] if event.request_id else [])])


def usage_words(usage: Usage | None) -> str:
    """Tokens in and out, as far as they are known."""
    counts = {"in": usage.input_tokens, "out": usage.output_tokens} if usage else {}
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count is not None)


def _usage(event: TokenCount) -> str:
    return usage_words(event.usage)


def _media(event: MediaDelta) -> str:
    return f"{event.index} {event.media_type or ''} {len(event.data or ''):,} characters of base64 {event.transcript or ''}"


def _ended(event: Completed) -> str:
    native = (
        f" ({event.native_stop_reason})"
        if event.native_stop_reason and event.native_stop_reason != event.stop_reason
        else ""
    )
    return f"{event.stop_reason}{native}"


def _created(event: Created) -> str:
    return f"{event.response_id or ''} {event.model or ''}"


def _added(event: OutputItemAdded) -> str:
    return f"{event.index} {item_words(event.item)}"


def _done(event: OutputItemDone) -> str:
    return f"{event.index} {item_words(event.item)}{' INCOMPLETE' if event.item.status == 'incomplete' else ''}"


def _progress(event: ItemProgress) -> str:
    return f"{event.index} {event.status}"


def _metadata(event: ResponseMetadata) -> str:
    return ", ".join(event.values)


def _passthrough(event: Passthrough) -> str:
    return f"{event.event} {msgspec.json.encode(event.data).decode()}"


def _notice(event: Notice) -> str:
    return f"{event.code}: {event.detail}"


def _failed(event: Failed) -> str:
    return f"{event.error.kind}: {event.error.message}"


_WORDS: Final[dict[type, Any]] = {
    RateLimits: _limits,
    Created: _created,
    OutputItemAdded: _added,
    OutputItemDone: _done,
    TokenCount: _usage,
    MediaDelta: _media,
    ItemProgress: _progress,
    ResponseMetadata: _metadata,
    Passthrough: _passthrough,
    Notice: _notice,
    Completed: _ended,
    Failed: _failed,
}
