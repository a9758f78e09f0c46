"""Explains what is wrong with a captured response.

Findings report whether it is complete, where it was truncated, what is missing, and what is
unusual. Only a finding's `detail` quotes the response, never its `text`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from streamlib.display.safe_text import printable
from streamlib.inspection.capture import Capture, wrong_wire_hint
from streamlib.inspection.clock import Waits, longest
from streamlib.inspection.document import Finding, FindingCode
from streamlib.inspection.event_text import item_label, quote
from streamlib.inspection.frames import Step
from streamlib.inspection.http_forms import is_page, page_texts
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.recording.files import STOPPED_BY_READER, no_response
from streamlib_parsers.events import (
    Completed,
    Failed,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    Passthrough,
)
from streamlib_parsers.items import ResponseItem, WireApi
from streamlib_parsers.redaction import redact

COMPLETE: Final = "the response is complete"

EARLY_STOPS: Final[dict[str, str]] = {
    "length": "the model stopped at its token limit",
    "content_filter": "a content filter stopped the model",
}
"""Stop reasons of a response that its server completed and that is incomplete (as
`Response.status`) -> what happened."""

HTML_PAGE: Final = (
    "an HTML page, not a response of an API: the path of the address may be wrong, or a proxy or "
    "a login answered"
)

TEXT_FIELDS: Final = ("arguments", "input", "text")
"""Fields of an item with output of the model."""

MIN_GAP: Final = 1.0
"""Seconds; a shorter silence is not a finding."""

EXCERPT_CHARACTERS: Final = 80


def findings(capture: Capture, steps: Sequence[Step], waits: Waits) -> list[Finding]:
    """Lists the findings about a response: whether it is complete first, then anomalies.

    Args:
        capture: the captured response.
        steps: its frames.
        waits: its silences.
    """
    listed = list(_verdict(capture, steps))
    if capture.truncation is not None:
        text = capture.truncation
        listed.append(Finding(level="error", code="recording_truncated", text=text))
    listed += capture.remarks
    listed += _anomalies(capture.wire_api, steps)
    listed += _unread_bytes(capture, steps)
    listed += _silences(waits)
    return listed


def _verdict(capture: Capture, steps: Sequence[Step]) -> Iterator[Finding]:
    for number, step in enumerate(steps):
        for event in step.events:
            if isinstance(event, Completed):
                yield _completion(event, number)
            elif isinstance(event, Failed):
                yield from _failure(capture, steps, number, event)


def _completion(event: Completed, number: int) -> Finding:
    early_stops = _early_stops(event)
    if not early_stops:
        return Finding(level="ok", code="complete", text=COMPLETE, frame=number)
    text = f"received to its end, but incomplete: {', '.join(early_stops)}"
    return Finding(level="warning", code="incomplete", text=text, frame=number)


def _early_stops(event: Completed) -> list[str]:
    """What stopped the model before it was done; of several choices, with their numbers."""
    if len(event.choices) < 2:
        early_stop = EARLY_STOPS.get(event.stop_reason)
        return [] if early_stop is None else [early_stop]
    early_stops: list[str] = []
    for choice in event.choices:
        if choice.stop_reason in EARLY_STOPS:
            early_stops.append(f"{EARLY_STOPS[choice.stop_reason]} (choice {choice.choice})")
    return early_stops


def _failure(
    capture: Capture, steps: Sequence[Step], number: int, event: Failed
) -> Iterator[Finding]:
    yield from _page(capture)
    hint = wrong_wire_hint(capture)
    if hint is not None:
        # Comes first, because the other findings follow from it.
        yield Finding(level="error", code="wrong_wire", text=hint)
    kind = event.error.kind
    yield Finding(
        level="error",
        code="failed",
        text=f"failed ({kind})",
        detail=f": {printable(event.error.message)}",
        frame=number,
    )
    if no_response(capture.recording) is not None and capture.truncation is None:
        # There is no byte to name, and the message says how the connection was lost.
        return
    yield _failure_offset(capture, steps[number], number, kind)
    # If an empty capture or a body was truncated, everything is missing: no need to list it.
    if kind == "truncated" and len(steps) > 1:
        missing = f"not received: {_missing(capture, steps, event)}"
        yield Finding(level="error", code="not_received", text=missing)
    yield from _incomplete_items(steps)
    yield from _end_of_recording(capture)


def _page(capture: Capture) -> Iterator[Finding]:
    """Says what page it is that a server, a proxy or a login sent in place of a response."""
    body = capture.recording.body
    if not is_page(body):
        return
    texts = list(page_texts(body, capture.recording.url))
    detail = f": {printable(', '.join(texts))}" if texts else ""
    yield Finding(level="error", code="html_page", text=HTML_PAGE, detail=detail)


def _failure_offset(capture: Capture, step: Step, number: int, kind: str) -> Finding:
    body = capture.recording.body
    code: FindingCode = "truncated"
    offset, detail = len(body), ""
    # A body has no frames, and other failures concern a frame that was received completely.
    if kind != "truncated" or capture.is_complete_body:
        code, offset = "failed_at", step.start
        text = f"at byte {offset:,}"
        detail = f": {excerpt(body[offset : step.end])}"
    elif step.start == offset:
        text = f"truncated at byte {offset:,}, after a complete frame"
    else:
        text = f"truncated at byte {offset:,}, inside the frame that starts at byte {step.start:,}"
        detail = f": {excerpt(body[step.start :])}"
    return Finding(level="error", code=code, text=text, detail=detail, byte=offset, frame=number)


def _missing(capture: Capture, steps: Sequence[Step], event: Failed) -> str:
    """What would have completed a response that was truncated."""
    spec = WIRE_SPECS[capture.wire_api]
    if capture.truncation is not None and spec.has_tail:
        # It may be here, and the rest of the recording may say more.
        return f"{spec.completed_by}, or what follows it"
    is_stopped = any(step.kind == spec.stop_frame for step in steps)
    detail: Any = event.error.detail
    if isinstance(detail, dict) and "stop_reason" in detail:
        # Of the frame only its terminator is missing: it was read at the end of input.
        is_stopped = True
    if is_stopped or not spec.stop_frame:
        return spec.completed_by
    return f"{spec.stop_frame} (stop reason and usage), {spec.completed_by}"


def _incomplete_items(steps: Sequence[Step]) -> Iterator[Finding]:
    for number, step in enumerate(steps):
        for event in step.events:
            if isinstance(event, OutputItemDone) and event.item.status == "incomplete":
                written = _written(event.item)
                end = f"it ends with {quote(written[-60:], 70)}" if written else "it is empty"
                yield Finding(
                    level="error",
                    code="incomplete_item",
                    text=f"item {event.index} is incomplete",
                    detail=f" ({item_label(event.item)}): {end}",
                    byte=step.start,
                    frame=number,
                )


def _written(item: ResponseItem) -> str:
    for name in TEXT_FIELDS:
        text: str = getattr(item, name, "")
        if text:
            return text
    return ""


def _end_of_recording(capture: Capture) -> Iterator[Finding]:
    end = capture.recording.end
    # That is a finding of its own.
    if capture.truncation is not None:
        return
    if end in STOPPED_BY_READER:
        text = "the recording program stopped reading here"
        yield Finding(level="error", code="connection", text=text)
    elif end is not None:
        yield Finding(
            level="error",
            code="connection",
            text="the connection was lost here",
            detail=f" ({printable(end)})",
        )


class Anomaly(NamedTuple):
    """Something unusual, without its position. Equal anomalies become one finding.

    Attributes:
        code: code of the finding.
        label: text before the offset.
        after: text after the offset, without a quotation.
        detail: quotation after that text.
    """

    code: FindingCode
    label: str
    after: str
    detail: str


class Position(NamedTuple):
    """The offset of a frame in the body, and its number."""

    byte: int
    frame: int


def _anomalies(wire_api: WireApi, steps: Sequence[Step]) -> Iterator[Finding]:
    """One finding for each kind of anomaly, in order of first occurrence."""
    positions: dict[Anomaly, list[Position]] = {}
    for position, anomaly in _each_anomaly(wire_api, steps):
        positions.setdefault(anomaly, []).append(position)
    for anomaly, repeats in positions.items():
        repeated = ""
        if len(repeats) == 2:
            repeated = " and 1 more time"
        elif len(repeats) > 2:
            repeated = f" and {len(repeats) - 1:,} more times"
        yield Finding(
            level="warning",
            code=anomaly.code,
            text=f"{anomaly.label} at byte {repeats[0].byte:,}{repeated}{anomaly.after}",
            detail=anomaly.detail,
            byte=repeats[0].byte,
            frame=repeats[0].frame,
            count=len(repeats),
        )


def _each_anomaly(wire_api: WireApi, steps: Sequence[Step]) -> Iterator[tuple[Position, Anomaly]]:
    has_blocks = WIRE_SPECS[wire_api].has_blocks
    newest = -1
    for number, step in enumerate(steps):
        for event in step.events:
            anomaly: Anomaly | None = None
            if isinstance(event, Notice):
                detail = f": {printable(event.detail)}"
                anomaly = Anomaly("notice", printable(event.code), "", detail)
            elif isinstance(event, Passthrough):
                detail = f": {printable(event.event)}"
                anomaly = Anomaly("unknown_event", "unknown event", "", detail)
            elif isinstance(event, OutputItemAdded):
                newest = event.index
            elif (
                isinstance(event, OutputItemDone)
                # On a wire without blocks, overlapping items are normal.
                and has_blocks
                and event.index < newest
                and event.item.status == "completed"
            ):
                label = f"late end: item {event.index} was closed"
                after = f", after item {newest} had started"
                anomaly = Anomaly("late_end", label, after, "")
            if anomaly is not None:
                yield Position(step.start, number), anomaly


def _unread_bytes(capture: Capture, steps: Sequence[Step]) -> Iterator[Finding]:
    """Bytes after a terminal event that was sent on the wire, which the parser ignored."""
    end = _end_of_response(steps)
    if end is None:
        return
    rest = capture.recording.body[end:].strip()
    if rest:
        yield Finding(
            level="warning",
            code="unread_bytes",
            text=f"not read: {len(rest):,} bytes after the end at byte {end:,}",
            detail=f": {excerpt(rest)}",
            byte=end,
            frame=_first_unread(steps),
        )


def _first_unread(steps: Sequence[Step]) -> int | None:
    for number, step in enumerate(steps):
        if not step.is_read:
            return number
    return None


def _end_of_response(steps: Sequence[Step]) -> int | None:
    for step in steps:
        for event in step.events:
            if isinstance(event, (Completed, Failed)):
                return step.end
    return None


def _silences(waits: Waits) -> Iterator[Finding]:
    wait = waits.longest_wait
    if wait is not None and wait.end - wait.start >= MIN_GAP:
        yield Finding(
            level="warning",
            code="no_bytes",
            text=f"longest gap: {wait.end - wait.start:.1f} s, before byte {wait.byte:,}",
            byte=wait.byte,
            frame=wait.frame,
        )
    slow = longest(waits.no_frame)
    if slow is not None and slow.end - slow.start >= MIN_GAP:
        seconds = slow.end - slow.start
        yield Finding(
            level="warning",
            code="no_frame",
            text=(
                f"longest wait for one frame: {seconds:.1f} s, while {slow.bytes:,} bytes "
                f"of the frame at byte {slow.byte:,} were received"
            ),
            byte=slow.byte,
            frame=slow.frame,
        )


def excerpt(data: bytes) -> str:
    """The start of a frame, on one line, safe for a terminal and without what looks like a key."""
    # Four times as many bytes, because a character takes up to four.
    start = data[: EXCERPT_CHARACTERS * 4].decode("utf-8", "replace")
    text = redact(" ".join(printable(start).split()))
    if len(text) > EXCERPT_CHARACTERS:
        return text[:EXCERPT_CHARACTERS] + "…"
    return text or "(nothing)"
