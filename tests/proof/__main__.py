"""The proof: runs the tests of every promise, reads the figures they count, and writes docs/PROOF.md.

    python -m tests.proof                 all of it: under 20 minutes on two cores that do nothing else
    python -m tests.proof --only 1 9      some promises; prints their rows and leaves the page alone
    python -m tests.proof --jobs 1        one process at a time

Vectors and recordings are read from `../shared` (tests/shared.py); without them some figures fall short, and are shown so.
The default tests are the short form: they take the same proofs with fewer cases.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path

from tests.figures import VARIABLE, figures
from tests.proof.page import held, page, row
from tests.proof.promises import PROMISES, Promise
from tests.proof.results import Result, quoted
from tests.shared import ROOT

PAGE = ROOT / "docs" / "PROOF.md"
ASKED = ["-q", "-p", "no:cacheprovider", "-m", "not real", "-rfE", "--no-header"]


def pytest_words(words: str) -> list[str]:
    """`file -k some words` as arguments: all after -k is one expression."""
    path, _, expression = words.partition(" -k ")
    return [*shlex.split(path), *(["-k", expression] if expression else [])]


def prove(promise: Promise) -> Result:
    """Runs the tests of one promise."""
    if promise.quoted:
        return quoted(promise.quoted)
    began, tails, failed = time.monotonic(), list[str](), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "figures"
        environment = {**os.environ, VARIABLE: str(place), "PYTHONPATH": os.pathsep.join(sys.path)}
        for words in promise.tests:
            command = [sys.executable, "-m", "pytest", *ASKED, *pytest_words(words)]
            ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
            lines = ran.stdout.strip().splitlines() or [ran.stderr.strip()[-200:] or "nothing was said"]
            tails.append(lines[-1].strip("= "))
            failed += [line.partition(" - ")[0].split(" ", 1)[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]
            failed += [] if ran.returncode in {0, 1} else [f"{words}: exit {ran.returncode}"]
        counted = figures(place)
    return Result(counted, time.monotonic() - began, "; ".join(tails), tuple(dict.fromkeys(failed)))


def run(promises: Iterable[Promise], jobs: int) -> dict[int, Result]:
    """All of them, some at a time; the long ones first, so that none is left over at the end."""
    results: dict[int, Result] = {}
    order = sorted(promises, key=lambda promise: LONG.index(promise.number) if promise.number in LONG else len(LONG))
    with ThreadPoolExecutor(jobs) as pool:
        begun = {pool.submit(prove, promise): promise for promise in order}
        for done in as_completed(begun):
            promise = begun[done]
            results[promise.number] = done.result()
            sys.stdout.write(row(promise, results[promise.number]) + "\n")
            sys.stdout.flush()
    return results


LONG = (23, 17, 12, 10, 3, 11, 2, 7, 16, 15, 1, 9, 4, 8)
"""Promises whose proofs take longest, longest first."""


def surroundings(began: float, jobs: int) -> str:
    """Where and when it ran."""
    load, used = f"{os.getloadavg()[0]:.1f}", resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        f"Run on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores "
        f"(load {load} at the end, {jobs} processes at a time): {(time.monotonic() - began) / 60:.1f} minutes and\n"
        f"{(used.ru_utime + used.ru_stime) / 60:.1f} minutes of processor time. Commit {commit()}."
    )


def commit() -> str:
    """The short name of what was proved."""
    ran = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False)
    return ran.stdout.strip() or "unknown"


def main() -> int:
    """Exit code 1 where a promise is not held."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.proof", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="these promises alone; the page is not written")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time (default: one a core)")
    asked = parser.parse_args()
    began = time.monotonic()
    results = run([promise for promise in PROMISES if not asked.only or promise.number in asked.only], asked.jobs)
    if not asked.only:
        PAGE.write_text(page(results, surroundings(began, asked.jobs)), encoding="utf-8")
        sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")
    return 0 if all(held(promise, results[promise.number]) for promise in PROMISES if promise.number in results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
