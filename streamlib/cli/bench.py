"""`streamlib bench`: times parsers, ours and yours, or stages of pipelines; compares two runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from streamlib.cli.arguments import CommandError
from streamlib.cli.captures import read_bytes, read_captures
from streamlib.cli.numbers import integer
from streamlib.display.safe_text import printable
from streamlib.inspection.capture import Capture
from streamlib.inspection.wire_markers import likely_wire
from streamlib_parsers import WIRE_APIS, WireApi

if TYPE_CHECKING:
    from streamlib.recording.files import Recording
    from streamlib.testing.bench.corpus import Stream
    from streamlib.testing.bench.feed import Body, Case
    from streamlib.testing.bench.pipelines import StageCase
    from streamlib.testing.bench.records import Figure
    from streamlib.testing.bench.workloads import Workload
    from streamlib.testing.own_parsers import Read

DESCRIPTION: Final = """\
Measures the CPU time of parsers, without a network, or with --pipeline that of
the stages of pipelines. The cases take turns; a cell has the best round / the
median of the rounds. Without FILE or --corpus the parsers read generated
workloads: they show growth, and only recorded streams show speed. `benchmarks/`
in the source distribution measures other libraries."""

EXAMPLES: Final = """examples:
  # the parsers, on a stream of yours
  streamlib bench capture.sse --wire-api chat
  # a parser of yours beside streamlib's: a class with feed and close
  streamlib bench capture.sse --parser my_module:Parser
  # throughput against the size of the chunks, as a page to send
  streamlib bench capture.sse --parser my_module:Parser --curve --chart f.html
  # before and after a change: is it faster?
  streamlib bench capture.sse --wire-api chat --json before.json
  streamlib bench --compare before.json after.json
  # each stage of pipelines, on a built-in text or on a recording
  streamlib bench --pipeline
  streamlib bench --pipeline response.jsonl

exit code: 0 success, with --compare: nothing is slower,
           1 a file cannot be used, or holds no complete response; with
           --compare: something is slower, 2 usage error
