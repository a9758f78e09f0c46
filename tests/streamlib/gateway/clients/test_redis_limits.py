"""The buckets of named clients on a server, which several gateways share."""

from __future__ import annotations

import gc
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from streamlib.gateway.clients.limits import Balance, MemoryLimits
from tests.support.client_limits import TOLERANCE, Clock, Step, follow, limited_client
from tests.support.redis_servers import RedisServer, running_server, valkey_binary

pytest.importorskip("coredis", reason="no client for Redis: the extra `redis` is not installed")
import coredis

from streamlib.gateway.clients.redis_limits import PAUSE_SECONDS, RedisLimits  # needs the extra

# coredis leaves its in-memory streams open where a connection breaks.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def collected(frozen_heap: None) -> Iterator[None]:
    """What is left open warns here, not in the test of another file."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def started_valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running_server(valkey_binary(), tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture
def valkey(started_valkey: RedisServer) -> RedisServer:
    """An empty server."""
    started_valkey.ask("FLUSHALL")
    return started_valkey


@asynccontextmanager
async def shared(server: RedisServer, clock: Clock, prefix: str) -> AsyncGenerator[RedisLimits]:
    async with coredis.Redis.from_url(server.url) as connection:
        yield RedisLimits(connection, prefix, now=clock)


SCRIPTED: Final = [
    (None, 7, [Step(0, 3, False), Step(1, 5, False), Step(2, 10, True), Step(59, 5, False)]),
    (3, None, [Step(5, 0, False)] * 6),
    (2, 40, [Step(3, 20, False), Step(0, 20, False), Step(0, 60, True), Step(70, 9, False)]),
    (1, 1, [Step(0, 50, False), Step(0, 0, True), Step(60, 2, False), Step(61, 0, False)]),
    (50, 50, [Step(0.5, 60, False), Step(0, 0, True), Step(0, 0, True), Step(1, 20, False)]),
]


async def test_server_counts_as_memory_does(valkey: RedisServer) -> None:
    for number, (requests, tokens, asked) in enumerate(SCRIPTED):
        who, clock = limited_client(requests, tokens), Clock()
        expected = await follow(MemoryLimits(clock), clock, who, asked)
        clock = Clock()
        async with shared(valkey, clock, f"same{number}") as buckets:
            balances = await follow(buckets, clock, who, asked)
            for balance, other in zip(balances, expected, strict=True):
                assert (balance is None) == (other is None)
                if balance is not None:
                    assert values(balance) == pytest.approx(values(other), abs=TOLERANCE)


def values(balance: Balance) -> list[float]:
    return [balance.requests or 0.0, balance.tokens or 0.0, balance.wait]


async def test_gateways_on_one_server_share_a_limit(valkey: RedisServer) -> None:
    who, served = limited_client(requests=10), 0
    async with (
        shared(valkey, Clock(), "shared") as first,
        shared(valkey, Clock(), "shared") as second,
    ):
        for _ in range(10):
            served += (await first.take(who, 0)).wait == 0
            served += (await second.take(who, 0)).wait == 0
    assert served == 10


async def test_gateway_counts_alone_while_the_server_is_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    who, clock = limited_client(requests=2), Clock()
    with running_server(valkey_binary(), tmp_path) as server:
        async with coredis.Redis.from_url(server.url) as connection:
            buckets = RedisLimits(connection, now=clock, clock=clock)
            assert (await buckets.take(who, 0)).wait == 0
            server.kill()
            waits = [(await buckets.take(who, 0)).wait for _ in range(3)]
            assert waits[:2] == [0, 0]
            assert waits[2] > 0
            assert "this gateway counts alone" in caplog.text
            server.start()
            clock.now += PAUSE_SECONDS
            assert (await buckets.take(who, 0)).wait == 0
