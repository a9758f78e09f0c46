"""Explains what is wrong with a captured response.

Whether it is complete, where it was truncated, what is missing, and what is unusual about it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from streamlib.cli.captures import Capture, wrong_wire_hint
from streamlib.cli.event_text import item_label, quote
from streamlib.cli.frames import Step
from streamlib.cli.timeline import Clock
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.terminal.printable import printable
from streamlib_parsers import (
    Completed,
    Failed,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    Passthrough,
    ResponseItem,
)
from streamlib_parsers.items import WireApi

COMPLETE: Final = "the response is complete"

TEXT_FIELDS: Final = ("arguments", "input", "text")
"""Fields of an item that hold what the model wrote."""

STOPPED_BY_READER: Final = ("unread", "CancelledError", "Cancelled")
"""Ends of a recording that the recording program itself caused."""

MIN_GAP: Final = 1.0
"""Seconds without a byte that are worth a line."""

EXCERPT_CHARACTERS: Final = 80


def findings(capture: Capture, steps: list[Step]) -> list[str]:
    """Lists the findings about a response: whether it is complete first, then anomalies."""
    lines = list(_verdict(capture, steps))
    lines += _anomalies(capture.wire_api, steps)
    lines += _unread_bytes(capture, steps)
    lines += _long_gap(capture)
    return lines


def _verdict(capture: Capture, steps: list[Step]) -> Iterator[str]:
    for step in steps:
        for event in step.events:
            if isinstance(event, Completed):
                yield COMPLETE
            elif isinstance(event, Failed):
                yield from _failure(capture, steps, step, event)


def _failure(capture: Capture, steps: list[Step], step: Step, event: Failed) -> Iterator[str]:
    hint = wrong_wire_hint(capture)
    if hint is not None:
        # First, because the other findings follow from it.
        yield hint
    kind = event.error.kind
    yield f"failed ({kind}): {printable(event.error.message)}"
    yield _failure_offset(capture, step, kind)
    # Of an empty capture or a body everything is missing: the line would add nothing.
    if kind == "truncated" and len(steps) > 1:
        yield f"not received: {WIRE_SPECS[capture.wire_api].completed_by}"
    yield from _incomplete_items(steps)
    yield from _end_of_recording(capture)


def _failure_offset(capture: Capture, step: Step, kind: str) -> str:
    body = capture.recording.body
    # A body has no frames, and any other failure is about a frame that was received completely.
    if kind != "truncated" or capture.is_complete_body:
        return f"at byte {step.start:,}: {excerpt(body[step.start : step.end])}"
    if step.start == len(body):
        return f"truncated at byte {len(body):,}, after a complete frame"
    return (
        f"truncated at byte {len(body):,}, inside the frame that starts at byte {step.start:,}: "
        f"{excerpt(body[step.start :])}"
    )


def _incomplete_items(steps: list[Step]) -> Iterator[str]:
    for step in steps:
        for event in step.events:
            if isinstance(event, OutputItemDone) and event.item.status == "incomplete":
                end = quote(_written(event.item)[-60:], 70)
                label = item_label(event.item)
                yield f"item {event.index} ({label}) is incomplete: it ends with {end}"


def _written(item: ResponseItem) -> str:
    for name in TEXT_FIELDS:
        text: str = getattr(item, name, "")
        if text:
            return text
    return ""


def _end_of_recording(capture: Capture) -> Iterator[str]:
    end = capture.recording.end
    if end in STOPPED_BY_READER:
        yield "the recording program stopped reading here"
    elif end is not None:
        yield f"the connection was lost here ({printable(end)})"


def _anomalies(wire_api: WireApi, steps: list[Step]) -> Iterator[str]:
    """One line for each kind of anomaly, in order of first occurrence."""
    offsets: dict[tuple[str, str], list[int]] = defaultdict(list)
    for offset, label, detail in _each_anomaly(wire_api, steps):
        offsets[label, detail].append(offset)
    for (label, detail), starts in offsets.items():
        repeated = ""
        if len(starts) == 2:
            repeated = " and 1 more time"
        elif len(starts) > 2:
            repeated = f" and {len(starts) - 1:,} more times"
        yield f"{label} at byte {starts[0]:,}{repeated}{detail}"


def _each_anomaly(wire_api: WireApi, steps: list[Step]) -> Iterator[tuple[int, str, str]]:
    """Offset, what is reported before the offset, and what is reported after it."""
    has_blocks = WIRE_SPECS[wire_api].has_blocks
    newest = -1
    for step in steps:
        for event in step.events:
            if isinstance(event, Notice):
                yield step.start, printable(event.code), f": {printable(event.detail)}"
            elif isinstance(event, Passthrough):
                yield step.start, "unknown event", f": {printable(event.event)}"
            elif isinstance(event, OutputItemAdded):
                newest = event.index
            elif (
                isinstance(event, OutputItemDone)
                # On a wire without blocks items overlap as a rule.
                and has_blocks
                and event.index < newest
                and event.item.status == "completed"
            ):
                yield (
                    step.start,
                    f"late end: item {event.index} was closed",
                    f", after item {newest} had started",
                )


def _unread_bytes(capture: Capture, steps: list[Step]) -> Iterator[str]:
    """Bytes after a terminal event that the wire itself ended the response with."""
    end = _end_of_response(steps)
    if end is None:
        return
    rest = capture.recording.body[end:].strip()
    if rest:
        yield f"not read: {len(rest):,} bytes after the end at byte {end:,}: {excerpt(rest)}"


def _end_of_response(steps: list[Step]) -> int | None:
    for step in steps:
        for event in step.events:
            if isinstance(event, (Completed, Failed)):
                return step.end
    return None


def _long_gap(capture: Capture) -> Iterator[str]:
    if not capture.is_recorded:
        return
    longest = Clock(capture).longest_gap()
    if longest is not None and longest[0] >= MIN_GAP:
        yield f"longest gap: {longest[0]:.1f} s, before byte {longest[1]:,}"


def excerpt(data: bytes) -> str:
    """The first characters of a frame, on one line and safe for a terminal."""
    # Four times as many bytes, because a character takes up to four.
    start = data[: EXCERPT_CHARACTERS * 4].decode("utf-8", "replace")
    text = " ".join(printable(start).split())
    if len(text) > EXCERPT_CHARACTERS:
        return text[:EXCERPT_CHARACTERS] + "…"
    return text or "(nothing)"