"""

BAR_WIDTH: Final = 30

CURVE_WORKLOADS: Final = ("messages", "responses", "chat", "gemini")
"""Workloads that a curve has where none is named."""


PROCESSES: Final = 7
"""The most processes of a run."""

ROUNDS: Final = 42
"""Six in each process: with three, processes of the same code are further apart."""

ROUNDS_OF_MANY: Final = 21
"""Where all workloads, a folder or all stages are measured: more would take minutes."""


def add(command: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    command.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="captured streams or recordings to time, instead of the workloads",
    )
    command.add_argument(
        "--corpus",
        action="append",
        metavar="DIR",
        help="recorded streams to time, by wire and by length; may be repeated",
    )
    command.add_argument(
        "--parser",
        metavar="MODULE:NAME",
        help="a parser of your own, beside streamlib's: a class with feed(bytes) and close(), or "
        "a function of chunks",
    )
    command.add_argument(
        "--curve",
        action="store_true",
        help="MB/s in chunks of 1 byte to 64 KiB; with --corpus of the longest stream of each wire",
    )
    command.add_argument(
        "--pipeline",
        action="store_true",
        help="time the stages of pipelines, on FILE or a built-in text: µs an event over a bare "
        "loop, and the most characters held",
    )
    command.add_argument(
        "--compare",
        nargs=2,
        metavar=("A", "B"),
        help="say whether B is faster than A, two files of --json; measures nothing",
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
        metavar="N",
        help=f"how often each case is measured, in up to {PROCESSES} processes (default {ROUNDS} "
        f"for FILE or --workload, else {ROUNDS_OF_MANY})",
    )
    command.add_argument("--json", metavar="F", help="write all rounds to this file")
    command.add_argument(
        "--chart", metavar="F.svg", help="draw the speed into this file: F.svg, or a page F.html"
    )


def run(arguments: argparse.Namespace) -> int:
    """Measures, prints the results, and writes the files that were requested."""
    try:
        if arguments.compare:
            return _compare(arguments)
        return _measure(arguments)
    except ValueError as error:
        raise CommandError(f"streamlib bench: {error}") from None


def _refuse(arguments: argparse.Namespace, option: str, *others: str) -> None:
    """Raises CommandError where an option is given together with one of others."""
    for name in others:
        value = getattr(arguments, name)
        if value not in (None, []) and value is not False:  # 0 bytes are a chunk of an event
            shown = "FILE" if name == "files" else f"--{name}"
            raise CommandError(f"streamlib bench: {option} takes no {shown}", 2)


# --- comparing ---


def _compare(arguments: argparse.Namespace) -> int:
    """Prints the ratios of two files; 1 if something is slower."""
    from streamlib.testing.bench import comparison
    from streamlib.testing.bench.records import read

    _refuse(arguments, "--compare", "files", "corpus", "parser", "curve", "pipeline", "workload")
    a, b = (read(Path(name)) for name in arguments.compare)
    for side, name, result in zip("AB", arguments.compare, (a, b), strict=True):
        print(printable(f"{side}: {name}, {', '.join(result.origin())}"))
    for line in comparison.differences(a, b):
        print(printable(f"!! not the code alone is compared: {line}"))
    both, alone = comparison.compare(a, b)
    if not both:
        raise ValueError("the two files have no row in common")
    print("\nB / A: times as long, each compared with the fixed work of its process")
    print(printable(comparison.table(both)), end="")
    for line in [*alone, *comparison.notes(both)]:
        print(printable(line))
    return int(any(each.verdict == comparison.SLOWER for each in both))


# --- measuring ---


def _measure(arguments: argparse.Namespace) -> int:
    # Imported here, so that other commands start without these modules.
    from streamlib.cli.bench_processes import spread
    from streamlib.testing.bench import curve
    from streamlib.testing.bench.records import as_json, load_of_machine, make_result, table

    load = load_of_machine()
    if arguments.rounds is None:
        is_single = (arguments.files or arguments.workload) and not arguments.pipeline
        arguments.rounds = ROUNDS if is_single else ROUNDS_OF_MANY
    if arguments.rounds == 1:
        figures, doubled = tables_of(arguments)
    else:
        count = min(PROCESSES, arguments.rounds)
        bar = Bar(count)
        try:
            figures, doubled = spread(arguments, count, bar.advance)
        finally:
            bar.done()
    result = make_result("streamlib bench", [*figures, *doubled], load)
    if arguments.curve:
        print(printable(curve.drawn(figures)))
    else:
        print(printable(table(figures)), end="")
    if doubled:
        print(f"\nTwice the input\n{table(doubled)}", end="")
    print(f"\nbest round / median; {', '.join(result.origin())}")
    if arguments.json:
        Path(arguments.json).write_text(as_json(result), encoding="utf-8")
    if arguments.chart:
        from streamlib.testing.bench import chart

        title, drawn = _drawn(figures)
        chart.draw(Path(arguments.chart), title, drawn, result)
    return 0


def tables_of(arguments: argparse.Namespace) -> list[list[Figure]]:
    """The figures that are asked for, measured in this process, and the growth of the workloads."""
    if arguments.pipeline:
        return [_of_stages(arguments), []]
    if arguments.curve:
        return [_of_curve(arguments), []]
    if arguments.corpus:
        return [_of_corpus(arguments), []]
    return [*_of_bodies(arguments)]


def _of_bodies(arguments: argparse.Namespace) -> tuple[list[Figure], list[Figure]]:
    """Figures of files or of the workloads, and the growth of the workloads."""
    from streamlib.testing.bench import feed, growth
    from streamlib.testing.bench.workloads import EVENT, FAST, KIB

    own = _own_parser(arguments)
    workloads: list[Workload] = []
    cases: list[Case] = []
    if arguments.files:
        for body in _bodies_of_files(arguments, own):
            sizes = [EVENT, FAST] if body.wire_api else [KIB, FAST]
            if arguments.chunk is not None:
                sizes = [arguments.chunk]
            for size in sizes:
                cases += body.cases(size)
    else:
        workloads = _selected_workloads(arguments)
        for workload in workloads:
            body = _with_own(feed.of_workload(workload), own)
            for size in workload.chunks if arguments.chunk is None else (arguments.chunk,):
                cases += body.cases(size)
    feed.check_readers(cases, _warn)
    if own:
        workloads = []  # their growth is that of streamlib's parsers
    rounds = arguments.rounds
    bar = Bar(rounds * (len(cases) + len(workloads)))
    figures = feed.measure(cases, rounds, bar.advance)
    doubled = growth.measure(workloads, rounds, bar.advance)
    bar.done()
    return figures, doubled


def _of_curve(arguments: argparse.Namespace) -> list[Figure]:
    """Throughput of files, of the longest streams of folders, or of workloads."""
    from streamlib.testing.bench import corpus, curve, feed

    _refuse(arguments, "--curve", "chunk")
    own = _own_parser(arguments)
    bodies: list[Body] = []
    if arguments.files:
        bodies = _bodies_of_files(arguments, own)
    elif arguments.corpus:
        for streams in corpus.by_wire(_corpus(arguments)).values():
            longest = max(streams, key=lambda stream: sum(map(len, stream.events)))
            bodies.append(corpus.body_of(longest, own))
    else:
        for workload in _selected_workloads(arguments, CURVE_WORKLOADS):
            bodies.append(_with_own(feed.of_workload(workload), own))
    cases = curve.cases(bodies)
    feed.check_readers(cases, _warn)
    bar = Bar(arguments.rounds * len(cases))
    figures = curve.measure(cases, arguments.rounds, bar.advance)
    bar.done()
    return figures


def _of_corpus(arguments: argparse.Namespace) -> list[Figure]:
    """Figures of the recorded streams of folders; their growth is not known."""
    from streamlib.testing.bench import corpus

    _refuse(arguments, "--corpus", "files", "chunk", "workload")
    own = _own_parser(arguments)
    streams = _corpus(arguments)
    bar = Bar(arguments.rounds * len(corpus.CHUNKS))
    figures = corpus.measure(streams, arguments.rounds, bar.advance, own)
    bar.done()
    return figures


def _corpus(arguments: argparse.Namespace) -> list[Stream]:
    from streamlib.testing.bench import corpus

    files: list[Path] = []
    for folder in arguments.corpus:
        files += corpus.files_in(Path(folder))
    streams, left_out = corpus.load(files, arguments.wire_api)
    if left_out:
        _warn(f"left out: {corpus.described(left_out)}")
    if not streams:
        raise ValueError(f"no complete recorded stream in {', '.join(arguments.corpus)}")
    return streams


def _of_stages(arguments: argparse.Namespace) -> list[Figure]:
    """Figures of the stages of pipelines, on the built-in text or on each response of files."""
    from streamlib.testing.bench import feed, pipelines

    _refuse(arguments, "--pipeline", "corpus", "workload", "chunk", "parser", "curve")
    sources = {pipelines.BUILT_IN: pipelines.built_in_events()}
    if arguments.files:
        sources = {}
        for capture in _captures(arguments):
            body = capture.recording.body
            sources[capture.name] = feed.complete_events(capture.name, body, capture.wire_api)
    cases: list[StageCase] = []
    absent: list[str] = []
    for source, events in sources.items():
        made, absent = pipelines.cases(source, events)
        cases += made
    if absent:
        _warn(f"not installed: what {', '.join(absent)} needs")
    bar = Bar(arguments.rounds * len(cases))
    figures = pipelines.measure(cases, arguments.rounds, bar.advance)
    bar.done()
    return figures


# --- bodies and readers ---


def _own_parser(arguments: argparse.Namespace) -> dict[str, Read]:
    """The reader that `--parser` names, if it is given."""
    from streamlib.testing import own_parsers

    name = arguments.parser
    if name is None:
        return {}
    if not (arguments.files or arguments.corpus or arguments.workload or arguments.wire_api):
        raise CommandError(
            "streamlib bench: --parser needs a body: FILE, --corpus, --workload or --wire-api", 2
        )
    # Makes a module in the current folder importable, as `python -m` does.
    sys.path.insert(0, str(Path.cwd()))
    try:
        return {name: own_parsers.reader_of(own_parsers.load(name), name)}
    except (ImportError, AttributeError, ValueError) as error:
        raise CommandError(f"streamlib bench: {error}", 2) from None


def _with_own(body: Body, own: Mapping[str, Read]) -> Body:
    return body._replace(readers={**body.readers, **own})


def _captures(arguments: argparse.Namespace) -> Iterator[Capture]:
    for name in arguments.files:
        yield from read_captures(name, arguments.wire_api)


def _bodies_of_files(arguments: argparse.Namespace, own: Mapping[str, Read]) -> list[Body]:
    """The responses of files. With a parser of one's own they may be of no wire that is known."""
    from streamlib.testing.bench import corpus

    _refuse(arguments, "FILE", "corpus", "workload")
    if not own:
        return [corpus.of_capture(capture) for capture in _captures(arguments)]
    bodies: list[Body] = []
    for name in arguments.files:
        recordings, problem = corpus.recordings_in(read_bytes(name))
        if problem is not None:
            raise CommandError(f"{name}: {problem}")
        for recording in recordings:
            wire = arguments.wire_api or recording.wire_api or likely_wire(recording.body)
            bodies.append(_body_for_own(name, wire, recording, own))
    return bodies


