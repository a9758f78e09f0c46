"""Prints what of the SDKs' unions is read: `python -m tests.drift`; `--write` writes the page."""

from __future__ import annotations

from tests.drift.page import main

main()
