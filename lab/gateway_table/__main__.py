"""Prints what survives between each pair of wires: `python -m lab.gateway_table`."""

from __future__ import annotations

import sys

from lab.gateway_table.table import table

sys.stdout.write(f"{table()}\n")
