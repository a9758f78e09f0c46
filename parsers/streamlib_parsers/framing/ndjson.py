"""JSON lines (`application/x-ndjson`): one JSON value a line, as Ollama streams them.

    {"message":{"content":"Hi"},"done":false}\\n
    {"message":{"content":""},"done":true,"done_reason":"stop"}\\n

A line ends in LF or CR LF; a lone CR is white space. Lines of nothing but white space are skipped,
and so is a byte order mark before the first line. JSON never holds a raw line feed, so only the
unfinished line is buffered. At the end of input that line is emitted as it is: only a JSON decoder
can tell whether it is complete.
"""

from __future__ import annotations

from typing import Final

from streamlib_parsers.errors import ParseFailure, limit_exceeded, malformed
from streamlib_parsers.framing import Frame, NamedPayload
from streamlib_parsers.limits import LIMITS, Limits

_LF: Final = 0x0A
_BRACE: Final = 0x7B
_END_BRACE: Final = 0x7D
_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = b" \t\r"
_FIRST_BYTES_OF_JSON: Final = b'{["-0123456789tfn'


class NdjsonFraming:
    """`Framing` of JSON lines. `limits.event_bytes` limits a line, its CR included."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        # Set once, when a line exceeds the limit or the input is not JSON.
        self.failure: ParseFailure | None = None
        # True until a byte other than white space or a byte order mark arrives.
        self.blank = True
        # Longest line in bytes; never changes.
        self._limit = limits.event_bytes
        # The unfinished line; empty after each line feed.
        self._buffered = bytearray()
        # False after the first line, which alone may begin with a byte order mark.
        self._is_first_line = True

    def single(self, chunk: bytes) -> NamedPayload | None:
        """A chunk that is one line, without its LF, else None."""
        line = chunk[:-1]
        if _LF in line or self._buffered or not 1 < len(line) <= self._limit:
            return None
        # A line from brace to brace is not blank, and neither a byte order mark nor a CR is at
        # its ends.
        if chunk[-1] != _LF or line[0] != _BRACE or line[-1] != _END_BRACE:
            return None
        self._is_first_line = self.blank = False
        return None, line

    def feed(self, chunk: bytes) -> list[Frame]:
        """One frame for each line that `chunk` completes."""
        if self.failure is not None:
            return []
        if self.blank:
            self.blank = not chunk.strip(_BOM + _BLANK + b"\n")
        *line_ends, rest = chunk.split(b"\n")
        frames: list[Frame] = []
        for fragment in line_ends:
            if not self._check_limit(fragment):
                return frames
            line = self._complete_line(fragment)
            if line:
                frames.append(Frame(None, line))
        if self._check_limit(rest):
            self._buffered += rest
        return frames

    def close(self) -> list[Frame]:
        """Returns, at the end of input, the unfinished line, if any.

        A line that cannot begin JSON, of an HTML page for example, makes `failure` `malformed`.
        """
        if self.failure is not None:
            return []
        line = self._complete_line(b"")
        if not line:
            return []
        if line.lstrip(_BLANK)[0] not in _FIRST_BYTES_OF_JSON:
            self.failure = malformed("the stream is not JSON lines", line)
            return []
        return [Frame(None, line)]

    def _check_limit(self, fragment: bytes) -> bool:
        """Tells whether the line with `fragment` stays in the limit; fails the stream if not."""
        if len(self._buffered) + len(fragment) <= self._limit:
            return True
        self.failure = limit_exceeded("event_bytes", self._limit)
        self._buffered.clear()
        return False

    def _complete_line(self, fragment: bytes) -> bytes:
        """The buffered bytes and `fragment` as a line without its end; b"" if blank."""
        line = fragment
        if self._buffered:
            line = b"".join((self._buffered, fragment))
            self._buffered.clear()
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BOM)
        if not line.strip(_BLANK):
            return b""
        return line.removesuffix(b"\r")
