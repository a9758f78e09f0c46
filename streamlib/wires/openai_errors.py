"""Errors as OpenAI writes them, on Chat Completions and on Responses."""

from __future__ import annotations

from typing import Final

from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.items import JsonObject

ERROR_CODES: Final[dict[ErrorKind, str]] = {
    "authentication": "invalid_api_key",
    "permission": "permission_denied",
    "rate_limited": "rate_limit_exceeded",
    "quota_exhausted": "insufficient_quota",
    "overloaded": "server_is_overloaded",
    "context_window_exceeded": "context_length_exceeded",
    "request_too_large": "request_too_large",
    "invalid_request": "invalid_request_error",
    "invalid_history": "missing_following_item",
    "content_filter": "content_filter",
    "not_found": "model_not_found",
    "cancelled": "cancelled",
}
"""Codes that clients of OpenAI know. Any other kind is `server_error`."""

INVALID_REQUEST_KINDS: Final[frozenset[ErrorKind]] = frozenset(
    {
        "authentication",
        "permission",
        "context_window_exceeded",
        "invalid_request",
        "invalid_history",
        "not_found",
    }
)
"""Kinds whose `type` is `invalid_request_error`; the `type` of other kinds is their code."""


def error_object(error: ErrorInfo) -> JsonObject:
    """The error as an object of the wire.

    The provider's own object is returned itself if it has this shape and means the same kind.
    """
    detail = error.detail
    has_own_shape = (
        isinstance(detail, dict)
        and isinstance(detail.get("message"), str)
        and isinstance(detail.get("code"), str)
    )
    if has_own_shape and classify(None, {"error": detail}).kind == error.kind:
        return detail  # type: ignore[no-any-return]
    code = ERROR_CODES.get(error.kind, "server_error")
    error_type = code
    if error.kind in INVALID_REQUEST_KINDS:
        error_type = "invalid_request_error"
    body: JsonObject = {"type": error_type, "code": code, "message": error.message, "param": None}
    if error.retry_after is not None:
        body["retry_after"] = error.retry_after
    return body


def error_body(error: ErrorInfo) -> JsonObject:
    """The body of an HTTP error."""
    return {"error": error_object(error)}
