"""Logs on a cluster, on a primary that sentinels watch, and behind TLS."""

from __future__ import annotations

import gc
import shutil
import subprocess
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from lab.durable.scenarios import counts, run_many
from streamlib.durable import LogError, open_log
from streamlib.testing.engines import check_engine
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import accumulate
from tests.support.client_streams import stream_over
from tests.support.redis_servers import (
    RedisServer,
    free_port,
    redis_binary,
    running_cluster,
    running_sentinels,
    running_server,
    valkey_binary,
)
from tests.support.response_bodies import frames_of

pytest.importorskip("coredis", reason="no client for Redis: the extra `redis` is not installed")
from streamlib.durable.redis import RedisEngine  # needs the extra
from streamlib.durable.redis_urls import RedisServers, parse_redis_url

# coredis leaves its in-memory streams open where it cannot connect.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

FRAMES = frames_of(40)
TEXT = "".join(f"word {n} " for n in range(40))


@pytest.fixture(autouse=True)
def short_linger(monkeypatch: pytest.MonkeyPatch, frozen_heap: None) -> Iterator[None]:
    """Five seconds behind each log would be most of the time of these tests."""
    monkeypatch.setattr(RedisEngine, "linger", 0.5)
    yield
    gc.collect()  # what is left open warns here, not in the test of another file


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RedisServer]]:
    """Three nodes."""
    with running_cluster(valkey_binary(), tmp_path_factory.mktemp("cluster")) as nodes:
        yield nodes


def url_of(nodes: list[RedisServer], kind: str = "cluster", path: str = "") -> str:
    hosts = ",".join([f"127.0.0.1:{node.port}" for node in nodes])
    return f"redis+{kind}://{hosts}{path}"


def slow_stream(pause: float) -> Any:
    steps: list[bytes | float] = []
    for frame in FRAMES:
        steps += [frame, pause]
    return stream_over(*steps, errors="event", deadlines=Deadlines(idle=1e9))


async def test_cluster_equals_the_rules(cluster: list[RedisServer]) -> None:
    engine = RedisEngine(url_of(cluster[:1]))
    await engine.connect()
    try:
        await check_engine(engine, operations=30, seed=int(time.time()))
        url = url_of(cluster)
        with anyio.fail_after(30):
            found = counts(await run_many(engine, time.time_ns(), 3, 3, url))
        assert found["wrong"] == []
    finally:
        await engine.aclose()


async def test_pushes_reach_readers_of_every_node(cluster: list[RedisServer]) -> None:
    """Logs of many slots: each is pushed by its node, and stopped through another process."""
    async with open_log(url_of(cluster)) as ours, open_log(url_of(cluster)) as theirs:
        names = [f"log-{time.time_ns()}-{number}" for number in range(12)]
        found: dict[str, Any] = {}

        async def read(name: str) -> None:
            found[name] = [entry.event async for entry in theirs.read(name)]

        async with anyio.create_task_group() as group:
            for name in names:
                await ours.create(name)
                group.start_soon(ours.write, name, slow_stream(1e9))
                group.start_soon(read, name)
            await anyio.sleep(0.3)
            began = time.monotonic()
            for name in names:
                await theirs.stop(name)
            while len(found) < len(names):  # noqa: ASYNC110  # the readers have no event
                await anyio.sleep(0.005)
            # A lease is fifteen seconds: nothing was polled.
            assert time.monotonic() - began < 3
    assert {events[-1].error.code for events in found.values()} == {"user"}
    sizes = [int(node.ask("DBSIZE").strip()[1:]) for node in cluster]
    assert min(sizes) > 0


