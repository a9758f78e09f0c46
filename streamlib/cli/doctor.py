"""`streamlib doctor`: checks this installation, and says how to fix what does not work."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

import msgspec

from streamlib.cli.checks import Check, all_checks
from streamlib.cli.colours import DIM, GREEN, RED, YELLOW, paint
from streamlib.cli.progress import WaitingLine
from streamlib.cli.tables import GAP, terminal_width, wrapped
from streamlib.display.safe_text import one_line

DESCRIPTION: Final = """\
Checks this installation: versions, extras, HTTP libraries, proxies, the store
of certificates, event loops, the terminal, which keys are set (their names,
never a key), and the loopback provider on each wire. Nothing leaves this
machine."""

EXAMPLES: Final = """examples:
  streamlib doctor
  # for a bug report
  streamlib doctor --json

exit code: 0 nothing is wrong, 1 a line that begins with ! says what is wrong,
           and the line below it what to do, 2 usage error
"""

LEGEND: Final = "= fine   - for your information   ? not there: add it if you need it   ! wrong"
"""Meaning of the marks, printed below the list."""

MARKS: Final = {
    "ok": ("=", GREEN),
    "note": ("-", DIM),
    "missing": ("?", YELLOW),
    "wrong": ("!", RED),
}
"""State -> its mark and colour."""


def add(command: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    command.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Prints the result of every check."""
    with WaitingLine("checking"):
        checks = list(all_checks(os.environ))
    problems = [check for check in checks if check.state == "wrong"]
    if arguments.json:
        fields = {"healthy": not problems, "checks": checks}
        print(msgspec.json.encode(fields).decode())
    else:
        _print(checks)
    return 1 if problems else 0


def _print(checks: list[Check]) -> None:
    width = terminal_width()
    group = ""
    for check in checks:
        if check.group != group:
            group = check.group
            print(group)
        mark, style = MARKS[check.state]
        text = one_line(f"{check.name}: {check.finding}")
        first, *more = wrapped(text, width - 4)
        print(f"{GAP}{paint(mark, style, sys.stdout)} {first}")
        if check.cure and check.state != "ok":
            more += wrapped(f"→ {check.cure}", width - 4)
        for line in more:
            print(GAP * 2 + line)
    print()
    for line in wrapped(LEGEND, width):
        print(line)
