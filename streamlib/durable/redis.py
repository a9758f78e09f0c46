"""Logs on Redis 7.0 or later, or Valkey 7.2 or later, shared by any number of hosts.

Needs the extra `redis`. One script performs each operation, by the server's clock (`ask.lua`). One
connection of a process is subscribed to the logs that it follows. In a cluster all keys of a log
are in one slot, so one node performs its operations, and each node has such a connection.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.resources import files
from typing import Any, Final

import anyio
import coredis
import coredis.exceptions

from streamlib.durable.records import (
    LogCursor,
    LogError,
    Receive,
    Record,
    readable_records,
    unreadable,
)
from streamlib.durable.redis_urls import parse_redis_url, redis_client
from streamlib.durable.rules import Append, Delete, LogState, Open, Operation, Result, Stop, expired

TIMEOUT_SECONDS: Final = 5.0
"""Timeout of a command in seconds; one that timed out may still have been performed."""

LINGER_SECONDS: Final = 5.0
"""Twice the seconds that `appendfsync everysec` may lose, and time for the server's restart."""

RESUBSCRIBE_SECONDS: Final = 0.2
"""Seconds before a lost subscription is made again."""

EVERY_WRITE: Final = "An appended event survives a crash of the server."
EVERY_SECOND: Final = "A crash of the server loses the events of about the last second."
IN_MEMORY: Final = "A restart of the server loses logs."
UNKNOWN: Final = "The server does not say what a crash loses."
DURABILITIES: Final = (EVERY_WRITE, EVERY_SECOND, IN_MEMORY, UNKNOWN)
"""From the most to the least durable."""

_UNAVAILABLE: Final = (
    coredis.exceptions.ConnectionError,
    coredis.exceptions.ReadOnlyError,
    coredis.exceptions.ClusterDownError,
    coredis.exceptions.SentinelError,
    coredis.exceptions.ReplicationError,
    coredis.exceptions.PersistenceError,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    TimeoutError,
    OSError,
)


_SUBSCRIPTION_LOST: Final = (
    *_UNAVAILABLE,
    coredis.exceptions.PubSubError,
    # Raised for a node that was added to the cluster after the subscription was made.
    KeyError,
)


