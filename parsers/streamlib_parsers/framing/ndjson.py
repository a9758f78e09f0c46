"""JSON lines (`application/x-ndjson`): one JSON value a line, as Ollama streams them.

    {"message":{"content":"Hi"},"done":false}\\n
    {"message":{"content":""},"done":true,"done_reason":"stop"}\\n

A line ends in LF or CR LF; a lone CR is white space. Lines of nothing but white space are skipped, a byte order mark before the
first line too. JSON never holds a raw line feed, so nothing is held back but the unfinished line. At the end of input that line
is given as it stands: only a JSON decoder can say whether it is whole.
"""

from __future__ import annotations

from typing import Final

from streamlib_parsers.errors import ParseFailure, limit_exceeded, malformed
from streamlib_parsers.framing import Frame
from streamlib_parsers.limits import LIMITS, Limits

_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = b" \t\r"
_JSON_BEGINS: Final = b'{["-0123456789tfn'


class NdjsonFraming:
    """`Framing` of JSON lines. `limits.event_bytes` is the ceiling of a line, its CR included."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.failure: ParseFailure | None = None
        self.blank = True
        self._ceiling = limits.event_bytes
        self._held = bytearray()
        self._first = True

    def feed(self, chunk: bytes) -> list[Frame]:
        """One frame for each line that `chunk` completes."""
        if self.failure is not None:
            return []
        if self.blank:
            self.blank = not chunk.strip(_BOM + _BLANK + b"\n")
        *ended, rest = chunk.split(b"\n")
        frames: list[Frame] = []
        for piece in ended:
            if not self._fits(piece):
                return frames
            line = self._line(piece)
            if line:
                frames.append(Frame(None, line))
        if self._fits(rest):
            self._held += rest
        return frames

    def close(self) -> list[Frame]:
        """End of input: the unfinished line, if any. One that cannot be the beginning of JSON is `malformed`: a page of HTML, say."""
        if self.failure is not None:
            return []
        line = self._line(b"")
        if line and line.lstrip(_BLANK)[0] not in _JSON_BEGINS:
            self.failure = malformed("the stream is not JSON lines", line)
            return []
        return [Frame(None, line)] if line else []

    def _fits(self, piece: bytes) -> bool:
        if len(self._held) + len(piece) <= self._ceiling:
            return True
        self.failure = limit_exceeded("event_bytes", self._ceiling)
        self._held.clear()
        return False

    def _line(self, piece: bytes) -> bytes:
        """The held bytes and `piece` as one line without its end; empty if it is blank."""
        line = b"".join((self._held, piece)) if self._held else piece
        self._held.clear()
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        return line.removesuffix(b"\r") if line.strip(_BLANK) else b""
