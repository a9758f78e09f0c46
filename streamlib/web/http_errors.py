"""Failures as HTTP errors: status, `Retry-After`, and what a browser may see of them."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from streamlib.web.public_errors import ErrorText, error_data, public_text
from streamlib.wires.error_statuses import STATUS
from streamlib_parsers.errors import ErrorInfo

PUBLIC: Final = "public"
"""The code of an error whose message is for readers already."""

INTERNAL: Final = ErrorInfo("server_error", "The server failed.", status=500, code=PUBLIC)
"""A failure of the application's own code, without any details for the browser."""


def kept_text(error: ErrorInfo) -> str:
    """The text that `public_error` made; for any other error the text of its kind."""
    if error.code == PUBLIC:
        return error.message
    return public_text(error)


def public_error(error: ErrorInfo, error_text: ErrorText = public_text) -> ErrorInfo:
    """The error without what is the provider's or the server's own.

    Args:
        error: the failure as the client reported it.
        error_text: returns the message for a failure.
    """
    # The message would ask for a key, which no reader can set on the server.
    if error.code == "no_key":
        return INTERNAL
    return ErrorInfo(
        error.kind,
        error_text(error),
        retryable=error.retryable,
        retry_after=error.retry_after,
        status=http_status(error),
        code=PUBLIC,
    )


def http_status(error: ErrorInfo) -> int:
    """The provider's own HTTP status of an error; without one, the status of its kind."""
    if error.status is not None and 400 <= error.status < 600:
        return error.status
    if error.kind == "overloaded":
        return 503
    return STATUS.get(error.kind, 500)


def error_headers(error: ErrorInfo) -> dict[str, str]:
    """The headers of an error response: `Retry-After` in whole seconds, if known."""
    headers = {"content-type": "application/json", "cache-control": "no-store"}
    if error.retry_after is not None and math.isfinite(error.retry_after):
        headers["retry-after"] = str(max(0, math.ceil(error.retry_after)))
    return headers


def error_json(error: ErrorInfo) -> bytes:
    """The JSON body of an error response.

    ``{"error": {"kind", "message", "retryable", "retry_after"}}``; seconds, if they are known.
    """
    return msgspec.json.encode({"error": {**error_data(error), "message": error.message}})
