"""Which stream of a storm meets which kind of response, and how it is stopped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from lab.storm.faults import FAULTS
from lab.storm.http2_faults import HTTP2_FAULTS
from lab.storm.stops import STOPS

TRANSPORTS: Final = ("httpx", "httpx2", "aiohttp", "http2")
SHARED: Final = 61
"""One in so many of the faults that end an HTTP/2 connection ends a shared one, and with it every
other response on it; the others have connections of their own. It is a prime, so that they meet
every way to stop."""
TAG: Final = re.compile(rb"tag.(\d{6})|^[A-Z]+ /(\d{6})/")
"""Where the tag of a stream is in its request: in the path, in a header, and in the body."""


class Plan:
    """The kinds of responses and the ways to stop, combined pairwise."""

    def __init__(self, transport: str) -> None:
        self.is_http2 = transport == "http2"
        self.faults: Any = HTTP2_FAULTS if self.is_http2 else FAULTS
        self.kinds = list(self.faults)
        self.ways = list(STOPS)

    def kind(self, n: int) -> str:
        """What the server does to a stream."""
        return self.kinds[n % len(self.kinds)]

    def way(self, n: int) -> str:
        """How a stream is stopped. Every kind meets every way in `len(kinds) * len(ways)` streams,
        and as many streams as there are kinds are enough for all of both."""
        turn, index = divmod(n, len(self.kinds))
        return self.ways[(turn + index) % len(self.ways)]

    def has_own_connection(self, n: int) -> bool:
        """Whether no other stream is on its connection of HTTP/2."""
        return self.faults[self.kind(n)].ends_connection and n % SHARED != 0


def request_values(tag: str) -> tuple[dict[str, str], bytes]:
    """Headers and body of a request, which name the stream as its path does."""
    return {"x-tag": f"tag {tag}"}, b'{"stream":true,"tag":"tag %s"}' % tag.encode()


def is_mixed(tags: Iterable[bytes]) -> bool:
    """Whether parts of a request belong to different streams: path, header and body name one."""
    return len(set(tags)) != 1
