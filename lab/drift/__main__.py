"""Prints what of the SDKs' unions is read: `python -m lab.drift`; `--write` writes the page."""

from __future__ import annotations

from lab.drift.page import main

main()
