"""What an attempt feeds in place of a parser: a JSON body, or the messages of a WebSocket."""

from __future__ import annotations

from streamlib_parsers.errors import limit_exceeded
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.limits import Limits
from streamlib_parsers.protocol import Parser
from streamlib_parsers.resumable import ResumableParser


class BodyCollector:
    """Collects a body labelled `application/json` and parses it at its end.

    It has the methods of a `Parser` that an attempt uses. A body that does not begin with `{` or
    `[` is a stream with the wrong label: it is passed on to the parser as it is received.
    """

    def __init__(self, parser: Parser | ResumableParser, limits: Limits) -> None:
        self._parser = parser
        self._limits = limits
        self._chunks: list[bytes] = []
        """The body so far, until it is known to be a stream."""
        self._size = 0
        """Bytes in `_chunks`."""
        self._is_stream: bool | None = None
        """None until the first byte that is not white space."""

    @property
    def unfiltered_events(self) -> list[ResponseEvent] | None:
        """See `Parser`; None while a body is collected, since there are no events."""
        return self._parser.unfiltered_events if self._is_stream else None

    def feed(self, chunk: bytes) -> list[ResponseEvent]:
        """See `Parser`."""
        if self._is_stream:
            return self._parser.feed(chunk)
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size > self._limits.response_bytes:
            failure = limit_exceeded("response_bytes", self._limits.response_bytes).info
            return self._parser.abort(failure)
        # White space alone decides nothing: servers send it to keep a connection open.
        if self._is_stream is None:
            text = chunk.lstrip()
            if text:
                self._is_stream = not text.startswith((b"{", b"["))
            if self._is_stream:
                return self._parser.feed(b"".join(self._chunks))
        return []

    def close(self) -> list[ResponseEvent]:
        """See `Parser`."""
        events: list[ResponseEvent] = []
        if not self._is_stream:
            events += self._parser.feed_body(b"".join(self._chunks))
        events += self._parser.close()
        return events


class MessageFeeder:
    """Feeds the messages of a WebSocket, each of which is one event, to a parser.

    It has the methods of a `Parser` that an attempt uses.
    """

    def __init__(self, parser: Parser | ResumableParser) -> None:
        self._parser = parser

    @property
    def unfiltered_events(self) -> list[ResponseEvent] | None:
        """See `Parser`."""
        return self._parser.unfiltered_events

    def feed(self, chunk: bytes) -> list[ResponseEvent]:
        """The events of one message."""
        return self._parser.feed_event(chunk)

    def close(self) -> list[ResponseEvent]:
        """See `Parser`."""
        return self._parser.close()
