"""Writes what is generated from the providers: `python -m lab.provider_pages`."""

from __future__ import annotations

from lab.provider_pages.pages import main

main()
