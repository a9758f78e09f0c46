"""The output tokens of a response that ended early, estimated from what was received of it."""

from __future__ import annotations

import msgspec

from streamlib.request.token_count import CHARACTERS
from streamlib_parsers.items import CustomToolCall, FunctionCall
from streamlib_parsers.response import Response
from streamlib_parsers.usage import Usage


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
