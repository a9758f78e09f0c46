"""Prints the promised Pythons that this machine does not have, one a line."""

from __future__ import annotations

import sys

from lab.pythons import missing_pythons

for version in missing_pythons():
    sys.stdout.write(f"Python {version}\n")