class RedisEngine:
    """Stores logs on a server."""

    linger = LINGER_SECONDS

    def __init__(self, url: str, prefix: str = "sl") -> None:
        """Makes an engine without connecting.

        Args:
            url: ``redis://``, ``rediss://`` or ``valkey://``, with user, password and database;
                ``redis+cluster://`` or ``redis+sentinel://`` (`streamlib.durable.redis_urls`).
            prefix: keys are ``prefix:{id}:h`` and ``prefix:{id}:l``.

        Raises:
            ValueError: the URL names no server.
        """
        self.durability = UNKNOWN
        """Durability; `connect` reads it from the server."""
        self._servers = parse_redis_url(url)
        self._publish = "PUBLISH"
        """The command that notifies the followers of a log."""
        if self._servers.kind == "cluster":
            self._publish = "SPUBLISH"  # SPUBLISH goes to one node, PUBLISH to all
        self._prefix = prefix
        self._stack = AsyncExitStack()
        """Closes the client."""
        self._client: Any = None
        """The client; set by `connect`."""
        self._ask_script: Any = None
        self._read_script: Any = None
        self._followed: set[str] = set()
        self._subscribed: set[str] = set()
        """Logs in the current subscription."""
        self._changed = anyio.Event()
        """Set when `_followed` changes."""

    async def connect(self) -> None:
        """See `Engine.connect`. A server that evicts keys is refused: it could delete logs."""
        try:
            async with _errors():
                client = redis_client(self._servers, TIMEOUT_SECONDS)
                self._client = await self._stack.enter_async_context(client)
                self._ask_script = self._client.register_script(_script("ask.lua"))
                self._read_script = self._client.register_script(_script("read.lua"))
                await self._read_durability()
        except BaseException:
            await self._stack.aclose()
            raise

    async def _read_durability(self) -> None:
        configurations: list[dict[str, str] | None] = []
        if self._servers.kind == "cluster":
            for node in self._client.primaries:
                async with node:
                    configurations.append(await _configuration(node))
        else:
            configurations.append(await _configuration(self._client))
        # The durability is that of the weakest node, because any node may store the log.
        named = [_durability(configuration) for configuration in configurations]
        self.durability = max(named, key=DURABILITIES.index)

    async def aclose(self) -> None:
        """See `Engine.aclose`."""
        await self._stack.aclose()

    async def ask(self, log_id: str, operation: Operation, lines: bytes = b"") -> Result:
        """See `Engine.ask`."""
        name, *arguments = _arguments(operation, lines)
        async with _errors():
            reply = await self._ask_script(
                self._keys(log_id), [name, self._channel(log_id), self._publish, *arguments]
            )
        status, epoch, last, stop = reply
        known: Any = _text(status)  # a status of the script
        try:
            return Result(known, int(epoch), int(last), _text(stop))
        except UnicodeDecodeError:
            raise unreadable("its state was changed") from None

    async def read(
        self, log_id: str, after: LogCursor, most: int
    ) -> tuple[LogState | None, int, list[Record]]:
        """See `Engine.read`."""
        async with _errors():
            reply = await self._read_script(self._keys(log_id), [str(after), most])
        now, saved, rows, record_count = reply
        state = expired(_state(saved), int(now))
        if state is None or state.gone:
            return state, int(now), []
        if state.last and not record_count:
            state = state.without_records()
        return state, int(now), readable_records(rows, _record)

    async def listen(self, receive: Receive) -> None:
        """See `Engine.listen`. Connects again after a lost connection."""
        while True:
            try:
                await self._listen_once(receive)
            except* _SUBSCRIPTION_LOST:  # raised in groups, because it comes from tasks
                pass
            receive(None, None)
            await anyio.sleep(RESUBSCRIBE_SECONDS)

    async def _listen_once(self, receive: Receive) -> None:
        """Listens until the subscription is lost."""
        self._subscribed = set()
        subscribe = self._client.pubsub
        if self._servers.kind == "cluster":
            subscribe = self._client.sharded_pubsub
        subscriber = subscribe(subscription_timeout=TIMEOUT_SECONDS)
        confirmed: set[str] = set()
        async with subscriber as subscription, anyio.create_task_group() as group:
            group.start_soon(self._keep_subscribed, subscription)
            while True:
                message = await subscription.get_message()
                if message is None:
                    continue
                log_id = self._log_id(message["channel"])
                if log_id is None:
                    continue
                if message["type"] == "message":
                    receive(log_id, _pushed(message["data"]))
                elif message["type"] in ("unsubscribe", "sunsubscribe"):
                    confirmed.discard(log_id)
                elif log_id in confirmed:
                    # The client connected again without a word: pushes in between were lost.
                    receive(None, None)
                else:
                    confirmed.add(log_id)
                    receive(log_id, None)

    async def _keep_subscribed(self, subscription: Any) -> None:
        """Subscribes to exactly the logs that are followed."""
        while True:
            self._changed = anyio.Event()
            added = self._followed - self._subscribed
            removed = self._subscribed - self._followed
            if added:
                self._subscribed |= added
                await subscription.subscribe(*[self._channel(log_id) for log_id in added])
            if removed:
                self._subscribed -= removed
                await subscription.unsubscribe(*[self._channel(log_id) for log_id in removed])
            if not added and not removed:
                await self._changed.wait()

    def follow(self, log_id: str) -> None:
        """See `Engine.follow`."""
        self._followed.add(log_id)
        self._changed.set()

    def unfollow(self, log_id: str) -> None:
        """See `Engine.unfollow`."""
        self._followed.discard(log_id)
        self._changed.set()

    async def log_ids(self, most: int) -> list[str]:
        """See `Overview.log_ids`. Scans all keys of the server, some at a time."""
        ids: set[str] = set()
        async with _errors():
            if self._servers.kind != "cluster":
                await self._scan(self._client, ids, most)
            else:
                for node in self._client.primaries:
                    async with node:
                        await self._scan(node, ids, most)
        return sorted(ids)[:most]

    async def _scan(self, client: Any, ids: set[str], most: int) -> None:
        async for key in client.scan_iter(f"{self._prefix}:{{*}}:h", count=1000):
            log_id = self._log_id(_name(key).removesuffix(":h"))
            if log_id is not None:
                ids.add(log_id)
            if len(ids) >= most:
                return

    async def followers(self, log_id: str) -> int | None:
        """See `Overview.followers`."""
        count = self._client.pubsub_numsub
        if self._servers.kind == "cluster":
            count = self._client.pubsub_shardnumsub
        async with _errors():
            counts = await count(self._channel(log_id))
        return int(sum(counts.values()))

    def _keys(self, log_id: str) -> list[str]:
        # The braces put both keys into the same slot of a cluster.
        return [f"{self._prefix}:{{{log_id}}}:h", f"{self._prefix}:{{{log_id}}}:l"]

    def _channel(self, log_id: str) -> str:
        return f"{self._prefix}:{{{log_id}}}"

    def _log_id(self, channel: bytes | str) -> str | None:
        name = _text(channel)
        start = f"{self._prefix}:{{"
        if name.startswith(start) and name.endswith("}"):
            return name[len(start) : -1]
        return None


