"""Makes an inspection of a captured response."""

from __future__ import annotations

import importlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from struct import unpack_from
from typing import Any, Final

import msgspec
from msgspec import Struct

from streamlib.inspection.capture import Capture, Report, no_report
from streamlib.inspection.clock import Clock, Waits, longest, silences_of
from streamlib.inspection.document import (
    ChunkColumns,
    Facts,
    Finding,
    FrameColumns,
    Inspection,
    Level,
    Outcome,
    RateLimit,
    Source,
    SourceKind,
    SplitCharacters,
    Splits,
)
from streamlib.inspection.findings import findings
from streamlib.inspection.frames import Step, steps
from streamlib.inspection.positions import Positions
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.events import TOKEN_EVENTS, RateLimits, ResponseEvent, Window
from streamlib_parsers.items import JsonObject
from streamlib_parsers.response import Response
from streamlib_parsers.usage import Usage


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


# --- chunk boundaries inside a character ---


MAX_OFFSETS: Final = 1000
"""Limit of boundaries whose offsets are listed."""

_AWS_PRELUDE_BYTES: Final = 12
_AWS_CHECKSUM_BYTES: Final = 4


def split_characters(capture: Capture, steps: Sequence[Step]) -> SplitCharacters:
    """The chunk boundaries inside a UTF-8 character.

    Args:
        capture: the captured response.
        steps: its frames; in Bedrock frames only the payload is text.
    """
    body = capture.recording.body
    is_binary = WIRE_SPECS[capture.wire_api].frames == "aws" and not capture.is_complete_body
    starts = [step.start for step in steps]
    count = 0
    offsets: list[int] = []
    offset = 0
    for chunk in capture.recording.chunks[:-1]:
        offset += len(chunk.data)
        if not _is_inside_character(body, offset):
            continue
        if is_binary:
            step = steps[bisect_right(starts, offset) - 1]
            if not _is_payload(body, step, offset):
                continue
        count += 1
        if count <= MAX_OFFSETS:
            offsets.append(offset)
    return SplitCharacters(count=count, bytes=tuple(offsets))


def _is_inside_character(body: bytes, offset: int) -> bool:
    """Whether the byte at an offset continues a character that began before it."""
    if not 0 < offset < len(body) or body[offset] & 0xC0 != 0x80:
        return False
    start = offset - 1
    while start > max(0, offset - 3) and body[start] & 0xC0 == 0x80:
        start -= 1
    try:
        body[start : start + _length(body[start])].decode()
    except UnicodeDecodeError:
        return False
    return start + _length(body[start]) > offset


def _length(first_byte: int) -> int:
    """Number of bytes of a character, from its first byte."""
    if first_byte < 0xC0:
        return 1
    if first_byte < 0xE0:
        return 2
    if first_byte < 0xF0:
        return 3
    return 4


def _is_payload(body: bytes, message: Step, offset: int) -> bool:
    """Whether an offset is in the payload of an AWS message, after its headers."""
    # The message is not copied: a large one may have a split character in each of its chunks.
    if message.end - message.start < _AWS_PRELUDE_BYTES:
        return False
    headers: int = unpack_from(">I", body, message.start + 4)[0]
    start = message.start + _AWS_PRELUDE_BYTES + headers
    return start < offset < message.end - _AWS_CHECKSUM_BYTES


# --- numbers: times, tokens, rate limits ---


SHORTEST_OUTPUT: Final = 0.1
"""Seconds between the first and the last output; below it no speed is computed."""


def facts_of(
    clock: Clock,
    steps: Sequence[Step],
    positions: Positions,
    waits: Waits,
    response: Response,
) -> Facts:
    """The facts of a response.

    Args:
        clock: knows when the bytes were received.
        steps: frames of the response.
        positions: its events, counted.
        waits: its silences.
        response: the accumulated response.
    """
    times = clock.times if clock.is_known else []
    first_token, last_token = _output_times(clock, steps)
    first_byte = duration = None
    if times:
        first_byte, duration = times[0], times[-1]
    limits = response.rate_limits or RateLimits()
    # Before its end a response reports the output tokens of its start.
    final_usage = response.usage if positions.is_completed else None
    return Facts(
        bytes=clock.bytes,
        chunks=len(clock.ends),
        frames=len(steps),
        characters=positions.characters,
        events=positions.event_counts,
        first_byte=first_byte,
        first_token=first_token,
        duration=duration,
        tokens_per_second=_speed(final_usage, first_token, last_token),
        usage=usage_fields(response.usage),
        limits=tuple(_limits(limits)),
        retry_after=limits.retry_after,
        request_id=limits.request_id,
        longest_no_bytes=waits.longest_wait,
        longest_no_frame=longest(waits.no_frame),
    )


def _output_times(clock: Clock, steps: Sequence[Step]) -> tuple[float | None, float | None]:
    """When the first and the last output of the model were received; None without output."""
    if not clock.is_known:
        return None, None
    outputs = [step for step in steps if _has_output(step)]
    if not outputs:
        return None, None
    # A frame is complete when its last byte is received.
    return clock.seconds(outputs[0].end - 1), clock.seconds(outputs[-1].end - 1)


def _has_output(step: Step) -> bool:
    return any(type(event) in TOKEN_EVENTS for event in step.events)


def _speed(usage: Usage | None, first: float | None, last: float | None) -> float | None:
    if usage is None or usage.output_tokens is None or first is None or last is None:
        return None
    if last - first < SHORTEST_OUTPUT:
        return None
    return round(usage.output_tokens / (last - first), 1)


def usage_fields(usage: Usage | None) -> JsonObject | None:
    """Token counts, named as in `Usage`, without the provider's own object."""
    if usage is None:
        return None
    fields: JsonObject = msgspec.to_builtins(usage)
    fields.pop("raw", None)
    return fields


def _limits(limits: RateLimits) -> list[RateLimit]:
    windows: dict[str, Window | None] = {
        "requests": limits.requests,
        "tokens": limits.tokens,
        "input_tokens": limits.input_tokens,
        "output_tokens": limits.output_tokens,
        **limits.windows,
    }
    return [_limit(name, window) for name, window in windows.items() if window is not None]


def _limit(name: str, window: Window) -> RateLimit:
    return msgspec.convert({"name": name, **msgspec.to_builtins(window)}, RateLimit)
