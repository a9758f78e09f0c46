"""The line that called the library, for warnings about what the caller forgot."""

from __future__ import annotations

import sys


def call_site() -> str:
    """File and line outside this package that called it."""
    # Not `traceback.extract_stack`, which reads source files: every stream pays for this.
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("streamlib."):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
