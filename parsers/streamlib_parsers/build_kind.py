"""Which build runs: pure Python, or the one whose logic modules mypyc compiled."""

from __future__ import annotations

from typing import Final

from streamlib_parsers import assembler

compiled: Final[bool] = not str(assembler.__file__).endswith(".py")
"""Whether the logic modules are compiled. Both builds have the same source and the same events;
docs/compiled.md says what differs."""
