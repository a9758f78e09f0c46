"""The number of tokens of a request: counted by Anthropic where the request goes there, else
estimated from its size.

An estimate is marked as such: agents compact their history by it, and four characters a token is
right for English within a third.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from streamlib.client import Client
from streamlib.errors import StreamError
from streamlib.gateway.request_body import Workers
from streamlib.gateway.routes import RouteTarget
from streamlib.request.build import Request, build_for
from streamlib.request.prompt import Prompt
from streamlib_parsers.errors import ErrorInfo

CHARACTERS: Final = 4
"""Characters of a token."""

MEDIUM: Final = 1600
"""Tokens of an image or a page: the most that Anthropic counts for an image."""

COUNTED: Final = ("model", "messages", "system", "tools", "tool_choice", "thinking")
"""Keys of a Messages request that `count_tokens` takes; others are refused there."""


class _Count(Struct):
    input_tokens: int


async def count_tokens(
    client: Client, prompt: Prompt, hop: RouteTarget, workers: Workers, size: int
) -> tuple[int, bool]:
    """Counts the tokens of a prompt, whose request had a body of `size` bytes.

    Returns:
        The count, and whether it is an estimate.

    Raises:
        StreamError: the provider refused to count.
    """
    if hop.provider.name != "anthropic" or hop.target.wire_api != "messages":
        return await workers.run(size, estimate, prompt), True
    request = await workers.run(size, _count_request, prompt, hop)
    response = await client.fetch(request, hop.provider, api_key=hop.key)
    try:
        return msgspec.json.decode(response, type=_Count).input_tokens, False
    except msgspec.MsgspecError as error:
        message = f"the response is no token count: {error}"
        raise StreamError(ErrorInfo("malformed", message)) from None


def _count_request(prompt: Prompt, hop: RouteTarget) -> Request:
    # A count does not stream.
    request = build_for(msgspec.structs.replace(prompt, stream=None), hop.target)
    body = msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])
    counted = {key: body[key] for key in COUNTED if key in body}
    return msgspec.structs.replace(
        request, url=f"{request.url}/count_tokens", body=msgspec.json.encode(counted)
    )


def estimate(prompt: Prompt) -> int:
    """The tokens of a prompt by its size: of its text and names, and of its media."""
    size = _Size(len(prompt.instructions or ""))
    for item in prompt.items:
        size.add(msgspec.to_builtins(item))
    media = size.media
    for tool in prompt.tools:
        # What looks like a medium in a schema is none: only its characters are left out.
        size.add(msgspec.to_builtins(tool))
    return 1 + size.characters // CHARACTERS + media * MEDIUM


class _Size:
    """The size of JSON values: characters of keys and strings, and the number of media."""

    def __init__(self, characters: int) -> None:
        self.characters = characters
        self.media = 0

    def add(self, value: object) -> None:
        """Adds a value with everything in it."""
        if isinstance(value, str):
            self.characters += len(value)
        elif isinstance(value, dict):
            # The base64 text of a medium is no text for the model.
            if "data" in value and "media_type" in value:
                self.media += 1
                return
            for key, element in value.items():
                self.characters += len(str(key))
                self.add(element)
        elif isinstance(value, (list, tuple)):
            for element in value:
                self.add(element)
