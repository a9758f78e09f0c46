"""The number of tokens in a request or a response, estimated from its size.

An estimate is marked, because agents decide by it when to compact their history. For English, four
characters a token are right within a third.
"""

from __future__ import annotations

from typing import Final

import msgspec

from streamlib.request.prompt import Prompt
from streamlib_parsers.items import CustomToolCall, FunctionCall
from streamlib_parsers.response import Response
from streamlib_parsers.usage import Usage

CHARACTERS: Final = 4
"""Average number of characters in a token."""

MEDIUM: Final = 1600
"""Tokens of an image or a page: the maximum that Anthropic counts for an image."""


def received_tokens(response: Response) -> int:
    """An estimate of the output tokens received so far, from their characters."""
    size = len(response.text) + len(response.reasoning)
    for item in response.items:
        if isinstance(item, FunctionCall):
            size += len(item.name) + len(item.arguments)
        elif isinstance(item, CustomToolCall):
            size += len(item.name) + len(item.input)
    return size // CHARACTERS


def usage_so_far(response: Response) -> tuple[Usage | None, bool]:
    """The usage of a response, complete or not, and whether its output tokens are an estimate.

    If a response ended early, its output count is missing, or is the first one, a single token. If
    the estimate is larger than the count, the estimate is returned.
    """
    if response.stop_reason is not None:
        return response.usage, False
    usage = response.usage or Usage()
    received = received_tokens(response)
    if received <= (usage.output_tokens or 0):
        return response.usage, False
    return msgspec.structs.replace(usage, output_tokens=received), True


def estimate(prompt: Prompt) -> int:
    """The estimated tokens of a prompt: from the characters of texts and names, and its media."""
    size = _Size(len(prompt.instructions or ""))
    for item in prompt.items:
        size.add(msgspec.to_builtins(item))
    media = size.media
    for tool in prompt.tools:
        # An object in a schema may look like media: then only its characters are not counted.
        size.add(msgspec.to_builtins(tool))
    return 1 + size.characters // CHARACTERS + media * MEDIUM


class _Size:
    """The size of JSON values: characters of keys and strings, and the number of media."""

    def __init__(self, characters: int) -> None:
        self.characters = characters
        self.media = 0

    def add(self, value: object) -> None:
        """Adds a value, with all values inside it."""
        if isinstance(value, str):
            self.characters += len(value)
        elif isinstance(value, dict):
            # The base64 data of an image or a file is not text for the model.
            if "data" in value and "media_type" in value:
                self.media += 1
                return
            for key, element in value.items():
                self.characters += len(str(key))
                self.add(element)
        elif isinstance(value, (list, tuple)):
            for element in value:
                self.add(element)
