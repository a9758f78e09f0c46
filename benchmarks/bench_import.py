"""What it costs to have it: seconds and modules of `import streamlib`, distributions and megabytes of an installation.

python -m benchmarks.bench_import [--rounds 7] [--json F] [--install]

--install makes a fresh virtual environment from this checkout and measures it too; that needs a package index.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from streamlib.bench.records import OURS, Record, as_json, record, table

ROOT: Final = Path(__file__).parent.parent
NAMES: Final = (
    "streamlib",
    "streamlib_parsers",
    "anthropic",
    "openai",
    "google.genai",
    "pydantic_ai",
    "litellm",
)

CODE: Final = """
import json, sys, time
before, cpu = set(sys.modules), time.process_time()
import {name}
spent, loaded = time.process_time() - cpu, set(sys.modules) - before
print(json.dumps([spent, len(loaded), sorted({{"httpx", "httpx2", "aiohttp", "pydantic"}} & loaded)]))
"""
SIZE: Final = """
import json, sys, sysconfig, importlib.metadata as m, pathlib
files = [p for p in pathlib.Path(sysconfig.get_path("purelib")).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
names = {d.metadata["Name"] for d in m.distributions()} - {"pip", "setuptools", "streamlib"}
print(json.dumps([sorted(names), sum(p.stat().st_size for p in files if p.parts[-2] != "pip" and "/pip" not in str(p))]))
"""


def ran(python: str, code: str) -> Any:
    """What a fresh interpreter prints; None where it cannot import what it is asked for."""
    paths = (
        f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'parsers')]!r}\n"
        if python == sys.executable
        else ""
    )
    done = subprocess.run([python, "-c", paths + code], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def imports(rounds: int) -> list[Record]:
    """CPU time and modules of each name that is installed."""
    records: list[Record] = []
    for name in NAMES:
        found = [
            one
            for one in (ran(sys.executable, CODE.format(name=name)) for _ in range(rounds))
            if one
        ]
        if found:
            about = ("import", "import", "whole", OURS if name == "streamlib" else name)
            records.append(record(*about, "CPU", "ms", [one[0] * 1e3 for one in found]))
            records.append(record(*about, "modules", "count", [one[1] for one in found]))
    return records


def installed() -> list[Record]:
    """Distributions beside ours, and megabytes, of a fresh environment with the core alone."""
    with tempfile.TemporaryDirectory() as folder:
        python = f"{folder}/venv/bin/python"
        subprocess.run([sys.executable, "-m", "venv", f"{folder}/venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", str(ROOT)], check=True)
        names, size = ran(python, SIZE)
    print(f"beside streamlib: {', '.join(names)}")
    about = ("import", "pip install streamlib", "whole", OURS)
    return [
        record(*about, "distributions", "count", [len(names)]),
        record(*about, "size", "MB", [size / 1e6]),
    ]


def main(argv: list[str] | None = None) -> int:
    """Everything that is installed here."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--install", action="store_true")
    arguments.add_argument("--json")
    asked = arguments.parse_args(argv)
    records = [*imports(asked.rounds), *(installed() if asked.install else ())]
    print(table(records), end="")
    if asked.json:
        Path(asked.json).write_bytes(as_json(records))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
