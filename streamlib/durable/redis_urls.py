"""Reads Redis URLs: they name one server, a cluster, or a primary that sentinels watch.

    redis://user:password@host:6379/0
    redis+cluster://user:password@host:6379,host-2:6379
    redis+sentinel://user:password@host:26379,host-2:26379/name-of-the-primary/0

``rediss`` is TLS, ``valkey`` means the same as ``redis``. Certificates of your own are options:
``?ssl_ca_certs=ca.pem``.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit, urlunsplit

import coredis
from coredis.connection import TCPLocation
from msgspec import Struct

from streamlib.durable.engine_url import split_engine_url
from streamlib.durable.records import LogError

Kind: TypeAlias = Literal["server", "cluster", "sentinel"]

DEFAULT_PORTS: Final[dict[Kind, int]] = {"server": 6379, "cluster": 6379, "sentinel": 26379}

SENTINEL_OPTIONS: Final = ("sentinel_username", "sentinel_password")
"""Options of a URL with the login for sentinels, which have their own users."""


class RedisServers(Struct, frozen=True):
    """The servers that a URL names.

    Attributes:
        kind: one server, nodes of a cluster, or sentinels.
        nodes: host and port of each node in the URL.
        url: for one server: the URL for the client library, which does not know `valkey`.
        login: user and password, if the URL has them.
        sentinel_login: user and password for the sentinels.
        database: number of the database.
        service: the sentinels' name of the primary.
        tls: files for `ssl.SSLContext`, by their names in the URL; None: no TLS.
    """

    kind: Kind
    nodes: tuple[tuple[str, int], ...]
    url: str
    login: dict[str, str] = {}
    sentinel_login: dict[str, str] = {}
    database: int = 0
    service: str = ""
    tls: dict[str, str] | None = None

    def __repr__(self) -> str:
        """Omits passwords, because it may be in a traceback."""
        return f"RedisServers({self.kind}, {len(self.nodes)})"


def parse_redis_url(url: str) -> RedisServers:
    """Reads a URL. Messages do not repeat it, because it may contain a password.

    Raises:
        ValueError: the URL names no server.
    """
    parts = split_engine_url(url)
    scheme, _, kind_name = parts.scheme.replace("valkey", "redis").partition("+")
    if scheme not in ("redis", "rediss"):
        raise ValueError("a URL of Redis starts with redis, rediss, valkey or valkeys")
    kind = _kind(kind_name)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    path = [unquote(part) for part in parts.path.split("/") if part]
    service = ""
    if kind == "sentinel":
        if not path:
            raise ValueError("the URL of sentinels ends with the name of the primary")
        service = path.pop(0)
    database = "".join(path) or "0"
    if not database.isdecimal() or (kind == "cluster" and database != "0"):
        raise ValueError("the database is a number; a cluster has no other than 0")
    tls: dict[str, str] | None = None
    if scheme == "rediss":
        tls = {name: value for name, value in query.items() if name.startswith("ssl_")}
    sentinel_login = {
        name.removeprefix("sentinel_"): query[name] for name in SENTINEL_OPTIONS if name in query
    }
    return RedisServers(
        kind,
        _nodes(parts, DEFAULT_PORTS[kind]),
        urlunsplit(parts._replace(scheme=scheme)),
        _login(parts),
        sentinel_login,
        int(database),
        service,
        tls,
    )


def _kind(name: str) -> Kind:
    match name:
        case "":
            return "server"
        case "cluster" | "sentinel":
            return name
        case _:
            raise ValueError("a URL of Redis is redis://, redis+cluster:// or redis+sentinel://")


def _nodes(parts: SplitResult, default_port: int) -> tuple[tuple[str, int], ...]:
    nodes: list[tuple[str, int]] = []
    for text in parts.netloc.rpartition("@")[2].split(","):
        node = urlsplit(f"//{text}")
        try:
            port = node.port or default_port
        except ValueError:
            raise ValueError("a port is a number below 65536") from None
        if not node.hostname:
            raise ValueError("a URL of Redis names a host")
        nodes.append((unquote(node.hostname), port))
    return tuple(nodes)


def _login(parts: SplitResult) -> dict[str, str]:
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    login = {"username": unquote(user), "password": unquote(password)}
    return {name: value for name, value in login.items() if value}


@asynccontextmanager
async def redis_client(servers: RedisServers, seconds: float) -> AsyncGenerator[Any]:
    """A client of the servers while the block runs.

    Args:
        servers: the servers of a URL.
        seconds: timeout of a command and of a connection.
    """
    options: dict[str, Any] = {
        "stream_timeout": seconds,
        "connect_timeout": seconds,
        "decode_responses": False,
    }
    if servers.kind == "server":
        async with _single_server(servers.url, options) as client:
            yield client
        return
    if servers.tls is not None:
        options["ssl_context"] = _ssl_context(servers.tls)
    locations = [TCPLocation(host, port) for host, port in servers.nodes]
    # Typed Any, because its overloads accept no options in a dictionary.
    library: Any = coredis
    if servers.kind == "cluster":
        cluster = library.RedisCluster(startup_nodes=locations, **servers.login, **options)
        async with cluster as client:
            yield client
        return
    sentinel = library.Sentinel(
        locations,
        sentinel_kwargs={**options, **servers.sentinel_login},
        db=servers.database,
        **servers.login,
        **options,
    )
    async with sentinel, sentinel.primary_for(servers.service) as client:
        yield client


def _single_server(url: str, options: dict[str, Any]) -> Any:
    """The client of one server; it reads the options in the URL itself.

    Raises:
        LogError: an option has an invalid value.
    """
    try:
        return coredis.Redis.from_url(url, **options)
    except (ValueError, KeyError):
        message = "an option of the URL of Redis, after the question mark, has no such value"
    # Raised outside of `except`, because the original exception may quote a password.
    raise LogError("unavailable", message)


def _ssl_context(files: dict[str, str]) -> ssl.SSLContext:
    """wire: the ``ssl_`` options of a URL, read as the client library reads them for one server."""
    context = ssl.create_default_context(cafile=files.get("ssl_ca_certs"))
    if "ssl_certfile" in files:
        context.load_cert_chain(files["ssl_certfile"], files.get("ssl_keyfile"))
    if files.get("ssl_check_hostname", "").lower() in ("false", "0"):
        context.check_hostname = False
    if files.get("ssl_cert_reqs") == "none":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
