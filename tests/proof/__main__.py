"""The proof: runs the tests of every promise, reads the figures they count, and writes docs/PROOF.md.

    python -m tests.proof                 all of it: under 20 minutes on two cores that do nothing else
    python -m tests.proof --only 1 9      some promises; the other rows of the page stay as they were measured last
    python -m tests.proof --jobs 1        one process at a time
    python -m tests.proof --page          writes the page of what was measured before

Vectors and recordings are read from `../shared` (tests/support/shared.py); without them some figures fall short, and are shown so.
The default tests are the short form: they take the same proofs with fewer cases.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from tests.proof.page import held, page, row
from tests.proof.promises import PROMISES, Promise
from tests.proof.results import Result, counted, known, load, quoted, save
from tests.support.metrics import VARIABLE, figures
from tests.support.shared import ROOT

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
            ran = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )
            lines = ran.stdout.strip().splitlines() or [
                ran.stderr.strip()[-200:] or "nothing was said"
            ]
            tails.append(lines[-1].strip("= "))
            failed += [
                line.partition(" - ")[0].split(" ", 1)[1]
                for line in lines
                if line.startswith(("FAILED ", "ERROR "))
            ]
            failed += [] if ran.returncode in {0, 1} else [f"{words}: exit {ran.returncode}"]
        found = counted(figures(place))
    return Result(
        found,
        time.monotonic() - began,
        "; ".join(tails),
        tuple(dict.fromkeys(failed)),
        surroundings(),
    )


def run(promises: Iterable[Promise], jobs: int) -> dict[int, Result]:
    """All of them, some at a time; the long ones first, so that none is left over at the end. Kept as soon as they are there."""
    order = sorted(
        promises,
        key=lambda promise: LONG.index(promise.number) if promise.number in LONG else len(LONG),
    )
    fresh: dict[int, Result] = {}
    commit()  # before what is written makes it "dirty"
    with ThreadPoolExecutor(jobs) as pool:
        begun = {pool.submit(prove, promise): promise for promise in order}
        for done in as_completed(begun):
            promise = begun[done]
            fresh[promise.number] = done.result()
            save({**load(), **fresh})
            write()
            sys.stdout.write(row(promise, fresh[promise.number]) + "\n")
            sys.stdout.flush()
    return fresh


def write() -> None:
    """The page of all that is known."""
    PAGE.write_text(
        page(known((promise.number, promise.quoted) for promise in PROMISES)), encoding="utf-8"
    )


LONG = (23, 17, 12, 10, 3, 11, 2, 7, 16, 15, 1, 9, 4, 8)
"""Promises whose proofs take longest, longest first."""


def surroundings() -> str:
    """When and where it ran."""
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores at load {os.getloadavg()[0]:.0f}"
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine}, {commit()}"


@cache
def commit() -> str:
    """The short name of what was proved."""
    ran = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout.strip() or "unknown"


def main() -> int:
    """Exit code 1 where a promise is not held."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.proof",
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
        help="measure nothing: write the page of what was measured before",
    )
    asked = parser.parse_args()
    if asked.page:
        write()
        return 0
    results = run(
        [promise for promise in PROMISES if not asked.only or promise.number in asked.only],
        asked.jobs,
    )
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")
    return (
        0
        if all(
            held(promise, results[promise.number])
            for promise in PROMISES
            if promise.number in results
        )
        else 1
    )


if __name__ == "__main__":
    raise SystemExit(main())
