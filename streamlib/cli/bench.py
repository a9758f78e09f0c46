"""`streamlib bench [FILE]`: how fast the parsers read, on named workloads or on a capture of one's own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamlib.cli.captures import Unreadable, opened
from streamlib.cli.numbers import whole
from streamlib.cli.terminal import printable
from streamlib_parsers import WIRE_APIS


def add(commands: Any) -> None:
    """The command's words."""
    command: argparse.ArgumentParser = commands.add_parser(
        "bench",
        help="time the parsers, on named workloads or on a capture",
        description="Times the parsers without a network: CPU time by turns, the best of the rounds. What others take for the same bytes "
        "is measured by `benchmarks/` in the source distribution.",
    )
    command.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="a captured stream or a recording of ours to time, instead of the workloads",
    )
    command.add_argument(
        "--wire-api",
        "--wire",
        choices=WIRE_APIS,
        metavar="W",
        help="only workloads of this wire; the wire of FILE",
    )
    command.add_argument(
        "--workload", action="append", metavar="NAME", help="only this workload; may be repeated"
    )
    command.add_argument(
        "--chunk",
        type=whole(0, "bytes"),
        metavar="N",
        help="feed N bytes at a time; 0: an event of the wire at a time",
    )
    command.add_argument(
        "--rounds",
        type=whole(1, "rounds"),
        default=7,
        metavar="N",
        help="how often each is measured (7)",
    )
    command.add_argument("--json", metavar="F", help="write the records to this file")
    command.add_argument(
        "--chart", metavar="F.svg", help="draw the bytes per second into this file"
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Measures, shows, writes."""
    from streamlib.bench import chart, feed, growth  # the other commands start without them
    from streamlib.bench.records import as_json, table
    from streamlib.bench.workloads import WORKLOADS

    try:
        chosen = [] if arguments.file else _chosen(arguments, WORKLOADS)
        found = (
            _captured(arguments, feed) if arguments.file else feed.cases(chosen, arguments.chunk)
        )
    except (Unreadable, ValueError) as error:
        print(
            printable(f"streamlib bench: {error}" if isinstance(error, ValueError) else str(error)),
            file=sys.stderr,
        )
        return error.code if isinstance(error, Unreadable) else 1
    rounds = arguments.rounds
    bar = Bar(rounds * (len(found) + len(chosen)))
    records = feed.measure(found, rounds, bar.tell)
    grown = growth.measure(chosen, rounds, bar.tell)
    bar.done()
    print(table(records), end="")
    print(f"\nTwice the input\n{table(grown)}" if grown else "", end="")
    if arguments.json:
        Path(arguments.json).write_bytes(as_json([*records, *grown]))
    if arguments.chart:
        rates = [one for one in records if one.unit == "MB/s"]
        Path(arguments.chart).write_text(
            chart.bars("streamlib: MB/s by workload and chunks", rates), encoding="utf-8"
        )
    return 0


def _chosen(arguments: argparse.Namespace, workloads: dict[str, Any]) -> list[Any]:
    unknown = [name for name in arguments.workload or () if name not in workloads]
    if unknown:
        raise ValueError(
            f"no workload is called {', '.join(unknown)}: there are {', '.join(workloads)}"
        )
    named = [workloads[name] for name in arguments.workload or workloads]
    return [one for one in named if arguments.wire_api in (None, one.wire_api)]


def _captured(arguments: argparse.Namespace, feed: Any) -> list[Any]:
    if arguments.chunk == 0:
        raise ValueError(
            "--chunk 0 is for the workloads, whose events are known one by one: give bytes for a FILE"
        )
    sizes = () if arguments.chunk is None else ((arguments.chunk,),)
    captures = opened(arguments.file, arguments.wire_api)
    return [
        case
        for one in captures
        for case in feed.capture(one.name, one.recording.body, one.wire_api, *sizes)
    ]


class Bar:
    """A bar on standard error, if that is a terminal."""

    def __init__(self, steps: int, write: Callable[[str], object] = sys.stderr.write) -> None:
        self._steps = max(1, steps)
        self._taken = 0
        self._write = write if sys.stderr.isatty() else None

    def tell(self, what: str) -> None:
        """The next step begins."""
        if self._write is not None:
            full = 30 * self._taken // self._steps
            self._write(f"\r\x1b[K[{'#' * full}{'.' * (30 - full)}] {what}")
            sys.stderr.flush()
        self._taken += 1

    def done(self) -> None:
        """Nothing of it stays on the screen."""
        if self._write is not None:
            self._write("\r\x1b[K")
