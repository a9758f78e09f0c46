"""A captured response on a terminal: the timeline, what it contains, and the findings."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from streamlib.cli.colours import BOLD, DIM, GREEN, RED, YELLOW, paint
from streamlib.cli.exit_codes import INCOMPLETE, code_of_response
from streamlib.cli.inspect_summary import calls
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
from streamlib_parsers.items import BUILT_IN_CALLS
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
        facts.append(f"HTTP {recording.status}")
    if recording.url:
        facts.append(printable(recording.url))
    if recording.request is not None:
        facts.append(f"request {len(recording.request.body):,} bytes")
    yield "  " + " · ".join(facts)


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
