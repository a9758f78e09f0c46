"""Server-sent events or one JSON array, told apart by the first byte that is not blank: a stream that may come in either dress.

    data: {"candidates":…}        `alt=sse`                                                       -> SSEFraming
    [{"candidates":…}             without it; errors come as one object, `{"error":…}`            -> JsonArrayFraming

No line of an event stream that means anything begins with `[` or `{`, and no JSON array with anything else. Held back: the blank bytes
before the first other byte (a byte order mark counts as blank), which are then given to the framing that was chosen; they never pass
`limits.event_bytes`.
"""

from __future__ import annotations

from typing import Final

from streamlib_parsers.errors import ParseFailure, limit_exceeded
from streamlib_parsers.framing import Frame, Framing
from streamlib_parsers.framing.json_array import JsonArrayFraming
from streamlib_parsers.framing.sse import SSEFraming
from streamlib_parsers.limits import LIMITS, Limits

_BLANK: Final = b" \t\r\n\xef\xbb\xbf"
_JSON: Final = b"[{"


class SSEOrJsonFraming:
    """`Framing` of a body whose first byte says how it is framed. See `Framing` for `feed`, `close`, `failure` and `blank`."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.failure: ParseFailure | None = None
        self.blank = True
        self._limits = limits
        self._held = bytearray()
        self._chosen: Framing | None = None

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that `chunk` completes."""
        if self._chosen is None:
            chunk = self._choose(chunk)
        return (
            self._given(self._chosen, self._chosen.feed(chunk)) if self._chosen is not None else []
        )

    def close(self) -> list[Frame]:
        """The frame whose end was only missing its terminator, as the chosen framing has it."""
        return self._given(self._chosen, self._chosen.close()) if self._chosen is not None else []

    def _choose(self, chunk: bytes) -> bytes:
        """All bytes so far once one of them is not blank; before, nothing that a framing would need yet."""
        said = chunk.lstrip(_BLANK)
        blank = len(chunk) - len(said)
        if self.failure is None and len(self._held) + blank > self._limits.event_bytes:
            self.failure = limit_exceeded("event_bytes", self._limits.event_bytes)
            self._held.clear()
        if self.failure is not None or not said:
            self._held += b"" if self.failure is not None else chunk
            return b""
        self._chosen = (
            JsonArrayFraming(self._limits) if said[0] in _JSON else SSEFraming(self._limits)
        )
        return b"".join((self._held, chunk))

    def _given(self, chosen: Framing, frames: list[Frame]) -> list[Frame]:
        self.failure, self.blank = chosen.failure, chosen.blank
        return frames
