"""python -m lab.peers prepare | run [--home FOLDER] [--only NAME…]

`prepare` makes virtual environments for the peers (about 700 MB, from PyPI), `run` puts every case
to every peer and writes docs/comparison.md: some ten minutes, most of them waiting for what hangs.
Nothing leaves 127.0.0.1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab.peers.environments import ENVIRONMENTS, prepare, python
from lab.peers.feature_table import write
from lab.peers.installed import count_packages
from lab.peers.page import page

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "comparison.md"
COUNTS = "packages.json"
OFFLINE = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "DO_NOT_TRACK": "1",
    "NO_PROXY": "127.0.0.1,localhost",
    "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'parsers'}",
}


def run(home: Path, only: list[str]) -> None:
    """Every environment in turn, so that none takes time from another; results are kept there, and
    all that are there make the page."""
    for name, environment in ENVIRONMENTS.items():
        if not only or name in only:
            words = ["-m", "lab.peers.running", str(home / f"{name}.json"), *environment.adapters]
            subprocess.run(
                [str(python(home, name)), *words],
                cwd=ROOT,
                env={**os.environ, **OFFLINE, "STREAMLIB_PEERS_NODE": str(home / name)},
                check=True,
            )
    results: dict[str, Any] = {}
    for name in ENVIRONMENTS:
        if (home / f"{name}.json").exists():
            results |= json.loads((home / f"{name}.json").read_text(encoding="utf-8"))
    counts = json.loads((home / COUNTS).read_text(encoding="utf-8"))
    for result in results.values():
        result["packages"] = counts.get(result["distribution"])
    PAGE.write_text(
        page(results, f"Run on {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}."),
        encoding="utf-8",
    )
    write()
    sys.stdout.write(
        f"wrote {PAGE.relative_to(ROOT)}, and the tables of README.md and docs/index.md\n"
    )


def main() -> int:
    """What was asked."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["prepare", "run"])
    parser.add_argument(
        "--home",
        type=Path,
        default=Path(tempfile.gettempdir()) / "streamlib-peers",
        help="where the environments are",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=list(ENVIRONMENTS),
        default=[],
        help="ask these environments anew; the rest as last time",
    )
    asked = parser.parse_args()
    if asked.command == "prepare":
        prepare(asked.home)
        counts = count_packages(asked.home)
        (asked.home / COUNTS).write_text(json.dumps(counts), encoding="utf-8")
    else:
        run(asked.home, asked.only)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
