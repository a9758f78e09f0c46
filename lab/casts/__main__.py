"""Writes the casts into docs/images; `--record` makes their recording first."""

from __future__ import annotations

import argparse
import sys

import anyio

from lab.casts.files import files
from lab.casts.record import record

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m lab.casts", description=__doc__)
    parser.add_argument("--record", action="store_true", help="make the recording again")
    if parser.parse_args().record:
        anyio.run(record)
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.name}: {len(text.encode()) / 1000:.1f} KB\n")
