"""A captured response on a terminal: the timeline, what it contains, the findings; and as JSON."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from streamlib.cli.colours import BOLD, DIM, GREEN, RED, YELLOW, paint
from streamlib.cli.exit_codes import INCOMPLETE, code_of_response
from streamlib.cli.progress import Progress
from streamlib.cli.tables import hanging, terminal_width
from streamlib.cli.timeline import fitted, page
from streamlib.display.safe_text import one_line, printable
from streamlib.inspection.capture import Capture
from streamlib.inspection.document import Finding
from streamlib.inspection.event_text import quote, shorten, tool_name, usage_text
from streamlib.inspection.inspector import CaptureReading, outcome_text, read_capture
from streamlib.recording.files import RecordedRequest
from streamlib.request.built_in_text import describe_call
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.events import Completed, Passthrough, ResponseEvent
from streamlib_parsers.items import BUILT_IN_CALLS, CustomToolCall, FunctionCall, ServerToolCall
from streamlib_parsers.response import Response

SHOWN_CHANGES: Final = 10
"""Number of changes of a request that are shown."""

MARKS: Final = {"ok": ("=", GREEN), "warning": ("!", YELLOW), "error": ("!", RED)}
"""Level of a finding -> the mark in front of it, and its colour."""


def reading_of(capture: Capture) -> CaptureReading:
    """Reads a capture; shows the progress if that takes long."""
    with Progress(f"reading {capture.name}", len(capture.recording.body)) as progress:
        return read_capture(capture, progress.update)


def print_page(capture: Capture) -> int:
    """Prints the timeline of a response, what it contains, and the findings.

    Returns:
        The exit code of the response.
    """
    reading = reading_of(capture)
    response = reading.response
    width = terminal_width(140)

    title, *facts = _header(capture, response)
    print_line(title, BOLD)
    for fact in facts:
        for line in hanging(fact, width):
            print_line(line, DIM)
    print_line()
    columns, *timeline = page(capture, reading.clock, reading.steps, width)
    print_line(columns, DIM)
    for line in timeline:
        print_line(line)
    print_line()
    for line in _contents(response, width):
        print_line(line)
    for line in _changes(capture.recording.request):
        print_line(fitted(line, width))
    for finding in reading.findings:
        print_finding(finding, width)
    print_line()
    code = code_of_response(response)
    if code == 0 and capture.truncation is not None:
        return INCOMPLETE
    return code


def print_finding(finding: Finding, width: int) -> None:
    """Prints one finding."""
    mark, style = MARKS[finding.level]
    for line in hanging(f"  {mark} {finding.text}{finding.detail}", width):
        print_line(line, style)


def print_line(line: str = "", style: str = "") -> None:
    """Prints a line."""
    line = line.rstrip()
    if style:
        line = paint(line, style, sys.stdout)
    sys.stdout.write(line + "\n")


def _header(capture: Capture, response: Response) -> Iterator[str]:
    recording = capture.recording
    yield f"{printable(capture.name)}: {outcome_text(response)}"
    facts: list[str] = [capture.wire_api + (" (guessed)" if capture.is_guessed else "")]
    if capture.forms:
        facts.append(f"from {', '.join(capture.forms)}")
    facts.append(f"{len(recording.body):,} bytes")
    if response.model:
        facts.append(f"model {printable(response.model)}")
    if response.response_id:
        facts.append(printable(response.response_id))
    if capture.is_recorded or recording.status != 200:
        facts.append(status_text(recording.status))
    if recording.url:
        facts.append(printable(recording.url))
    if recording.request is not None:
        facts.append(f"request {len(recording.request.body):,} bytes")
    yield "  " + " · ".join(facts)


def status_text(status: int) -> str:
    """The HTTP status of a response, in words; 0: there was none."""
    return f"HTTP {status}" if status else "no response"


def _changes(request: RecordedRequest | None) -> Iterator[str]:
    """What a gateway changed in the request on the way to its target."""
    if request is None:
        return
    for change in request.changes[:SHOWN_CHANGES]:
        yield f"  request: {change.action} {one_line(change.path)}: {one_line(change.reason)}"
    rest = len(request.changes) - SHOWN_CHANGES
    if rest > 0:
        yield f"  request: {rest:,} further changes"


def _contents(response: Response, width: int) -> Iterator[str]:
    """What the response contains, abbreviated."""
    texts = {"reasoning": response.reasoning, "text": response.text, "refusal": response.refusal}
    for name, text in texts.items():
        if text:
            yield f"  {name}: {quote(text, width - len(name) - 4)}"
    for call in calls(response):
        name = tool_name(call["name"])
        arguments = quote(call["arguments"], width - len(name) - 9)
        yield f"  call: {name} {arguments}"
    for item in response.items:
        if isinstance(item, BUILT_IN_CALLS):
            yield "  call: " + shorten(printable(describe_call(item)), width - 8)
    if response.usage is not None:
        yield f"  usage: {usage_text(response.usage)}"
    diagnosis = response.cache_diagnosis
    if diagnosis is not None:
        text = diagnosis.status
        if diagnosis.reason is not None:
            text += f", {diagnosis.reason}"
        if diagnosis.missed_tokens is not None:
            text += f", {diagnosis.missed_tokens:,} tokens missed"
        yield "  cache, by the provider: " + printable(text)


# --- for programs ---
#
# What `streamlib inspect --json` prints: its keys are a stable format.


def summary(
    name: str, events: Sequence[ResponseEvent], findings: Sequence[Finding]
) -> dict[str, Any]:
    """The JSON object of one file.

    Args:
        name: name of the file.
        events: events of the response.
        findings: findings about it.
    """
    response = accumulate(events)
    is_completed = any(isinstance(event, Completed) for event in events)
    event_counts = Counter(type(event).__name__ for event in events)
    unknown_counts = Counter(event.event for event in events if isinstance(event, Passthrough))
    error_kind = None
    error_message = None
    if response.error is not None:
        error_kind = response.error.kind
        error_message = response.error.message
    return {
        "file": name,
        "response_id": response.response_id,
        "model": response.model,
        "text": response.text,
        "reasoning": response.reasoning,
        "refusal": response.refusal,
        "tool_calls": calls(response),
        "server_tools": server_calls(response),
        "stop_reason": response.stop_reason,
        "usage": msgspec.to_builtins(response.usage),
        "terminal": "completed" if is_completed else "failed",
        "error_kind": error_kind,
        "error": error_message,
        "events": event_counts,
        "passthrough": unknown_counts,
        "notices": [notice.code for notice in response.notices],
        "findings": msgspec.to_builtins(findings),
    }


def calls(response: Response) -> list[dict[str, Any]]:
    """Every call that was received, incomplete ones too: they are shown, never executed."""
    calls: list[dict[str, Any]] = []
    for item in response.items:
        if isinstance(item, FunctionCall):
            calls.append(_call(item.call_id, item.name, item.arguments, item.status))
        elif isinstance(item, CustomToolCall):
            calls.append(_call(item.call_id, item.name, item.input, item.status))
    return calls


def server_calls(response: Response) -> list[dict[str, Any]]:
    """Every call that the provider runs itself."""
    calls: list[dict[str, Any]] = []
    for item in response.items:
        if isinstance(item, ServerToolCall):
            calls.append(_call(item.call_id, item.name, item.arguments, item.status))
    return calls


def _call(call_id: str, name: str, arguments: str, status: str) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments, "status": status}
