"""Digests of the events of every recording in several chunkings, by the build that runs this.

    python -m tests.compiled.event_digests    # JSON: {"compiled": ..., "digests": {...}}

Two builds are compared by running this with each: test_both_builds.py.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import streamlib
from streamlib_parsers import ResponseEvent, WireApi, parse_body, parser
from streamlib_parsers.build_kind import compiled
from tests.support.shared import BODIES, CORPUS, ROOT, SHARED, STREAMS, WIRES

CHUNK_SIZES: Final = (1 << 30, 16_384, 1_000, 61)
"""The whole body, a read of a fast network, and two that split frames anywhere."""

SMALL_BODY: Final = 3_000
"""Bytes of a body that is read byte by byte, too."""

FURTHER_WIRES: Final = {
    "mistral-chat": "chat",
    "open-responses": "responses",
    "perplexity-chat": "chat",
    "responses-resume": "responses",
    "responses-xai": "responses",
}
"""Folders of `corpus-2` whose name is no wire's."""


def recorded_bodies() -> Iterator[tuple[WireApi, Path]]:
    """Every recorded body of a wire: our own, and those beside the repository."""
    folders = [path for path in (ROOT / "tests" / "recordings").iterdir() if path.is_dir()]
    if CORPUS.is_dir():
        folders += [CORPUS / "data" / name for name in WIRES]
    if (SHARED / "corpus-2").is_dir():
        folders += [path for path in (SHARED / "corpus-2").iterdir() if path.is_dir()]
    wires: dict[str, str] = {**WIRES, **FURTHER_WIRES}
    for folder in sorted(folders):
        wire: Any = wires.get(folder.name, folder.name)
        if wire not in streamlib.WIRE_APIS:
            continue  # WebSocket messages, other APIs
        for path in sorted(folder.iterdir()):
            is_note = path.name.endswith((".meta.json", ".expected.json"))
            if path.suffix in (*STREAMS, *BODIES) and not is_note:
                yield wire, path


def events_of(wire: WireApi, body: bytes, size: int) -> list[ResponseEvent]:
    """The events of a stream in chunks of `size` bytes."""
    stream_parser = parser(wire)
    events: list[ResponseEvent] = []
    for start in range(0, len(body), size):
        events += stream_parser.feed(body[start : start + size])
    return events + stream_parser.close()


def digest(events: Iterable[ResponseEvent]) -> str:
    """A digest of all fields of all events, `seq` too."""
    return hashlib.sha256("\n".join(map(repr, events)).encode("utf-8", "replace")).hexdigest()[:16]


def digests() -> dict[str, str]:
    """Recording and size of the chunks -> the digest of its events."""
    found: dict[str, str] = {}
    for wire, path in recorded_bodies():
        body = path.read_bytes()
        name = f"{path.parent.name}/{path.name}"
        if path.suffix in BODIES:
            found[f"{name} as a body"] = digest(parse_body(wire, body))
        sizes = CHUNK_SIZES
        if len(body) <= SMALL_BODY:
            sizes = (*CHUNK_SIZES, 1)
        for size in sizes:
            found[f"{name} in chunks of {size}"] = digest(events_of(wire, body, size))
    return found


if __name__ == "__main__":
    json.dump({"compiled": compiled, "digests": digests()}, sys.stdout)
