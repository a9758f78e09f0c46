"""The body of a client's request, read within limits and without keeping other clients waiting.

Before a decoder sees a body, its size, its nesting and the number of its JSON values are known:
32 MiB of `[],[],…` would be eleven million objects. They are counted chunk by chunk as the body
arrives, so that such a request ends early and other requests are served in between. What is left is
at most `VALUES` values, decoded in a worker thread where the body is large.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from starlette.types import Receive, Scope

from streamlib.errors import StreamError
from streamlib_parsers.errors import ErrorInfo

Result = TypeVar("Result")

BODY_BYTES: Final = 32 << 20
"""Maximum size of a request body: that of the provider with the highest limit."""

DIGITS: Final = 20
"""Of a ``Content-Length`` that is converted."""

BODY_SECONDS: Final = 60.0
"""How long a client may take to send its body: half a minute for 32 MiB at 10 Mbit/s."""

DEPTH: Final = 100
"""Maximum nesting of JSON: schemas of tools need a dozen levels."""

VALUES: Final = 500_000
"""Maximum number of brackets, colons and commas outside strings, about one a value. A history that
fills a window of a million tokens has some ten thousand."""

BODY_ERRORS: Final = ("body", "values", "nesting")
"""Codes of the errors with which a body is refused before its end."""

INLINE_BYTES: Final = 64 << 10
"""Bodies up to this size are decoded by the event loop itself: at most some 20,000 values."""

WORKERS: Final = 4
"""Large requests that are decoded at the same time. Each takes its turns of the interpreter, which
are five milliseconds long, from the event loop."""

_WINDOW: Final = 128 << 10
"""Bytes that are counted at a time: about five milliseconds at worst."""

_STRUCTURE: Final = b"[]{}:,"
_NOT_STRUCTURE: Final = bytes(set(range(256)) - set(_STRUCTURE))
_NOT_BRACKETS: Final = b":,"
_OPENING: Final = b"[{"


class StructureCounter:
    """Counts what a JSON text consists of, in time linear in its size."""

    def __init__(self, depth: int = DEPTH, values: int = VALUES) -> None:
        """Starts a text.

        Args:
            depth: maximum nesting.
            values: maximum number of brackets, colons and commas.
        """
        self._depth_limit = depth
        self._value_limit = values
        self._depth = 0
        """Brackets that are open."""
        self._values = 0
        """Brackets, colons and commas so far."""
        self._in_string = False
        """Whether the text so far ends inside a string."""
        self._backslash = b""
        """A backslash that ended the text so far: it escapes the next byte."""

    def feed(self, data: bytes) -> None:
        """Counts the next bytes.

        Raises:
            StreamError: `request_too_large`; they exceed a limit.
        """
        # Escapes are in strings only. In this order: `\\\\"` is a backslash and a quote.
        data = (self._backslash + data).replace(b"\\\\", b"")
        self._backslash = b""
        if data.endswith(b"\\"):
            data = data[:-1]
            self._backslash = b"\\"
        parts = data.replace(b'\\"', b"").split(b'"')
        # Every second part is a string; which, depends on whether one is open.
        outside = b"".join(parts[int(self._in_string) :: 2])
        if len(parts) % 2 == 0:
            self._in_string = not self._in_string
        structure = outside.translate(None, _NOT_STRUCTURE)
        self._values += len(structure)
        if self._values > self._value_limit:
            message = f"the request body has more than {self._value_limit} JSON values"
            raise StreamError(ErrorInfo("request_too_large", message, code="values"))
        for bracket in structure.translate(None, _NOT_BRACKETS):
            if bracket not in _OPENING:
                self._depth -= 1
                continue
            self._depth += 1
            if self._depth > self._depth_limit:
                message = f"JSON is nested deeper than {self._depth_limit} levels"
                raise StreamError(ErrorInfo("request_too_large", message, code="nesting"))


async def read_body(
    scope: Scope, receive: Receive, *, limit: int = BODY_BYTES, seconds: float = BODY_SECONDS
) -> bytes:
    """Reads a request body, within the limits of size, time and structure.

    Raises:
        StreamError: it exceeds one (`request_too_large`), or takes too long (`deadline`, code
            `body`).
    """
    # Refused before a byte of it is read. Chunked bodies declare nothing.
    for name, value in scope["headers"]:
        if name.lower() != b"content-length" or not value.isdigit():
            continue
        # Python converts no number of thousands of digits.
        if len(value) > DIGITS or int(value) > limit:
            raise _too_large(limit)
    try:
        with anyio.fail_after(seconds):
            return await _read(receive, limit)
    except TimeoutError:
        message = f"the request body took longer than {seconds:g} seconds"
        raise StreamError(ErrorInfo("deadline", message, code="body")) from None


async def _read(receive: Receive, limit: int) -> bytes:
    counter = StructureCounter()
    chunks: list[bytes] = []
    size = 0
    has_more = True
    while has_more:
        message = await receive()
        chunk: bytes = message.get("body", b"")
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        for start in range(0, len(chunk), _WINDOW):
            counter.feed(chunk[start : start + _WINDOW])
            # A server that has all of the body returns from `receive` without a pause.
            await anyio.lowlevel.checkpoint()
        # A client that disconnects leaves a truncated body, which the decoder refuses.
        has_more = message["type"] == "http.request" and message.get("more_body", False)
    return b"".join(chunks)


def _too_large(limit: int) -> StreamError:
    message = f"the request body exceeds {limit} bytes"
    return StreamError(ErrorInfo("request_too_large", message, code="body"))


class Workers:
    """Runs what takes long for a large request beside the event loop."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(WORKERS)

    async def run(self, size: int, function: Callable[..., Result], *arguments: object) -> Result:
        """Calls a function that does no I/O: in a thread if the request is large.

        Args:
            size: bytes of the request body.
            function: what takes long.
            *arguments: its arguments.
        """
        if size <= INLINE_BYTES:
            return function(*arguments)
        call = partial(function, *arguments)
        return await anyio.to_thread.run_sync(call, limiter=self._limiter)
