"""Kinds of errors, named by what the caller can do about them.

`ErrorInfo` is a value: a `Failed` event, `Response.error` and `streamlib.StreamError` carry it.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

ErrorKind: TypeAlias = Literal[
    "authentication",  # the key is missing, wrong or expired
    "permission",  # the key may not do this
    "rate_limited",  # wait `retry_after`, then retry
    "quota_exhausted",  # credits, plan or a daily cap: waiting seconds does not help
    "overloaded",  # the provider is busy: back off, then retry
    "context_window_exceeded",  # compact the history
    "request_too_large",  # fewer bytes: images, documents
    "invalid_request",  # the request is wrong: fix it
    "invalid_history",  # items the provider refuses: signatures, pairing, order
    "content_filter",  # a filter stopped the request
    "not_found",  # model, endpoint or stored state
    "server_error",  # the provider failed: retry
    "generation_failed",  # the provider reports that this generation failed: retry
    "connection",  # no response arrived
    "truncated",  # the stream ended before the wire said it was complete
    "malformed",  # bytes that are not this wire
    "limit_exceeded",  # one of our own limits
    "stalled",  # no progress within a deadline, phase in `detail`
    "deadline",  # the total time ran out
    "cancelled",  # the caller stopped
    "internal",  # a stage of a pipeline raised: your own code
]

RETRYABLE: frozenset[ErrorKind] = frozenset(
    {
        "rate_limited",
        "overloaded",
        "server_error",
        "generation_failed",
        "connection",
        "stalled",
        "truncated",
    }
)
"""Kinds for which the same request can succeed later, provided no event was delivered yet."""


class ErrorInfo(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """One error.

    Attributes:
        kind: what the caller can do about it.
        message: the provider's text, or ours; at most 2 KiB, never with a key.
        retryable: whether the same request can succeed later.
        retry_after: seconds that the provider requested, as received; the caller caps them.
        status: HTTP status of the response, or of the frame that carried the error.
        code: the provider's own code or type.
        detail: the provider's error object, or what is known of the position.
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
        super().__init__(message, arguments)  # both: pickle calls the class with them
        self.arguments = arguments

    def __str__(self) -> str:
        return str(self.args[0])


class InvalidOutput(ValueError):
    """Structured output is not a value of the class that was asked for.

    Attributes:
        path: JSON pointer of the value that failed, in `text`; "" for all of it.
        text: the JSON as the model wrote it.
        problem: what is wrong there, in words of the class's library.
    """

    def __init__(self, problem: str, path: str = "", text: str = "") -> None:
        super().__init__(problem, path, text)
        self.problem = problem
        self.path = path
        self.text = text

    def __str__(self) -> str:
        if self.path:
            return f"{self.path}: {self.problem}"
        return self.problem


class IncompleteOutput(InvalidOutput):
    """There is no complete output: the response ended before it, or refused to give it.

    Attributes:
        reason: why. A stop reason (``length``, ``content_filter``, ``refusal``, ``tool_calls``,
            ``pause``), the `ErrorInfo.kind` of a failed response (``truncated``, ``cancelled`` …),
            or ``not_ended`` for a response that still streams.
    """

    def __init__(self, reason: str, text: str = "") -> None:
        super().__init__(f"the output is not complete: {reason}", "", text)
        self.reason = reason

    def __reduce__(self) -> tuple[type[IncompleteOutput], tuple[str, str]]:
        """For pickle, which would call the class with the arguments of its base."""
        return type(self), (self.reason, self.text)


class ParseFailure(Exception):
    """Ends a stream inside a parser; `Parser.feed` turns it into a `Failed` event."""

    def __init__(self, info: ErrorInfo) -> None:
        super().__init__(info.message)
        self.info = info


def malformed(message: str, data: bytes | str = b"", code: str | None = None) -> ParseFailure:
    """Bytes that violate the wire; their first 200 characters go into `detail`."""
    return ParseFailure(ErrorInfo("malformed", message, code=code, detail=excerpt(data) or None))


def truncated(message: str, detail: Any = None) -> ParseFailure:
    """The input ended before the wire completed the response."""
    return ParseFailure(ErrorInfo("truncated", message, retryable=True, detail=detail))


def generation_failed(reason: str) -> ParseFailure:
    """The provider ended the response with a reason for which the generation counts as failed.

    `code` is the reason. What was generated is not to be trusted: no item counts as complete.
    """
    message = f"the provider reports that the generation failed: {reason}"
    return ParseFailure(ErrorInfo("generation_failed", message, retryable=True, code=reason))


def limit_exceeded(name: str, limit: int) -> ParseFailure:
    """The limit called `name` was exceeded; `code` names it."""
    message = f"{name} exceeds its limit of {limit}"
    return ParseFailure(ErrorInfo("limit_exceeded", message, code=name))


def excerpt(data: bytes | str, size: int = 200) -> str:
    """The first `size` characters, for a message; bytes are read as UTF-8 with replacement."""
    if isinstance(data, str):
        return data[:size]
    # A character has at most four bytes.
    return data[: size * 4].decode("utf-8", "replace")[:size]
