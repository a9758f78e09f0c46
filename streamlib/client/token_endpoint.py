"""Tokens as a provider counts them: one request to its endpoint."""

from __future__ import annotations

from typing import Protocol

from streamlib.client.credentials import ApiKey
from streamlib.providers import Provider
from streamlib.request.build import Request
from streamlib.request.token_count import NO_ENDPOINT, CountRequest, PromptTokens, read_count
from streamlib_parsers.stream_error import StreamError


class Fetcher(Protocol):
    """What sends the request: a client."""

    async def fetch(
        self,
        request: Request,
        provider: str | Provider | None = None,
        *,
        api_key: ApiKey | None = None,
    ) -> bytes:
        """The body of the response."""
        ...


async def counted_tokens(
    client: Fetcher, count: CountRequest | None, provider: Provider, key: ApiKey | None
) -> PromptTokens | None:
    """The tokens of a prompt as its provider counts them; None if it does not count.

    Args:
        client: sends the request.
        count: the request; None for a provider that cannot count.
        provider: whose key is sent.
        key: key of this request.

    Raises:
        StreamError: the request failed, or the response is no count.
    """
    if count is None:
        return None
    try:
        body = await client.fetch(count.request, provider, api_key=key)
    except StreamError as error:
        if error.info.status in NO_ENDPOINT:
            return None
        raise
    return PromptTokens(read_count(body, count.key), "counted")
