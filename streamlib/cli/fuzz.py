"""`streamlib fuzz WIRE --time 60`: looks for a body on which a parser breaks a promise, makes it small, writes it down as a test."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from streamlib.cli.numbers import duration
from streamlib.testing.fuzz_targets import TARGETS, FuzzTarget, find_target
from streamlib.testing.fuzzing import Campaign, Finding, reproducer, shrink

_WIDTH: Final = 100


def add(commands: Any) -> None:
    """The command's words."""
    command: argparse.ArgumentParser = commands.add_parser(
        "fuzz",
        help="look for input that breaks a parser",
        description=(
            "Feeds a parser made and mutated bodies, whole and in pieces: the same must come out of every cut, the laws must hold, and no "
            "exception may escape. What breaks is made small and written as a pytest file; the exit code is then 1."
        ),
        epilog=f"Targets: {', '.join(TARGETS)}, or module:callable for a parser of your own: feed(bytes) -> list, close() -> list.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "target", metavar="WIRE", help="a wire, a framing, a dialect, or module:callable"
    )
    command.add_argument("files", nargs="*", metavar="FILE", help="captured bodies to begin with")
    command.add_argument(
        "--time", type=duration, default=60.0, metavar="SECONDS", help="how long to look (60)"
    )
    command.add_argument(
        "--seed", type=int, default=None, help="for the same run again; printed at the end"
    )
    command.add_argument(
        "--out",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="where the reproducer is written (here)",
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """One hunt; 1 where something was found or a file cannot be read or written, 2 where there is no such target."""
    sys.path.insert(0, str(Path.cwd()))  # a parser of the user's own lies where they stand
    try:
        what = find_target(arguments.target)
    except (ImportError, AttributeError, ValueError) as error:
        print(f"streamlib fuzz: {error}", file=sys.stderr)
        return 2
    try:
        corpus = [Path(name).read_bytes() for name in arguments.files]
        _check_writable(arguments.out)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    seed = random.SystemRandom().randrange(1 << 32) if arguments.seed is None else arguments.seed
    campaign = Campaign(what, seed=seed, corpus=corpus)
    for _ in campaign.run(arguments.time):
        _progress(campaign)
    _progress(campaign, end="\n")
    if not campaign.executions:
        print(f"{what.name}: nothing was tried: there was no time", file=sys.stderr)
        return 1
    if campaign.finding is None:
        print(f"{what.name}: nothing broke; seed {seed}")
        return 0
    print(
        f"{what.name}: {campaign.finding.invariant} broke; seed {seed}; making it small",
        file=sys.stderr,
    )
    return _report(what, campaign.finding, arguments.out)


def _check_writable(folder: Path) -> None:
    """OSError where no reproducer could be written: before the hunt, not after it. Makes no folder."""
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        tempfile.TemporaryFile(dir=nearest).close()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from None


def _progress(campaign: Campaign, end: str = "") -> None:
    """One line that is written over, for people; at the end it stays."""
    if end or sys.stderr.isatty():
        line = f"{campaign.target.name}: {campaign.executions:,} bodies, {campaign.readings:,} readings, {campaign.kinds:,} kinds of outcome"
        print(
            f"{chr(13) if sys.stderr.isatty() else ''}{line:<{_WIDTH}}".rstrip(" " if end else ""),
            end=end,
            file=sys.stderr,
            flush=True,
        )


def _report(what: FuzzTarget, finding: Finding, folder: Path) -> int:
    small = shrink(what, finding)
    word = "".join(c if c.isalnum() else "_" for c in what.name)
    path = folder / f"test_fuzz_{word}.py"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(reproducer(small), encoding="utf-8")
    shown = small.detail.encode("unicode_escape").decode("ascii")[:300]
    print(
        f"{shown}\n{len(finding.body)} bytes, made {len(small.body)}: {small.body[:200]!r}\nwritten to {path}: run it with pytest"
    )
    return 1
