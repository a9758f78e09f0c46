"""Exit codes for the end of a response: the same for every command that shows one."""

from __future__ import annotations

from typing import Final

from streamlib_parsers import ErrorInfo, Response

FAILED: Final = 1
"""The response failed, and the same request will fail again."""
USAGE: Final = 2
"""The arguments cannot be read."""
INCOMPLETE: Final = 3
"""The response was truncated, reached its length limit, or does not follow the schema."""
REFUSED: Final = 4
"""The model refused, or a filter stopped the response."""
RETRYABLE: Final = 5
"""The response failed, and the same request may succeed later."""
INTERRUPTED: Final = 130
"""Ctrl-C."""

EXIT_CODES: Final = """\
exit code: 0 the response is complete, 1 it failed, 2 usage error,
           3 it is incomplete (truncated, too long, or unlike the schema),
           4 refused or filtered, 5 failed, but may succeed later,
           130 stopped with Ctrl-C
"""
"""Text for the help of a command."""


def code_of_error(error: ErrorInfo) -> int:
    """The exit code for a failure."""
    if error.kind == "truncated":
        return INCOMPLETE
    if error.kind == "content_filter":
        return REFUSED
    if error.retryable:
        return RETRYABLE
    return FAILED


def code_of_response(response: Response) -> int:
    """The exit code for a response."""
    return code_of_end(response.error, response.stop_reason)


def code_of_end(error: ErrorInfo | None, stop_reason: str | None) -> int:
    """The exit code for the end of a response.

    Args:
        error: why it failed; None if it did not.
        stop_reason: why the model stopped.
    """
    if error is not None:
        return code_of_error(error)
    if stop_reason == "length":
        return INCOMPLETE
    if stop_reason in ("content_filter", "refusal"):
        return REFUSED
    return 0
