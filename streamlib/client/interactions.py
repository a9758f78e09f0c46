"""Stored interactions of Google: fetched, cancelled and deleted by their id.

An interaction is stored where the request said so (`extra={"store": True}`), continued one, or runs
in the background; `Response.response_id` is its id. With a cursor, `Client.cancel` does the same as
`cancel_interaction`.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from streamlib.client import Client
from streamlib.client.background import (
    creating_request,
    response_in,
    stored_request,
    stored_url,
)
from streamlib.providers import Provider
from streamlib.providers import provider as provider_named
from streamlib.request.build import Request
from streamlib.request.endpoints import resolve_target
from streamlib_parsers.accumulate import Response
from streamlib_parsers.stream_error import invalid_request

Action: TypeAlias = Literal["get", "cancel", "delete"]

METHODS: Final[dict[Action, tuple[str, str]]] = {
    "get": ("GET", ""),
    "cancel": ("POST", "cancel"),
    "delete": ("DELETE", ""),
}
"""Action -> HTTP method, and what follows the id in the path."""


def interaction_request(
    action: Action,
    interaction_id: str,
    provider: str | Provider = "google",
    *,
    base_url: str | None = None,
) -> Request:
    """The request for a stored interaction.

    Args:
        action: what to do with it.
        interaction_id: `Response.response_id`.
        provider: `google`, `vertex`, or one of your own that offers `interactions`.
        base_url: None takes the provider's own.

    Raises:
        StreamError: `invalid_request`; the provider has no such wire, or there is no id.
    """
    if not interaction_id:
        raise invalid_request("an interaction that is not stored has no id", "interaction_id")
    service = provider
    if not isinstance(service, Provider):
        service = provider_named(service)
    creating = creating_request(resolve_target(service, "interactions", "interactions", base_url))
    method, path = METHODS[action]
    url = stored_url(creating.url, interaction_id, path)
    return stored_request(creating, interaction_id, method, url)


async def get_interaction(
    client: Client,
    interaction_id: str,
    provider: str | Provider = "google",
    *,
    base_url: str | None = None,
) -> Response:
    """The interaction as it is now: `failed` with `truncated` while it still runs.

    Args:
        client: sends the request.
        interaction_id: `Response.response_id`.
        provider: whose interaction it is.
        base_url: None takes the provider's own.

    Raises:
        StreamError: the request failed.
    """
    return await _fetched(client, "get", interaction_id, provider, base_url)


async def cancel_interaction(
    client: Client,
    interaction_id: str,
    provider: str | Provider = "google",
    *,
    base_url: str | None = None,
) -> Response:
    """Cancels an interaction that runs in the background; returns it as it is then.

    Arguments and errors are those of `get_interaction`.
    """
    return await _fetched(client, "cancel", interaction_id, provider, base_url)


async def delete_interaction(
    client: Client,
    interaction_id: str,
    provider: str | Provider = "google",
    *,
    base_url: str | None = None,
) -> None:
    """Deletes a stored interaction.

    Arguments and errors are those of `get_interaction`.
    """
    request = interaction_request("delete", interaction_id, provider, base_url=base_url)
    await client.fetch(request, provider)


async def _fetched(
    client: Client,
    action: Action,
    interaction_id: str,
    provider: str | Provider,
    base_url: str | None,
) -> Response:
    request = interaction_request(action, interaction_id, provider, base_url=base_url)
    return response_in(await client.fetch(request, provider), request)
