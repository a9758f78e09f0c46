"""Errors as Google APIs write them."""

from __future__ import annotations

from typing import Final

from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.items import JsonObject

STATUSES: Final[dict[ErrorKind, tuple[int, str]]] = {
    "authentication": (401, "UNAUTHENTICATED"),
    "permission": (403, "PERMISSION_DENIED"),
    "rate_limited": (429, "RESOURCE_EXHAUSTED"),
    "quota_exhausted": (429, "RESOURCE_EXHAUSTED"),
    "overloaded": (503, "UNAVAILABLE"),
    "context_window_exceeded": (400, "INVALID_ARGUMENT"),
    "request_too_large": (413, "INVALID_ARGUMENT"),
    "invalid_request": (400, "INVALID_ARGUMENT"),
    "invalid_history": (400, "INVALID_ARGUMENT"),
    "content_filter": (400, "INVALID_ARGUMENT"),
    "not_found": (404, "NOT_FOUND"),
    "stalled": (504, "DEADLINE_EXCEEDED"),
    "deadline": (504, "DEADLINE_EXCEEDED"),
    "cancelled": (499, "CANCELLED"),
}
"""`code` and `status` by kind. Any other kind is 500 INTERNAL."""
REASONS: Final[dict[ErrorKind, str]] = {
    "quota_exhausted": "QUOTA_EXCEEDED",
    "context_window_exceeded": "CONTEXT_WINDOW_EXCEEDED",
    "content_filter": "CONTENT_FILTER",
}
"""`reason` in `details`, for kinds that share their status with others."""


def error_body(error: ErrorInfo) -> JsonObject:
    """The wire's error object."""
    code, status = STATUSES.get(error.kind, (500, "INTERNAL"))
    body: JsonObject = {"code": code, "message": error.message, "status": status}
    details: list[JsonObject] = []
    if error.kind in REASONS:
        details.append(
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": REASONS[error.kind],
                "domain": "googleapis.com",
            }
        )
    if error.retry_after is not None:
        details.append(
            {
                "@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": _duration(error.retry_after),
            }
        )
    if details:
        body["details"] = details
    return {"error": body}


def _duration(seconds: float) -> str:
    """A duration as protobuf's JSON has it: `1.5s`."""
    digits = f"{seconds:.3f}".rstrip("0").rstrip(".")
    return f"{digits}s"
