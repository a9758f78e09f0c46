"""Tests that run on one event loop alone: what they test is the same on the other."""

from __future__ import annotations

from typing import Final

import pytest

asyncio_alone: Final = pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
"""For tests of processes that have a loop of their own, and of results that no loop changes."""
