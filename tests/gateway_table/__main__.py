"""Prints what survives between each pair of wires: `python -m tests.gateway_table`."""

from __future__ import annotations

import sys

from tests.gateway_table.table import table

sys.stdout.write(f"{table()}\n")
