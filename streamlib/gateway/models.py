"""The list of models that clients may request, in the formats in which clients read it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from streamlib.client import Client
from streamlib.errors import StreamError
from streamlib.gateway.routes import RouteTable
from streamlib_parsers.items import JsonObject


async def model_names(client: Client, table: RouteTable) -> list[str]:
    """The names that the routes serve, each once.

    A route without a wildcard has one name. One with a wildcard, whose target takes the client's
    own name, has the matching names of its provider's list.
    """
    names: dict[str, None] = {}
    for rule in table.rules:
        if not rule.is_pattern:
            names[rule.model] = None
            continue
        # Any other target has a name that the client's pattern says nothing of.
        if not rule.targets[0].model.endswith(":*"):
            continue
        hop = table.hops(rule, "model")[0]
        try:
            models = await client.models(
                hop.provider,
                wire_api=hop.target.wire_api,
                base_url=hop.base_url,
                api_key=hop.key,
            )
        except StreamError:
            # The provider has no list, or there is no key for it: its models are still served,
            # only not listed.
            continue
        for model in models:
            if fnmatchcase(model.id, rule.model):
                names[model.id] = None
    return list(names)


def model_list(names: list[str]) -> JsonObject:
    """The response body.

    The SDKs of OpenAI, Anthropic and Google request the same path and each reads its own keys, so
    this is all three formats in one.
    """
    openai_and_anthropic: list[JsonObject] = []
    google: list[JsonObject] = []
    for name in names:
        openai_and_anthropic.append(
            {
                "id": name,
                "object": "model",
                # Required by the SDKs; the gateway does not know when.
                "created": 0,
                "owned_by": "streamlib",
                "type": "model",
                "display_name": name,
                "created_at": "1970-01-01T00:00:00Z",
            }
        )
        google.append(
            {
                "name": f"models/{name}",
                "displayName": name,
                "supportedGenerationMethods": ["generateContent", "streamGenerateContent"],
            }
        )
    body: dict[str, Any] = {
        "object": "list",
        "data": openai_and_anthropic,
        "has_more": False,
        "first_id": None,
        "last_id": None,
        "models": google,
    }
    if names:
        body["first_id"] = names[0]
        body["last_id"] = names[-1]
    return body
