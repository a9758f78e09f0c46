"""Tokens as a provider counts them: one request to its endpoint."""

from __future__ import annotations

from typing import Protocol

from streamlib.client.credentials import ApiKey
from streamlib.providers import Provider
from streamlib.request.build import Request
from streamlib.request.token_count import NO_ENDPOINT, PromptTokens, TokenEndpoint, read_count
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
    client: Fetcher,
    request: Request,
    endpoint: TokenEndpoint,
    provider: Provider,
    key: ApiKey | None,
) -> PromptTokens | None:
    """The tokens of a prompt as its provider counts them; None if it does not count.

    Args:
        client: sends the request.
        request: of `count_request`.
        endpoint: of the provider.
        provider: whose key is sent.
        key: key of this request.

    Raises:
        StreamError: the request failed, or the response is no count.
    """
    try:
        body = await client.fetch(request, provider, api_key=key)
    except StreamError as error:
        if error.info.status in NO_ENDPOINT:
            return None
        raise
    return PromptTokens(read_count(body, endpoint), "counted")
