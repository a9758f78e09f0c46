"""The proof: runs the tests of every promise, reads the figures they count, writes docs/PROOF.md.

    python -m lab.proof                 everything: under 20 minutes on two idle cores
    python -m lab.proof --only 1 9      some promises; only their measurements are saved
    python -m lab.proof --jobs 1        one process at a time
    python -m lab.proof --page          writes the page from the last measurements

Vectors and recordings are read from `../shared` (tests/support/shared.py); without them some
figures fall short, and the page shows that. The default tests are the short form: the same proofs
with fewer cases.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path

from lab.proof.page import is_kept, page, row
from lab.proof.promises import PROMISES, Promise, pytest_arguments
from lab.proof.results import (
    Result,
    doubt,
    known_results,
    load,
    present_commit,
    quoted,
    save,
    summarize,
)
from streamlib.testing.bench.records import load_of_machine
from tests.support.metrics import VARIABLE, figures
from tests.support.shared import ROOT

PAGE = ROOT / "docs" / "PROOF.md"
OPTIONS = ["-q", "-p", "no:cacheprovider", "-m", "not real", "-rfE", "--no-header"]

LONGEST_FIRST = (23, 17, 12, 10, 3, 11, 2, 7, 16, 15, 1, 9, 4, 8)
"""Promises whose proofs take longest, longest first."""


def failures_of(lines: list[str]) -> list[str]:
    """The failed tests in the summary lines of pytest."""
    failed: list[str] = []
    for line in lines:
        if line.startswith(("FAILED ", "ERROR ")):
            failed.append(line.partition(" - ")[0].split(" ", 1)[1])
    return failed


def prove(promise: Promise) -> Result:
    """Runs the tests of one promise."""
    if promise.quoted:
        return quoted(promise.quoted)
    started = time.monotonic()
    outcomes: list[str] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures"
        environment = {**os.environ, VARIABLE: str(path), "PYTHONPATH": os.pathsep.join(sys.path)}
        for selection in promise.tests:
            command = [sys.executable, "-m", "pytest", *OPTIONS, *pytest_arguments(selection)]
            process = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )
            lines = process.stdout.strip().splitlines()
            if not lines:
                lines = [process.stderr.strip()[-200:] or "no output"]
            outcomes.append(lines[-1].strip("= "))
            failed += failures_of(lines)
            # 1: tests failed, and the summary lists them. Any other code: they did not run.
            if process.returncode not in {0, 1}:
                failed.append(f"{selection}: exit {process.returncode}")
        summary = summarize(figures(path))
    return Result(
        summary,
        time.monotonic() - started,
        "; ".join(outcomes),
        tuple(dict.fromkeys(failed)),
        conditions(),
        present_commit(),
    )


def run(promises: Iterable[Promise], jobs: int) -> dict[int, Result]:
    """Proves them, some at a time, the longest first so that none is left over at the end.

    Each result is saved at once.
    """

    def rank(promise: Promise) -> int:
        if promise.number in LONGEST_FIRST:
            return LONGEST_FIRST.index(promise.number)
        return len(LONGEST_FIRST)

    results: dict[int, Result] = {}
    present_commit()  # Asked before results are saved, which are files of the repository too.
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(prove, promise): promise for promise in sorted(promises, key=rank)}
        for done in as_completed(running):
            promise = running[done]
            results[promise.number] = done.result()
            save({**load(), **results})
            sys.stdout.write(row(promise, results[promise.number]) + "\n")
            sys.stdout.flush()
    return results


def write() -> None:
    """Writes the page from all that was measured."""
    results = known_results((promise.number, promise.quoted) for promise in PROMISES)
    PAGE.write_text(page(results), encoding="utf-8")


def conditions() -> str:
    """When and on what machine it ran."""
    load, _, _ = load_of_machine().partition(",")
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores at load {load}"
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine}"


def main() -> int:
    """Runs the command; the exit code is 1 where a promise is not kept."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.proof",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", type=int, nargs="+", metavar="N", help="measure these promises alone"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        help="processes at a time (default: one a core)",
    )
    parser.add_argument(
        "--page",
        action="store_true",
        help="measure nothing: write the page from the last measurements",
    )
    options = parser.parse_args()
    if options.page:
        write()
        return 0
    chosen = [promise for promise in PROMISES if not options.only or promise.number in options.only]
    results = run(chosen, options.jobs)
    if not options.only:
        write()
        sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")
    for number, result in results.items():
        if doubt(result.commit):
            sys.stdout.write(f"{number} does not count: it was measured {doubt(result.commit)}\n")
    if all(is_kept(promise, results[promise.number]) for promise in chosen):
        return 0
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
