"""Where a gateway stores state that its clients do not send back.

A client whose wire has no place for signed reasoning, or which throws it away, loses it with every
turn. The gateway stores what it needs to put it back: `MemoryStateStore` in this process,
`RedisStateStore` (`state_redis.py`) where several gateways serve one client.

Everything in a store belongs to one client. A client's entries are found under its own key only,
and count against its own limit.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Protocol, Self

from msgspec import Struct

STATE_SECONDS: Final = 24 * 3600.0
"""How long an entry is stored after its last use: a conversation is taken up again the next
morning. What is stored is content, so not for longer."""

ENTRY_BYTES: Final = 2 << 20
"""Maximum size of the state of one response. The longest reasoning that providers allow, 128,000
tokens, is half a megabyte, and its signature has about that size again."""

CLIENT_BYTES: Final = 32 << 20
"""Maximum size of the state of one client: some ten agents of 200 turns with 16 KB each. The oldest
entries give way, so a busy client costs no other client anything."""

TOTAL_BYTES: Final = 256 << 20
"""Maximum size of a store in memory: eight clients at their limit, on a machine of 1 GB."""


class StateLimits(Struct, frozen=True):
    """How much a store holds, and for how long.

    Attributes:
        seconds: from an entry's last use until it is deleted.
        entry_bytes: of the state of one response; more is not stored.
        client_bytes: of all entries of one client; the least recently used ones are deleted.
        total_bytes: of all clients, where the store is the gateway's memory. A Redis server has a
            limit of its own (``maxmemory``).
    """

    seconds: float = STATE_SECONDS
    entry_bytes: int = ENTRY_BYTES
    client_bytes: int = CLIENT_BYTES
    total_bytes: int = TOTAL_BYTES


STATE_LIMITS: Final = StateLimits()


class StateUnavailableError(Exception):
    """The store does not answer. The message has no address, which may have a password."""


class StateStore(Protocol):
    """Entries by client and key, each with a time to live. Used with `async with`."""

    async def __aenter__(self) -> Self:
        """Prepares the store; a server that does not answer is not an error yet."""
        ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Lets go of the store's connections."""
        ...

    async def get(self, client: str, keys: Sequence[str]) -> list[bytes | None]:
        """The entries of a client, which live on from now; None for a key without one.

        Args:
            client: whose entries, `ClientIdentity.key`.
            keys: of the entries.

        Raises:
            StateUnavailableError: the store does not answer.
        """
        ...

    async def put(self, client: str, key: str, value: bytes) -> None:
        """Stores an entry of a client in place of the one with that key. One over the limit of an
        entry is not stored.

        Raises:
            StateUnavailableError: the store does not answer.
        """
        ...


class _Entry(Struct):
    """One entry.

    Attributes:
        value: its content.
        used_at: when it was stored or read last, in seconds of the store's clock.
    """

    value: bytes
    used_at: float


class _ClientEntries:
    """The entries of one client, the least recently used first."""

    def __init__(self) -> None:
        self.entries: OrderedDict[str, _Entry] = OrderedDict()
        self.size = 0
        """Bytes of all values."""
        self.used_at = 0.0
        """When the newest was used."""

    def drop(self, key: str) -> None:
        """Deletes an entry, if it is there."""
        entry = self.entries.pop(key, None)
        if entry is not None:
            self.size -= len(entry.value)

    def drop_oldest(self) -> None:
        """Deletes the entry that was not used for longest."""
        self.drop(next(iter(self.entries)))


class MemoryStateStore:
    """A store in this process: it ends with it, and no other gateway shares it."""

    def __init__(
        self, limits: StateLimits = STATE_LIMITS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """An empty store.

        Args:
            limits: how much it holds.
            clock: seconds, from any start.
        """
        self._limits = limits
        self._clock = clock
        self._clients: OrderedDict[str, _ClientEntries] = OrderedDict()
        """The client that was not heard of for longest comes first."""
        self.size = 0
        """Bytes of all entries."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
        """Deletes an entry of the client that was not heard of for longest."""
        client, stored = next(iter(self._clients.items()))
        self.size -= stored.size
        stored.drop_oldest()
        self.size += stored.size
        if not stored.entries:
            del self._clients[client]

    def _drop_expired(self, client: str, now: float) -> None:
        """Deletes what was not used for too long: of this client, and of clients that are gone."""
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
        # Its newest entry is not that old: the client would be gone.
        while next(iter(stored.entries.values())).used_at <= oldest:
            stored.drop_oldest()
        self.size += stored.size - before
