"""The token buckets of clients on Redis or Valkey, so that several gateways share them.

One script takes from both buckets of a client, by the server's clock. If the server does not
respond, no request fails: each gateway then counts on its own until the server responds again.
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
from streamlib.gateway.clients.limits import Balance, ClientLimits, MemoryLimits
from streamlib.gateway.clients.named_clients import NamedClient

COMMAND_SECONDS: Final = 1.0
"""Timeout of a command in seconds; a client waits meanwhile."""

CHECK_SECONDS: Final = 5.0
"""Timeout of the first connection in seconds."""

PAUSE_SECONDS: Final = 5.0
"""Seconds before a server that did not respond is used again, so that few requests wait for it."""

_log: Final = logging.getLogger("streamlib.gateway")


class RedisLimits:
    """The buckets that all gateways on one server share."""

    def __init__(
        self,
        client: Any,
        prefix: str = "sl",
        *,
        now: Callable[[], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepares the buckets. `redis_limits` also connects.

        Args:
            client: an entered client of coredis.
            prefix: prefix of keys, which are ``prefix:{client}:limits``.
            now: returns seconds in place of the server's clock, for tests.
            clock: returns monotonic seconds, for the buckets of this gateway alone.
        """
        script = (
            files("streamlib.gateway.clients")
            .joinpath("take_or_correct.lua")
            .read_text(encoding="utf-8")
        )
        self._script: Any = client.register_script(script)
        self._prefix = prefix
        self._now = now
        self._clock = clock
        self._own = MemoryLimits(clock)
        """Buckets for the time in which the server does not respond."""
        self._away_until = 0.0
        """Time from which the server is used again, in seconds of the clock."""

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
        """Runs the script; returns None if the server does not respond."""
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
        except ExceptionGroup as group:  # raised from the tasks of a connection
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
    """Connects once to the server of a URL.

    Raises:
        ValueError: the URL names no server.
        LogError: it does not respond. The message omits the URL, which may contain a password.
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
    """Buckets on the server of a URL, connected while the block runs.

    Raises:
        ValueError: the URL names no server.
    """
    async with redis_client(parse_redis_url(url), COMMAND_SECONDS) as client:
        yield RedisLimits(client)
