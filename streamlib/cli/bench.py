"""`streamlib bench [FILE]`: times the parsers, or the stages of pipelines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streamlib import __version__
from streamlib.cli.captures import read_captures
from streamlib.cli.command_error import CommandError
from streamlib.cli.commands import COMMANDS
from streamlib.cli.numbers import integer
from streamlib.display.safe_text import printable
from streamlib_parsers import WIRE_APIS

if TYPE_CHECKING:
    from streamlib.testing.bench.feed import Case
    from streamlib.testing.bench.pipelines import StageCase
    from streamlib.testing.bench.records import BenchRecord
    from streamlib.testing.bench.workloads import Workload

DESCRIPTION: Final = """\
Measures the CPU time of the parsers, without a network, or with --pipeline that of
the stages of pipelines. The cases take turns; a cell has the best round / the median
of the rounds. Without FILE or --corpus the parsers read generated workloads: they
show growth, and only recorded streams show speed. `benchmarks/` in the source
distribution measures other libraries."""

EXAMPLES: Final = """examples:
  # the parsers, on a stream of yours
  streamlib bench capture.sse --wire-api chat
  # each stage of pipelines, on a built-in text
  streamlib bench --pipeline
  # the same, on a recording
  streamlib bench --pipeline response.jsonl"""

BAR_WIDTH: Final = 30


def add(commands: Any) -> None:
    """Adds the command and its options."""
    command: argparse.ArgumentParser = commands.add_parser(
        "bench",
        help=COMMANDS["bench"],
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="a captured stream or a recording to time, instead of the workloads",
    )
    command.add_argument(
        "--corpus",
        action="append",
        metavar="DIR",
        help="recorded streams to time, by wire and by length; may be repeated",
    )
    command.add_argument(
        "--pipeline",
        action="store_true",
        help="time the stages of pipelines, on FILE or a built-in text: µs an event over a bare "
        "loop, and the most characters held",
    )
    command.add_argument(
        "--wire-api",
        "--wire",
        choices=WIRE_APIS,
        metavar="W",
        help="only workloads or recorded streams of this wire; the wire of FILE",
    )
    command.add_argument(
        "--workload", action="append", metavar="NAME", help="only this workload; may be repeated"
    )
    command.add_argument(
        "--chunk",
        type=integer(0, "bytes"),
        metavar="N",
        help="feed N bytes at a time; 0 feeds one frame at a time",
    )
    command.add_argument(
        "--rounds",
        type=integer(1, "rounds"),
        default=7,
        metavar="N",
        help="how often each case is measured (default 7)",
    )
    command.add_argument("--json", metavar="F", help="write the records to this file")
    command.add_argument("--chart", metavar="F.svg", help="draw the speed into this file")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Measures, prints the results, and writes the files that were requested."""
    # Imported here, so that other commands start without these modules.
    from streamlib.testing.bench.records import as_json, table

    try:
        if arguments.pipeline:
            records, doubled = _pipeline_records(arguments)
        elif arguments.corpus:
            records, doubled = _corpus_records(arguments)
        else:
            records, doubled = _case_records(arguments)
    except CommandError as error:
        print(printable(str(error)), file=sys.stderr)
        return error.code
    except (ValueError, OSError) as error:
        print(printable(f"streamlib bench: {error}"), file=sys.stderr)
        return 1
    print(table(records), end="")
    if doubled:
        print(f"\nTwice the input\n{table(doubled)}", end="")
    if arguments.json:
        Path(arguments.json).write_bytes(as_json([*records, *doubled], __version__))
    if arguments.chart:
        _draw_chart(Path(arguments.chart), records)
    return 0


def _case_records(arguments: argparse.Namespace) -> tuple[list[BenchRecord], list[BenchRecord]]:
    """Figures of a capture or of the workloads, and the growth of the workloads."""
    from streamlib.testing.bench import feed, growth
    from streamlib.testing.bench.workloads import WORKLOADS

    workloads: list[Workload] = []
    if arguments.file:
        cases = _captured_cases(arguments)
    else:
        workloads = _selected_workloads(arguments, WORKLOADS)
        cases = feed.cases(workloads, arguments.chunk)
    rounds = arguments.rounds
    bar = Bar(rounds * (len(cases) + len(workloads)))
    records = feed.measure(cases, rounds, bar.advance)
    doubled = growth.measure(workloads, rounds, bar.advance)
    bar.done()
    return records, doubled


