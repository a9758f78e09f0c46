"""Failures as HTTP errors: status, `Retry-After`, and what a browser may see of them."""

from __future__ import annotations

from typing import Final

import msgspec

from streamlib.web.public_errors import ErrorText, error_data, public_text
from streamlib.wires.error_statuses import STATUS
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.rate_limits import retry_after_header

PUBLIC: Final = "public"
"""The code of an error whose message is for readers already."""

OWN_CODES: Final = (PUBLIC, "ui_request")
"""Codes of errors whose status is for readers already: `UIRequestError` has the second."""

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


PAGES_BUSINESS: Final = (429, 503, 504)
"""A provider's statuses that a page can act on: it waits, and asks again."""

KEPT_STATUSES: Final[dict[ErrorKind, int]] = {
    "overloaded": 503,
    # A key that is wrong is the server's fault: with 401 a page would ask its user to sign in.
    "authentication": 502,
    "permission": 502,
}
"""ErrorKind -> status, where it differs from that of an API."""


def http_status(error: ErrorInfo) -> int:
    """The HTTP status of a failure for a page.

    Of a provider's statuses only 429, 503 and 504 are the page's business; any other is 502, and
    529 is 503. A failure without a status has that of its kind.
    """
    if error.code in OWN_CODES and error.status is not None:
        return error.status
    if error.status in PAGES_BUSINESS:
        return error.status
    if error.kind in KEPT_STATUSES:
        return KEPT_STATUSES[error.kind]
    if error.status is not None and error.status >= 400:
        return 502
    return STATUS.get(error.kind, 500)


def error_headers(error: ErrorInfo) -> dict[str, str]:
    """The headers of an error response: `Retry-After` in whole seconds, if known."""
    headers = {"content-type": "application/json", "cache-control": "no-store"}
    return headers | retry_after_header(error.retry_after)


def error_json(error: ErrorInfo) -> bytes:
    """The JSON body of an error response.

    ``{"error": {"kind", "message", "retryable", "retry_after"}}``; seconds, if they are known.
    """
    return msgspec.json.encode({"error": {**error_data(error), "message": error.message}})
