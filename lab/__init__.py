"""Programs around the packages: `python -m lab.NAME`. Their tests are in `tests/lab`."""
