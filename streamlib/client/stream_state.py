"""The states of a `ResponseStream`, and the table of transitions between them.

    NEW --enter--> READY --wait--> CONNECTING --deliver--> READING
                     ^---resume-------'                    | ^
                                             resume        v | wait
                                                          IDLE

    From each of them `close` (after the response's own end) leads to CLOSED and `cancel` (before
    it) to CANCELLED; through STOPPING or CANCELLING while a task still waits in the stream.

The state decides who may read, whether the request may be sent again (only in CONNECTING), and how
the iteration ends.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class StreamState(StrEnum):
    """The state of a stream. A string, since an enum's own hash is computed in Python."""

    NEW = "new"
    """Created; nothing was sent."""
    UNUSED = "unused"
    """Closed before it was entered."""
    READY = "ready"
    """Entered, no event delivered yet, and no task waits."""
    CONNECTING = "connecting"
    """A task waits for a connection, a retry or the first events."""
    READING = "reading"
    """A task waits, and events were delivered: the request must not be sent again."""
    IDLE = "idle"
    """Events were delivered, and no task waits."""
    STOPPING = "stopping"
    """Closed after the response's own end, while a task still waits."""
    CANCELLING = "cancelling"
    """Closed before the response's end, while a task still waits."""
    CLOSED = "closed"
    """Closed after the response's own end."""
    CANCELLED = "cancelled"
    """Closed before the response's end."""


class StreamAction(StrEnum):
    """What happens to a stream."""

    ENTER = "enter"
    """`async with` begins."""
    WAIT = "wait"
    """A task begins to wait in the stream."""
    DELIVER = "deliver"
    """The waiting task received events for the caller."""
    RESUME = "resume"
    """The waiting task goes on, with or without an exception."""
    CLOSE = "close"
    """The stream is closed, and the response had ended."""
    CANCEL = "cancel"
    """The stream is closed, and the response had not ended."""


TRANSITIONS: Final[dict[StreamState, dict[StreamAction, StreamState]]] = {
    StreamState.NEW: {
        StreamAction.ENTER: StreamState.READY,
        StreamAction.CLOSE: StreamState.UNUSED,
        StreamAction.CANCEL: StreamState.UNUSED,
    },
    StreamState.UNUSED: {
        # Another task closed it before `async with`: it can be entered, and ends at once.
        StreamAction.ENTER: StreamState.CANCELLED,
        StreamAction.CLOSE: StreamState.UNUSED,
        StreamAction.CANCEL: StreamState.UNUSED,
    },
    StreamState.READY: {
        StreamAction.WAIT: StreamState.CONNECTING,
        StreamAction.CLOSE: StreamState.CLOSED,
        StreamAction.CANCEL: StreamState.CANCELLED,
    },
    StreamState.CONNECTING: {
        StreamAction.DELIVER: StreamState.READING,
        StreamAction.RESUME: StreamState.READY,
        StreamAction.CLOSE: StreamState.STOPPING,
        StreamAction.CANCEL: StreamState.CANCELLING,
    },
    StreamState.READING: {
        StreamAction.DELIVER: StreamState.READING,
        StreamAction.RESUME: StreamState.IDLE,
        StreamAction.CLOSE: StreamState.STOPPING,
        StreamAction.CANCEL: StreamState.CANCELLING,
    },
    StreamState.IDLE: {
        StreamAction.WAIT: StreamState.READING,
        StreamAction.CLOSE: StreamState.CLOSED,
        StreamAction.CANCEL: StreamState.CANCELLED,
    },
    StreamState.STOPPING: {
        StreamAction.DELIVER: StreamState.STOPPING,
        StreamAction.RESUME: StreamState.CLOSED,
        StreamAction.CLOSE: StreamState.STOPPING,
        # Closed during the pause before a retry: the failed attempt had ended, the next is new.
        StreamAction.CANCEL: StreamState.CANCELLING,
    },
    StreamState.CANCELLING: {
        StreamAction.DELIVER: StreamState.CANCELLING,
        StreamAction.RESUME: StreamState.CANCELLED,
        StreamAction.CLOSE: StreamState.CANCELLING,
        StreamAction.CANCEL: StreamState.CANCELLING,
    },
    StreamState.CLOSED: {
        # A closed stream can still be read: the iteration ends at once.
        StreamAction.WAIT: StreamState.STOPPING,
        StreamAction.CLOSE: StreamState.CLOSED,
        StreamAction.CANCEL: StreamState.CLOSED,
    },
    StreamState.CANCELLED: {
        # Reading ends at once too, with `cancelled`.
        StreamAction.WAIT: StreamState.CANCELLING,
        StreamAction.CLOSE: StreamState.CANCELLED,
        StreamAction.CANCEL: StreamState.CANCELLED,
    },
}
"""State and action to the next state. What is not in the table raises: see `next_state`."""

BUSY: Final = frozenset(
    {
        StreamState.CONNECTING,
        StreamState.READING,
        StreamState.STOPPING,
        StreamState.CANCELLING,
    }
)
"""States in which a task waits in the stream."""

ENDED: Final = frozenset(
    {
        StreamState.UNUSED,
        StreamState.STOPPING,
        StreamState.CANCELLING,
        StreamState.CLOSED,
        StreamState.CANCELLED,
    }
)
"""States after `close` or `cancel`."""


def shown_state(state: StreamState) -> str:
    """The state in a word, for people."""
    if state is StreamState.NEW:
        return "new"
    if state in ENDED:
        return "closed"
    return "open"


def next_state(state: StreamState, action: StreamAction) -> StreamState:
    """The state after an action.

    Raises:
        RuntimeError: the action is not possible in the state; the message says what to do.
    """
    following = TRANSITIONS[state].get(action)
    if following is not None:
        return following
    if action is StreamAction.ENTER:
        raise RuntimeError("a stream is entered once: create another with `client.stream`")
    if action is StreamAction.WAIT and state in BUSY:
        raise RuntimeError("another task is reading this stream")
    if action is StreamAction.WAIT:
        raise RuntimeError("use `async with` on the stream")
    raise RuntimeError(f"no task waits in this stream: {action} is impossible when {state}")
