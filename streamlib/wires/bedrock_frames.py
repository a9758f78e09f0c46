"""Output that the two Bedrock wires share: AWS frames, and failures as AWS exceptions."""

from __future__ import annotations

from binascii import b2a_base64
from functools import lru_cache
from typing import Any, Final

import msgspec

from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.framing.eventstream import encode_frame, encode_headers, encode_message
from streamlib_parsers.items import JsonObject

MEDIA_TYPE: Final = "application/vnd.amazon.eventstream"
DEFAULT_EXCEPTION: Final = "InternalServerException"
EXCEPTIONS: Final[dict[ErrorKind, str]] = {
    "authentication": "UnrecognizedClientException",
    "permission": "AccessDeniedException",
    "rate_limited": "ThrottlingException",
    "quota_exhausted": "ServiceQuotaExceededException",
    "overloaded": "ServiceUnavailableException",
    "context_window_exceeded": "ValidationException",
    "request_too_large": "ValidationException",
    "invalid_request": "ValidationException",
    "invalid_history": "ValidationException",
    "content_filter": "ValidationException",
    "not_found": "ResourceNotFoundException",
    "stalled": "ModelTimeoutException",
    "deadline": "ModelTimeoutException",
}
"""Names of AWS exceptions; other kinds are `DEFAULT_EXCEPTION`."""


def event_frame(payload: Any, name: str) -> bytes:
    """One event with its payload as JSON."""
    return encode_frame(_event_headers(name), msgspec.json.encode(payload))


def chunk_frame(data: bytes) -> bytes:
    """One event of Invoke: the JSON of the family's event as base64."""
    payload = b'{"bytes":"%b"}' % b2a_base64(data, newline=False)
    return encode_frame(_CHUNK_HEADERS, payload)


# A stream repeats a few names thousands of times. Passed-through events may have any name.
@lru_cache(maxsize=64)
def _event_headers(name: str) -> bytes:
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return encode_headers(headers)


_CHUNK_HEADERS: Final = _event_headers("chunk")


def exception_frame(error: ErrorInfo) -> bytes:
    """The failure that ends a stream."""
    name = exception_name(error)
    payload: JsonObject = {"message": error.message}
    if name == error.code and isinstance(error.detail, dict):
        # the error came from this wire: its object goes on as received
        payload = error.detail
    headers = {
        # event types begin with a small letter, the names of exceptions with a capital
        ":exception-type": name[0].lower() + name[1:],
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return encode_message(headers, msgspec.json.encode(payload))


def exception_name(error: ErrorInfo) -> str:
    """The provider's own name if it is an AWS exception of this kind, else the kind's name."""
    code = error.code or ""
    # a name goes into a frame header, so it must be plain
    if code.endswith("Exception") and code.isascii() and code.isalnum():
        reread = classify(None, {"message": error.message}, {":exception-type": code})
        if reread.kind == error.kind:
            return code
    return EXCEPTIONS.get(error.kind, DEFAULT_EXCEPTION)


def error_body(error: ErrorInfo) -> JsonObject:
    """The body of an HTTP error.

    AWS sends the type in a header; clients that miss it read `__type`.
    """
    name = exception_name(error)
    return {"__type": name[0].upper() + name[1:], "message": error.message}
