"""Stores for state that clients of a gateway do not send back.

A client loses signed reasoning with every turn if its wire has no field for it, or if the client
drops it. The gateway stores what it needs to restore it: `MemoryStateStore` in this process, or
`RedisStateStore` (`redis_store.py`) if several gateways serve one client.

Every entry belongs to one client. It can be read under that client's key only, and counts against
that client's limit.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, Protocol, Self

from msgspec import Struct

STATE_SECONDS: Final = 24 * 3600.0
"""Seconds from the last use of an entry until it is deleted: a conversation may continue on the
next morning. Entries are content, so they are not stored longer."""

ENTRY_BYTES: Final = 2 << 20
"""Maximum bytes of the state of one response. The longest reasoning that providers allow, 128,000
tokens, has half a megabyte, and its signature about the same."""

CLIENT_BYTES: Final = 32 << 20
"""Maximum bytes of the state of one client: some ten agents with 200 turns of 16 KB each. Its
oldest entries are deleted first, so a busy client does not affect others."""

TOTAL_BYTES: Final = 256 << 20
"""Maximum bytes of a store in memory: eight clients at their limit, on a machine with 1 GB."""


class StateLimits(Struct, frozen=True):
    """Limits of a store.

    Attributes:
        seconds: time from an entry's last use until it is deleted.
        entry_bytes: bytes of the state of one response; a larger one is not stored.
        client_bytes: bytes of all entries of one client; the least recently used are deleted.
        total_bytes: bytes of all clients in the gateway's memory. A Redis server has a limit of
            its own (``maxmemory``).
    """

    seconds: float = STATE_SECONDS
    entry_bytes: int = ENTRY_BYTES
    client_bytes: int = CLIENT_BYTES
    total_bytes: int = TOTAL_BYTES


STATE_LIMITS: Final = StateLimits()


class StateUnavailableError(Exception):
    """The store does not respond. The message omits the address, which may contain a password."""


class StateStore(Protocol):
    """Entries by client and key, each with a lifetime. Used with `async with`."""

    async def __aenter__(self) -> Self:
        """Prepares the store; a server that does not respond is not an error yet."""
        ...

    async def __aexit__(self, *_: object) -> None:
        """Closes the connections of the store."""
        ...

    async def get(self, client: str, keys: Sequence[str]) -> list[bytes | None]:
        """Reads entries of a client, whose lifetimes start again; None for a missing entry.

        Args:
            client: key of the client, `ClientIdentity.key`.
            keys: keys of the entries.

        Raises:
            StateUnavailableError: the store does not respond.
        """
        ...

    async def put(self, client: str, key: str, value: bytes) -> None:
        """Stores an entry of a client, or replaces the one with this key. An entry above the limit
        is not stored.

        Raises:
            StateUnavailableError: the store does not respond.
        """
        ...


class _Entry(Struct):
    """One entry.

    Attributes:
        value: content of the entry.
        used_at: time of its last use, in seconds of the store's clock.
    """

    value: bytes
    used_at: float


class _ClientEntries:
    """The entries of one client; the least recently used is first."""

    def __init__(self) -> None:
        self.entries: OrderedDict[str, _Entry] = OrderedDict()
        self.size = 0
        """Number of bytes in all values, kept up to date, because a sum at each write is slow."""
        self.used_at = 0.0
        """Time of the last use of any entry, in seconds of the store's clock."""

    def drop(self, key: str) -> None:
        """Deletes an entry if it exists."""
        entry = self.entries.pop(key, None)
        if entry is not None:
            self.size -= len(entry.value)

    def drop_oldest(self) -> None:
        """Deletes the least recently used entry."""
        self.drop(next(iter(self.entries)))


class MemoryStateStore:
    """A store in this process: other gateways do not share it, and it ends with the process."""

    def __init__(
        self, limits: StateLimits = STATE_LIMITS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Makes an empty store.

        Args:
            limits: limits of the store.
            clock: returns seconds.
        """
        self._limits = limits
        self._clock = clock
        self._clients: OrderedDict[str, _ClientEntries] = OrderedDict()
        """Client key -> entries; the least recently active client is first, so that what is deleted
        for want of memory or time is found without a search."""
        self.size = 0
        """Number of bytes in all entries."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._clients.clear()
        self.size = 0

    async def get(self, client: str, keys: Sequence[str]) -> list[bytes | None]:
        """See `StateStore.get`."""
        now = self._clock()
        self._drop_expired(client, now)
        stored = self._clients.get(client)
        if stored is None:
            return [None] * len(keys)
        values: list[bytes | None] = []
        for key in keys:
            entry = stored.entries.get(key)
            if entry is None:
                values.append(None)
                continue
            values.append(entry.value)
            entry.used_at = now
            stored.entries.move_to_end(key)
            self._note_use(client, stored, now)
        return values

    async def put(self, client: str, key: str, value: bytes) -> None:
        """See `StateStore.put`."""
        now = self._clock()
        self._drop_expired(client, now)
        # One that is too large would push out all others of its client, and then itself.
        if len(value) > min(self._limits.entry_bytes, self._limits.client_bytes):
            return
        stored = self._clients.setdefault(client, _ClientEntries())
        before = stored.size
        stored.drop(key)
        stored.entries[key] = _Entry(value, now)
        stored.size += len(value)
        while stored.size > self._limits.client_bytes:
            stored.drop_oldest()
        self.size += stored.size - before
        self._note_use(client, stored, now)
        while self.size > self._limits.total_bytes:
            self._drop_one()

    def _note_use(self, client: str, stored: _ClientEntries, now: float) -> None:
        stored.used_at = now
        self._clients.move_to_end(client)

    def _drop_one(self) -> None:
        """Deletes an entry of the least recently active client."""
        client, stored = next(iter(self._clients.items()))
        self.size -= stored.size
        stored.drop_oldest()
        self.size += stored.size
        if not stored.entries:
            del self._clients[client]

    def _drop_expired(self, client: str, now: float) -> None:
        """Deletes expired entries: those of this client, and those of inactive clients."""
        oldest = now - self._limits.seconds
        while self._clients:
            gone, entries = next(iter(self._clients.items()))
            if entries.used_at > oldest:
                break
            self.size -= entries.size
            del self._clients[gone]
        stored = self._clients.get(client)
        if stored is None:
            return
        before = stored.size
        # This loop ends: the newest entry has not expired, or the client would be deleted.
        while next(iter(stored.entries.values())).used_at <= oldest:
            stored.drop_oldest()
        self.size += stored.size - before


def open_state(url: str, limits: StateLimits = STATE_LIMITS) -> StateStore:
    """The store that a URL names.

    Args:
        url: ``memory:``, or a Redis or Valkey server as `open_log` takes it (``redis://host``).
        limits: limits of the store.

    Raises:
        ValueError: the URL names no store, or its client is not installed. The message omits the
            URL, which may contain a password.
    """
    if url == "memory:":
        return MemoryStateStore(limits)
    try:
        from streamlib.gateway.state.redis_store import RedisStateStore
    except ModuleNotFoundError as error:
        message = f"{error.name} is not installed: pip install 'streamlib[redis]'"
        raise ValueError(message) from None
    return RedisStateStore(url, limits)
