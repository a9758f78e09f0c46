"""Server-sent events or one JSON array, distinguished by the first byte that is not blank.

    data: {"candidates":…}        `alt=sse`                                 -> SSEFraming
    [{"candidates":…}             without it; an error is one object,
                                  `{"error":…}`                             -> JsonArrayFraming

No field or comment of an event stream begins with `[` or `{`, and no JSON array with anything else.
Until the choice is made, the blank bytes before that byte are buffered (a byte order mark counts as
blank) and then passed to the chosen framing; they never exceed `limits.event_bytes`.
"""

from __future__ import annotations

from typing import Final

from streamlib_parsers.errors import ParseFailure, limit_exceeded
from streamlib_parsers.framing import Frame, NamedPayload
from streamlib_parsers.framing.json_array import JsonArrayFraming
from streamlib_parsers.framing.sse import SSEFraming
from streamlib_parsers.limits import LIMITS, Limits

_BLANK: Final = b" \t\r\n\xef\xbb\xbf"
_FIRST_BYTES_OF_JSON: Final = b"[{"


class SSEOrJsonFraming:
    """`Framing` of a body whose first byte decides between server-sent events and JSON."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        # As in `Framing`; from the choice on, that of the chosen framing.
        self.failure: ParseFailure | None = None
        # As in `Framing`; from the choice on, that of the chosen framing.
        self.blank = True
        # Passed on to the chosen framing; never changes.
        self._limits = limits
        # Blank bytes that arrived before the choice.
        self._buffered = bytearray()
        # The chosen framing; None until a byte arrives that is not blank.
        self._framing: SSEFraming | JsonArrayFraming | None = None

    def single(self, chunk: bytes) -> NamedPayload | None:
        """What the chosen framing returns; the first event of an SSE stream decides."""
        framing = self._framing
        if framing is None:
            if self._buffered or chunk[:1] != b"d":
                return None
            framing = self._framing = SSEFraming(self._limits)
        payload = framing.single(chunk)
        if payload is not None:
            self.blank = False
        return payload

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that `chunk` completes."""
        framing = self._framing
        if framing is None:
            framing, chunk = self._choose(chunk)
            if framing is None:
                return []
        frames = framing.feed(chunk)
        self.failure, self.blank = framing.failure, framing.blank
        return frames

    def close(self) -> list[Frame]:
        """What the chosen framing returns at the end of input."""
        if self._framing is None:
            return []
        frames = self._framing.close()
        self.failure, self.blank = self._framing.failure, self._framing.blank
        return frames

    def _choose(self, chunk: bytes) -> tuple[SSEFraming | JsonArrayFraming | None, bytes]:
        """The framing and all bytes for it; None as long as every byte was blank."""
        if self.failure is not None:
            return None, b""
        text = chunk.lstrip(_BLANK)
        blank_bytes = len(chunk) - len(text)
        if len(self._buffered) + blank_bytes > self._limits.event_bytes:
            self.failure = limit_exceeded("event_bytes", self._limits.event_bytes)
            self._buffered.clear()
            return None, b""
        if not text:
            self._buffered += chunk
            return None, b""
        if text[0] in _FIRST_BYTES_OF_JSON:
            self._framing = JsonArrayFraming(self._limits)
        else:
            self._framing = SSEFraming(self._limits)
        return self._framing, b"".join((self._buffered, chunk))
