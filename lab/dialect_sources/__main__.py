"""Lists the parsers that the newest vLLM and SGLang register and no dialect of ours names.

    python -m lab.dialect_sources                     fetches both from the package index
    python -m lab.dialect_sources vLLM=FILE ...       compares with archives that are there

Ends with status 1 where something is new or gone: then read the parser, add a dialect or a line to
`NOT_READ`, and bring the version in `lab/dialect_sources/sources.py` up to date.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from lab.dialect_sources.compare import NOT_READ, Comparison, compare
from lab.dialect_sources.fetch import fetch
from lab.dialect_sources.registered import TABLES, registered_in


def main(arguments: list[str]) -> int:
    """Compares and prints.

    Args:
        arguments: SERVER=FILE each; none: fetch both.
    """
    archives = {name: Path(file) for name, _, file in (text.partition("=") for text in arguments)}
    comparisons: dict[str, Comparison] = {}
    if arguments:
        for server, archive in archives.items():
            comparisons[server] = compare(server, registered_in(archive, server))
    else:
        for server in TABLES:
            with tempfile.TemporaryDirectory() as folder:
                archive = fetch(server, Path(folder))
                comparisons[server] = compare(server, registered_in(archive, server))
    for server, comparison in comparisons.items():
        _print(server, comparison)
    return int(any(comparison.new or comparison.gone for comparison in comparisons.values()))


def _print(server: str, comparison: Comparison) -> None:
    sys.stdout.write(f"{server} {comparison.version}: {len(comparison.known)} parsers read\n")
    sys.stdout.write(f"  new: {', '.join(comparison.new) or 'none'}\n")
    sys.stdout.write(f"  gone: {', '.join(comparison.gone) or 'none'}\n")
    sys.stdout.write(f"  not read on purpose, of any server: {', '.join(NOT_READ)}\n")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
