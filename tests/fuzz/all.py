"""Every target of the atheris harness in turn, each in a process of its own; what it comes to is kept for docs/PROOF.md.

python -m tests.fuzz.all --wires 600 --dialects 60        # seconds for each wire and framing, and for each dialect
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from typing import Final

from streamlib.testing.dialect_calls import CALLS
from streamlib.testing.targets import TARGETS
from tests.proof.results import QUOTED

EXECUTED: Final = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def hunt(name: str, seconds: int) -> tuple[int, bool]:
    """Bodies tried on one target, and whether something broke."""
    command = [sys.executable, "-m", "tests.fuzz", name, f"-max_total_time={seconds}", "-print_final_stats=1"]
    ran = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    found = EXECUTED.search(ran.stderr)
    if found is None:
        raise SystemExit(f"{name}: {ran.stderr[-500:]}")
    return int(found[1]), ran.returncode != 0


def main() -> None:
    """Hunts through all of them."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--wires", type=int, default=600, metavar="SECONDS")
    command.add_argument("--dialects", type=int, default=60, metavar="SECONDS")
    arguments = command.parse_args()
    tried, broken, notes = 0, 0, list[str]()
    for name in TARGETS:
        seconds = arguments.dialects if name in CALLS else arguments.wires
        executions, broke = hunt(name, seconds)
        tried, broken = tried + executions, broken + broke
        notes.append(f"{name}: {executions:,} executions in {seconds} s{', something broke' if broke else ''}")
        sys.stdout.write(f"{notes[-1]}\n")
        sys.stdout.flush()
    told = {
        "command": f"python -m tests.fuzz.all --wires {arguments.wires} --dialects {arguments.dialects}",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "figures": {"executions": tried, "crashes": broken},
        "notes": notes,
    }
    QUOTED.mkdir(exist_ok=True)
    (QUOTED / "atheris.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
