"""Promise 22: the number and size of the dependencies, and the time of the import."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from importlib import metadata
from typing import Final

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


FIRST_CLIENT = (
    "import time, sys, streamlib; t = time.process_time(); streamlib.Client(); "
    "s = time.process_time() - t; "
    "names = [name.partition('.')[0] for name in sys.modules]; "
    'sys.stdout.write(f\'{s} {names.count("streamlib") + names.count("streamlib_parsers")}\')'
)
"""The import alone says little: most modules are loaded at the first use."""

INTERPRETERS: Final = 7
"""How many fresh interpreters are timed; the figure is their median."""


def outputs(code: str) -> list[list[str]]:
    """The words that fresh interpreters print."""
    code = f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'parsers')]!r}; {code}"
    command = [sys.executable, "-c", code]
    printed: list[list[str]] = []
    for _ in range(INTERPRETERS):
        process = subprocess.run(command, capture_output=True, text=True, check=True)
        printed.append(process.stdout.split())
    return printed


def test_22_the_import_is_quick() -> None:
    seconds = statistics.median(float(words[0]) for words in outputs(IMPORT))
    figure("import s", seconds)
    assert seconds < 1


def test_22_the_first_client_loads_little() -> None:
    printed = outputs(FIRST_CLIENT)
    seconds = statistics.median(float(words[0]) for words in printed)
    modules = int(printed[0][1])
    figure("first client s", seconds)
    figure("modules of the first client", modules)
    # 104 modules and 0.06 s of an idle core when this was written: room for a machine that is busy.
    assert modules <= 114
    assert seconds < 1
