"""Gemini's other stream: one JSON array that grows, for clients that do not ask for `alt=sse`."""

from __future__ import annotations

from streamlib.request.report import Change
from streamlib.wires.encoders import Encoder
from streamlib_parsers.events import ResponseEvent


class JsonArray:
    """An encoder of server-sent events, its events written as the elements of an array."""

    media_type = "application/json"

    def __init__(self, inner: Encoder) -> None:
        self.report: list[Change] = inner.report
        self._inner = inner
        self._begun = False

    def feed(self, event: ResponseEvent) -> bytes:
        """As the encoder's."""
        return self._elements(self._inner.feed(event))

    def close(self) -> bytes:
        """The end of the array."""
        last = self._elements(self._inner.close())
        return last + (b"]" if self._begun else b"[]")

    def _elements(self, stream: bytes) -> bytes:
        frames = [
            frame.removeprefix(b"data: ").replace(b"\ndata: ", b"\n")
            for frame in stream.split(b"\n\n")
            if frame
        ]
        start = b"," if self._begun else b"["
        self._begun |= bool(frames)
        return start + b",\r\n".join(frames) if frames else b""
