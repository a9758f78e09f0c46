"""The cost of having it: time and modules of `import streamlib`, size of an installation.

    python -m benchmarks.bench_import [--rounds 7] [--quick] [--save]

The long form also creates a fresh virtual environment from this checkout and measures its
distributions and megabytes; that needs a package index.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.commands import Measured, Options, run
from streamlib.cli.bench import Bar
from streamlib.testing.bench.records import OURS, Figure, figure

ROOT: Final = Path(__file__).parent.parent
NAMES: Final = (
    "streamlib",
    "msgspec",
    "streamlib_parsers",
    "anthropic",
    "openai",
    "google.genai",
    "pydantic_ai",
    "litellm",
)

IMPORT_CODE: Final = """
import json, sys, time
before, cpu = set(sys.modules), time.process_time()
import {name}
spent, loaded = time.process_time() - cpu, set(sys.modules) - before
print(json.dumps([spent, len(loaded)]))
"""
SIZE_CODE: Final = """
import json, sysconfig, importlib.metadata, pathlib
size = 0
for path in pathlib.Path(sysconfig.get_path("purelib")).rglob("*"):
    is_pip = path.parts[-2] == "pip" or "/pip" in str(path)
    if path.is_file() and "__pycache__" not in path.parts and not is_pip:
        size += path.stat().st_size
names = {found.metadata["Name"] for found in importlib.metadata.distributions()}
print(json.dumps([sorted(names - {"pip", "setuptools", "streamlib"}), size]))
"""


def run_code(python: str, code: str) -> Any:
    """The parsed output of a fresh interpreter; None if it fails, for example without a module."""
    if python == sys.executable:
        # Imports this checkout, not a package that is installed in the environment.
        paths = [str(ROOT), str(ROOT / "parsers")]
        code = f"import sys; sys.path[:0] = {paths!r}\n{code}"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    return json.loads(done.stdout)


def imports(rounds: int) -> list[Figure]:
    """CPU time and modules for each name that is installed."""
    figures: list[Figure] = []
    for name in NAMES:
        times: list[float] = []
        modules: list[int] = []
        for _ in range(rounds):
            result = run_code(sys.executable, IMPORT_CODE.format(name=name))
            if result is not None:
                spent, count = result
                times.append(spent * 1e3)
                modules.append(count)
        if times:
            contestant = OURS if name == "streamlib" else name
            key = ("import", "import", "whole", contestant)
            figures.append(figure(*key, "CPU", "ms", times))
            figures.append(figure(*key, "modules", "count", modules))
    return figures


def installed() -> list[Figure]:
    """Distributions beside ours, and megabytes, of a fresh environment with the core only."""
    with tempfile.TemporaryDirectory() as folder:
        python = f"{folder}/venv/bin/python"
        subprocess.run([sys.executable, "-m", "venv", f"{folder}/venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", str(ROOT)], check=True)
        names, size = run_code(python, SIZE_CODE)
    print(f"beside streamlib: {', '.join(names)}")
    key = ("import", "pip install streamlib", "whole", OURS)
    return [
        figure(*key, "distributions", "count", [len(names)]),
        figure(*key, "size", "MB", [size / 1e6]),
    ]


def measure(options: Options, bar: Bar) -> Measured:
    """Measures everything that is installed here."""
    bar.advance("imports")
    figures = imports(options.rounds)
    absent: list[str] = []
    if not options.quick:
        bar.advance("installation")
        try:
            figures += installed()
        except subprocess.CalledProcessError as error:
            absent.append(f"what an installation adds ({error})")
    return Measured(figures, {}, absent)


def main(argv: list[str] | None = None) -> int:
    """Measures everything that is installed here."""
    return run("bench_import", __doc__, measure, argv, steps=lambda _: 2)


if __name__ == "__main__":
    raise SystemExit(main())
