"""Functions of `streamlib` that methods of the structs here hand over to.

This package imports nothing of `streamlib`, and parsing needs none of it. A few methods that users
look for on a struct (`ToolSpec.of`, `Response.parsed`, what a notebook shows) belong there; their
module is loaded by its name, when such a method is called.
"""

from __future__ import annotations

import importlib
from typing import Any


def upward(module: str, name: str) -> Any:
    """A function of `streamlib`, as in ``upward("tools.mcp", "mcp_fields")(tool)``."""
    return getattr(importlib.import_module(f"streamlib.{module}"), name)
