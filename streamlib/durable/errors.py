"""The error that logs raise."""

from __future__ import annotations

from typing import Literal, TypeAlias

LogErrorKind: TypeAlias = Literal[
    "gone", "held", "fenced", "rewound", "unreadable", "unavailable", "full"
]


class LogError(Exception):
    """A log cannot be written or read.

    Attributes:
        kind: kind of the error:
            `gone`: no log has this id, or it was deleted or expired;
            `held`: the id has a log already, which another writer writes or has ended;
            `fenced`: another process took the log over, because this writer was silent too long;
            `rewound`: the engine lost events that the reader has; read again from the start;
            `unreadable`: what the engine stores is not what was written, or a part of it is lost;
            reading again does not help;
            `unavailable`: the engine does not respond;
            `full`: the log or the engine has no room.
        known: whether the engine remembers the log: then HTTP 410 is sent instead of 404.
    """

    def __init__(self, kind: LogErrorKind, message: str, *, known: bool = False) -> None:
        super().__init__(kind, message)  # both: pickle calls the class with them
        self.kind: LogErrorKind = kind
        self.known = known

    def __str__(self) -> str:
        return str(self.args[1])
