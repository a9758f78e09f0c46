"""The buckets of clients on Redis or Valkey, where several gateways share them.

One script takes from both buckets of a client, by the server's clock. A server that does not
answer stops nobody: each gateway then counts for itself until the server is back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any, Final

import anyio
import coredis.exceptions

from streamlib.durable import LogError
from streamlib.durable.redis_urls import parse_redis_url, redis_client
from streamlib.gateway.client_limits import Balance, ClientLimits, MemoryLimits
from streamlib.gateway.named_clients import NamedClient

COMMAND_SECONDS: Final = 1.0
"""How long the server may take: a client waits meanwhile."""

CHECK_SECONDS: Final = 5.0
"""How long the first connection may take."""

PAUSE_SECONDS: Final = 5.0
"""How long a server that did not answer is left alone, so that not every request waits for it."""

_log: Final = logging.getLogger("streamlib.gateway")


class RedisLimits:
    """Buckets of all gateways that share a server."""

    def __init__(
        self,
        client: Any,
        prefix: str = "sl",
        *,
        now: Callable[[], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepares them. `redis_limits` connects too.

        Args:
            client: Of coredis, entered.
            prefix: Keys are ``prefix:{client}:limits``.
            now: Seconds in place of the server's clock, for tests.
            clock: Seconds that never go back, for what this gateway counts for itself.
        """
        script = files("streamlib.gateway").joinpath("limits.lua").read_text(encoding="utf-8")
        self._script: Any = client.register_script(script)
        self._prefix = prefix
        self._now = now
        self._clock = clock
        self._own = MemoryLimits(clock)
        """Counts while the server does not answer."""
        self._away_until = 0.0
        """When the server is asked again."""

    async def take(self, client: NamedClient, tokens: int) -> Balance:
        """See `ClientLimits.take`."""
        balance = await self._ask("take", client, tokens)
        if balance is None:
            balance = await self._own.take(client, tokens)
        return balance

    async def correct(self, client: NamedClient, tokens: int) -> None:
        """See `ClientLimits.correct`."""
        if await self._ask("correct", client, tokens) is None:
            await self._own.correct(client, tokens)

    async def _ask(self, operation: str, client: NamedClient, tokens: int) -> Balance | None:
        """Runs the script. None: the server does not answer."""
        if self._clock() < self._away_until:
            return None
        now = "" if self._now is None else f"{self._now():.6f}"
        arguments = [
            operation,
            _argument(client.requests_per_minute),
            _argument(client.tokens_per_minute),
            str(tokens),
            now,
        ]
        problem = "no answer"
        try:
            with anyio.move_on_after(COMMAND_SECONDS):
                reply = await self._script([f"{self._prefix}:{{{client.name}}}:limits"], arguments)
                requests, of_tokens, wait = map(_number, reply)
                return Balance(requests, of_tokens, wait or 0.0)
        except (coredis.exceptions.RedisError, OSError, anyio.BrokenResourceError) as error:
            problem = type(error).__name__
        except ExceptionGroup as group:  # out of the tasks of a connection
            problem = type(group.exceptions[0]).__name__
        self._away_until = self._clock() + PAUSE_SECONDS
        _log.error("the server of the clients' limits: %s: this gateway counts alone", problem)
        return None


def _argument(limit: int | None) -> str:
    if limit is None:
        return ""
    return str(limit)


def _number(text: bytes | str) -> float | None:
    if not text:
        return None
    return float(text)


async def check_limits(url: str) -> None:
    """Connects once.

    Raises:
        ValueError: The URL names no server.
        LogError: It does not answer. The message has no URL, which may have a password.
    """
    try:
        with anyio.fail_after(CHECK_SECONDS):
            async with redis_client(parse_redis_url(url), COMMAND_SECONDS) as client:
                await client.ping()
    except (coredis.exceptions.RedisError, OSError, ExceptionGroup) as error:
        first: BaseException = error
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise LogError("unavailable", f"Redis: {type(first).__name__}") from None


@asynccontextmanager
async def redis_limits(url: str) -> AsyncGenerator[ClientLimits]:
    """Buckets on the server of a URL, while the block runs.

    Raises:
        ValueError: The URL names no server.
    """
    async with redis_client(parse_redis_url(url), COMMAND_SECONDS) as client:
        yield RedisLimits(client)
