"""Readers in processes of their own: those in Node, and the parsers of this and other checkouts.

A process reads a JSON object a line and responds with one (`node/race.mjs`, `checkout_reader.py`).
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contestants import Contestant, Outcome

CHECKOUT_READER = Path(__file__).with_name("checkout_reader.py")


class ReaderProcess:
    """A process that reads bodies; it ends with its standard input.

    Args:
        command: command that starts it.
        environment: its environment variables; None: those of this process.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self._bodies: set[str] = set()
        """Keys of the bodies that were sent to it."""
        atexit.register(self.close)

    def ask(self, **asked: Any) -> dict[str, Any]:
        """Sends a request to the process; returns its response.

        Raises:
            RuntimeError: It failed; the message contains its traceback.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        reply: dict[str, Any] = json.loads(self._process.stdout.readline() or b'{"error": "ended"}')
        if "error" in reply:
            raise RuntimeError(f"reader process: {reply['error']}")
        return reply

    def body(self, chunks: list[bytes]) -> str:
        """Sends a body to the process, once; returns its key."""
        key = f"{len(chunks)} {zlib.crc32(b''.join(chunks))}"
        if key not in self._bodies:
            self.ask(load=key, chunks=[b64encode(chunk).decode() for chunk in chunks])
            self._bodies.add(key)
        return key

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def contestant(self, name: str, reader: str, wire: str, warm: float = 0) -> Contestant:
        """A reader of this process.

        Args:
            name: name in tables.
            reader: its name in the process.
            wire: wire that it reads.
            warm: seconds for which it reads a body before anything is timed.
        """

        def seconds(chunks: list[bytes], window: float) -> float:
            asked = {"time": reader, "wire": wire, "body": self.body(chunks)}
            return float(self.ask(**asked, seconds=window)["seconds"])

        def read(chunks: list[bytes]) -> Outcome:
            key = self.body(chunks)
            if warm:
                self.ask(time=reader, wire=wire, body=key, seconds=warm)
            found = self.ask(read=reader, wire=wire, body=key)
            return Outcome(found["text"], found["arguments"])

        return Contestant(name, "", wire, seconds, read)


def checkout_process(folder: Path) -> ReaderProcess:
    """The process of the parsers of a checkout, or of a folder with an installed streamlib."""
    paths = os.pathsep.join([str(folder), str(folder / "parsers")])
    command = (sys.executable, "-P", str(CHECKOUT_READER))
    return ReaderProcess(command, {**os.environ, "PYTHONPATH": paths})
