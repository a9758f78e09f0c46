"""Runs the atheris harness on every target, each in its own process; records it for docs/PROOF.md.

python -m lab.fuzz.all --wires 600 --others 60
    # seconds for SSE, AWS frames and each wire; for each dialect and the other framings
python -m lab.fuzz.all chat sse --wires 600
    # only these; the runs of the others stay on record
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from lab.fuzz.corpora import store
from lab.proof.results import QUOTED, present_commit
from streamlib.testing.fuzz_targets import TARGETS
from streamlib_parsers.protocol import WIRE_APIS

WIRES_AND_FRAMINGS: Final = (*WIRE_APIS, "sse", "eventstream")
"""The targets that every stream passes through."""
RECORD: Final = QUOTED / "atheris.json"
EXECUTED: Final = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def fuzz(name: str, seconds: int) -> tuple[int, bool]:
    """Bodies tried on one target, and whether one failed; what it found is kept, minimised."""
    with tempfile.TemporaryDirectory() as found, tempfile.TemporaryDirectory() as minimised:
        ran = libfuzzer(name, f"-max_total_time={seconds}", "-print_final_stats=1", found)
        executed = EXECUTED.search(ran.stderr)
        if executed is None:
            raise SystemExit(f"{name}: {ran.stderr[-500:]}")
        libfuzzer(name, "-merge=1", minimised, found)
        store(name, [path.read_bytes() for path in Path(minimised).iterdir()])
    return int(executed[1]), ran.returncode != 0


def libfuzzer(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs the harness on one target."""
    command = [sys.executable, "-m", "lab.fuzz", name, *options]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)


class Run(NamedTuple):
    """The runs on one target: each begins with what those before it found, so they add up."""

    executions: int
    seconds: int
    broke: bool
    """Whether something failed in the last one."""
    date: str
    """Of the last one."""

    def after(self, earlier: Run | None) -> Run:
        """This run together with the earlier ones."""
        if earlier is None:
            return self
        return self._replace(
            executions=earlier.executions + self.executions, seconds=earlier.seconds + self.seconds
        )

    def __str__(self) -> str:
        failed = ", something broke" if self.broke else ""
        return f"{self.executions:,} executions in {self.seconds} s{failed} ({self.date})"


def recorded_runs() -> dict[str, Run]:
    """The runs on record."""
    if not RECORD.exists():
        return {}
    record = json.loads(RECORD.read_bytes())
    return {name: Run(*run) for name, run in record.get("runs", {}).items()}


def save(runs: dict[str, Run]) -> None:
    """Records the runs: after each target, so that a run that is stopped has its record."""
    figures = {
        "executions": sum(run.executions for run in runs.values()),
        "crashes": sum(run.broke for run in runs.values()),
    }
    notes = [
        f"{len(runs)} of {len(TARGETS)} targets",
        *(f"{name}: {run}" for name, run in runs.items()),
    ]
    record = {
        "command": "python -m lab.fuzz.all",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": present_commit(),
        "figures": figures,
        "notes": notes,
        "runs": runs,
    }
    QUOTED.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Fuzzes all of them."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("targets", nargs="*", metavar="TARGET")
    command.add_argument("--wires", type=int, default=600, metavar="SECONDS")
    command.add_argument("--others", type=int, default=60, metavar="SECONDS")
    arguments = command.parse_args()
    unknown = {*arguments.targets} - {*TARGETS}
    if unknown:
        command.error(f"no target {', '.join(unknown)}; one of {', '.join(TARGETS)}")
    for name in arguments.targets or TARGETS:
        seconds = arguments.others
        if name in WIRES_AND_FRAMINGS:
            seconds = arguments.wires
        executions, broke = fuzz(name, seconds)
        run = Run(executions, seconds, broke, f"{datetime.now(UTC):%Y-%m-%d}")
        sys.stdout.write(f"{name}: {run}\n")
        sys.stdout.flush()
        recorded = recorded_runs()
        save(recorded | {name: run.after(recorded.get(name))})


if __name__ == "__main__":
    main()
