"""Gemini Interactions: deltas that differ from the one before them in their text, and their id.

    {"index":0,"delta":{"type":"text","text":"Hi"},"event_type":"step.delta","event_id":"evt-3"}
    '---------------- prefix --------------''text''-------------- between -----------''id-''suffix

Only the events of an interaction that can be resumed have an id.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamlib_parsers.templates import (
    ENCODED_PROBE,
    PROBE,
    Gap,
    ReadGap,
    TextGap,
    around_string,
    decode_text,
    divided_at_mark,
)

DELTA_KEYS: Final = frozenset({"index", "delta", "event_type"})
"""Keys of a delta that brings a text alone."""

TEXT_KEYS: Final[dict[Any, str]] = {
    "text": "text",
    "arguments_delta": "arguments",
    "thought_summary": "text",  # of its content
}
"""Kind of a delta -> the key of its text."""

ID_CHARACTERS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:"
"""Characters of the ids that are read here. None of them ends a JSON string."""

_ID_AT_END: Final = re.compile(rb'"event_id":"([A-Za-z0-9_.:-]+)"}$')
_AFTER_ID: Final = b'"}'


def find_gap(
    data: bytes,
    value: dict[str, Any],
    append: Callable[[str], bool],
    report_id: Callable[[str], None],
) -> Gap | None:
    """Returns the gap of a delta that was just read; None if it cannot be divided like this.

    Args:
        data: The event.
        value: `data`, decoded; it is modified.
        append: Receives the text.
        report_id: Receives the id of the event, after the text.
    """
    text = text_of(value["delta"])
    if text is None:
        return None
    holder, key = text
    around = around_string(data, key)
    if around is None:
        return None
    prefix, behind = around
    holder[key] = PROBE
    # The key may occur elsewhere too: with the probe as its text, the event must be as expected.
    if msgspec.json.decode(prefix + ENCODED_PROBE + behind) != value:
        return None
    if value.keys() == DELTA_KEYS:
        return TextGap(prefix, behind, append)
    event_id = _ID_AT_END.search(behind)
    if event_id is None or value.keys() != DELTA_KEYS | {"event_id"}:
        return None
    return _identified_gap(prefix, behind[: event_id.start(1)], append, report_id)


def text_of(delta: dict[str, Any]) -> tuple[dict[str, Any], str] | None:
    """Returns the object with the text and its key, if the delta has nothing else; else None."""
    kind = delta.get("type")
    holder = delta
    if kind == "thought_summary":
        content = delta.get("content")
        if len(delta) != 2 or not isinstance(content, dict) or content.get("type") != "text":
            return None
        holder = content
    key = TEXT_KEYS.get(kind)
    if key is None or holder.keys() != {"type", key} or not isinstance(holder[key], str):
        return None
    return holder, key


def has_text(delta: dict[str, Any]) -> bool:
    """Whether a delta has nothing but a text, which is not empty."""
    text = text_of(delta)
    if text is None:
        return False
    holder, key = text
    return bool(holder[key])


def _identified_gap(
    prefix: bytes,
    between: bytes,
    append: Callable[[str], bool],
    report_id: Callable[[str], None],
) -> Gap:
    """Returns the gap from a text to the end of the event's id."""
    mark, behind_mark = divided_at_mark(between)

    def read(gap: bytes) -> bool:
        encoded_text, _, rest = gap.partition(mark)
        event_id = rest.removeprefix(behind_mark)
        is_divided = len(rest) - len(event_id) == len(behind_mark)
        if not is_divided or not event_id or event_id.strip(ID_CHARACTERS):
            return False
        append(decode_text(encoded_text))
        report_id(event_id.decode())
        return True

    return ReadGap(prefix, _AFTER_ID, read)
