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
    "context_window_exceeded": "context_length_exceeded",
    "request_too_large": "request_too_large",
    "invalid_request": "invalid_request_error",
    "invalid_history": "missing_following_item",
    "content_filter": "content_filter",
    "not_found": "model_not_found",
    "cancelled": "cancelled",
}
"""Codes that clients of OpenAI know. Any other kind is `server_error`: `overloaded` too, since at
OpenAI's own code for it (`server_is_overloaded`) Codex ends, and after this one it tries again."""

INVALID_REQUEST_KINDS: Final[frozenset[ErrorKind]] = frozenset(
    {
        "authentication",
        "permission",
        "content_filter",
        "context_window_exceeded",
        "invalid_request",
        "invalid_history",
        "not_found",
        "request_too_large",
    }
)
"""Kinds whose `type` is `invalid_request_error`."""

OVERLOADED_TYPE: Final = "service_unavailable_error"
"""The `type` of `overloaded`; that of other kinds is their code."""


def error_object(error: ErrorInfo) -> JsonObject:
    """The error as an object of the wire.

    The provider's own object is returned itself if it has this shape and means the same kind.
    """
    if _is_own(error):
        return error.detail  # type: ignore[no-any-return]
    body: JsonObject = {
        "type": error_type(error.kind),
        "code": _code(error),
        "message": error.message,
        "param": None,
    }
    if error.retry_after is not None:
        body["retry_after"] = error.retry_after
    return body


def _is_own(error: ErrorInfo) -> bool:
    """Whether the provider's object can stand as it is: as OpenAI would have written it."""
    detail = error.detail
    if not isinstance(detail, dict) or not isinstance(detail.get("message"), str):
        return False
    code = detail.get("code")
    if error.kind == "context_window_exceeded" and code != ERROR_CODES[error.kind]:
        # Clients compact by this code: Mistral's is "3051", Google's "invalid_request".
        return False
    return isinstance(code, str) and classify(None, {"error": detail}).kind == error.kind


def _code(error: ErrorInfo) -> str:
    # Not only models are missing: `previous_response_not_found`, for example.
    if error.kind == "not_found" and error.code is not None and error.code.endswith("_not_found"):
        return error.code
    return ERROR_CODES.get(error.kind, "server_error")


def error_type(kind: ErrorKind) -> str:
    """The `type` of an error."""
    if kind in INVALID_REQUEST_KINDS:
        return "invalid_request_error"
    if kind == "overloaded":
        return OVERLOADED_TYPE
    return ERROR_CODES.get(kind, "server_error")


def error_body(error: ErrorInfo) -> JsonObject:
    """The body of an HTTP error."""
    return {"error": error_object(error)}
