"""Client state on Redis 7.0 or later, or Valkey 7.2 or later, so that several gateways share it.

Needs the extra `redis`. A script performs each operation (`get_or_put.lua`). All entries of a
client are in one slot, so in a cluster one node performs it. The server's own limit (``maxmemory``
with ``allkeys-lru``) is for all clients together: evicted state is lost, and nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.resources import files
from typing import Any, Final, Self

import anyio
import coredis
import coredis.exceptions

from streamlib.durable.records import LogError
from streamlib.durable.redis_urls import parse_redis_url, redis_client
from streamlib.gateway.state.store import STATE_LIMITS, StateLimits, StateUnavailableError

COMMAND_SECONDS: Final = 1.0
"""Timeout of a command in seconds: a client waits for it, and loses little without its result."""

_FAILURES: Final = (
    coredis.exceptions.RedisError,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    TimeoutError,
    OSError,
    LogError,
)


class RedisStateStore:
    """A store on a Redis or Valkey server."""

    def __init__(
        self, url: str, limits: StateLimits = STATE_LIMITS, prefix: str = "sl-state"
    ) -> None:
        """Makes a store without connecting.

        Args:
            url: URL of the server, as for logs (`streamlib.durable.redis_urls`).
            limits: limits of the store.
            prefix: first part of all keys.

        Raises:
            ValueError: the URL names no server.
        """
        self._servers = parse_redis_url(url)
        self._limits = limits
        self._prefix = prefix
        self._stack = AsyncExitStack()
        """Closes the connections."""
        self._script: Any = None
        """The script; set when the store is entered."""

    async def __aenter__(self) -> Self:
        try:
            async with _errors():
                client = redis_client(self._servers, COMMAND_SECONDS)
                connected = await self._stack.enter_async_context(client)
                script = files("streamlib.gateway.state").joinpath("get_or_put.lua")
                self._script = connected.register_script(script.read_text(encoding="utf-8"))
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def get(self, client: str, keys: Sequence[str]) -> list[bytes | None]:
        """See `StateStore.get`."""
        if not keys:
            return []
        return await self._run(client, "get", *keys)

    async def put(self, client: str, key: str, value: bytes) -> None:
        """See `StateStore.put`."""
        limits = self._limits
        if len(value) <= min(limits.entry_bytes, limits.client_bytes):
            await self._run(client, "put", limits.client_bytes, key, value)

    async def _run(
        self, client: str, operation: str, *arguments: str | int | bytes
    ) -> list[bytes | None]:
        lifetime = int(self._limits.seconds * 1000)
        async with _errors():
            with anyio.fail_after(COMMAND_SECONDS):
                values: list[bytes | None] = await self._script(
                    self._keys(client), [lifetime, operation, *arguments]
                )
        return values

    def _keys(self, client: str) -> list[str]:
        # A digest, because a client's name may contain any character, and because the server's
        # keys should not reveal clients.
        digest = hashlib.sha256(client.encode()).hexdigest()
        # The braces put all three keys into the same slot of a cluster.
        return [f"{self._prefix}:{{{digest}}}:{part}" for part in ("values", "uses", "size")]


@asynccontextmanager
async def _errors() -> AsyncGenerator[None]:
    """Converts the client's exceptions; messages omit the URL, which may contain a password."""
    try:
        yield
    except _FAILURES as error:
        raise StateUnavailableError(f"Redis: {type(error).__name__}") from None
    except ExceptionGroup as group:  # raised from the tasks of a connection
        if group.split(_FAILURES)[1] is not None:
            raise
        raise StateUnavailableError("Redis: the connection was lost") from None
