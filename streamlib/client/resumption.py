"""How the stream of a background response is resumed. Experimental: docs/resume.md."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from streamlib.client.cursor import Cursor
from streamlib.client.sources import ResponseSource
from streamlib_parsers.items import Origin
from streamlib_parsers.resumable import Position, ResumableParser


class Resumption(Struct, frozen=True, kw_only=True):
    """How the stream of a background response is resumed.

    Attributes:
        origin: where the response is made.
        connect: (response id, position) -> the source of the events after it.
        response_id: of a stream that was resumed by its cursor; None where the first request
            creates the response.
        automatic: a stream that breaks goes on over another connection by itself.
    """

    origin: Origin
    connect: Callable[[str, Position], ResponseSource]
    response_id: str | None = None
    automatic: bool = False

    def cursor(self, parser: ResumableParser, undelivered: int) -> Cursor | None:
        """The cursor after what was delivered; None before the id and the first position.

        Args:
            parser: of the stream.
            undelivered: how many of its events the reader did not get yet.
        """
        response_id = parser.response_id or self.response_id
        is_numbered = parser.position is not None or self.response_id is not None
        if response_id is None or not is_numbered:
            return None
        return Cursor(self.origin, response_id, parser.position_before(undelivered))

    def may_send_again(self, status: int | None) -> bool:
        """Whether a request that failed may be sent again: it must not create a second response.

        Args:
            status: HTTP status of the failed attempt; None where there was no response.
        """
        is_accepted = status is not None and 200 <= status < 300
        return self.response_id is not None or not is_accepted