@pytest.mark.slow
async def test_log_survives_a_crash_of_its_node(cluster: list[RedisServer]) -> None:
    name = f"crash-{time.time_ns()}"
    async with open_log(url_of(cluster), lease=2) as log:
        await log.create(name)
        slot = cluster[0].ask("CLUSTER KEYSLOT", name).strip()[1:]
        node = cluster[int(slot) * 3 // 16384]
        found: list[Any] = []

        async def read() -> None:
            found.extend([entry async for entry in log.read(name)])

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(read)
                group.start_soon(log.write, name, slow_stream(0.01))
                await anyio.sleep(0.2)
                node.kill()
                await anyio.to_thread.run_sync(node.start)
        again = [entry async for entry in log.read(name)]
    assert accumulate([entry.event for entry in found]).text == TEXT
    assert found == again


async def test_evicting_node_of_a_cluster_is_refused(cluster: list[RedisServer]) -> None:
    cluster[1].ask("CONFIG SET maxmemory-policy allkeys-lru")
    try:
        with pytest.raises(LogError, match="noeviction"):
            async with open_log(url_of(cluster)):
                pass
    finally:
        cluster[1].ask("CONFIG SET maxmemory-policy noeviction")


@contextmanager
def watched(folder: Path) -> Generator[tuple[RedisServer, RedisServer, str]]:
    """A primary, its replica, and the URL of the sentinel that watches them."""
    for name in ("primary", "replica"):
        (folder / name).mkdir()
    binary = valkey_binary()
    with running_server(binary, folder / "primary") as primary:
        of = ("--replicaof", f"127.0.0.1 {primary.port}", "--repl-diskless-sync-delay", "0")
        with (
            running_server(binary, folder / "replica", *of) as replica,
            running_sentinels(binary, folder, primary) as sentinels,
        ):
            yield primary, replica, url_of(sentinels, "sentinel", "/primary")


async def test_sentinels_name_the_primary(tmp_path: Path) -> None:
    with watched(tmp_path) as (primary, _, url):
        # The first of them is away.
        two = url.replace("://", f"://127.0.0.1:{free_port()},")
        async with open_log(two) as log, open_log(primary.url) as direct:
            await log.write("a", slow_stream(0))
            found: list[Any] = [entry.event async for entry in direct.read("a")]
        with pytest.raises(LogError, match="Redis: "):
            async with open_log(url.replace("/primary", "/another")):
                pass
    assert accumulate(found).text == TEXT


@pytest.mark.slow
async def test_log_follows_the_primary_of_sentinels(tmp_path: Path) -> None:
    """The primary is killed while a response is written: its replica goes on."""
    with watched(tmp_path) as (primary, replica, url):
        replica.wait_for("INFO replication", "master_link_status:up")
        async with open_log(url, lease=3, outage=20) as log:
            await log.create("a")
            with anyio.fail_after(30):
                async with anyio.create_task_group() as group:
                    group.start_soon(log.write, "a", slow_stream(0.02))
                    await anyio.sleep(0.3)
                    primary.kill()
            found: list[Any] = [entry.event async for entry in log.read("a")]
        assert "role:master" in replica.ask("INFO replication")
    assert accumulate(found).text == TEXT


async def test_sentinels_that_are_away_are_one_named_error(tmp_path: Path) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    for url in (
        f"redis+sentinel://user:secret-pass@{nowhere}/primary",
        f"redis+cluster://user:secret-pass@{nowhere}",
    ):
        with pytest.raises(LogError, match="Redis: ") as info:
            async with open_log(url):
                pass
        assert info.value.kind == "unavailable"
        assert "secret-pass" not in str(info.value)


# --- TLS ---


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of our own for 127.0.0.1, with its key beside it."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("this needs the openssl command to make a certificate")
    file = tmp_path_factory.mktemp("tls") / "own.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(file.with_suffix(".key")), "-out", str(file)]
    subprocess.run(command, check=True, capture_output=True)
    return file


async def test_log_behind_tls_with_an_own_certificate(tmp_path: Path, certificate: Path) -> None:
    """Debian's server has TLS; the wheel of Valkey has none."""
    port = free_port()
    options = ["--tls-port", str(port), "--tls-auth-clients", "no"]
    options += ["--tls-cert-file", str(certificate)]
    options += ["--tls-key-file", str(certificate.with_suffix(".key"))]
    options += ["--tls-ca-cert-file", str(certificate), "--requirepass", "secret-pass"]
    with running_server(redis_binary(), tmp_path, *options):
        url = f"rediss://:secret-pass@127.0.0.1:{port}"
        async with open_log(f"{url}?ssl_ca_certs={certificate}") as log:
            await log.write("a", slow_stream(0))
            found: list[Any] = [entry.event async for entry in log.read("a")]
        assert accumulate(found).text == TEXT
        with pytest.raises(LogError) as info:  # a certificate that nobody vouches for
            async with open_log(url):
                pass
    assert info.value.kind == "unavailable"
    assert "secret-pass" not in str(info.value)


# --- URLs ---


def test_urls_name_servers_logins_and_databases() -> None:
    cases: dict[str, RedisServers] = {
        "redis+cluster://u:p%40@a:1,b/": RedisServers(
            "cluster", (("a", 1), ("b", 6379)), "", {"username": "u", "password": "p@"}
        ),
        "valkey+sentinel://[::1]:2,c/main/3?sentinel_password=s": RedisServers(
            "sentinel", (("::1", 2), ("c", 26379)), "", {}, {"password": "s"}, 3, "main"
        ),
        "valkeys+cluster://a?ssl_ca_certs=x.pem": RedisServers(
            "cluster", (("a", 6379),), "", tls={"ssl_ca_certs": "x.pem"}
        ),
    }
    for url, expected in cases.items():
        found = parse_redis_url(url)
        for field in ("kind", "nodes", "login", "sentinel_login", "database", "service", "tls"):
            assert getattr(found, field) == getattr(expected, field), (url, field)
        assert "p@" not in repr(found)


def test_urls_that_name_no_server_are_refused() -> None:
    for url in (
        "redis+sentinel://secret@a",
        "redis+cluster://secret@a/1",
        "redis+ring://secret@a",
        "redis://secret@",
        "redis://secret@a:x",
        "redis://secret@a/b",
        "redis+cluster://secret@a,,b",
        "redisx://secret@a",
        # What Python says of this one quotes the password.
        "redis://u:secret\u2100@a",
    ):
        with pytest.raises(ValueError, match=" ") as info:
            open_log(url)
        assert "secret" not in str(info.value)


async def test_wrong_option_of_a_url_is_a_log_error() -> None:
    """The client library raised KeyError and ValueError, and the command line a traceback."""
    for query in ("ssl_cert_reqs=x", "stream_timeout=x"):
        with pytest.raises(LogError, match="an option of the URL"):
            async with open_log(f"rediss://u:secret@127.0.0.1:1?{query}"):
                pass
