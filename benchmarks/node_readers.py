"""Readers in Node: eventsource-parser with JSON.parse, and Vercel's AI SDK.

python -m benchmarks.node_readers      # gets them from npm, into .real/benchmarks

One Node process reads for all of them (`node/race.mjs`). Its CPU counts as a whole, V8's own
threads included, and each reader has half a second to be compiled before it is timed.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import zlib
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.contestants import Contestant, Depth, Outcome
from lab.real.ui_readers import absence_in, install_packages

HERE: Final = Path(__file__).resolve().parent / "node"
HOME: Final = HERE.parent.parent / ".real" / "benchmarks"
WARM_SECONDS: Final = 0.5

SSE: Final = "Node: eventsource-parser"
VERCEL: Final = "Node: Vercel AI SDK"
READERS: Final[dict[tuple[str, Depth], str]] = {
    (SSE, "events"): "eventsource-parser",
    (SSE, "response"): "eventsource-parser, joined",
    (VERCEL, "events"): "vercel",
    (VERCEL, "snapshots"): "vercel, snapshots",
    (VERCEL, "response"): "vercel, response",
}
"""Name and depth -> name in `race.mjs`."""

WIRES: Final = {
    SSE: ("messages", "responses", "chat", "gemini", "interactions", "cohere"),
    VERCEL: ("messages", "responses", "chat", "gemini", "converse", "cohere"),
}


def packages() -> tuple[str, ...]:
    """Packages that are installed from npm."""
    described = json.loads((HERE / "package.json").read_text(encoding="utf-8"))
    return tuple(described["dependencies"])


def absence() -> str | None:
    """Why no Node reader can run here; None if they can."""
    why = absence_in(HOME, packages())
    return None if why is None else f"readers in Node ({why})"


def missing() -> list[str]:
    """The readers that cannot run here, each with the reason."""
    why = absence()
    return [why] if why else []


def install() -> list[str]:
    """Installs missing packages; returns a line for each failure."""
    if absence() is None:
        return []
    return install_packages("readers in Node", HERE, HOME)


def socket_command(*arguments: str) -> tuple[str, ...]:
    """The command of one measurement over sockets; see `node/sockets.mjs`."""
    return ("node", str(HERE / "sockets.mjs"), str(HOME), *arguments)


class NodeProcess:
    """The process that reads; it ends with its standard input."""

    def __init__(self) -> None:
        command = ("node", str(HERE / "race.mjs"), str(HOME))
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
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
            raise RuntimeError(f"Node: {reply['error']}")
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


_started: list[NodeProcess] = []
"""The process, after the first reader has started it."""


def _process() -> NodeProcess:
    if not _started:
        _started.append(NodeProcess())
    return _started[0]


def versions() -> dict[str, str]:
    """Versions of Node and of the packages."""
    found = _process().ask(versions=True)
    return {str(name): str(version) for name, version in found.items()}


def _contestant(name: str, wire: str, depth: Depth) -> Contestant:
    reader = READERS[name, depth]

    def seconds(chunks: list[bytes]) -> float:
        process = _process()
        timed = process.ask(time=reader, wire=wire, body=process.body(chunks), seconds=0)
        return float(timed["seconds"])

    def read(chunks: list[bytes]) -> Outcome:
        process = _process()
        key = process.body(chunks)
        process.ask(time=reader, wire=wire, body=key, seconds=WARM_SECONDS)
        found = process.ask(read=reader, wire=wire, body=key)
        return Outcome(found["text"], found["arguments"])

    return Contestant(name, "", wire, depth, seconds, read)


def _contestants() -> Iterator[Contestant]:
    for name, depth in READERS:
        for wire in WIRES[name]:
            yield _contestant(name, wire, depth)


NODE: Final = tuple(_contestants())
"""Readers in Node. No process starts before one of them reads."""


if __name__ == "__main__":
    for line in (*install(), *missing()):
        sys.stdout.write(f"!! {line}\n")
