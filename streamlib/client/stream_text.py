"""What keeps a response from being a text."""

from __future__ import annotations

from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.stream_error import StreamError


def text_of(response: Response) -> str:
    """The text of a response.

    Raises:
        StreamError: the text is not all of the response.
    """
    error = _text_error(response)
    if error is not None:
        raise StreamError(error, response)
    return response.text


def _text_error(response: Response) -> ErrorInfo | None:
    """Why the text of a response is not all of it; None if it is."""
    reason = response.stop_reason
    if response.error is not None:
        return response.error
    if reason == "refusal" or response.refusal:
        message = f"the model refused: {response.refusal}".removesuffix(": ")
        return ErrorInfo("content_filter", message, code="refusal")
    if reason == "content_filter":
        return ErrorInfo("content_filter", "a filter ended the response", code=reason)
    if reason == "length":
        # Not retryable: the same request ends there again.
        return ErrorInfo("truncated", "the response reached its token limit", code=reason)
    if response.unfinished:
        message = "the model called a tool or paused: use `respond`, which returns its items"
        return ErrorInfo("invalid_request", message, code=reason)
    return None