def _body_for_own(
    name: str, wire: WireApi | None, recording: Recording, own: Mapping[str, Read]
) -> Body:
    """A body for a parser of one's own, and for streamlib if it reads it."""
    from streamlib.testing.bench import corpus
    from streamlib.testing.bench.feed import Body

    alone = Body(name, [recording.body], {**own})
    if wire is None:
        return alone
    try:
        body = corpus.of_capture(Capture(name, wire, recording, is_recorded=False))
    except ValueError as error:
        _warn(f"streamlib is left out: {error}")
        return alone
    return _with_own(body, own)


def _selected_workloads(
    arguments: argparse.Namespace, usual: Sequence[str] | None = None
) -> list[Workload]:
    """The workloads that are named, or those of a wire.

    Args:
        arguments: the command line.
        usual: names where neither is given; None: all.
    """
    from streamlib.testing.bench.workloads import WORKLOADS

    names = arguments.workload
    if names is None:
        names = usual if usual and arguments.wire_api is None else [*WORKLOADS]
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        raise ValueError(
            f"there is no workload {', '.join(unknown)}: there are {', '.join(WORKLOADS)}"
        )
    selected: list[Workload] = []
    for name in names:
        if arguments.wire_api in (None, WORKLOADS[name].wire_api):
            selected.append(WORKLOADS[name])
    return selected


