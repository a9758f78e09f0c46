"""Stored interactions of Google: fetched, cancelled and deleted by their id.

An interaction is stored where the request said so (`extra={"store": True}`), continued one, or runs
in the background; `Response.response_id` is its id.
"""

from __future__ import annotations

from typing import Literal, TypeAlias
from urllib.parse import quote

from streamlib.client import Client
from streamlib.errors import invalid_request
from streamlib.providers import Provider
from streamlib.providers import provider as provider_named
from streamlib.request.build import Request
from streamlib.request.endpoints import resolve_target
from streamlib_parsers.accumulate import Response, accumulate
from streamlib_parsers.protocol import parse_body

Action: TypeAlias = Literal["get", "cancel", "delete"]


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
    target = resolve_target(service, "interactions", "interactions", base_url)
    # Percent-encoded: an id stays one segment of the path.
    url = f"{target.base_url.rstrip('/')}/interactions/{quote(interaction_id, safe='')}"
    method = "GET"
    if action == "cancel":
        method, url = "POST", f"{url}/cancel"
    elif action == "delete":
        method = "DELETE"
    headers = dict(service.headers)
    return Request(method, url, headers, b"", [], "interactions", "", target.origin)


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
    body = await client.fetch(request, provider)
    return accumulate(parse_body("interactions", body, origin=request.origin))
