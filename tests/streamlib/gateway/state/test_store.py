"""Stores of client state: limits, time to live, and one client's entries apart from another's; in
memory, and on a real server."""

from __future__ import annotations

import gc
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import anyio
import pytest

from streamlib.gateway import MemoryStateStore, StateLimits, StateStore, StateUnavailableError
from streamlib.gateway.state.store import open_state
from streamlib_parsers.items import user
from tests.support.cases import each_case
from tests.support.forgetful_clients import KEY, forgetful, signed_response
from tests.support.gateways import (
    SIGNED,
    Upstream,
    next_prompt,
    read,
    rule,
    send,
    serving,
    weather_prompt,
)
from tests.support.redis_servers import RedisServer, running_server, valkey_binary

# coredis leaves its in-memory streams open where it cannot connect.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

Opened: TypeAlias = Callable[[StateLimits], AbstractAsyncContextManager[StateStore]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[RedisServer]:
    """One server for all tests of this file."""
    folder: Path = tmp_path_factory.mktemp("state")
    with running_server(valkey_binary(), folder) as running:
        yield running


@pytest.fixture(autouse=True)
def collected(frozen_heap: None) -> Generator[None]:
    """What a test leaves open warns here, where it is ignored, and not in the next file."""
    yield
    gc.collect()


@pytest.fixture(params=["memory", "redis"])
def opened(request: pytest.FixtureRequest) -> Opened:
    """Opens an empty store."""

    @asynccontextmanager
    async def open_store(limits: StateLimits) -> AsyncGenerator[StateStore]:
        url = "memory:"
        if request.param == "redis":
            running: RedisServer = request.getfixturevalue("server")
            running.ask("FLUSHALL")
            url = running.url
        async with open_state(url, limits) as store:
            yield store

    return open_store


async def test_entries_are_of_one_client(opened: Opened) -> None:
    async with opened(StateLimits()) as store:
        await store.put("name ada", "k", b"ada's \0\xff")
        await store.put("name bob", "k", b"bob's")
        assert await store.get("name ada", ["k", "other"]) == [b"ada's \0\xff", None]
        assert await store.get("name bob", ["k"]) == [b"bob's"]
        assert await store.get("name eve", ["k"]) == [None]
        assert await store.get("name ada", []) == []


async def test_entry_is_replaced(opened: Opened) -> None:
    async with opened(StateLimits(client_bytes=10)) as store:
        for value in (b"1234567", b"12", b"12345678"):
            await store.put("ada", "k", value)
            assert await store.get("ada", ["k"]) == [value]


async def test_least_recently_used_entries_give_way(opened: Opened) -> None:
    async with opened(StateLimits(client_bytes=10, entry_bytes=10)) as store:
        await store.put("bob", "k", b"1234567890")
        for key in ("a", "b"):
            await store.put("ada", key, b"1234")
            await anyio.sleep(0.003)
        await store.get("ada", ["a"])
        await anyio.sleep(0.003)
        await store.put("ada", "c", b"1234")
        assert await store.get("ada", ["a", "b", "c"]) == [b"1234", None, b"1234"]
        # It is the client's own limit.
        assert await store.get("bob", ["k"]) == [b"1234567890"]


async def test_too_large_entry_is_not_stored(opened: Opened) -> None:
    async with opened(StateLimits(entry_bytes=4)) as store:
        await store.put("ada", "k", b"12345")
        assert await store.get("ada", ["k"]) == [None]


async def test_entry_ends_after_its_time(opened: Opened) -> None:
    async with opened(StateLimits(seconds=0.5)) as store:
        await store.put("ada", "old", b"1")
        await anyio.sleep(0.6)
        # Its time begins with itself, not with the client's first entry.
        await store.put("ada", "new", b"2")
        assert await store.get("ada", ["old", "new"]) == [None, b"2"]


@each_case("part", ["values", "uses", "size"])
async def test_client_is_stored_again_after_an_eviction(server: RedisServer, part: str) -> None:
    """With ``allkeys-lru`` the server evicts single keys: what is left of a client goes too."""
    server.ask("FLUSHALL")
    limits = StateLimits(client_bytes=100, entry_bytes=100)
    async with open_state(server.url, limits) as store:
        for number in range(3):
            await store.put("ada", f"old {number}", b"x" * 30)
        server.ask("DEL", server.ask("KEYS", f"*:{part}").split()[-1])
        for number in range(3):
            await store.put("ada", f"new {number}", b"x" * 30)
        keys = ["old 0", "old 1", "old 2", "new 0", "new 1", "new 2"]
        assert await store.get("ada", keys) == [None] * 3 + [b"x" * 30] * 3


def test_memory_is_bounded_over_all_clients() -> None:
    async def run() -> None:
        now = 0.0
        limits = StateLimits(seconds=10, total_bytes=25, client_bytes=20)
        store = MemoryStateStore(limits, lambda: now)
        for client in ("ada", "bob", "eve"):
            now += 1
            await store.put(client, "k", b"1234567890")
        assert store.size == 20
        # The one that was not heard of for longest.
        assert await store.get("ada", ["k"]) == [None]
        assert await store.get("eve", ["k"]) == [b"1234567890"]
        now += 9.5
        # Clients that are gone leave nothing, whoever asks.
        assert await store.get("new", ["k"]) == [None]
        assert store.size == 10

    anyio.run(run)


@each_case("url", ["", "file:///x", "redis+what://host", "sqlite:///x"])
def test_url_names_a_store(url: str) -> None:
    with pytest.raises(ValueError, match="a URL of Redis"):
        open_state(url)


async def test_server_that_is_gone_is_one_error(tmp_path: Path) -> None:
    with running_server(valkey_binary(), tmp_path) as running:
        async with open_state(running.url) as store:
            await store.put("ada", "k", b"1")
            running.kill()
            with pytest.raises(StateUnavailableError) as raised:
                await store.get("ada", ["k"])
            assert str(running.port) not in str(raised.value)
            running.start()
            assert await store.get("ada", ["k"]) == [b"1"]


async def test_gateways_on_one_server_share_state(server: RedisServer) -> None:
    """The client's second request meets another gateway."""
    upstream = Upstream(signed_response("messages"))
    first_turn = weather_prompt(input=[user("Through two gateways?")])
    async with serving(upstream, rule("messages"), state=server.url) as client:
        first = read("chat", await send(client, "chat", first_turn, **KEY))
    async with serving(upstream, rule("messages"), state=server.url) as client:
        await send(client, "chat", forgetful(next_prompt(first_turn, first)), **KEY)
    assert SIGNED.encode() in upstream.requests[-1].body
