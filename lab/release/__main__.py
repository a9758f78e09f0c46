"""Exits with 1 where the checkout is not ready to be published as TAG."""

from __future__ import annotations

import sys

from lab.release import files, problems

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m lab.release TAG")
    found = problems(sys.argv[1], *files())
    if found:
        sys.exit("\n".join(found))
