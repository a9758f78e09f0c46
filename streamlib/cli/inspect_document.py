"""An inspection that was saved (`inspect --json --full`), opened again.

With its bytes it is shown as the response itself is. A redacted one has none: then a terminal shows
what it holds, which is positions, times, sizes and findings.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from streamlib.cli.arguments import CommandError
from streamlib.cli.colours import BOLD, DIM
from streamlib.cli.exit_codes import INCOMPLETE, code_of_end
from streamlib.cli.inspect_page import print_finding, print_line, status_text
from streamlib.cli.tables import hanging, terminal_width
from streamlib.cli.timeline import MAX_KIND_WIDTH, fitted
from streamlib.display.safe_text import one_line, printable
from streamlib.inspection.capture import Capture
from streamlib.inspection.document import STORED, Inspection, load
from streamlib.recording.files import Chunk, RecordedRequest, Recording
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi
from streamlib_parsers.protocol import WIRE_APIS

if TYPE_CHECKING:
    from streamlib.inspection.difference import Span
    from streamlib_parsers.items import JsonObject

NO_BYTES: Final = "the document has no bytes"
REDACTED: Final = "redacted: texts are shown as their lengths, and bytes are not in the document"

CALL_TYPES: Final = ("custom_tool_call", "function_call", "server_tool_call")
"""Types of items that are listed as calls."""

_TEXT_KEYS: Final = {
    "text": "output_text_delta",
    "reasoning": "reasoning_content_delta",
    "refusal": "refusal_delta",
}
"""Key of a summary -> the events whose deltas it joins."""


def documents_in(name: str, data: bytes) -> list[Inspection]:
    """The inspections of a file: one on each line, or one that a program indented.

    Args:
        name: the file.
        data: its bytes.

    Raises:
        CommandError: one of them cannot be read.
    """
    try:
        try:
            documents = [load(line) for line in data.splitlines() if line.strip()]
        except ValueError:
            documents = [load(data)]
    except ValueError as error:
        raise CommandError(f"{name}: {error}") from None
    for document in documents:
        _check(name, document)
    return documents


def _check(name: str, document: Inspection) -> None:
    """Refuses a document whose parts do not fit together: what shows it relies on that.

    Raises:
        CommandError: they do not.
    """
    frames, chunks = document.frames, document.chunks
    body = document.body
    fits = (
        len(frames.kind) == len(frames.bytes) == len(frames.events)
        and all(0 <= kind < len(frames.kinds) for kind in frames.kind)
        and min([*frames.events, *frames.bytes, *chunks.bytes], default=0) >= 0
        and sum(frames.events) == len(document.events)
        and len(chunks.at) == len(chunks.bytes)
        and all(isinstance(event.get("type"), str) for event in document.events)
        and (body is None or sum(chunks.bytes) == len(body))
        and document.source.wire_api in WIRE_APIS
    )
    if not fits:
        raise CommandError(f"{name}: not an inspection: its parts do not fit together")


def capture_of(document: Inspection, name: str) -> Capture | None:
    """The response that a document is about; None where the document lacks its bytes.

    Args:
        document: the inspection.
        name: what it is called where the document does not say.
    """
    if document.body is None:
        return None
    source = document.source
    wire_api = cast("WireApi", source.wire_api)
    ends = list(accumulate(document.chunks.bytes))
    chunks: list[Chunk] = []
    for number, seconds in enumerate(document.chunks.at):
        start = ends[number] - document.chunks.bytes[number]
        chunks.append(Chunk(seconds, document.body[start : ends[number]]))
    request: RecordedRequest | None = None
    if document.request is not None:
        body = (document.request.text or "").encode()
        request = RecordedRequest(document.request.headers, body, document.request.changes)
    recording = Recording(
        source.status,
        source.headers,
        tuple(chunks),
        source.end,
        source.method,
        source.url,
        wire_api,
        request,
    )
    truncation: str | None = None
    for finding in document.findings:
        if finding.code == "recording_truncated":
            truncation = finding.text
    return Capture(
        source.name or name,
        wire_api,
        recording,
        source.recorded,
        truncation,
        source.forms,
        source.guessed,
        tuple(finding for finding in document.findings if finding.code in STORED),
    )


# --- on a terminal ---


def print_document(document: Inspection, name: str) -> int:
    """Prints what a document without bytes holds.

    Args:
        document: the inspection.
        name: the file.

    Returns:
        The exit code of the response.
    """
    width = terminal_width(140)
    outcome, source, facts = document.outcome, document.source, document.facts
    print_line(one_line(f"{source.name or name}: {outcome.text}"), BOLD)
    about = [
        source.wire_api,
        f"{facts.bytes:,} bytes",
        f"model {outcome.model}" if outcome.model else "",
    ]
    if source.recorded:
        about.append(status_text(source.status))
    for line in hanging("  " + " · ".join(one_line(fact) for fact in about if fact), width):
        print_line(line, DIM)
    for line in hanging(f"  {REDACTED if document.redacted else NO_BYTES}", width):
        print_line(line, DIM)
    print_line()
    for number, line in enumerate(_timeline(document)):
        print_line(fitted(line, width), "" if number else DIM)
    print_line()
    usage = _usage_text(facts.usage or {})
    if usage:
        print_line(f"  usage: {usage}")
    for finding in document.findings:
        print_finding(finding, width)
    print_line()
    return _code_of(document)


def _timeline(document: Inspection) -> Iterator[str]:
    """The titles, then a line for each event or text."""
    # Documents with bytes need no spans.
    from streamlib.inspection.difference import span_label, spans_of

    spans: list[Span] = spans_of(document)
    starts = [0, *accumulate(document.frames.bytes)]
    kinds = [printable(kind).replace("\n", " ") for kind in document.frames.kinds]
    kind_width = min(MAX_KIND_WIDTH, max(map(len, kinds), default=0))
    yield f"{'byte':>10}{'seconds':>10}  {'wire':{kind_width}}  events"
    for span in spans:
        seconds = "-" if span.seconds is None else f"{span.seconds:+.3f}"
        kind = kinds[document.frames.kind[span.frame]]
        start = f"{starts[span.frame]:>10,}{seconds:>10}"
        yield f"{start}  {kind:{kind_width}}  {span_label(span)}"


def _usage_text(usage: JsonObject) -> str:
    counts: list[str] = []
    for key, direction in (("input_tokens", "in"), ("output_tokens", "out")):
        if isinstance(usage.get(key), int):
            counts.append(f"{usage[key]:,} {direction}")
    return ", ".join(counts)


def _code_of(document: Inspection) -> int:
    """The exit code of the response, as `code_of_response` has it."""
    error: ErrorInfo | None = None
    if document.outcome.error is not None:
        fields = document.outcome.error
        error = ErrorInfo(fields.get("kind", "other"), "", retryable=bool(fields.get("retryable")))
    code = code_of_end(error, document.outcome.stop_reason)
    is_truncated = any(finding.code == "recording_truncated" for finding in document.findings)
    if code == 0 and is_truncated:
        return INCOMPLETE
    return code


# --- for programs ---


def document_summary(document: Inspection, name: str) -> dict[str, Any]:
    """What `--json` prints of a document without bytes: the same keys, with masked texts.

    Args:
        document: the inspection.
        name: the file.
    """
    outcome = document.outcome
    error = outcome.error or {}
    calls: dict[str, list[JsonObject]] = {kind: [] for kind in CALL_TYPES}
    for item in document.items:
        if item.type in calls:
            calls[item.type].append(_call(document, item.index, item.status))
    texts: dict[str, str] = {}
    for key, kind in _TEXT_KEYS.items():
        texts[key] = _joined(document, kind)
    event_counts: dict[str, int] = {}
    for kind, count in document.facts.events.items():
        event_counts[_class_name(kind)] = count
    return {
        "file": document.source.name or name,
        "response_id": outcome.response_id,
        "model": outcome.model,
        **texts,
        "tool_calls": [*calls["function_call"], *calls["custom_tool_call"]],
        "server_tools": calls["server_tool_call"],
        "stop_reason": outcome.stop_reason,
        "usage": document.facts.usage,
        "terminal": outcome.terminal,
        "error_kind": error.get("kind"),
        "error": error.get("message"),
        "events": event_counts,
        "passthrough": {each.event: each.count for each in document.unknown_events},
        "notices": [notice.code for notice in document.notices],
        "findings": msgspec.to_builtins(document.findings),
        "redacted": document.redacted,
    }


def _class_name(kind: str) -> str:
    """The class of a type of event: `output_text_delta` is `OutputTextDelta`."""
    return kind.title().replace("_", "")


def _joined(document: Inspection, kind: str, index: int | None = None) -> str:
    """The joined deltas of one kind of event, of one item or of all."""
    deltas: list[str] = []
    for event in document.events:
        if event["type"] == kind and index in (None, event.get("index")):
            deltas.append(str(event.get("delta", "")))
    return "".join(deltas)


def _call(document: Inspection, index: int, status: str) -> JsonObject:
    arguments = _joined(document, "function_call_arguments_delta", index)
    name = ""
    for event in document.events:
        if event["type"] == "output_item_done" and event.get("index") == index:
            name = str((event.get("item") or {}).get("name", ""))
    return {"id": None, "name": name, "arguments": arguments, "status": status}
