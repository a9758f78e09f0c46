"""The command line that all benchmarks share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.results import report, save
from streamlib.cli.bench import Bar
from streamlib.testing.bench.chart import draw
from streamlib.testing.bench.records import Figure, load_of_machine, make_result


class Options(NamedTuple):
    """Options of a benchmark.

    Attributes:
        rounds: number of rounds.
        quick: whether a short form is run, which only shows that the benchmark works.
        only: wires or names to measure; empty: all.
        folders: folders of recorded streams.
        against: other checkouts to compare with.
    """

    rounds: int = 7
    quick: bool = False
    only: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    against: tuple[str, ...] = ()

    def takes(self, name: str) -> bool:
        """Whether a wire or a name is measured."""
        return not self.only or name in self.only


class Measured(NamedTuple):
    """The results of a benchmark.

    Attributes:
        figures: all figures.
        versions: versions of the participants.
        absent: reasons why others could not take part.
    """

    figures: list[Figure]
    versions: Mapping[str, str]
    absent: Iterable[str] = ()


def run(
    name: str,
    about: str | None,
    measure: Callable[[Options, Bar], Measured],
    argv: list[str] | None,
    *,
    rounds: int = 7,
    steps: Callable[[Options], int] = lambda _: 1,
    reads_recordings: bool = False,
) -> int:
    """Runs a benchmark from the command line.

    Args:
        name: name of its file in `benchmarks/measured`.
        about: docstring of its module, for the help.
        measure: runs the benchmark.
        argv: arguments; None: those of the process.
        rounds: default number of rounds.
        steps: number of measurements, for the progress bar.
        reads_recordings: whether it takes folders of recorded streams and other checkouts.
    """
    command = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--rounds", type=int, default=rounds)
    command.add_argument("--quick", action="store_true", help="one round, less of everything")
    command.add_argument("--only", action="append", default=[], metavar="NAME")
    command.add_argument("--save", action="store_true", help="keep it for the tables of the pages")
    command.add_argument("--chart", metavar="F.svg", help="draw the figures")
    if reads_recordings:
        command.add_argument("folders", nargs="*", metavar="DIR", help="recorded streams")
        command.add_argument("--against", action="append", default=[], metavar="CHECKOUT")
    arguments = command.parse_args(argv)
    chosen = Options(arguments.rounds, arguments.quick, tuple(arguments.only))
    if reads_recordings:
        compared = tuple(arguments.against)
        if compared and arguments.save:
            command.error("--save keeps the comparison with other libraries, not --against")
        for folder in compared:
            # Without them, the installed parsers would be measured against themselves.
            places = Path(folder, "streamlib_parsers"), Path(folder, "parsers/streamlib_parsers")
            if not any(place.is_dir() for place in places):
                command.error(f"--against {folder}: no streamlib_parsers there")
        chosen = chosen._replace(folders=tuple(arguments.folders), against=compared)
    if chosen.quick:
        chosen = chosen._replace(rounds=1)
    load = load_of_machine()
    bar = Bar(steps(chosen))
    measured = measure(chosen, bar)
    bar.done()
    asked = [f"--rounds {chosen.rounds}", *(f'--only "{name}"' for name in chosen.only)]
    result = make_result(
        f"python -m benchmarks.{name} {' '.join(asked)}",
        measured.figures,
        load,
        measured.versions,
        measured.absent,
    )
    report(result)
    if arguments.save:
        print(f"kept in {save(name, result)}")
    if arguments.chart:
        figures = [entry for entry in measured.figures if entry.unit != "x"]
        draw(Path(arguments.chart), f"python -m benchmarks.{name}", figures, result)
    return 0
