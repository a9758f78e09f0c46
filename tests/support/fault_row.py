"""One fault of the shared catalogue, and helpers to write its scripts."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import msgspec

from streamlib.client.retry import RetryPolicy
from streamlib.client.stream import ResponseStream
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import FunctionCall, Limits, Response
from tests.support.response_bodies import (
    HELLO_TEXT,
    MESSAGE,
    error_body,
)
from tests.support.scripted_server import (
    END,
    FIN,
    Script,
    Server,
    Step,
    chunk,
    complete_response,
    head,
)

SHORT: Final = Deadlines(
    connect=2, headers=0.8, first_byte=0.4, first_event=0.6, idle=0.3, total=5, tail=0.2, drain=0.1
)
DRIP: Final = msgspec.structs.replace(SHORT, first_byte=3)
"""For headers that never end: their pause may be 0.4 s on a busy machine, and is not the fault."""
LONG: Final = Deadlines(
    connect=2, headers=5, first_byte=5, first_event=5, idle=5, total=10, tail=0.2, drain=0.1
)
IDLE: Final = msgspec.structs.replace(LONG, idle=0.3)
"""Of a stream that began: on a busy machine its first byte may take longer than it may pause."""
ONCE: Final = RetryPolicy(retries=0)
QUICK: Final = RetryPolicy(retries=2, base=0.01, jitter=0.0)
SMALL: Final = Limits(
    event_bytes=64 << 10, response_bytes=1 << 20, items=200, argument_bytes=32 << 10
)


@dataclass(frozen=True)
class Row:
    """One fault and how the stream ends.

    error: kind of the failure; None for a complete response. phase: phase of a deadline.
    sent: number of requests.
    """

    id: str
    scripts: Sequence[Script]
    error: str | None = None
    phase: str | None = None
    text: str | None = None
    retryable: bool | None = None
    status: int | None = None
    notices: tuple[str, ...] = ()
    sent: int | None = None
    wire: Any = "messages"
    deadlines: Deadlines = LONG
    retry: RetryPolicy = ONCE
    limits: Limits = field(default_factory=Limits)
    message: str = ""
    also: Callable[[Response, ResponseStream, Server], bool] | None = None


def stream(*bodies: bytes, then: Sequence[Step] = (END,), wire: str = "messages") -> list[Step]:
    """A stream of these bodies, one HTTP chunk each."""
    kind = "application/vnd.amazon.eventstream" if wire == "converse" else "text/event-stream"
    return [head(content_type=kind), *(chunk(body) for body in bodies), *then]


def closing(body: bytes, status: str = "200 OK", **headers: str) -> list[Step]:
    """A response without a length: it ends with the connection."""
    lines = [f"HTTP/1.1 {status}", "content-type: text/event-stream", "connection: close"]
    return [
        "\r\n".join(
            [*lines, *(f"{key}: {value}" for key, value in headers.items()), "", ""]
        ).encode()
        + body,
        FIN,
    ]


def the_call(response: Response) -> FunctionCall:
    """The only call of a response."""
    (call,) = (item for item in response.items if isinstance(item, FunctionCall))
    return call


def deep(levels: int) -> bytes:
    """Nested objects in place of a delta."""
    return (
        b'data: {"type":"content_block_delta","index":0,"delta":'
        + b'{"a":' * levels
        + b"1"
        + b"}" * levels
        + b"}\n\n"
    )


def gzipped(body: bytes) -> bytes:
    """gzip, flushed every 64 bytes as a streaming server does."""
    compressor = zlib.compressobj(wbits=31)
    return (
        b"".join(
            compressor.compress(body[start : start + 64]) + compressor.flush(zlib.Z_SYNC_FLUSH)
            for start in range(0, len(body), 64)
        )
        + compressor.flush()
    )


@cache
def bomb() -> bytes:
    """A few KiB that decompress to one comment line of 64 MiB."""
    return gzip.compress(b":" + b" " * (64 << 20))


OK: Final = complete_response(MESSAGE)
OVERLOAD: Final = complete_response(
    error_body("overloaded_error"), "529 Overloaded", "application/json"
)
FAILURE: Final = complete_response(
    error_body("api_error"), "500 Internal Server Error", "application/json"
)


def refusal(
    status: str,
    kind: str,
    body: bytes | None = None,
    content_type: str = "application/json",
    **headers: str,
) -> list[Step]:
    """An HTTP error."""
    return complete_response(
        error_body(kind) if body is None else body, status, content_type, **headers
    )


def error(name: str, *scripts: Script, kind: str, **values: Any) -> Row:
    """A row that ends in a failure."""
    return Row(name, scripts, kind, **values)


def complete(name: str, *scripts: Script, **values: Any) -> Row:
    """A row that ends with a complete response."""
    return Row(name, scripts, None, **{"text": HELLO_TEXT, **values})


NOBODY: Final = "http://127.0.0.1:9"


PAGE: Final = (
    b"<html><head><title>Just a moment</title></head><body>" + b"x" * 4000 + b"</body></html>"
)
