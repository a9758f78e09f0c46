"""Background streams that break at any byte: `python -m lab.resume`."""
