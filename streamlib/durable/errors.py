"""The one error of the room."""

from __future__ import annotations

from typing import Literal, TypeAlias

LogErrorKind: TypeAlias = Literal["gone", "held", "fenced", "rewound", "unavailable", "full"]


class LogError(Exception):
    """A log cannot be written or read.

    Attributes:
        kind: What is wrong:
            `gone`: there is no log of this id, or no longer;
            `held`: the id has a log already, which another writer writes or has ended;
            `fenced`: another process took the log over, because this writer was silent too long;
            `rewound`: the engine lost events that the reader has; read again from the start;
            `unavailable`: the engine does not answer;
            `full`: the log or the engine has no room.
        known: Whether the engine remembers that there was such a log: HTTP 410 instead of 404.
    """

    def __init__(self, kind: LogErrorKind, message: str, *, known: bool = False) -> None:
        super().__init__(message)
        self.kind: LogErrorKind = kind
        self.known = known
