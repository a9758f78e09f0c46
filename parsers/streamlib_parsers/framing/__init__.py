"""Framing: bytes to frames, the messages of a stream.

A framing knows no vendor: it finds where one message ends and the next begins, however the bytes
are split into chunks.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from msgspec import Struct

from streamlib_parsers.errors import ParseFailure


class Frame(Struct, frozen=True, gc=False):
    """One message of a stream.

    Attributes:
        event: its name, where the framing has names (SSE `event:`, AWS `:event-type`).
        data: its payload; None for a frame that only carries stray lines.
        id: SSE's last event id, sticky as in WHATWG.
        stray: SSE lines before this frame that are neither a known field nor a comment, joined
            by `\\n`. They never affect dispatch, but wires look there for an error (Gemini sends
            bare JSON errors between events).
    """

    event: str | None
    data: bytes | None
    id: str | None = None
    stray: bytes = b""


NamedPayload: TypeAlias = tuple[str | None, bytes]
"""The name and the payload of a frame, for readers that need nothing else of it."""


class Framing(Protocol):
    """What every framing has.

    Attributes:
        failure: set once, and for good, when the bytes exceeded a limit or broke the framing's own
            rules. The frames completed before it are returned first, so that the result does not
            depend on how the bytes are split into chunks.
        blank: True while the input has held nothing but empty lines and comments: an empty stream.
    """

    failure: ParseFailure | None
    blank: bool

    def single(self, chunk: bytes) -> NamedPayload | None:
        """The name and payload of a chunk that is exactly one frame.

        Most chunks are, while a model writes. None: nothing was read, call `feed` instead.
        """
        ...

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that `chunk` completes."""
        ...

    def close(self) -> list[Frame]:
        """Returns, at the end of input, the frame that only lacked its terminator, if any.

        Sets `failure` where the input was truncated.
        """
        ...
