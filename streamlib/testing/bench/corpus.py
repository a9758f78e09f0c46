"""Recorded streams of a folder, and what reading them costs: for an event and for a response.

The workloads are generated, of nearly equal deltas: they show growth. Only recorded streams show
speed, and most are short, so that the start and the end of a response weigh much. So the figures
are separate for short, middle and long streams.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from streamlib.inspection.capture import Capture
from streamlib.inspection.frames import END_OF_INPUT, steps
from streamlib.inspection.wire_markers import likely_wire
from streamlib.recording.files import Recording, from_body, is_recording, read
from streamlib.testing.bench.feed import (
    Body,
    Case,
    Progress,
    Yardstick,
    complete_events,
    frozen_heap,
    seconds,
)
from streamlib.testing.bench.records import OURS, Figure, figure, ratio
from streamlib.testing.bench.workloads import EVENT, FAST, chunking
from streamlib.testing.own_parsers import Read, fed
from streamlib_parsers.events import Completed
from streamlib_parsers.items import WireApi
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.protocol import WIRE_APIS, parser
from streamlib_parsers.protocol import wire as module_of

SUFFIXES: Final = (".sse", ".eventstream", ".ndjson", ".jsonl")
"""Names of files that hold bytes as received; `.jsonl` are recordings of streamlib."""

CHUNKS: Final = (EVENT, FAST)
"""Chunk sizes: as a model writes, and as a fast network delivers."""


class Stream(NamedTuple):
    """One recorded stream.

    Attributes:
        name: name of its file.
        wire_api: wire that it is read as.
        events: the body, one chunk for each event of the wire.
    """

    name: str
    wire_api: WireApi
    events: list[bytes]


class Stratum(NamedTuple):
    """Streams of similar length.

    Attributes:
        name: name in tables.
        least: fewest events.
        most: most events.
    """

    name: str
    least: int
    most: float

    def of(self, streams: Iterable[Stream]) -> list[Stream]:
        """Those of the streams that are in it."""
        return [stream for stream in streams if self.least <= len(stream.events) <= self.most]


STRATA: Final = (
    Stratum("1-12 events", 1, 12),
    Stratum("13-50 events", 13, 50),
    Stratum("over 50 events", 51, float("inf")),
)


def files_in(folder: Path) -> list[Path]:
    """The files below a folder that may hold streams.

    Raises:
        ValueError: It is not a folder.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder")
    return [path for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES]


def load(files: Iterable[Path], wire_api: str | None = None) -> tuple[list[Stream], Counter[str]]:
    """The complete streams of files, each once, and how many others there are by reason.

    A stream that fails is left out: what is measured is the reading of complete responses.

    Args:
        files: files to read.
        wire_api: only streams of this wire.
    """
    streams: list[Stream] = []
    bodies: set[bytes] = set()
    left_out: Counter[str] = Counter()
    for path in files:
        for recording in _recordings(path):
            # A guess is enough: a stream that was read as another wire would not be complete.
            wire = recording.wire_api or likely_wire(recording.body)
            if wire is None:
                left_out["of no known wire API"] += 1
                continue
            if wire_api not in (None, wire):
                continue
            if recording.body in bodies:
                left_out["equal to another"] += 1
                continue
            bodies.add(recording.body)
            events = _events(Capture(path.name, wire, recording, is_recorded=False))
            if events is None:
                left_out["without a complete response"] += 1
            else:
                streams.append(Stream(path.name, wire, events))
    return streams, left_out


def _recordings(path: Path) -> Iterator[Recording]:
    data = path.read_bytes()
    if path.suffix != ".jsonl" or is_recording(data):
        yield from recordings_in(data)[0]


def recordings_in(data: bytes) -> tuple[list[Recording], str | None]:
    """The complete recordings of a file, or the body that it is; what is wrong with its rest."""
    if is_recording(data):
        return read(data)
    return [from_body(data)], None


def _events(capture: Capture) -> list[bytes] | None:
    """The body, one chunk for each event of the wire; None unless the response is complete."""
    if capture.is_complete_body:
        return None
    body = capture.recording.body
    chunks: list[bytes] = []
    is_complete = False
    end = 0
    for step in steps(capture):
        end = step.end
        if step.kind != END_OF_INPUT:
            chunks.append(body[step.start : step.end])
        for event in step.events:
            is_complete = is_complete or isinstance(event, Completed)
    if end < len(body):
        chunks.append(body[end:])
    return chunks if is_complete else None


def by_wire(streams: Iterable[Stream]) -> dict[WireApi, list[Stream]]:
    """The streams of each wire."""
    divided: dict[WireApi, list[Stream]] = {wire: [] for wire in WIRE_APIS}
    for stream in streams:
        divided[stream.wire_api].append(stream)
    return {wire: own for wire, own in divided.items() if own}


