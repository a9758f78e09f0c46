"""Whether a request of a named client is served now, by its limits for a minute."""

from __future__ import annotations

from typing import Final

import anyio
import msgspec

from streamlib.gateway.clients.limits import Balance, ClientLimits, rate_limits
from streamlib.gateway.clients.named_clients import NamedClient
from streamlib.gateway.token_estimate import received_tokens, usage_so_far
from streamlib.gateway.workers import Workers
from streamlib.request.prompt import Prompt
from streamlib.request.token_count import estimated_tokens
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import RateLimits
from streamlib_parsers.response import Response
from streamlib_parsers.stream_error import StreamError

CORRECTION_SECONDS: Final = 2.0
"""How long the end of a request may take to correct its estimate, even one that is cancelled."""


class LimitExceeded(StreamError):
    """A request exceeds a limit of its client. Holds the limits, for the headers of the error."""

    def __init__(self, error: ErrorInfo, limits: RateLimits) -> None:
        super().__init__(error)
        self.limits = limits


class Admission:
    """One request that is served: what it took from its client's limits."""

    def __init__(
        self, client: NamedClient, limits: ClientLimits, tokens: int, balance: Balance
    ) -> None:
        self._client = client
        self._limits = limits
        self._tokens = tokens
        """What was taken for it: the estimate of its input."""
        self.rate_limits = rate_limits(client, balance)
        """What its client is shown of its limits."""

    async def settle(self, response: Response | None) -> None:
        """Corrects the estimate by what the response has used; called once, at the end.

        Args:
            response: the response accumulated so far; None if no target was tried.
        """
        if self._client.tokens_per_minute is None:
            return
        difference = used_tokens(response, self._tokens) - self._tokens
        if difference == 0:
            return
        # A client that disconnects must not keep its estimate, nor get rid of what it used.
        with anyio.move_on_after(CORRECTION_SECONDS, shield=True):
            await self._limits.correct(self._client, difference)


def used_tokens(response: Response | None, estimated_input: int) -> int:
    """The tokens that a response has used, as far as it is known.

    A response that ended early often has no usage, and a client could end each early: what it
    received is then estimated as its request was.

    Args:
        response: the response accumulated so far; None if no target was tried.
        estimated_input: the tokens of the request.
    """
    if response is None:
        return 0
    has_output = bool(response.items)
    if response.usage is None and not has_output and response.error is not None:
        return 0  # refused by the target, or it was never reached
    usage, _ = usage_so_far(response)
    input_tokens: int | None = None
    output_tokens: int | None = None
    if usage is not None:
        input_tokens, output_tokens = usage.input_tokens, usage.output_tokens
    if input_tokens is None:
        input_tokens = estimated_input
    if output_tokens is None:
        output_tokens = received_tokens(response)
    return input_tokens + output_tokens


async def admit(
    client: NamedClient | None,
    limits: ClientLimits,
    prompt: Prompt,
    workers: Workers,
    size: int,
) -> Admission | None:
    """Takes what a request needs from the limits of its client.

    Args:
        client: who sent it; None: nobody by name.
        limits: where the buckets are.
        prompt: what is asked, with the client's model.
        workers: estimates large requests.
        size: bytes of the request body.

    Returns:
        What to settle at the end; None: there is nothing to count.

    Raises:
        LimitExceeded: the client has reached one.
    """
    if client is None or not client.is_limited:
        return None
    tokens = 0
    if client.tokens_per_minute is not None:
        tokens = await workers.run(size, estimated_tokens, prompt)
    return await reserve(client, limits, tokens)


async def reserve(client: NamedClient, limits: ClientLimits, tokens: int) -> Admission:
    """Takes one request and some tokens from a client's limits.

    Raises:
        LimitExceeded: they are not there.
    """
    # Not cancelled half-way: a server may have taken them, and nobody would give them back.
    with anyio.fail_after(None, shield=True):
        balance = await limits.take(client, tokens)
    if balance.wait == 0:
        return Admission(client, limits, tokens, balance)
    shown = rate_limits(client, balance)
    raise LimitExceeded(_limit_error(client, balance, shown), shown)


def _limit_error(client: NamedClient, balance: Balance, shown: RateLimits) -> ErrorInfo:
    name, limit = "requests", client.requests_per_minute
    if balance.requests is None or balance.requests >= 1:
        name, limit = "tokens", client.tokens_per_minute
    message = (
        f"this gateway allows {client.name} {limit} {name} a minute: "
        f"try again in {shown.retry_after:g} seconds"
    )
    return ErrorInfo(
        "rate_limited",
        message,
        retryable=True,
        retry_after=shown.retry_after,
        code="rate_limit_exceeded",
    )


def own_limits(admission: Admission | None, reported: RateLimits | None) -> RateLimits | None:
    """The limits that a client is shown: its own, if it has some, else the provider's.

    The provider's are those of the gateway's key: of all clients together.
    """
    if admission is None:
        return reported
    own = admission.rate_limits
    if reported is not None:
        own = msgspec.structs.replace(own, retry_after=reported.retry_after)
    return own
