"""Failures as a browser may see them: the kind and what helps a reader, nothing of the provider.

A provider's message may hold an address, an account, a project or a part of a key. It stays in the
server's log and in `Response.error`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.items import JsonObject

ErrorText: TypeAlias = Callable[[ErrorInfo], str]
"""Returns the text that a reader sees for a failure."""

TEXTS: Final[dict[ErrorKind, str]] = {
    "authentication": "The server is not signed in to the model's provider.",
    "permission": "The server may not use this model.",
    "rate_limited": "Too many requests at the moment. Try again later.",
    "quota_exhausted": "The server's quota for this model is used up.",
    "overloaded": "The model is overloaded. Try again later.",
    "context_window_exceeded": "The conversation is too long for the model.",
    "request_too_large": "The message is too large for the model.",
    "invalid_request": "The model cannot take this request.",
    "invalid_history": "The model cannot take this conversation.",
    "content_filter": "A content filter stopped the response.",
    "not_found": "The server's model does not exist.",
    "server_error": "The model's provider failed. Try again.",
    "generation_failed": "The model failed to respond. Try again.",
    "connection": "The server cannot reach the model's provider.",
    "truncated": "The response broke off. Try again.",
    "malformed": "The model's provider sent something that is not a response.",
    "limit_exceeded": "The response is larger than the server allows.",
    "stalled": "The model stopped responding. Try again.",
    "deadline": "The response took too long.",
    "cancelled": "The response was stopped.",
    "internal": "The server failed.",
}
"""ErrorKind -> the text that a reader sees."""


def public_text(error: ErrorInfo) -> str:
    """The text of an error's kind; nothing that the provider wrote."""
    return TEXTS[error.kind]


def error_data(error: ErrorInfo) -> JsonObject:
    """What a page needs of an error: its kind, and whether and when to try again.

    `retry_after` is in seconds, and missing where the provider named none.
    """
    data: JsonObject = {"kind": error.kind, "retryable": error.retryable}
    if error.retry_after is not None:
        data["retry_after"] = error.retry_after
    return data
