"""Every target of the atheris harness in turn, each in a process of its own; what it comes to is kept for docs/PROOF.md.

python -m tests.fuzz.all --wires 600 --others 60      # seconds for SSE, AWS frames and each wire, and for each dialect and the rest
    python -m tests.fuzz.all chat sse --wires 600         # these alone; of the others the last run stays on record
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from typing import Final, NamedTuple

from streamlib.testing.fuzz_targets import TARGETS
from streamlib_parsers.protocol import WIRE_APIS
from tests.proof.results import QUOTED

LONG: Final = (*WIRE_APIS, "sse", "eventstream")
"""The targets that everything goes through."""
RECORD: Final = QUOTED / "atheris.json"
EXECUTED: Final = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def hunt(name: str, seconds: int) -> tuple[int, bool]:
    """Bodies tried on one target, and whether something broke."""
    command = [
        sys.executable,
        "-m",
        "tests.fuzz",
        name,
        f"-max_total_time={seconds}",
        "-print_final_stats=1",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    found = EXECUTED.search(ran.stderr)
    if found is None:
        raise SystemExit(f"{name}: {ran.stderr[-500:]}")
    return int(found[1]), ran.returncode != 0


class Run(NamedTuple):
    """The last hunt on one target."""

    executions: int
    seconds: int
    broke: bool
    date: str

    def __str__(self) -> str:
        return f"{self.executions:,} executions in {self.seconds} s{', something broke' if self.broke else ''} ({self.date})"


def known() -> dict[str, Run]:
    """What is on record."""
    told = json.loads(RECORD.read_bytes()) if RECORD.exists() else {}
    return {name: Run(*run) for name, run in told.get("runs", {}).items()}


def keep(runs: dict[str, Run]) -> None:
    """Written after each target, so that a hunt that is stopped has its record."""
    figures = {
        "executions": sum(run.executions for run in runs.values()),
        "crashes": sum(run.broke for run in runs.values()),
    }
    notes = [
        f"{len(runs)} of {len(TARGETS)} targets",
        *(f"{name}: {run}" for name, run in runs.items()),
    ]
    told = {
        "command": "python -m tests.fuzz.all",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "figures": figures,
        "notes": notes,
        "runs": runs,
    }
    QUOTED.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Hunts through all of them."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("targets", nargs="*", metavar="TARGET")
    command.add_argument("--wires", type=int, default=600, metavar="SECONDS")
    command.add_argument("--others", type=int, default=60, metavar="SECONDS")
    arguments = command.parse_args()
    if unknown := {*arguments.targets} - {*TARGETS}:
        command.error(f"no target {', '.join(unknown)}; one of {', '.join(TARGETS)}")
    for name in arguments.targets or TARGETS:
        seconds = arguments.wires if name in LONG else arguments.others
        executions, broke = hunt(name, seconds)
        run = Run(executions, seconds, broke, f"{datetime.now(UTC):%Y-%m-%d}")
        sys.stdout.write(f"{name}: {run}\n")
        sys.stdout.flush()
        keep(known() | {name: run})


if __name__ == "__main__":
    main()
