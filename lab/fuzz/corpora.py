"""The bodies that fuzzing begins with: recordings, generated ones, and what earlier runs found.

What a run found is minimised by libFuzzer (bodies that reach nothing new are left out) and kept in
`corpora/NAME.zip`, so that the next run begins where it ended. Nothing in it is a recording: every
body was generated, or changed by the fuzzer.
"""

from __future__ import annotations

import hashlib
import random
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from streamlib.testing.dialect_calls import CALLS
from streamlib.testing.fuzz_targets import DIALECT_PREFIX, find_target
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.dialect_forms import FORMS
from tests.support.shared import ROOT

RECORDINGS: Final = ROOT / "tests" / "recordings"
SUFFIXES: Final = {
    "sse": ".sse",
    "sse_or_json": ".sse",
    "ndjson": ".ndjson",
    "eventstream": ".eventstream",
    "json_array": ".json",
}
LONGEST: Final = 4_096
"""Bytes of a body: libFuzzer's default. With 20,000 only a quarter to a half as many bodies are
tried in the same time."""
FOLDER: Final = Path(__file__).with_name("corpora")
TOTAL_BYTES: Final = 2 << 20
"""Of all files in the folder."""
TARGET_BYTES: Final = 36_000
"""Of the file of one target: so many for each of more than fifty stay within the total."""
FIRST_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""A zip file must have dates: the same ones, so that equal bodies make an equal file."""


def seeds(name: str) -> Iterator[bytes]:
    """Recordings of a wire or in a framing, sample calls of a dialect, 50 generated bodies."""
    dialect = name.removeprefix(DIALECT_PREFIX)
    if dialect in CALLS and name not in WIRE_APIS:
        for form in FORMS:
            if dialect in form.dialects:
                yield form.text.encode()
        yield CALLS[dialect].encode()
    pattern = f"{name}/*.*"
    if name in SUFFIXES:
        pattern = f"*/*{SUFFIXES[name]}"
    for path in sorted(RECORDINGS.glob(pattern)):
        yield path.read_bytes()[:LONGEST]
    rng = random.Random(0)
    target = find_target(name)
    for _ in range(50):
        yield target.seed(rng)


def file_of(name: str) -> Path:
    """Where the bodies of a target are kept."""
    return FOLDER / f"{name.replace(':', '_')}.zip"


def load(name: str) -> list[bytes]:
    """What earlier runs found."""
    path = file_of(name)
    if not path.exists():
        return []
    with zipfile.ZipFile(path) as archive:
        return [archive.read(entry) for entry in archive.namelist()]


def store(name: str, bodies: Iterable[bytes]) -> int:
    """Keeps the shortest bodies that are no seeds, up to `TARGET_BYTES`; returns how many."""
    known = {*seeds(name)}
    found = sorted({*bodies} - known, key=lambda body: (len(body), body))
    FOLDER.mkdir(exist_ok=True)
    count = 0
    with zipfile.ZipFile(file_of(name), "w", zipfile.ZIP_DEFLATED) as archive:
        size = 0
        for body in found:
            entry = zipfile.ZipInfo(hashlib.sha256(body).hexdigest()[:12], FIRST_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, body)
            # Its data, and what the format needs for an entry with such a name.
            size += entry.compress_size + 2 * len(entry.filename) + 76
            count += 1
            if size > TARGET_BYTES:
                break
    return count
