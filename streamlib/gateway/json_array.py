"""Gemini's stream for clients that do not ask for `alt=sse`: one JSON array, element by element."""

from __future__ import annotations

from streamlib.request.report import Change
from streamlib.wires.encoders import Encoder
from streamlib_parsers.events import ResponseEvent


class JsonArray:
    """Writes the events of an SSE encoder as the elements of a JSON array."""

    media_type = "application/json"

    def __init__(self, inner: Encoder) -> None:
        self.report: list[Change] = inner.report
        """The inner encoder's."""
        self._inner = inner
        self._has_elements = False
        """Whether the array was opened, with its first element."""

    def feed(self, event: ResponseEvent) -> bytes:
        """Returns the bytes of one event; empty if it is buffered or cannot be encoded."""
        return self._elements(self._inner.feed(event))

    def close(self) -> bytes:
        """Returns the last elements and the end of the array."""
        last = self._elements(self._inner.close())
        if self._has_elements:
            return last + b"]"
        return b"[]"

    def ping(self) -> bytes:
        """Returns white space, which is allowed between elements."""
        return b"\n"

    def _elements(self, stream: bytes) -> bytes:
        elements: list[bytes] = []
        for frame in stream.split(b"\n\n"):
            # What follows the last blank line is empty.
            if frame:
                # JSON that has line breaks is sent in several `data` lines.
                elements.append(frame.removeprefix(b"data: ").replace(b"\ndata: ", b"\n"))
        if not elements:
            return b""
        separator = b"["
        if self._has_elements:
            separator = b","
        self._has_elements = True
        return separator + b",\r\n".join(elements)
