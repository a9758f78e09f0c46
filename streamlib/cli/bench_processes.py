"""The rounds of `streamlib bench`, spread over several processes.

Hashes and addresses make one process up to 20 % slower than another of the same code, for as long
as it lives. Only further processes show that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec

from streamlib.cli.arguments import CommandError
from streamlib.testing.bench.records import Figure, joined

Tables: TypeAlias = list[list[Figure]]
"""The figures of each table of a run."""


def spread(arguments: argparse.Namespace, count: int, report: Callable[[str], object]) -> Tables:
    """Measures in one process after another; each does as many of the rounds.

    Args:
        arguments: those of the command.
        count: number of processes.
        report: called before each process.

    Raises:
        CommandError: a process could not measure; with its words, and its exit code.
    """
    options = {name: value for name, value in vars(arguments).items() if name != "run"}
    options["rounds"] = -(-arguments.rounds // count)  # rounded up
    tables: list[Tables] = []
    for number in range(1, count + 1):
        report(f"process {number} of {count}")
        # Each says the same on standard error, such as how a wire was guessed.
        tables.append(_measured_by_another(options, show=number == 1))
    return [joined(same) for same in zip(*tables, strict=True)]


def _measured_by_another(options: dict[str, object], *, show: bool) -> Tables:
    # In a file, because a parser of the user's own may print.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "figures.json")
        ended = subprocess.run(  # noqa: S603  # this interpreter
            (sys.executable, "-P", "-m", "streamlib.cli.bench", str(path)),
            input=json.dumps(options),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if ended.returncode:
            error = ended.stderr.rstrip("\n") or "streamlib bench: a process was killed"
            raise CommandError(error, max(1, ended.returncode))
        if show:
            sys.stdout.write(ended.stdout)
            sys.stderr.write(ended.stderr)
        return msgspec.json.decode(path.read_bytes(), type=Tables)
