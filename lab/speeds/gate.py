"""Whether reading takes longer than in the release before: `python -m lab.speeds.gate`.

    python -m lab.speeds.gate [--before REVISION] [--rounds 3] [DIR ...]

Both versions read the same bodies in turn, in `PAIRS` pairs of processes: the shapes, or the
recordings of the folders. The ratio of CPU time by wire, length and chunks, the median of the
pairs, may be `MOST`. Without a release the commit of `FIRST` is compared; where git knows neither,
nothing is.
"""

from __future__ import annotations

import argparse
import io
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.contestants import Contestant
from benchmarks.reader_process import ReaderProcess, checkout_process
from benchmarks.recordings import streams_in
from benchmarks.shapes import shapes
from streamlib.testing.bench.corpus import CHUNKS, Stream, groups
from streamlib.testing.bench.workloads import chunked, chunking
from tests.support.shared import ROOT

MOST: Final = 1.05
"""How many times as long as before reading may take."""

FIRST: Final = "1a1fa67c"
"""What is compared as long as there is no tag of a release."""

PAIRS: Final = 7
"""How many pairs of processes: hashes and addresses make one process up to 20 % slower than another
of the same code, for as long as it lives, and only further processes show that."""

ROUNDS: Final = 3
"""How often each pair reads; the shortest time counts, for whatever else runs only adds to it."""

WINDOW: Final = 0.003
"""CPU seconds for which a body is read in a round: the clock of a process is coarse."""


class Compared(NamedTuple):
    """How many times as long as before one kind of streams takes: the median of the pairs."""

    name: str
    ratio: float


def release_before() -> str | None:
    """The last release, else `FIRST`; None where git knows neither."""
    for command in (
        ("describe", "--tags", "--abbrev=0", "HEAD^"),
        ("rev-parse", "--verify", "--quiet", f"{FIRST}^{{commit}}"),
    ):
        found = subprocess.run(
            ("git", *command), cwd=ROOT, capture_output=True, text=True, check=False
        )
        if found.returncode == 0:
            return found.stdout.strip()
    return None


def unpack(revision: str, folder: str) -> Path:
    """Writes the parsers of a revision into a folder."""
    command = ("git", "archive", revision, "parsers", "streamlib")
    packed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return Path(folder)


def compare(
    pairs: Sequence[Sequence[ReaderProcess]], streams: Sequence[Stream], rounds: int
) -> list[Compared]:
    """The ratio of each wire and length, in chunks of an event and of 16 KiB.

    Each pair reads every row (a wire, a length, a size of chunks) before the next pair begins. A
    short slow moment of the machine then changes one pair's ratio, which the median leaves out; row
    by row it would change those of all pairs.
    """
    ratios: dict[str, list[float]] = {}
    for number, pair in enumerate(pairs, 1):
        show(f"pair {number} of {len(pairs)}")
        for name, members in groups(streams).items():
            readers = [process.contestant("", "parser", members[0].wire_api) for process in pair]
            for size in CHUNKS:
                bodies = [chunked(stream.events, size) for stream in members]
                row = ratios.setdefault(f"{name}, {chunking(size)}", [])
                row.append(_ratio(readers, bodies, rounds))
    return [Compared(name, statistics.median(row)) for name, row in ratios.items()]


def _ratio(readers: Sequence[Contestant], bodies: Sequence[list[bytes]], rounds: int) -> float:
    """How many times as long as the first reader the second takes, body by body in turn."""
    shortest = [0.0, 0.0]
    for chunks in bodies:
        spent: list[list[float]] = [[], []]
        for _ in range(rounds):
            for number, reader in enumerate(readers):
                spent[number].append(reader.seconds(chunks, WINDOW / len(bodies)))
        for number, times in enumerate(spent):
            shortest[number] += min(times)
    return shortest[1] / shortest[0]


def show(line: str) -> None:
    """Writes a line at once, also into a pipe."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the ratios; 1 if one is above `MOST`."""
    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("folders", nargs="*", metavar="DIR", help="recordings, not the shapes")
    command.add_argument("--before", metavar="REVISION", help="not the last release")
    command.add_argument("--rounds", type=int, default=ROUNDS)
    command.add_argument("--wire", help="only this wire API")
    arguments = command.parse_args(argv)
    revision = arguments.before or release_before()
    if revision is None:
        show("!! not compared: git knows neither a release nor the commit to compare with")
        return 0
    streams = streams_in(arguments.folders) if arguments.folders else shapes()
    if arguments.wire is not None:
        streams = [stream for stream in streams if stream.wire_api == arguments.wire]
    slower: list[Compared] = []
    with tempfile.TemporaryDirectory() as folder:
        folders = (unpack(revision, folder), ROOT)
        pairs = [[checkout_process(version) for version in folders] for _ in range(PAIRS)]
        for compared in compare(pairs, streams, arguments.rounds):
            show(f"{compared.ratio:5.2f}  {compared.name}")
            if compared.ratio > MOST:
                slower.append(compared)
        for process in chain.from_iterable(pairs):
            process.close()
    for compared in slower:
        show(f"slower than {revision}: {compared.name}, {compared.ratio:.2f} times")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
