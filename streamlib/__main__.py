"""`python -m streamlib` runs the command `streamlib`."""

from __future__ import annotations

import sys

from streamlib.cli import main

if __name__ == "__main__":
    sys.exit(main())
