"""Writes the pictures: `python -m lab.pictures`."""

from __future__ import annotations

import sys

from lab.pictures.files import files

if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.name}: {len(text.encode()) / 1000:.1f} KB\n")
