"""What the two Bedrock wires say alike: AWS frames, and failures as exceptions of one vocabulary."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.framing.eventstream import encode_message
from streamlib_parsers.items import JsonObject

MEDIA_TYPE: Final = "application/vnd.amazon.eventstream"
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
"""Kinds that are not here are `InternalServerException`."""


def event_frame(name: str, payload: Any) -> bytes:
    """One event; the payload as JSON."""
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return encode_message(headers, msgspec.json.encode(payload))


def exception_frame(error: ErrorInfo) -> bytes:
    """The failure that ends a stream. Its own object where this wire said it first."""
    name = exception_name(error)
    own = name == error.code and isinstance(error.detail, dict)
    headers = {
        ":exception-type": name[0].lower() + name[1:],
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return encode_message(
        headers, msgspec.json.encode(error.detail if own else {"message": error.message})
    )


def exception_name(error: ErrorInfo) -> str:
    """The provider's own name where it is one of AWS and means this kind, else that of the kind."""
    code = error.code or ""
    if code.endswith("Exception") and code.isascii() and code.isalnum():
        told = classify(None, {"message": error.message}, {":exception-type": code})
        if told.kind == error.kind:
            return code
    return EXCEPTIONS.get(error.kind, "InternalServerException")


def error_body(error: ErrorInfo) -> JsonObject:
    """The body of an HTTP error. AWS tells the type in a header; clients that miss it look for `__type`."""
    name = exception_name(error)
    return {"__type": name[0].upper() + name[1:], "message": error.message}
