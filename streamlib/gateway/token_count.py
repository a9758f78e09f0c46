"""How many tokens a request has: asked of Anthropic where it goes there, else estimated from its size.

An estimate is marked as one: agents compact their history by it, and four characters a token is right for English within a third.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from streamlib.client import Client
from streamlib.errors import StreamError
from streamlib.gateway.routes import RouteTarget
from streamlib.request.build import Request, build_for
from streamlib.request.prompt import Prompt
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import JsonObject

CHARACTERS: Final = 4
"""Of a token."""
MEDIUM: Final = 1600
"""Tokens of an image or a page: the most that Anthropic counts for an image."""
COUNTED: Final = ("model", "messages", "system", "tools", "tool_choice", "thinking")
"""Keys of a Messages request that its count takes."""


class _Count(Struct):
    input_tokens: int


async def count_tokens(client: Client, prompt: Prompt, hop: RouteTarget) -> tuple[int, bool]:
    """The count, and whether it is an estimate. Raises `StreamError` where the provider was asked and refused."""
    if hop.provider.name != "anthropic" or hop.where.wire_api != "messages":
        return estimated(prompt), True
    request = build_for(msgspec.structs.replace(prompt, stream=None), hop.where)
    body = msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])
    asked = msgspec.json.encode({key: body[key] for key in COUNTED if key in body})
    answer = await client.fetch(_at(request, asked), hop.provider, api_key=hop.key)
    try:
        return msgspec.json.decode(answer, type=_Count).input_tokens, False
    except msgspec.MsgspecError as error:
        raise StreamError(
            ErrorInfo("malformed", f"the answer is no count of tokens: {error}")
        ) from None


def _at(request: Request, body: bytes) -> Request:
    return msgspec.structs.replace(request, url=f"{request.url}/count_tokens", body=body)


def estimated(prompt: Prompt) -> int:
    """Characters of everything said, and so many for each medium."""
    characters, media = _weight([msgspec.to_builtins(item) for item in prompt.items])
    tools, _ = _weight([msgspec.to_builtins(tool) for tool in prompt.tools])
    return 1 + (characters + tools + len(prompt.instructions or "")) // CHARACTERS + media * MEDIUM


def _weight(value: object) -> tuple[int, int]:
    """(characters of texts and names, media) in a JSON value."""
    if isinstance(value, str):
        return len(value), 0
    if isinstance(value, dict):
        if "data" in value and "media_type" in value:
            return 0, 1
        inner: JsonObject = value
        weights = [_weight(one) for one in inner.values()]
        return sum(len(str(key)) for key in inner) + sum(size for size, _ in weights), sum(
            media for _, media in weights
        )
    weights = [_weight(one) for one in value] if isinstance(value, (list, tuple)) else []
    return sum(size for size, _ in weights), sum(media for _, media in weights)
