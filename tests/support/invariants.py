"""What the tests of the laws share: bodies to hold them against, and what a stream may never say."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from streamlib_parsers import (
    Completed,
    FunctionCall,
    Message,
    OutputItemDone,
    Reasoning,
    ResponseEvent,
    WireApi,
    parser,
)
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.shared import ROOT

OURS: Final = tuple(
    sorted(
        path
        for path in (ROOT / "tests" / "recordings").glob("*/*")
        if path.suffix in (".sse", ".ndjson", ".eventstream")
    )
)
"""Our own recordings, of six wires."""


def wire_of(path: Path) -> Any:
    """The wire of one of our recordings."""
    return path.parent.name


def events_of(wire_api: WireApi, chunks: Iterable[bytes], **options: Any) -> list[ResponseEvent]:
    """All events of a stream in these chunks."""
    one = parser(wire_api, **options)
    return [*(event for chunk in chunks for event in one.feed(chunk)), *one.close()]


Said = tuple[str, str, list[tuple[str, str]]]


def said(events: Iterable[ResponseEvent]) -> Said:
    """Text, thoughts, and the calls that may be answered."""
    items = [event.item for event in events if isinstance(event, OutputItemDone)]
    calls = [
        item for item in items if isinstance(item, FunctionCall) and item.status == "completed"
    ]
    return (
        "".join(item.text for item in items if isinstance(item, Message)),
        "".join(item.text for item in items if isinstance(item, Reasoning)),
        [
            (item.name, json.dumps(json.loads(item.arguments or "{}"), sort_keys=True))
            for item in calls
        ],
    )


def cut_falsely(wire_api: WireApi, body: bytes, place: int, whole: Said) -> bool:
    """Whether the body cut there counts as an answer, with less than it says.

    Gemini has no terminal: a cut between its finishReason and the end may lack a tail, which no reader can know. Chat may end behind its
    finish_reason, but says then that the end is inferred.
    """
    events = events_of(wire_api, [body[:place]])
    if not isinstance(events[-1], Completed) or (
        wire_api == "gemini" and b"inishReason" in body[:place]
    ):
        return False
    return said(events) != whole


__all__ = ["OURS", "WIRE_APIS", "cut_falsely", "events_of", "said", "wire_of"]
