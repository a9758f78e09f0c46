"""What a program here needs of its system, and what the system knows of the program.

    need("lab.mutation", "os.fork", "resource")     # ends it with a sentence where one is missing

Only Linux has all of it. streamlib itself needs none: docs/stability.md has the table.
"""

from __future__ import annotations

import importlib
import mmap
import os
import platform
from pathlib import Path
from typing import Final

DESCRIPTORS: Final = ("/proc/self/fd", "/dev/fd")
"""Folders with an entry for each open file and socket of this process: of Linux, and of macOS."""

MEMORY: Final = "/proc/self/statm"


def need(program: str, *names: str) -> None:
    """Ends a program that this system cannot run.

    Args:
        program: its name, for the sentence.
        names: modules (``resource``), their attributes (``os.fork``) and files (``/proc``).

    Raises:
        SystemExit: something is missing; the text names it.
    """
    missing = [name for name in names if not _is_there(name)]
    if missing:
        system = platform.system() or "this system"
        raise SystemExit(
            f"{program} needs {', '.join(missing)}, which {system} does not have: run it on Linux"
        )


def _is_there(name: str) -> bool:
    if name.startswith("/"):
        return Path(name).exists()
    module, _, attribute = name.partition(".")
    try:
        loaded = importlib.import_module(module)
    except ImportError:
        return False
    return not attribute or hasattr(loaded, attribute)


def descriptors() -> int:
    """Open files and sockets of this process.

    Raises:
        SystemExit: this system does not list them, so that nothing can be said about leaks.
    """
    for folder in DESCRIPTORS:
        if Path(folder).exists():
            return len(os.listdir(folder))
    need("a count of open files", *DESCRIPTORS)
    raise AssertionError("`need` did not end it")


def resident_bytes() -> int:
    """Memory of this process now.

    Raises:
        SystemExit: this system does not tell.
    """
    need("a figure of memory", MEMORY)
    return int(Path(MEMORY).read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE
