"""Reads the body of a client's request within limits, without delaying other clients.

Size, nesting and number of JSON values are checked before a body is decoded: 32 MiB of `[],[],…`
would be eleven million objects. They are counted while the chunks arrive, so that such a request
ends early, and other requests are served in between. What remains is at most `VALUES` values; a
large body is decoded in a worker thread.
"""

from __future__ import annotations

from typing import Final

import anyio

from streamlib.asgi import Receive, Scope
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.stream_error import StreamError

BODY_BYTES: Final = 32 << 20
"""Maximum size of a request body in bytes: that of the provider with the highest limit."""

DIGITS: Final = 20
"""Maximum digits of a ``Content-Length`` that is converted to a number."""

BODY_SECONDS: Final = 60.0
"""Seconds in which a client must send its body: half a minute for 32 MiB at 10 Mbit/s."""

DEPTH: Final = 100
"""Maximum nesting of JSON: schemas of tools need about twelve levels."""

VALUES: Final = 500_000
"""Maximum number of brackets, colons and commas outside strings, about one a value. A history that
fills a window of a million tokens has some ten thousand."""

BODY_ERRORS: Final = ("body", "values", "nesting")
"""Codes of errors that refuse a body before its end."""

_WINDOW: Final = 128 << 10
"""Bytes that are counted without a pause: about five milliseconds at worst."""

_STRUCTURE: Final = b"[]{}:,"
_NOT_STRUCTURE: Final = bytes(set(range(256)) - set(_STRUCTURE))
_NOT_BRACKETS: Final = b":,"
_OPENING: Final = b"[{"


class StructureCounter:
    """Counts the structure of a JSON text, in time linear in its size."""

    def __init__(self) -> None:
        self._depth = 0
        """Number of open brackets."""
        self._values = 0
        """Number of brackets, colons and commas so far."""
        self._in_string = False
        """Whether the text so far ends inside a string."""
        self._backslash = b""
        """A backslash at the end of the text so far, which escapes the next byte."""

    def feed(self, data: bytes) -> None:
        """Counts the next bytes.

        Raises:
            StreamError: `request_too_large`: a limit is exceeded.
        """
        # Only strings have escapes. The order matters: `\\\\"` is a backslash and a quote.
        data = (self._backslash + data).replace(b"\\\\", b"")
        self._backslash = b""
        if data.endswith(b"\\"):
            data = data[:-1]
            self._backslash = b"\\"
        parts = data.replace(b'\\"', b"").split(b'"')
        # Every second part is a string; whether the first is one depends on the bytes before.
        outside = b"".join(parts[int(self._in_string) :: 2])
        if len(parts) % 2 == 0:
            self._in_string = not self._in_string
        structure = outside.translate(None, _NOT_STRUCTURE)
        self._values += len(structure)
        if self._values > VALUES:
            message = f"the request body has more than {VALUES} JSON values"
            raise StreamError(ErrorInfo("request_too_large", message, code="values"))
        for bracket in structure.translate(None, _NOT_BRACKETS):
            if bracket not in _OPENING:
                self._depth -= 1
                continue
            self._depth += 1
            if self._depth > DEPTH:
                message = f"JSON is nested deeper than {DEPTH} levels"
                raise StreamError(ErrorInfo("request_too_large", message, code="nesting"))


async def read_body(
    scope: Scope, receive: Receive, *, limit: int = BODY_BYTES, seconds: float = BODY_SECONDS
) -> bytes:
    """Reads a request body within the limits of size, time and structure.

    Raises:
        StreamError: a limit is exceeded (`request_too_large`), or the client takes too long
            (`deadline`, code `body`).
    """
    # Refused before reading, if the size is declared; chunked bodies declare none.
    for name, value in scope["headers"]:
        if name.lower() != b"content-length" or not value.isdigit():
            continue
        # Python refuses to convert thousands of digits.
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
            # A server that has received the complete body returns from `receive` without a pause.
            await anyio.lowlevel.checkpoint()
        # If the client disconnects, the body is truncated, and the decoder refuses it.
        has_more = message["type"] == "http.request" and message.get("more_body", False)
    return b"".join(chunks)


def _too_large(limit: int) -> StreamError:
    message = f"the request body exceeds {limit} bytes"
    return StreamError(ErrorInfo("request_too_large", message, code="body"))
