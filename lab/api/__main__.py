"""Writes the list of public names: `python -m lab.api`.

Run it after a change that was meant, and say in CHANGELOG.md what it means for users.
"""

from __future__ import annotations

from lab.api import FILE, public_api

if __name__ == "__main__":
    FILE.write_text(public_api(), encoding="utf-8")