def _corpus_records(arguments: argparse.Namespace) -> tuple[list[BenchRecord], list[BenchRecord]]:
    """Figures of the recorded streams of folders; their growth is not known."""
    from streamlib.testing.bench import corpus
    from streamlib.testing.bench.records import machine

    for name in ("file", "chunk", "workload"):
        if getattr(arguments, name) is not None:
            raise ValueError(f"--corpus takes no {'FILE' if name == 'file' else f'--{name}'}")
    files: list[Path] = []
    for folder in arguments.corpus:
        files += corpus.files_in(Path(folder))
    streams, left_out = corpus.load(files, arguments.wire_api)
    if left_out:
        print(f"left out: {corpus.described(left_out)}", file=sys.stderr)
    if not streams:
        raise ValueError(f"no complete recorded stream in {', '.join(arguments.corpus)}")
    bar = Bar(arguments.rounds * len(corpus.CHUNKS))
    records = corpus.measure(streams, arguments.rounds, bar.advance)
    bar.done()
    about = machine(__version__)
    print(f"{about['date']}, Python {about['python']}, {about['cpu']}, load {about['load']}")
    return records, []


def _pipeline_records(
    arguments: argparse.Namespace,
) -> tuple[list[BenchRecord], list[BenchRecord]]:
    """Figures of the stages of pipelines, on the built-in text or on each response of a file."""
    from streamlib.testing.bench import feed, pipelines

    for name in ("corpus", "workload", "chunk"):
        if getattr(arguments, name) is not None:
            raise ValueError(f"--pipeline takes no --{name}")
    sources = {pipelines.BUILT_IN: pipelines.built_in_events()}
    if arguments.file:
        sources = {}
        for capture in read_captures(arguments.file, arguments.wire_api):
            body = capture.recording.body
            sources[capture.name] = feed.complete_events(capture.name, body, capture.wire_api)
    cases: list[StageCase] = []
    absent: list[str] = []
    for source, events in sources.items():
        made, absent = pipelines.cases(source, events)
        cases += made
    if absent:
        print(f"not installed: what {', '.join(absent)} needs", file=sys.stderr)
    bar = Bar(arguments.rounds * len(cases))
    records = pipelines.measure(cases, arguments.rounds, bar.advance)
    bar.done()
    return records, []


def _selected_workloads(
    arguments: argparse.Namespace, workloads: dict[str, Workload]
) -> list[Workload]:
    names = arguments.workload or list(workloads)
    unknown = [name for name in names if name not in workloads]
    if unknown:
        raise ValueError(
            f"there is no workload {', '.join(unknown)}: there are {', '.join(workloads)}"
        )
    selected: list[Workload] = []
    for name in names:
        if arguments.wire_api in (None, workloads[name].wire_api):
            selected.append(workloads[name])
    return selected


def _captured_cases(arguments: argparse.Namespace) -> list[Case]:
    from streamlib.testing.bench import feed

    if arguments.chunk == 0:
        raise ValueError(
            "--chunk 0 needs the workloads, whose frames are known: give a number of bytes for FILE"
        )
    cases: list[Case] = []
    for capture in read_captures(arguments.file, arguments.wire_api):
        body = capture.recording.body
        if arguments.chunk is None:
            cases += feed.capture(capture.name, body, capture.wire_api)
        else:
            cases += feed.capture(capture.name, body, capture.wire_api, (arguments.chunk,))
    return cases


def _draw_chart(path: Path, records: list[BenchRecord]) -> None:
    from streamlib.testing.bench import chart

    rates = [record for record in records if record.unit == "MB/s"]
    title = "streamlib: MB/s by workload and chunks"
    if not rates:  # of recorded streams
        rates = [record for record in records if record.measure == "an event"]
        title = "streamlib: µs an event by wire, length and chunks"
    if not rates:
        rates = [record for record in records if record.unit == "µs/event"]
        title = "streamlib: µs an event by stage"
    svg = chart.bars(title, rates)
    path.write_text(svg, encoding="utf-8")


class Bar:
    """A progress bar on standard error, drawn only where that is a terminal.

    Args:
        steps: the number of calls of `advance` that fill the bar.
        write: called with the text to draw.
    """

    def __init__(self, steps: int, write: Callable[[str], object] = sys.stderr.write) -> None:
        self._steps = max(1, steps)
        self._started = 0
        """Number of steps that were started."""
        self._write = write
        self._is_drawn = sys.stderr.isatty()

    def advance(self, label: str) -> None:
        """Shows that the next step starts."""
        if self._is_drawn:
            filled = BAR_WIDTH * self._started // self._steps
            bar = "#" * filled + "." * (BAR_WIDTH - filled)
            self._write(f"\r\x1b[K[{bar}] {label}")
            sys.stderr.flush()
        self._started += 1

    def done(self) -> None:
        """Erases the bar."""
        if self._is_drawn:
            self._write("\r\x1b[K")
