"""Runs the coverage of each part: `python -m tests.coverage_by_part [PART…]`."""

from __future__ import annotations

from tests.coverage_by_part.parts import main

raise SystemExit(main())
