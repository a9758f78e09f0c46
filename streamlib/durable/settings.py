"""How a process writes and reads logs."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

COMMIT_BYTES: Final = 256 * 1024
"""Bytes of waiting events from which on a record is appended at once."""

READ_RECORDS: Final = 64
"""Records that one read of the engine returns at most."""


class Settings(Struct, frozen=True, kw_only=True):
    """Settings of a log, times in seconds; `open_log` explains each."""

    lease: float = 15.0
    keep: float = 600.0
    interval: float = 0.05
    ahead: int = 4096
    outage: float = 30.0
    max_age: float = 24 * 3600.0
    max_bytes: int = 64 * 1024 * 1024

    @property
    def lease_ms(self) -> int:
        """The lease in milliseconds."""
        return int(self.lease * 1000)
