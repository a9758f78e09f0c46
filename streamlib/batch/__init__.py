"""Many prompts: as files for the providers' batch APIs, or asked now, a few at a time."""

from __future__ import annotations

from streamlib.batch.concurrent import Pace, map_concurrent
from streamlib.batch.lines import BatchLines, batch_lines
from streamlib.batch.results import BatchRow, read_batch

__all__ = ["BatchLines", "BatchRow", "Pace", "batch_lines", "map_concurrent", "read_batch"]
