"""`streamlib inspect --html OUT`: the page of responses, or of a comparison, as one file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from streamlib.cli.command_error import CommandError
from streamlib.inspection.page import render
from streamlib.terminal.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlib.inspection.difference import Difference
    from streamlib.inspection.document import Inspection


def write_html(
    out: str, inspections: Sequence[Inspection], difference: Difference | None = None
) -> None:
    """Writes the page, and reports on standard error what it contains.

    Args:
        out: The file; `-` is standard output.
        inspections: The responses to show.
        difference: The difference of the two responses; None if they are not compared.

    Raises:
        CommandError: The file cannot be written.
    """
    data = render(inspections, difference).encode()
    if out == "-":
        sys.stdout.buffer.write(data)
        return
    try:
        Path(out).write_bytes(data)
    except OSError as error:
        raise CommandError(f"{out}: {error.strerror}") from None
    count = f"{len(inspections):,} responses"
    if len(inspections) == 1:
        count = "1 response"
    content = "holds what was said, no keys"
    if inspections[0].redacted:
        content = "holds lengths in place of texts"
    line = f"{out}: {count}, {len(data):,} bytes; {content}"
    print(printable(line), file=sys.stderr)
