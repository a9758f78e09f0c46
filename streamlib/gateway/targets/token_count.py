"""The number of tokens in a request: counted by the provider if it can count, else estimated.

An estimate is marked, because agents decide by it when to compact their history.
"""

from __future__ import annotations

from streamlib.client import Client
from streamlib.client.token_endpoint import counted_tokens
from streamlib.gateway.targets.routes import RouteTarget
from streamlib.gateway.workers import Workers
from streamlib.request.prompt import Prompt
from streamlib.request.token_count import count_request, endpoint_of, estimated_tokens


def counts_itself(target: RouteTarget) -> bool:
    """Whether a target's provider counts the tokens of its requests."""
    return endpoint_of(target.resolved) is not None


async def count_tokens(
    client: Client, prompt: Prompt, target: RouteTarget, workers: Workers, size: int
) -> tuple[int, bool]:
    """Counts the tokens of a prompt, whose request had a body of `size` bytes.

    Returns:
        The count, and whether it is an estimate: of a provider that cannot count.

    Raises:
        StreamError: the provider refused to count.
    """
    request = await workers.run(size, count_request, prompt, target.resolved)
    counted = await counted_tokens(client, request, target.provider, target.key)
    if counted is not None:
        return counted.tokens, False
    return await workers.run(size, estimated_tokens, prompt), True
