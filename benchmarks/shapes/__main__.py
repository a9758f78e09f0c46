"""Prints the digests of the shapes for `sha256.json`; with a folder, writes their bodies there.

python -m benchmarks.shapes build/shapes
streamlib bench --corpus build/shapes
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from benchmarks.shapes import digests, shapes

ENDINGS = {"ollama": ".ndjson", "converse": ".eventstream", "invoke": ".eventstream"}


def main() -> None:
    """Prints the digests, or writes the bodies."""
    for folder in sys.argv[1:]:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for shape in shapes():
            name = shape.name.replace(" ", "-") + ENDINGS.get(shape.wire_api, ".sse")
            (Path(folder) / name).write_bytes(b"".join(shape.events))
    if not sys.argv[1:]:
        print(msgspec.json.format(msgspec.json.encode(digests()), indent=1).decode())


if __name__ == "__main__":
    main()
