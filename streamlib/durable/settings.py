"""Settings for writing and reading logs."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from streamlib.pipeline.numbers import check_count, check_seconds

COMMIT_BYTES: Final = 256 * 1024
"""Bytes of waiting events from which on they are appended at once."""

READ_RECORDS: Final = 64
"""Maximum number of records in one read of the engine."""


LONGEST: Final = 1e12
"""Seconds of the longest time that every engine can store, in milliseconds: thousands of years."""


class Settings(Struct, frozen=True, kw_only=True):
    """Settings of logs, times in seconds; `open_log` describes each."""

    lease: float = 15.0
    keep: float = 600.0
    interval: float = 0.05
    ahead: int = 4096
    outage: float = 30.0
    max_age: float = 24 * 3600.0
    max_bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        for name in ("lease", "keep", "interval", "outage", "max_age"):
            check_seconds(name, getattr(self, name))
        for name in ("lease", "keep", "max_age"):
            if getattr(self, name) > LONGEST:
                raise ValueError(f"{name} is at most {LONGEST:g} seconds")
        check_count("ahead", self.ahead)
        check_count("max_bytes", self.max_bytes)

    @property
    def lease_ms(self) -> int:
        """The lease in milliseconds."""
        return int(self.lease * 1000)