def groups(streams: Iterable[Stream]) -> dict[str, list[Stream]]:
    """Name of a wire with a stratum, or with `all` -> its streams."""
    made: dict[str, list[Stream]] = {}
    for wire, own in by_wire(streams).items():
        made[f"{wire}, all"] = own
        for stratum in STRATA:
            members = stratum.of(own)
            if members:
                made[f"{wire}, {stratum.name}"] = members
    return made


def of_capture(capture: Capture) -> Body:
    """A captured response, read by streamlib.

    Raises:
        ValueError: it does not parse: failures must not be timed.
    """
    complete_events(capture.name, capture.recording.body, capture.wire_api)
    events = _events(capture) or [capture.recording.body]
    return body_of(Stream(capture.name, capture.wire_api, events))


def body_of(stream: Stream, own: Mapping[str, Read] | None = None) -> Body:
    """A stream, read by streamlib and by others."""
    readers = {OURS: fed(lambda: parser(stream.wire_api)), **(own or {})}
    return Body(stream.name, stream.events, readers, stream.wire_api)


def measure(
    streams: Sequence[Stream],
    rounds: int,
    report: Progress = lambda _: None,
    own: Mapping[str, Read] | None = None,
) -> list[Figure]:
    """CPU time for an event and for a response, of each wire and stratum, in both chunkings.

    Args:
        streams: streams to measure.
        rounds: number of rounds; in each, every stream is read in turn.
        report: called before each measurement.
        own: name -> reader of parsers that are compared with streamlib.
    """
    cases: dict[int, list[list[Case]]] = {}
    for size in CHUNKS:
        cases[size] = [body_of(stream, own).cases(size) for stream in streams]
    taken: dict[int, list[_Round]] = {size: [] for size in CHUNKS}
    with frozen_heap():
        for _ in range(rounds):
            for size in CHUNKS:
                report(chunking(size))
                taken[size].append(_one_round(cases[size]))
    figures: list[Figure] = []
    contestants = [OURS]
    contestants += own or {}
    number_of = {id(stream): number for number, stream in enumerate(streams)}
    for name, members in groups(streams).items():
        numbers = [number_of[id(stream)] for stream in members]
        for size in CHUNKS:
            key = ("corpus", name, chunking(size))
            figures += _of_streams(key, members)
            fixed = [
                statistics.mean(each.yardstick[number] for number in numbers)
                for each in taken[size]
            ]
            first: Figure | None = None
            for position, contestant in enumerate(contestants):
                totals = [
                    sum(each.spent[number][position] for number in numbers) for each in taken[size]
                ]
                made = _of_reader((*key, contestant), members, totals, fixed)
                figures += made
                if first is None:
                    first = made[0]
                else:
                    figures.append(ratio(made[0], first, f"times as long as {OURS}"))
    return figures


class _Round(NamedTuple):
    """One round of all streams in one chunking.

    Attributes:
        spent: seconds for each stream, by each reader.
        yardstick: seconds of the fixed work beside each stream.
    """

    spent: list[list[float]]
    yardstick: list[float]


def _one_round(cases: Sequence[Sequence[Case]]) -> _Round:
    taken = _Round([], [])
    yardstick = Yardstick()
    for of_stream in cases:
        taken.spent.append([seconds(case) for case in of_stream])
        taken.yardstick.append(yardstick.beside())
    return taken


def _of_streams(key: tuple[str, str, str], members: Sequence[Stream]) -> list[Figure]:
    return [
        figure(*key, OURS, "streams", "count", [len(members)]),
        figure(*key, OURS, "read at once", "%", [100 * read_at_once(members)]),
    ]


def _of_reader(
    key: tuple[str, str, str, str],
    members: Sequence[Stream],
    totals: Sequence[float],
    fixed: Sequence[float],
) -> list[Figure]:
    events = sum(len(stream.events) for stream in members)
    responses = [total / len(members) * 1e6 for total in totals]
    return [
        figure(*key, "an event", "µs", [total / events * 1e6 for total in totals], fixed),
        figure(*key, "a response", "µs", responses, fixed),
    ]


def read_at_once(streams: Iterable[Stream]) -> float:
    """The share of the events that a framing reads without looking for their lines.

    That is the one fast path of the framings: below a half it would not be worth its code.
    """
    events = hits = 0
    for stream in streams:
        framing = module_of(stream.wire_api).framing(LIMITS)
        for event in stream.events:
            events += 1
            if framing.single(event) is not None:
                hits += 1
            else:
                framing.feed(event)
    return hits / max(1, events)


def described(left_out: Mapping[str, int]) -> str:
    """How many files were left out, by reason; empty if none was."""
    return ", ".join(f"{count} {reason}" for reason, count in sorted(left_out.items()))
