"""`streamlib fuzz WIRE --time 60`: searches for a body on which a parser violates an invariant.

The body is made small and written as a test.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Final

from streamlib.cli.numbers import positive_seconds
from streamlib.cli.progress import StatusLine
from streamlib.testing.fuzz_targets import TARGETS, FuzzTarget, find_target
from streamlib.testing.fuzzing import Campaign, FuzzFinding, reproducer, shrink
from streamlib.testing.split_picture import draw

DESCRIPTION: Final = """\
Feeds generated and mutated bodies to a parser, complete and split into chunks.
Every split must give the same result, the invariants must hold, and no
exception may escape. A body that fails is made small and written as a pytest
file, with a picture of the bytes and of the cut."""

_TARGET_NAMES: Final = textwrap.fill(
    f"Targets: {', '.join(TARGETS)},", width=79, break_on_hyphens=False
)

EXAMPLES: Final = f"""\
{_TARGET_NAMES}
or module:callable for a parser of your own: a class with feed(bytes) -> list
and close() -> list, or a function of chunks.

examples:
  # a parser of your own, which begins with a response of your server
  streamlib fuzz my_module:Parser capture.sse --time 10
  # the same, where bad bytes may raise this error, for every split
  streamlib fuzz my_module:Parser capture.sse --allowed ValueError
  # one of ours, with the bodies of an earlier run
  streamlib fuzz chat --time 60 --seed 7

exit code: 0 no failure, 1 a failure was found, a file could not be used, or
           every body gave the same, 2 usage error: there is no such target
"""


def add(command: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    command.add_argument(
        "target", metavar="WIRE", help="a wire, a framing, a dialect, or module:callable"
    )
    command.add_argument("files", nargs="*", metavar="FILE", help="captured bodies to start with")
    command.add_argument(
        "--time",
        type=positive_seconds,
        default=60.0,
        metavar="SECONDS",
        help="how long to search (default 60)",
    )
    command.add_argument(
        "--allowed",
        action="append",
        default=[],
        metavar="NAME",
        help="an error that a parser of your own may raise for bad bytes, if it does for every "
        "split: KeyError, json.JSONDecodeError; may be repeated",
    )
    command.add_argument(
        "--seed", type=int, default=None, help="repeat the run that printed this seed"
    )
    command.add_argument(
        "--out",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="where the reproducer is written (default: the current folder)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs one campaign.

    Returns:
        1 where a failure was found or a file cannot be read or written, 2 where there is no such
        target.
    """
    # Makes the user's own parser in the current folder importable, as `python -m` does.
    sys.path.insert(0, str(Path.cwd()))
    try:
        target = find_target(arguments.target, arguments.allowed)
    except (ImportError, AttributeError, ValueError) as error:
        print(f"streamlib fuzz: {error}", file=sys.stderr)
        return 2
    # Both paths are checked first, so that a wrong one fails before the campaign.
    corpus = [Path(name).read_bytes() for name in arguments.files]
    _check_writable(arguments.out)
    seed = arguments.seed
    if seed is None:
        seed = random.SystemRandom().randrange(1 << 32)
    campaign = Campaign(target, seed=seed, corpus=corpus)
    line = StatusLine()
    try:
        for _ in campaign.run(arguments.time):
            line.draw(_counts(campaign))
    finally:  # Ctrl-C leaves no line behind
        line.erase()
    print(_counts(campaign), file=sys.stderr)
    if not campaign.executions:
        print(f"{target.name}: no body was tried: the time was too short", file=sys.stderr)
        return 1
    finding = campaign.finding
    if finding is None and campaign.is_blind:
        print(f"{campaign.blindness()}: streamlib fuzz {target.name} FILE", file=sys.stderr)
        return 1
    if finding is None:
        print(f"{target.name}: no failure found; seed {seed}")
        return 0
    print(
        f"{target.name}: failure of {finding.invariant}; seed {seed}; making the body small",
        file=sys.stderr,
    )
    _write_reproducer(target, finding, arguments)
    return 1


def _check_writable(folder: Path) -> None:
    """Raises OSError if no reproducer could be written to a folder, before the campaign runs.

    Creates no folder.
    """
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        tempfile.TemporaryFile(dir=nearest).close()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from None


def _counts(campaign: Campaign) -> str:
    kinds = "1 kind" if campaign.kinds == 1 else f"{campaign.kinds:,} kinds"
    return (
        f"{campaign.target.name}: {campaign.executions:,} bodies, {campaign.readings:,} readings, "
        f"{kinds} of outcome"
    )


def _write_reproducer(
    target: FuzzTarget, finding: FuzzFinding, arguments: argparse.Namespace
) -> None:
    folder: Path = arguments.out
    small = shrink(target, finding)
    # The target may be `module:callable`; the file must be importable by pytest.
    suffix = "".join(char if char.isalnum() else "_" for char in target.name)
    path = folder / f"test_fuzz_{suffix}.py"
    folder.mkdir(parents=True, exist_ok=True)
    written = reproducer(small, arguments.allowed, _folder_of_module(target, folder))
    path.write_text(written, encoding="utf-8")
    drawn = path.with_suffix(".svg")
    drawn.write_text(draw(target, small), encoding="utf-8")
    # The detail may quote the body, control characters included.
    detail = small.detail.encode("unicode_escape").decode("ascii")[:300]
    # The detail of a violation begins with its name.
    print(f"{small.error}: {detail}" if small.error else detail)
    print(f"{len(finding.body)} bytes, reduced to {len(small.body)}: {small.body[:200]!r}")
    if small.offsets:
        print(f"in chunks: {', '.join(repr(chunk[-40:]) for chunk in small.chunks[:8])}")
    print(f"written to {path}: run it with pytest; {drawn} is a picture of it")
    if target.name not in TARGETS and small.error.replace(".", "").isidentifier():
        print(f"If it may raise that for bad bytes, search on: --allowed {small.error}")


def _folder_of_module(target: FuzzTarget, folder: Path) -> str | None:
    """The current folder as seen from another, if the module of the user's own parser is in it."""
    module = sys.modules.get(target.name.partition(":")[0])
    path = getattr(module, "__file__", None)
    if target.name in TARGETS or path is None or not Path(path).is_relative_to(Path.cwd()):
        return None
    try:
        return Path(os.path.relpath(Path.cwd(), folder)).as_posix()
    except ValueError:  # on another drive of Windows
        return None
