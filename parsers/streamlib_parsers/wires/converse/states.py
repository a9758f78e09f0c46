"""Bedrock ConverseStream: the order of events, as states and transitions."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """State of the stream; a `str`, whose hash is read for each event."""

    START = "before the first event"
    WITHIN = "inside the message"
    STOPPED = "after messageStop"


TRANSITIONS: Final[dict[State, dict[str, State]]] = {
    State.START: {
        "messageStart": State.WITHIN,
        # `messageStart` may be missing.
        "contentBlockStart": State.WITHIN,
        "contentBlockDelta": State.WITHIN,
        "contentBlockStop": State.WITHIN,
        "messageStop": State.STOPPED,
        "metadata": State.START,
    },
    State.WITHIN: {
        "contentBlockStart": State.WITHIN,
        "contentBlockDelta": State.WITHIN,
        "contentBlockStop": State.WITHIN,
        "messageStop": State.STOPPED,
        "metadata": State.WITHIN,
    },
    State.STOPPED: {"metadata": State.STOPPED},
}
"""State -> event -> next state. A known event without an entry is passed through, not applied."""
