"""Runs the atheris harness on every target, each in its own process; records it for docs/PROOF.md.

python -m lab.fuzz.all --wires 600 --others 60 --jobs 2
    # seconds for SSE, AWS frames and each wire; for each dialect and the other framings
python -m lab.fuzz.all chat sse --wires 600
    # only these; the runs of the others stay on record

Runs add up over days, but not over code: one on a commit that docs/PROOF.md would call out of date
is forgotten.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from lab.fuzz.corpora import store
from lab.proof.results import QUOTED, commits_since, doubt, present_commit
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
    commit: str
    """Of the first one; of the last one, if that one says nothing about the present code."""

    def after(self, earlier: Run | None) -> Run:
        """This run together with the earlier ones."""
        if earlier is None:
            return self
        return self._replace(
            executions=earlier.executions + self.executions,
            seconds=earlier.seconds + self.seconds,
            commit=max(earlier.commit, self.commit, key=_age),
        )

    def __str__(self) -> str:
        failed = ", something broke" if self.broke else ""
        return f"{self.executions:,} executions in {self.seconds} s{failed} ({self.date})"


def recorded_runs() -> dict[str, Run]:
    """The runs on record that still say something about the present code."""
    if not RECORD.exists():
        return {}
    record = json.loads(RECORD.read_bytes())
    runs = {name: Run(*run) for name, run in record.get("runs", {}).items()}
    return {name: run for name, run in runs.items() if not doubt(run.commit)}


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
        "date": max(run.date for run in runs.values()),
        "commit": max((run.commit for run in runs.values()), key=_age),
        "figures": figures,
        "notes": notes,
        "runs": runs,
    }
    QUOTED.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _age(commit: str) -> tuple[bool, int]:
    """Sorts last what decides whether the figures count: changed files, else the oldest commit."""
    return bool(doubt(commit)), commits_since(commit) or 0


def fuzz_all(seconds: dict[str, int], jobs: int) -> Iterator[tuple[str, Run]]:
    """The run of each target, as it ends.

    seconds: name of a target -> how long.
    jobs: How many at a time.
    """
    commit = present_commit()  # before the first file is written: with it the tree has changes
    pool = ThreadPoolExecutor(jobs)
    try:
        tasks = {pool.submit(fuzz, name, most): name for name, most in seconds.items()}
        for task in as_completed(tasks):
            name = tasks[task]
            executions, broke = task.result()
            today = f"{datetime.now(UTC):%Y-%m-%d}"
            yield name, Run(executions, seconds[name], broke, today, commit)
    finally:
        # Where one cannot run, or the command is stopped, hours of others must not begin.
        pool.shutdown(cancel_futures=True)


def main() -> None:
    """Fuzzes all of them."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("targets", nargs="*", metavar="TARGET")
    command.add_argument("--wires", type=int, default=600, metavar="SECONDS")
    command.add_argument("--others", type=int, default=60, metavar="SECONDS")
    command.add_argument("--jobs", type=int, default=1, metavar="N", help="targets at a time")
    arguments = command.parse_args()
    unknown = {*arguments.targets} - {*TARGETS}
    if unknown:
        command.error(f"no target {', '.join(unknown)}; one of {', '.join(TARGETS)}")
    seconds: dict[str, int] = {}
    for name in arguments.targets or TARGETS:
        seconds[name] = arguments.others
        if name in WIRES_AND_FRAMINGS:
            seconds[name] = arguments.wires
    recorded = recorded_runs()
    for name, run in fuzz_all(seconds, arguments.jobs):
        sys.stdout.write(f"{name}: {run}\n")
        sys.stdout.flush()
        recorded[name] = run.after(recorded.get(name))
        save(recorded)


if __name__ == "__main__":
    main()
