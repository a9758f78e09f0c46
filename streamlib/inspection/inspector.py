"""Makes an inspection of a captured response."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from streamlib.inspection.capture import Capture, Report, no_report
from streamlib.inspection.clock import Clock, Waits, silences_of
from streamlib.inspection.document import (
    ChunkColumns,
    Finding,
    FrameColumns,
    Inspection,
    Level,
    Outcome,
    Source,
    SourceKind,
    Splits,
)
from streamlib.inspection.facts import facts_of
from streamlib.inspection.findings import findings
from streamlib.inspection.frames import Step, steps
from streamlib.inspection.positions import Positions
from streamlib.inspection.split_characters import split_characters
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.items import JsonObject
from streamlib_parsers.response import Response


class CaptureReading(Struct, frozen=True, kw_only=True):
    """The parsed capture: a terminal shows it, and an inspection is made from it.

    Attributes:
        capture: the captured response.
        steps: its frames.
        positions: positions of its items and events.
        clock: knows when its bytes were received.
        waits: its silences.
        response: the accumulated response.
        findings: noteworthy facts about it.
    """

    capture: Capture
    steps: list[Step]
    positions: Positions
    clock: Clock
    waits: Waits
    response: Response
    findings: list[Finding]


def read_capture(capture: Capture, report: Report = no_report) -> CaptureReading:
    """Reads a capture frame by frame.

    Args:
        capture: the captured response.
        report: called with the number of bytes read so far.
    """
    walked = list(steps(capture, report))
    positions = Positions(walked)
    clock = Clock(capture)
    waits = Waits(clock, walked)
    return CaptureReading(
        capture=capture,
        steps=walked,
        positions=positions,
        clock=clock,
        waits=waits,
        response=accumulate(positions.events),
        findings=findings(capture, walked, waits),
    )


def inspected(reading: CaptureReading, splits: Iterable[int] | None = ()) -> Inspection:
    """The inspection of a capture.

    Args:
        reading: the parsed capture.
        splits: sizes of chunks, in bytes, in which the body is always parsed again, beside the
            usual sizes, which are tried while that is quick. None: no splits are tried.
    """
    # Imported here, because output on a terminal needs neither.
    from streamlib.inspection.request import inspected_request
    from streamlib.inspection.splits import tried

    # Imported by name, because the package's own module lists every room.
    version: str = importlib.import_module("streamlib").__version__
    capture, walked, positions = reading.capture, reading.steps, reading.positions
    facts = facts_of(reading.clock, walked, positions, reading.waits, reading.response)
    return Inspection(
        made_by=f"streamlib {version}",
        source=_source(capture),
        outcome=_outcome(reading.response, positions, reading.findings),
        findings=tuple(reading.findings),
        facts=facts,
        silences=silences_of(reading.waits),
        chunks=_chunk_columns(capture, reading.clock),
        frames=_frame_columns(walked),
        events=event_objects(positions.events),
        items=tuple(positions.items),
        split_characters=split_characters(capture, walked),
        unknown_events=tuple(positions.unknown_events),
        notices=tuple(positions.notices),
        request=inspected_request(capture.recording, capture.wire_api),
        splits=Splits() if splits is None else tried(capture, positions.events, splits),
        body=capture.recording.body,
    )


def event_objects(events: Sequence[ResponseEvent]) -> list[JsonObject]:
    """The JSON objects of events."""
    return msgspec.json.decode(msgspec.json.encode(events), type=list[dict[str, Any]])


def _source(capture: Capture) -> Source:
    recording = capture.recording
    kind: SourceKind = "stream"
    if recording.status >= 400:
        kind = "error"
    elif capture.is_complete_body:
        kind = "body"
    return Source(
        name=capture.name,
        wire_api=capture.wire_api,
        kind=kind,
        recorded=capture.is_recorded,
        frames=WIRE_SPECS[capture.wire_api].frames,
        status=recording.status,
        method=recording.method,
        url=recording.url,
        headers=recording.headers,
        end=recording.end,
        forms=capture.forms,
        guessed=capture.is_guessed,
    )


def _outcome(response: Response, positions: Positions, listed: Sequence[Finding]) -> Outcome:
    level: Level = "ok"
    text = outcome_text(response)
    error: JsonObject | None = None
    if response.error is not None:
        level = "error"
        error = msgspec.json.decode(msgspec.json.encode(response.error))
    elif response.status != "completed" or any(finding.level != "ok" for finding in listed):
        level = "warning"
    return Outcome(
        level=level,
        text=text,
        terminal="completed" if positions.is_completed else "failed",
        status=response.status,
        stop_reason=response.stop_reason,
        native_stop_reason=response.native_stop_reason,
        response_id=response.response_id,
        model=response.model,
        error=error,
    )


def outcome_text(response: Response) -> str:
    """How a response ended, in words: `completed (stop)`, `failed (truncated)`."""
    if response.error is not None:
        return f"failed ({response.error.kind})"
    return f"{response.status} ({response.stop_reason})"


def _chunk_columns(capture: Capture, clock: Clock) -> ChunkColumns:
    times = [round(seconds, 6) for seconds in clock.times]
    return ChunkColumns(at=times, bytes=[len(chunk.data) for chunk in capture.recording.chunks])


def _frame_columns(walked: Sequence[Step]) -> FrameColumns:
    numbers: dict[str, int] = {}
    """Name of a kind of frame -> its index in `kinds`."""
    kind: list[int] = []
    for step in walked:
        kind.append(numbers.setdefault(step.kind, len(numbers)))
    return FrameColumns(
        kinds=list(numbers),
        kind=kind,
        bytes=[step.end - step.start for step in walked],
        events=[len(step.events) for step in walked],
    )
