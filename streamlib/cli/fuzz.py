"""`streamlib fuzz WIRE --time 60`: searches for a body on which a parser violates an invariant.

The body is made small and written as a test.
"""

from __future__ import annotations

import argparse
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
exception may escape. A body that fails is made as small as possible and
written as a pytest file, with a picture of the bytes and of the cut."""

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
  # one of ours, with the bodies of an earlier run
  streamlib fuzz chat --time 60 --seed 7

exit code: 0 no failure, 1 a failure was found or a file could not be used,
           2 usage error: there is no such target
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
        target = find_target(arguments.target)
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
    if finding is None:
        print(f"{target.name}: no failure found; seed {seed}")
        return 0
    print(
        f"{target.name}: failure of {finding.invariant}; seed {seed}; making the body small",
        file=sys.stderr,
    )
    _write_reproducer(target, finding, arguments.out)
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
    return (
        f"{campaign.target.name}: {campaign.executions:,} bodies, {campaign.readings:,} readings, "
        f"{campaign.kinds:,} kinds of outcome"
    )


def _write_reproducer(target: FuzzTarget, finding: FuzzFinding, folder: Path) -> None:
    small = shrink(target, finding)
    # The target may be `module:callable`; the file must be importable by pytest.
    suffix = "".join(char if char.isalnum() else "_" for char in target.name)
    path = folder / f"test_fuzz_{suffix}.py"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(reproducer(small), encoding="utf-8")
    drawn = path.with_suffix(".svg")
    drawn.write_text(draw(target, small), encoding="utf-8")
    # The detail may quote the body, control characters included.
    detail = small.detail.encode("unicode_escape").decode("ascii")[:300]
    print(detail)
    print(f"{len(finding.body)} bytes, reduced to {len(small.body)}: {small.body[:200]!r}")
    if small.offsets:
        print(f"in chunks: {', '.join(repr(chunk[-40:]) for chunk in small.chunks[:8])}")
    print(f"written to {path}: run it with pytest; {drawn} is a picture of it")
