"""The parsers on recorded streams, against others on the same bytes: an event, a response.

    python -m benchmarks.recordings [DIR ...] [--only WIRE] [--rounds 5] [--save] [--quick]
    python -m benchmarks.recordings DIR --against CHECKOUT --against build/compiled

Without DIR it reads the recordings beside this checkout (`../shared`, `STREAMLIB_CORPUS`), or else
those of `tests/recordings`. Figures are separate for short, middle and long streams. `--against`
compares this checkout with others, or with a build that `nox -s compiled` made, and nobody else:
each is a process of its own, and all take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from benchmarks import node_readers
from benchmarks.commands import Measured, Options, run
from benchmarks.contestants import Contestant, client, ours
from benchmarks.framings import FRAMINGS
from benchmarks.races import race, versions
from benchmarks.reader_process import checkout_process
from benchmarks.sdks import PEERS
from streamlib.cli.bench import Bar
from streamlib.testing.bench.corpus import CHUNKS, Stream, by_wire, described, files_in, load
from streamlib.testing.bench.records import OURS, Figure
from streamlib_parsers import WIRE_APIS
from tests.support.shared import CORPUS, ROOT, SHARED

HAND_WRITTEN: Final = "derived__"
"""Names of files of `../shared/corpus-2` that no server sent."""

QUICK: Final = 3
"""Streams of each wire that are read in the quick form."""

CLIENT_WIRES: Final = ("messages", "chat", "responses", "gemini")
"""Wires whose SDK is compared with the complete client, too."""


def folders(named: Sequence[str]) -> list[Path]:
    """The folders to read: those that were named, or those that are there."""
    if named:
        return [Path(name) for name in named]
    beside = [folder for folder in (CORPUS, SHARED / "corpus-2") if folder.is_dir()]
    return beside or [ROOT / "tests" / "recordings"]


def streams_in(named: Sequence[str]) -> list[Stream]:
    """The recorded streams, each once."""
    files: list[Path] = []
    for folder in folders(named):
        files += [path for path in files_in(folder) if not path.name.startswith(HAND_WRITTEN)]
    streams, left_out = load(files)
    print(f"{len(streams)} streams; left out: {described(left_out) or 'none'}")
    return streams


def peers(wire: str) -> list[Contestant]:
    """Everybody who reads a wire and is installed; ours first."""
    found = [ours(wire)]
    if wire in CLIENT_WIRES:
        found += [client(wire), client(wire, with_request=True)]
    for peer in (*FRAMINGS, *PEERS):
        if peer.wire == wire and peer.installed:
            found.append(peer)
    if node_readers.absence() is None:
        found += node_readers.contestants(wire)
    return found


def checkouts(folders: Sequence[str]) -> Callable[[str], list[Contestant]]:
    """This checkout, and the others by the names of their folders."""
    processes = {OURS: checkout_process(ROOT)}
    for folder in folders:
        processes[folder] = checkout_process(Path(folder).resolve())

    def of_wire(wire: str) -> list[Contestant]:
        made: list[Contestant] = []
        for name, process in processes.items():
            made.append(process.contestant(name, "parser", wire))
        return made

    return of_wire


def measure(options: Options, bar: Bar) -> Measured:
    """Measures every wire of the streams."""
    contestants = checkouts(options.against) if options.against else peers
    figures: list[Figure] = []
    taking_part: list[Contestant] = []
    absent: list[str] = []
    for wire, own in by_wire(streams_in(options.folders)).items():
        if not options.takes(wire):
            continue
        racers = contestants(wire)
        taking_part += racers
        chosen = own[:QUICK] if options.quick else own
        measured = race(chosen, CHUNKS, racers, options.rounds, bar.advance)
        figures += measured
        able = {entry.contestant for entry in measured}
        absent += [
            f"{racer.name}, {wire} (reads none)" for racer in racers if racer.name not in able
        ]
    found = versions(taking_part)
    if options.against:
        return Measured(figures, found, absent)
    lacking = {peer.distribution for peer in PEERS if not peer.installed}
    absent += [f"{name} (is not installed)" for name in sorted(lacking)]
    if node_readers.absence() is None:
        found |= node_readers.versions()
    return Measured(figures, found, [*absent, *node_readers.missing()])


def main(argv: list[str] | None = None) -> int:
    """Measures every wire."""
    return run(
        "recordings",
        __doc__,
        measure,
        argv,
        rounds=5,
        steps=lambda _: len(WIRE_APIS) * len(CHUNKS),
        reads_recordings=True,
    )


if __name__ == "__main__":
    raise SystemExit(main())
