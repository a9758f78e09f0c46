"""Writes what is generated from the providers: `python -m tests.provider_pages`."""

from __future__ import annotations

from tests.provider_pages.pages import main

main()
