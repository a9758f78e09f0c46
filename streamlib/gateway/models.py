"""The models that clients may ask for, in the forms in which they read a list."""

from __future__ import annotations

from fnmatch import fnmatchcase

from streamlib.client import Client
from streamlib.errors import StreamError
from streamlib.gateway.routes import RouteTable
from streamlib_parsers.items import JsonObject


async def model_names(client: Client, table: RouteTable) -> list[str]:
    """Names without a wildcard are the routes' own; a route that takes the client's names over lists those of its provider."""
    names: dict[str, None] = {}
    for rule in table.rules:
        if not rule.is_pattern:
            names[rule.model] = None
        elif rule.to[0].endswith(":*"):
            hop = table.hops(rule, "model")[0]
            try:
                found = await client.models(
                    hop.provider,
                    wire_api=hop.where.wire_api,
                    base_url=rule.base_url,
                    api_key=hop.key,
                )
            except StreamError:  # no list, or no key for it: what is not known is not offered
                continue
            names.update((one.id, None) for one in found if fnmatchcase(one.id, rule.model))
    return list(names)


def listed(names: list[str]) -> JsonObject:
    """OpenAI's, Anthropic's and Google's list in one: all three SDKs ask the same path, and each reads its own keys."""
    methods = ["generateContent", "streamGenerateContent"]
    ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
    models = [
        {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods}
        for name in names
    ]
    return {
        "object": "list",
        "data": [_model(name) for name in names],
        "has_more": False,
        **ends,
        "models": models,
    }


def _model(name: str) -> JsonObject:
    openai = {"id": name, "object": "model", "created": 0, "owned_by": "streamlib"}
    return {**openai, "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z"}