# --- what is shown ---


def _warn(text: str) -> None:
    print(printable(text), file=sys.stderr)


def _drawn(figures: Sequence[Figure]) -> tuple[str, list[Figure]]:
    """What a chart shows of the figures, with its title: one quantity."""
    if figures and figures[0].bench == "curve":
        return "streamlib bench: MB/s by size of the chunks", [*figures]
    for title, measure, units in (
        ("µs an event by wire, length and chunks", "an event", ("µs",)),
        ("MB/s by body and chunks", "bytes", ("MB/s",)),
        ("µs an event by stage", "time", ("µs/event",)),
    ):
        chosen = [entry for entry in figures if entry.measure == measure and entry.unit in units]
        if chosen:
            return f"streamlib bench: {title}", chosen
    return "streamlib bench", []


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


# --- one of the processes ---


def main(argv: Sequence[str]) -> int:
    """Measures what `bench_processes.spread` asks for, and writes the figures into a file."""
    from streamlib.cli import run_command

    def measure(arguments: argparse.Namespace) -> int:
        try:
            tables = tables_of(arguments)
        except ValueError as error:
            raise CommandError(f"streamlib bench: {error}") from None
        Path(argv[1]).write_bytes(msgspec.json.encode(tables))
        return 0

    arguments = argparse.Namespace(**msgspec.json.decode(sys.stdin.read()))
    arguments.run = measure
    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