@asynccontextmanager
async def _errors() -> AsyncGenerator[None]:
    """Converts the client's exceptions; messages omit the URL, which may contain a password."""
    try:
        yield
    except (*_UNAVAILABLE, coredis.exceptions.RedisError) as error:
        raise _log_error(error) from error
    except ExceptionGroup as group:  # raised from the tasks of a connection
        first = _first_of(group)
        if isinstance(first, (*_UNAVAILABLE, coredis.exceptions.RedisError)):
            raise _log_error(first) from first
        raise


def _first_of(group: ExceptionGroup[Exception]) -> Exception:
    first: Exception = group
    while isinstance(first, ExceptionGroup):
        first = first.exceptions[0]
    return first


def _log_error(error: Exception) -> LogError:
    if isinstance(error, _UNAVAILABLE):
        return LogError("unavailable", f"Redis: {type(error).__name__}")
    if "OOM" in str(error):
        return LogError("full", "Redis: the server has no memory left")
    is_other_type = isinstance(error, coredis.exceptions.WrongTypeError)
    if is_other_type or str(error).startswith("UNREADABLE"):
        return unreadable("its state was changed")
    return LogError("unavailable", f"Redis: {error}")


async def _configuration(client: Any) -> dict[str, str] | None:
    """The server's settings for durability; None if it does not reveal them."""
    try:
        config = await client.config_get(["maxmemory-policy", "appendonly", "appendfsync", "save"])
    except coredis.exceptions.ResponseError:
        return None  # hosted servers often forbid it
    return {_text(name): _text(value) for name, value in config.items()}


def _durability(configuration: dict[str, str] | None) -> str:
    """What a crash of a server may lose.

    Raises:
        LogError: the server evicts keys.
    """
    if configuration is None:
        return UNKNOWN
    policy = configuration.get("maxmemory-policy", "noeviction")
    if policy != "noeviction":
        raise LogError(
            "unavailable",
            f"the server evicts keys (maxmemory-policy {policy}): set it to noeviction",
        )
    if configuration.get("appendonly") != "yes":
        return IN_MEMORY
    if configuration.get("appendfsync") == "always":
        return EVERY_WRITE
    return EVERY_SECOND


def _arguments(operation: Operation, lines: bytes) -> list[str | int | bytes]:
    """Arguments of the script, with the operation's name first."""
    match operation:
        case Open(owner, lease_ms, epoch, meta, max_age_ms):
            return ["open", owner, lease_ms, epoch, meta, max_age_ms]
        case Append(owner, epoch, first, last, size, lease_ms, closes, keep_ms, max_bytes):
            numbers = [epoch, first, last, size, lease_ms, int(closes), keep_ms, max_bytes]
            return ["append", owner, *numbers, lines]
        case Stop(reason):
            return ["stop", reason]
        case Delete():
            return ["delete"]


def _state(saved: list[Any]) -> LogState | None:
    """The state of a log.

    Raises:
        LogError: `unreadable`: somebody changed it.
    """
    if not any(saved):
        return None
    try:
        epoch, last, closed, gone, owner, lease_until, stop, meta, size, expires_at = [
            _text(value) for value in saved
        ]
        return LogState(
            int(epoch),
            int(last),
            closed == "1",
            gone == "1",
            owner,
            int(lease_until),
            stop,
            meta,
            int(size),
            int(expires_at),
        )
    except (AttributeError, TypeError, ValueError):
        raise unreadable("its state was changed") from None


def _record(row: list[Any]) -> Record:
    """A record from a row of XRANGE: id, then names and values."""
    identifier, fields = row
    epoch, _, last = _text(identifier).partition("-")
    values = dict(zip(fields[::2], fields[1::2], strict=True))
    return Record(int(epoch), int(values[b"f"]), int(last), values[b"l"])


def _pushed(data: bytes | str) -> Record | None:
    """A record from a message of the script; None if it has none, or is not the script's.

    A push is only a hint: with None its followers read what the server has.
    """
    if isinstance(data, str):
        data = data.encode()
    head, _, lines = data.partition(b"\n")
    if not lines:
        return None
    try:
        epoch, first, last = head.split()
        return Record(int(epoch), int(first), int(last), lines, closes=head.endswith(b" "))
    except ValueError:
        return None


def _name(key: bytes | str) -> str:
    """A key of the server as text: others may have put any there."""
    if isinstance(key, str):
        return key
    return key.decode(errors="replace")


def _text(value: bytes | str) -> str:
    """The text of a reply.

    Raises:
        AttributeError: it is none.
        UnicodeDecodeError: it is not UTF-8.
    """
    if isinstance(value, str):
        return value
    return value.decode()


def _script(name: str) -> str:
    return files("streamlib.durable").joinpath(name).read_text(encoding="utf-8")
