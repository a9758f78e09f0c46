"""Runs the coverage of each part: `python -m lab.coverage_by_part [PART…]`."""

from __future__ import annotations

from lab.coverage_by_part.parts import main

raise SystemExit(main())
