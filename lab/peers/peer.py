"""What an adapter provides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from lab.peers.told import Told

READ: float = 1.0
"""Seconds of silence that every library is told to allow, wherever it has a setting for that."""


@dataclass(frozen=True)
class Ask:
    """One request: where, and how many retries are allowed."""

    url: str
    wire: str
    retries: int
    leave: bool
    """The reader leaves when it has seen some text."""


class ReportedError(Exception):
    """The library gave the failure to its user as an event or a status, not as an exception: told
    all the same."""


Asker = Callable[[Ask, Told], Awaitable[None]]
"""Streams an answer and fills in what its user is told, while it comes."""


@dataclass(frozen=True)
class Peer:
    """One column of the table."""

    name: str
    distribution: str
    wires: dict[str, Asker]
    own: tuple[str, ...]
    """Modules whose exceptions are the library's own family."""
    replays: Asker | None = None
    """Asks on Messages, answers its calls, and asks again with all of it: as its documentation
    continues a conversation."""
    framing: bool = False
    """It reads SSE and nothing above: asked only for cases of framing."""
    version: Callable[[], str] | None = None
    """Its version, where it is no Python distribution."""


def keep(told: Told, kind: str) -> None:
    """A part of that kind begins, unless one is open."""
    if not told.order or told.order[-1] != kind or kind == "call":
        told.order.append(kind)


def attr(value: Any, *names: str, default: Any = None) -> Any:
    """A value down a path of attributes or keys; the default where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
        if value is None:
            return default
    return value
