"""Every target of the atheris harness in turn, each in a process of its own; what it comes to is kept for docs/PROOF.md.

python -m tests.fuzz.all --wires 600 --others 60      # seconds for SSE, AWS frames and each wire, and for each dialect and the rest
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from typing import Final

from streamlib.testing.targets import TARGETS
from streamlib_parsers.protocol import WIRE_APIS
from tests.proof.results import QUOTED

LONG: Final = (*WIRE_APIS, "sse", "eventstream")
"""The targets that everything goes through."""
EXECUTED: Final = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def hunt(name: str, seconds: int) -> tuple[int, bool]:
    """Bodies tried on one target, and whether something broke."""
    command = [sys.executable, "-m", "tests.fuzz", name, f"-max_total_time={seconds}", "-print_final_stats=1"]
    ran = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    found = EXECUTED.search(ran.stderr)
    if found is None:
        raise SystemExit(f"{name}: {ran.stderr[-500:]}")
    return int(found[1]), ran.returncode != 0


def keep(command: str, ran: dict[str, tuple[int, bool]], notes: list[str]) -> None:
    """Written after each target, so that a run that is stopped has its record: it says how many targets it came to."""
    notes = [f"{len(ran)} of {len(TARGETS)} targets", *notes]
    figures = {"executions": sum(count for count, _ in ran.values()), "crashes": sum(broke for _, broke in ran.values())}
    told = {"command": command, "date": f"{datetime.now(UTC):%Y-%m-%d}", "figures": figures, "notes": notes}
    QUOTED.mkdir(exist_ok=True)
    (QUOTED / "atheris.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Hunts through all of them."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--wires", type=int, default=600, metavar="SECONDS")
    command.add_argument("--others", type=int, default=60, metavar="SECONDS")
    arguments = command.parse_args()
    ran, notes = dict[str, tuple[int, bool]](), list[str]()
    for name in TARGETS:
        seconds = arguments.wires if name in LONG else arguments.others
        ran[name] = executions, broke = hunt(name, seconds)
        notes.append(f"{name}: {executions:,} executions in {seconds} s{', something broke' if broke else ''}")
        sys.stdout.write(f"{notes[-1]}\n")
        sys.stdout.flush()
        keep(f"python -m tests.fuzz.all --wires {arguments.wires} --others {arguments.others}", ran, notes)


if __name__ == "__main__":
    main()
