"""`streamlib gateway` as a separate process, and clients of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import anyio
import httpx

from tests.support.redis_servers import wait_until

END_SECONDS: Final = 20.0
"""Seconds in which a process must end."""


class GatewayProcess:
    """A running gateway: its URL, its log, and its processes."""

    def __init__(self, process: subprocess.Popen[str], url: str, log: IO[str]) -> None:
        self.url = url
        self._process = process
        self._log = log

    @property
    def log(self) -> str:
        """What it has written to standard error so far."""
        self._log.seek(0)
        return self._log.read()

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the process that was started."""
        self._process.send_signal(number)

    def wait(self) -> int:
        """Waits for its end; returns the exit code."""
        return self._process.wait(END_SECONDS)

    async def wait_for(self, text: str) -> None:
        """Waits until the log has this text."""
        await anyio.to_thread.run_sync(wait_until, lambda: text in self.log)

    def workers(self) -> list[int]:
        """The ids of its worker processes."""
        path = f"/proc/{self._process.pid}/task/{self._process.pid}/children"
        return [int(number) for number in Path(path).read_text(encoding="ascii").split()]


@contextmanager
def gateway_process(*options: str, **environment: str) -> Generator[GatewayProcess]:
    """The command while the block runs, on a port of its own."""
    command = [sys.executable, "-m", "streamlib", "gateway", "--port", "0", *options]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, **environment},
        )
        try:
            assert process.stdout is not None
            match = re.search(r"http://\S+:\d+", process.stdout.readline())
            log.seek(0)
            assert match, log.read()
            yield GatewayProcess(process, match[0], log)
        finally:
            if process.poll() is None:
                process.terminate()
                process.terminate()
                process.wait(END_SECONDS)
            if process.stdout is not None:
                process.stdout.close()


async def ask_until_served(url: str, **options: Any) -> httpx.Response:
    """Requests a Chat stream, repeatedly until the gateway listens."""
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    async with httpx.AsyncClient(timeout=30, **options) as client:
        return await client.post(f"{url}/v1/chat/completions", json=body)
