"""Readers in Node: eventsource-parser with JSON.parse, and Vercel's AI SDK.

python -m benchmarks.node_readers      # gets them from npm, into .real/benchmarks

One Node process reads for all of them (`node/race.mjs`). Its CPU counts as a whole, V8's own
threads included, and each reader has time to be compiled before it is timed.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Final

from benchmarks.contestants import Contestant
from benchmarks.node_packages import absence_in, install_packages
from benchmarks.reader_process import ReaderProcess

HERE: Final = Path(__file__).resolve().parent / "node"
HOME: Final = HERE.parent.parent / ".real" / "benchmarks"
WARM_SECONDS: Final = 0.02
"""Seconds for which a reader reads each body before anything is timed."""

SSE: Final = "Node: eventsource-parser"
VERCEL: Final = "Node: Vercel AI SDK"
READERS: Final = {SSE: "eventsource-parser", VERCEL: "vercel"}
"""Name -> name in `race.mjs`."""

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


@cache
def process() -> ReaderProcess:
    """The process, started when it is needed first."""
    return ReaderProcess(("node", str(HERE / "race.mjs"), str(HOME)))


def versions() -> dict[str, str]:
    """Versions of Node and of the packages."""
    found = process().ask(versions=True)
    return {str(name): str(version) for name, version in found.items()}


def contestants(wire: str) -> list[Contestant]:
    """The readers of a wire."""
    found: list[Contestant] = []
    for name, wires in WIRES.items():
        if wire in wires:
            found.append(process().contestant(name, READERS[name], wire, WARM_SECONDS))
    return found


if __name__ == "__main__":
    for line in (*install(), *missing()):
        sys.stdout.write(f"!! {line}\n")
