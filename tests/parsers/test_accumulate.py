"""Events to a response: what an accumulator refuses."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib_parsers import (
    AnnotationAdded,
    FunctionCallArgumentsDelta,
    MediaDelta,
    Message,
    OutputItemDone,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    Text,
)
from streamlib_parsers.accumulate import Accumulator

LATE_EVENTS = [
    OutputTextDelta(3, 0, "a"),
    ReasoningContentDelta(3, 0, "a"),
    ReasoningSummaryDelta(3, 0, "a"),
    RefusalDelta(3, 0, "a"),
    FunctionCallArgumentsDelta(3, "{"),
    MediaDelta(3, 0, "image/png", "AAAA"),
    AnnotationAdded(3, 0, {}),
]


@pytest.mark.parametrize("event", LATE_EVENTS, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("done", [False, True])
def test_delta_without_its_open_item_is_a_clear_error(event: Any, done: bool) -> None:
    """A16: an accumulator that was started in the middle of a stream."""
    accumulator = Accumulator()
    if done:
        accumulator.feed(OutputItemDone(3, Message("assistant", (Text("a"),))))
    before = accumulator.response
    with pytest.raises(ValueError, match=f"{type(event).__name__} for item 3, which is not open"):
        accumulator.feed(event)
    assert accumulator.response == before
