"""Bytes -> frames. A framing knows no vendor: it finds where one message ends and the next begins, at any split of the bytes."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from streamlib_parsers.errors import ParseFailure


class Frame(Struct, frozen=True, gc=False):
    """One message of a stream.

    event: its name, where the framing has names (SSE `event:`, AWS `:event-type`).
    data: its payload; None for a frame that only carries stray lines.
    id: SSE's last event id, sticky as in WHATWG.
    stray: SSE lines before this frame that are neither a known field nor a comment, joined by `\\n`. They never affect
        dispatch, but wires look there for an error (Gemini sends bare JSON errors between events).
    """

    event: str | None
    data: bytes | None
    id: str | None = None
    stray: bytes = b""


class Framing(Protocol):
    """What every framing has.

    `failure` is set, for good, when the bytes broke a ceiling or the framing's own rules: the frames found before it are
    returned first, so that the result does not depend on the split. `blank` is true while nothing but empty lines and
    comments was seen: an empty stream.
    """

    failure: ParseFailure | None
    blank: bool

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that `chunk` completes."""
        ...

    def close(self) -> list[Frame]:
        """End of input: the frame whose end was only missing its terminator, if any. Sets `failure` where bytes were cut."""
        ...
