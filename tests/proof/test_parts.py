"""Promise 22: how many distributions, how large, how long an import."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata

import pytest

from tests.support.metrics import figure
from tests.support.shared import ROOT

pytestmark = [pytest.mark.slow]


def needed(name: str, found: dict[str, metadata.Distribution]) -> None:
    """A distribution and all that it needs, without extras."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in found:
        return
    found[key] = metadata.distribution(key)
    for line in found[key].requires or ():
        requirement, _, marker = line.partition(";")
        if "extra" not in marker and _applies(marker):
            needed(re.split(r"[^A-Za-z0-9._-]", requirement.strip(), maxsplit=1)[0], found)


def _applies(marker: str) -> bool:
    """Markers of these few distributions name a Python version at most."""
    wanted = re.search(r"python_version\s*<\s*['\"]3\.(\d+)", marker)
    return not wanted or sys.version_info[1] < int(wanted[1])


def size_of(distribution: metadata.Distribution) -> int:
    """Bytes on the disk, without compiled Python."""
    return sum(
        (
            path.locate().stat().st_size
            for path in distribution.files or ()
            if path.suffix != ".pyc" and path.locate().exists()
        ),
        0,
    )  # type: ignore[attr-defined]


def test_22_few_and_small_parts() -> None:
    found: dict[str, metadata.Distribution] = {}
    for name in ("anyio", "httpx", "msgspec"):
        needed(name, found)
    ours = sum(
        path.stat().st_size
        for folder in ("streamlib", "parsers/streamlib_parsers")
        for path in (ROOT / folder).rglob("*.py")
    )
    figure("distributions beside ours", len(found))
    figure("MB", (sum(map(size_of, found.values())) + ours) / 1e6)
    for name, distribution in found.items():
        figure(f"MB/{name}", size_of(distribution) / 1e6)
    figure("MB/streamlib", ours / 1e6)
    assert len(found) < 12


IMPORT = "import time; t = time.process_time(); import streamlib, sys; sys.stdout.write(str(time.process_time() - t))"


def test_22_the_import_is_quick() -> None:
    """CPU time of the best of several fresh interpreters."""
    code = f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'parsers')]!r}; {IMPORT}"
    times = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(7)
    ]
    figure("import s", min(times))
    assert min(times) < 1
