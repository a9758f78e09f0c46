"""The number of tokens in a request: counted by the provider if it can count, else estimated from
the size.

An estimate is marked, because agents decide by it when to compact their history. For English, four
characters a token are right within a third.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from streamlib.client import Client
from streamlib.gateway.targets.routes import RouteTarget
from streamlib.gateway.token_estimate import estimate
from streamlib.gateway.workers import Workers
from streamlib.request.build import Request, build_for
from streamlib.request.prompt import Prompt
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import JsonObject, WireApi
from streamlib_parsers.stream_error import StreamError


class TokenCounter(Struct, frozen=True):
    """How a provider counts the tokens of a request.

    Attributes:
        path: path that is appended to the URL of the request.
        keys: keys of the request body that it accepts; others are omitted. None: all keys.
        inside: key of its body that contains the complete request; "" for none.
        count: key of the number in its response.
    """

    path: str
    keys: tuple[str, ...] | None
    count: str
    inside: str = ""


WITHOUT_ROUTE: Final = frozenset({404, 405, 501})
"""HTTP statuses of a server without such a route: a proxy in front of the provider, for example."""

COUNTERS: Final[Mapping[tuple[str, WireApi], TokenCounter]] = {
    ("anthropic", "messages"): TokenCounter(
        "/count_tokens",
        ("model", "messages", "system", "tools", "tool_choice", "thinking"),
        "input_tokens",
    ),
    ("openai", "responses"): TokenCounter(
        "/input_tokens",
        (
            "model",
            "input",
            "instructions",
            "tools",
            "tool_choice",
            "parallel_tool_calls",
            "reasoning",
            "text",
            "truncation",
            "previous_response_id",
            "conversation",
        ),
        "input_tokens",
    ),
    ("google", "gemini"): TokenCounter(
        ":countTokens", None, "totalTokens", "generateContentRequest"
    ),
}
"""Provider and wire -> its counter. Other servers with the same wire often cannot count."""


def counts_itself(target: RouteTarget) -> bool:
    """Whether a target counts the tokens of its requests."""
    return _counter(target) is not None


def _counter(target: RouteTarget) -> TokenCounter | None:
    return COUNTERS.get((target.provider.name, target.resolved.wire_api))


async def count_tokens(
    client: Client, prompt: Prompt, target: RouteTarget, workers: Workers, size: int
) -> tuple[int, bool]:
    """Counts the tokens of a prompt, whose request had a body of `size` bytes.

    Returns:
        The count, and whether it is an estimate: of a provider that cannot count.

    Raises:
        StreamError: the provider refused to count.
    """
    counter = _counter(target)
    if counter is None:
        return await workers.run(size, estimate, prompt), True
    request = await workers.run(size, _count_request, prompt, target, counter)
    try:
        response = await client.fetch(request, target.provider, api_key=target.key)
    except StreamError as error:
        if error.info.status not in WITHOUT_ROUTE:
            raise
        return await workers.run(size, estimate, prompt), True
    try:
        count = msgspec.json.decode(response, type=dict[str, Any])[counter.count]
        return msgspec.convert(count, int), False
    except (msgspec.MsgspecError, KeyError) as error:
        message = f"the response is not a token count: {error}"
        raise StreamError(ErrorInfo("malformed", message)) from None


def _count_request(prompt: Prompt, target: RouteTarget, counter: TokenCounter) -> Request:
    # A count is never streamed.
    request = build_for(msgspec.structs.replace(prompt, stream=None), target.resolved)
    body = msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])
    counted: JsonObject = dict(body)
    if counter.keys is not None:
        counted = {key: body[key] for key in counter.keys if key in body}
    url = request.url
    if counter.inside:
        # wire: the request inside repeats the model, which the URL also names.
        counted = {counter.inside: {"model": f"models/{target.resolved.model}", **counted}}
        # The URL's method and query are those of a response, and are removed.
        url = url.partition("?")[0].rpartition(":")[0]
    return msgspec.structs.replace(
        request, url=url + counter.path, body=msgspec.json.encode(counted)
    )
