"""`streamlib inspect --html OUT`: the page of responses, or of a comparison, as one file."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamlib.cli.arguments import CommandError
from streamlib.display.safe_text import printable
from streamlib.inspection import render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlib.inspection.difference import Difference
    from streamlib.inspection.document import Inspection


PAGE_START: Final = b"<!doctype html>"
PAGE_TITLE: Final = b"<title>streamlib inspector</title>"
HEAD_BYTES: Final = 4096
"""Bytes at the start of a file that are searched for the title of our page."""


def why_not_written(out: str, files: Sequence[str]) -> str | None:
    """Why the page must not be written to a file: it would replace something else.

    Args:
        out: the file to write; `-` is standard output.
        files: the captures to read.

    Returns:
        The reason in words; None if the page can be written.
    """
    if not out:
        return "--html needs the name of a file"
    target = Path(out)
    # A terminal or a pipe has no content to lose.
    if out == "-" or not target.is_file():
        return None
    for file in files:
        if file != "-" and Path(file).exists() and target.samefile(file):
            return f"--html {out}: it is one of the captures"
    try:
        with target.open("rb") as existing:
            head = existing.read(HEAD_BYTES)
    except OSError as error:
        return f"--html {out}: {error.strerror}"
    if head and not (head.startswith(PAGE_START) and PAGE_TITLE in head):
        return f"--html {out}: it exists, and is not a page of the inspector"
    return None


def write_html(
    out: str, inspections: Sequence[Inspection], difference: Difference | None = None
) -> None:
    """Writes the page, and reports on standard error what it contains.

    Args:
        out: the file; `-` is standard output.
        inspections: the responses to show.
        difference: the difference of the two responses; None if they are not compared.

    Raises:
        CommandError: the file cannot be written.
    """
    data = render(inspections, difference).encode()
    if out == "-":
        sys.stdout.buffer.write(data)
        return
    try:
        _replace(Path(out), data)
    except OSError as error:
        raise CommandError(f"{out}: {error.strerror}") from None
    count = f"{len(inspections):,} responses"
    if len(inspections) == 1:
        count = "1 response"
    content = "holds what was said, and keys if a server repeated them"
    if inspections[0].redacted:
        content = "holds lengths in place of texts"
    line = f"{out}: {count}, {len(data):,} bytes; {content}"
    print(printable(line), file=sys.stderr)


def _replace(path: Path, data: bytes) -> None:
    """Writes a file atomically: after a crash it holds its previous content."""
    if path.exists() and not path.is_file():
        # A terminal or a pipe cannot be replaced; a directory fails here with the reason.
        path.write_bytes(data)
        return
    target = path.resolve()
    # In the same folder, since a rename is atomic only within one file system.
    temporary = target.with_name(f".{target.name[:200]}.{os.getpid()}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
