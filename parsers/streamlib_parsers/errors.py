"""What can go wrong, named by what the caller can do about it.

`ErrorInfo` is a value: it travels in a `Failed` event, in `Response.error` and on `streamlib.StreamError`.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

ErrorKind: TypeAlias = Literal[
    "authentication",  # the key is missing, wrong or expired
    "permission",  # the key may not do this
    "rate_limited",  # wait `retry_after`, then again
    "quota_exhausted",  # credits, plan or a daily cap: waiting seconds does not help
    "overloaded",  # the provider is busy: back off, then again
    "context_window_exceeded",  # compact the history
    "request_too_large",  # fewer bytes: images, documents
    "invalid_request",  # the request is wrong: fix it
    "invalid_history",  # items the provider refuses: signatures, pairing, order
    "content_filter",  # a filter stopped the request
    "not_found",  # model, endpoint or stored state
    "server_error",  # the provider failed: again
    "connection",  # no answer came at all
    "truncated",  # the stream ended before the wire said it was complete
    "malformed",  # bytes that are not this wire
    "limit_exceeded",  # one of our own ceilings
    "stalled",  # no progress within a deadline, phase in `detail`
    "deadline",  # the total time ran out
    "cancelled",  # the caller stopped
]

RETRYABLE: frozenset[ErrorKind] = frozenset(
    {"rate_limited", "overloaded", "server_error", "connection", "stalled", "truncated"}
)
"""Kinds for which sending the same request again can succeed, provided nothing was given out yet."""


class ErrorInfo(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """One failure.

    message: the provider's words, or ours; at most 2 KiB, never a key.
    retry_after: seconds the provider asked for, as received (a caller caps it).
    status: HTTP status of the answer, or of the frame that carried the failure.
    code: the provider's own code or type. detail: the provider's error object, or what we know of the place.
    """

    kind: ErrorKind
    message: str
    retryable: bool = False
    retry_after: float | None = None
    status: int | None = None
    code: str | None = None
    detail: Any = None


class InvalidArguments(ValueError):
    """A call's arguments are not a JSON object. `arguments` is the text as received."""

    def __init__(self, message: str, arguments: str) -> None:
        super().__init__(message)
        self.arguments = arguments


class ParseFailure(Exception):
    """Raised inside a parser to end its stream; `Parser.feed` turns it into a `Failed` event. Never leaves the package."""

    def __init__(self, info: ErrorInfo) -> None:
        super().__init__(info.message)
        self.info = info


def malformed(message: str, data: bytes | str = b"", code: str | None = None) -> ParseFailure:
    """Bytes that are not this wire; the first 200 characters of them go into `detail`."""
    return ParseFailure(ErrorInfo("malformed", message, code=code, detail=excerpt(data) or None))


def truncated(message: str, detail: Any = None) -> ParseFailure:
    """The input ended before the wire said it was complete."""
    return ParseFailure(ErrorInfo("truncated", message, retryable=True, detail=detail))


def limit_exceeded(limit: str, ceiling: int) -> ParseFailure:
    """One of `Limits` was passed; `code` names it."""
    return ParseFailure(
        ErrorInfo("limit_exceeded", f"{limit} passed its ceiling of {ceiling}", code=limit)
    )


def excerpt(data: bytes | str, size: int = 200) -> str:
    """The first `size` characters, for a message; bytes are read as UTF-8 with replacement."""
    return (
        data[:size] if isinstance(data, str) else data[: size * 4].decode("utf-8", "replace")[:size]
    )
