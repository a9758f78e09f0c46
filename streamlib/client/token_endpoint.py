"""Tokens as a provider counts them: one request to its endpoint."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from streamlib.request.build import Request
from streamlib.request.token_count import NO_ENDPOINT, CountRequest, PromptTokens, read_count
from streamlib_parsers.stream_error import StreamError


async def counted_tokens(
    fetch: Callable[[Request], Awaitable[bytes]], count: CountRequest | None
) -> PromptTokens | None:
    """The tokens of a prompt as its provider counts them; None if it does not count.

    Args:
        fetch: sends the request; returns the body of the response.
        count: the request; None for a provider that cannot count.

    Raises:
        StreamError: the request failed, or the response is no count.
    """
    if count is None:
        return None
    try:
        body = await fetch(count.request)
    except StreamError as error:
        if error.info.status in NO_ENDPOINT:
            return None
        raise
    return PromptTokens(read_count(body, count.key), "counted")
