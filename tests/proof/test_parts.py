"""Promise 22: the number and size of the dependencies, and the time of the import."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata

import pytest

from tests.support.metrics import figure
from tests.support.shared import ROOT

pytestmark = [pytest.mark.slow]


def add_dependencies(name: str, distributions: dict[str, metadata.Distribution]) -> None:
    """Adds a distribution and everything it requires, without extras."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in distributions:
        return
    distributions[key] = metadata.distribution(key)
    for line in distributions[key].requires or ():
        requirement, _, marker = line.partition(";")
        if "extra" not in marker and _applies(marker):
            required = re.split(r"[^A-Za-z0-9._-]", requirement.strip(), maxsplit=1)[0]
            add_dependencies(required, distributions)


def _applies(marker: str) -> bool:
    """Whether a marker applies; those of these distributions name at most a Python version."""
    newest = re.search(r"python_version\s*<\s*['\"]3\.(\d+)", marker)
    return not newest or sys.version_info[1] < int(newest[1])


def size_of(distribution: metadata.Distribution) -> int:
    """Bytes on disk, without compiled Python."""
    return sum(
        (
            path.locate().stat().st_size
            for path in distribution.files or ()
            if path.suffix != ".pyc" and path.locate().exists()
        ),
        0,
    )  # type: ignore[attr-defined]


def test_22_dependencies_are_few_and_small() -> None:
    distributions: dict[str, metadata.Distribution] = {}
    for name in ("anyio", "httpx", "msgspec"):
        add_dependencies(name, distributions)
    ours = sum(
        path.stat().st_size
        for folder in ("streamlib", "parsers/streamlib_parsers")
        for path in (ROOT / folder).rglob("*.py")
    )
    figure("other distributions", len(distributions))
    figure("MB of dependencies", sum(map(size_of, distributions.values())) / 1e6)
    figure("MB/this library", ours / 1e6)
    for name, distribution in distributions.items():
        figure(f"MB/{name}", size_of(distribution) / 1e6)
    assert len(distributions) < 12


LOADED = (
    "import pathlib, sys, streamlib; "
    "files = [getattr(module, '__file__', None) for name, module in sys.modules.items() "
    "if name.partition('.')[0] in ('streamlib', 'streamlib_parsers')]; "
    "sys.stdout.write(str(sum(pathlib.Path(file).stat().st_size for file in files if file)))"
)


def test_22_the_import_loads_little() -> None:
    """Source of this library that `import streamlib` reads."""
    code = f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'parsers')]!r}; {LOADED}"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = int(process.stdout) / 1e6
    figure("MB that the import loads", loaded)
    assert 0 < loaded < 1


IMPORT = (
    "import time; t = time.process_time(); import streamlib, sys; "
    "sys.stdout.write(str(time.process_time() - t))"
)


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
