"""Limits of named clients in tests: a clock that stands still, and steps that a client takes."""

from __future__ import annotations

from typing import Final, NamedTuple

from streamlib.gateway.clients.limits import Balance, ClientLimits
from streamlib.gateway.clients.named_clients import NamedClient

DIGEST: Final = "0" * 64
TOLERANCE: Final = 1e-3
"""Tokens, and seconds: the script keeps microseconds and millionths."""


def limited_client(requests: int | None = None, tokens: int | None = None) -> NamedClient:
    return NamedClient("alice", DIGEST, ("*",), requests, tokens)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Step(NamedTuple):
    """Some time passes, then a client asks for tokens, or corrects what it took."""

    pause: float
    tokens: int
    is_correction: bool


async def follow(
    buckets: ClientLimits, clock: Clock, who: NamedClient, asked: list[Step]
) -> list[Balance | None]:
    """The balance after each step."""
    balances: list[Balance | None] = []
    for step in asked:
        clock.now += step.pause
        if step.is_correction:
            await buckets.correct(who, step.tokens - 30)
            balances.append(None)
        else:
            balances.append(await buckets.take(who, step.tokens))
    return balances
