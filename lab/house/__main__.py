"""Prints the style figures: `python -m lab.house [--list] [PATH…]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lab.house.style import measure_all, sources

command = argparse.ArgumentParser(description=__doc__)
command.add_argument("paths", nargs="*", type=Path, help="files or folders; else both packages")
command.add_argument("--list", action="store_true", help="print each violation")
arguments = command.parse_args()

paths: list[Path] = []
for path in arguments.paths:
    paths += sorted(path.rglob("*.py")) if path.is_dir() else [path]
figures = measure_all(paths or sources())
if arguments.list:
    sys.stdout.write("".join(f"{violation}\n" for violation in figures.violations))
conditionals = figures.per_thousand(figures.conditionals)
comprehensions = figures.per_thousand(figures.comprehensions)
sys.stdout.write(
    f"{figures.files} files, {figures.lines:,} lines, {figures.comment_share:.1f} % with comments\n"
    f"for each 1,000 lines: {conditionals:.1f} conditional expressions, "
    f"{comprehensions:.1f} comprehensions\n"
    f"lines over 100: {figures.long_lines}, nested: {figures.nested_conditionals}, "
    f"crowded: {figures.crowded_statements}, tricks: {figures.tricks}, "
    f"retired names: {figures.retired_names}, long functions: {figures.long_functions}, "
    f"long files: {figures.long_files}\n"
)
