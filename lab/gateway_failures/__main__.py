"""Prints the tables: `python -m lab.gateway_failures [--agents HOME]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import anyio

from lab.gateway_failures import agents, tables


def main() -> None:
    options = argparse.ArgumentParser(prog="lab.gateway_failures")
    options.add_argument("--agents", type=Path, metavar="HOME", help="run Claude Code and Codex")
    home: Path | None = options.parse_args().agents
    if home is not None:
        sys.stdout.write(f"{anyio.run(agents.table, home)}\n")
        return
    for targets in tables.ROUTES:
        sys.stdout.write(f"{tables.table(targets)}\n\n")


main()
