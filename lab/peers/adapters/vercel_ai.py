"""Vercel's AI SDK: `streamText` and its `fullStream`, in a process of Node a request."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Final

import anyio
import anyio.abc

from lab.peers.peer import Ask, Peer, ReportedError
from lab.peers.told import Told

SCRIPT: Final = Path(__file__).with_name("vercel_ai.mjs")
HOME: Final = Path(os.environ.get("STREAMLIB_PEERS_NODE", "."))
"""The folder whose `node_modules` has the packages."""

WIRES: Final = ("messages", "chat", "responses", "gemini", "converse")
"""Those with a provider package of Vercel's own; for Ollama there are only packages of others."""


class NodeError(Exception):
    """An error that is none of the SDK's own."""


def version() -> str:
    """Of the installed package `ai`."""
    described = (HOME / "node_modules" / "ai" / "package.json").read_text(encoding="utf-8")
    return str(json.loads(described)["version"])


class Runner:
    """Runs the script. A process stays until the next request: a connection that its library leaves
    open must still be open when the connections are counted."""

    def __init__(self) -> None:
        self._process: anyio.abc.Process | None = None

    async def ask(self, asked: Ask, told: Told) -> None:
        """One request."""
        await self._run(asked, told, "leave" if asked.leave else "stay")

    async def replay(self, asked: Ask, told: Told) -> None:
        """Two turns."""
        await self._run(asked, told, "replay")

    async def _run(self, asked: Ask, told: Told, mode: str) -> None:
        if self._process is not None:
            self._process.terminate()
        # Beside the packages: an import of Node looks for them from the script's own folder.
        script = shutil.copy(SCRIPT, HOME)
        command = ["node", str(script), asked.url, asked.wire, str(asked.retries), mode]
        self._process = await anyio.open_process(command, cwd=HOME)
        assert self._process.stdout is not None
        line = b""
        async for chunk in self._process.stdout:
            line += chunk
            if line.endswith(b"\n"):
                break
        if not line:
            raise NodeError("the process ended without a result")
        received = json.loads(line)
        error, own = received.pop("error"), received.pop("own")
        received["calls"] = [tuple(call) for call in received["calls"]]
        for name, value in received.items():
            setattr(told, name, value)
        if told.ended == "error":
            raise ReportedError(error) if own else NodeError(error)


RUNNER: Final = Runner()
PEERS: Final = (
    Peer(
        "Vercel AI SDK",
        "ai",
        dict.fromkeys(WIRES, RUNNER.ask),
        (),
        RUNNER.replay,
        version=version,
    ),
)
