"""Helpers for tests of several wires: parsing, tables of a wire's page, facts of a recording."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from streamlib_parsers import (
    Failed,
    FunctionCall,
    Response,
    ResponseEvent,
    ServerToolCall,
    accumulate,
    parse_body,
    parser,
)
from streamlib_parsers.errors import ErrorInfo
from tests.support.shared import BODIES, PAYLOADS, ROOT, Recording


def events_of(wire: Any, *chunks: bytes, **options: Any) -> list[ResponseEvent]:
    """All events of a stream in these chunks."""
    p = parser(wire, **options)
    return [*(event for chunk in chunks for event in p.feed(chunk)), *p.close()]


def events_of_lines(wire: Any, lines: Iterable[bytes | str]) -> list[ResponseEvent]:
    """All events of payloads that are framed already, without event names."""
    p = parser(wire)
    return [*(event for line in lines for event in p.feed_event(line)), *p.close()]


def response_of(wire: Any, *chunks: bytes) -> Response:
    """The response of a stream."""
    return accumulate(events_of(wire, *chunks))


def error_of(wire: Any, *chunks: bytes) -> ErrorInfo:
    """The error of a failed stream."""
    last = events_of(wire, *chunks)[-1]
    assert isinstance(last, Failed), last
    return last.error


def documented(wire: str, heading: str) -> dict[str, list[list[str]]]:
    """The first table under a heading of `docs/wires/<wire>.md`.

    First code span of a row -> the code spans of its other cells.
    """
    page = (ROOT / "docs" / "wires" / f"{wire}.md").read_text(encoding="utf-8")
    section = re.split(
        r"^## ", page.split(f"\n## {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE
    )[0]
    table = section.split("|---", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    rows = [
        [re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|")] for line in table
    ]
    assert rows, f"no table under {heading!r}"
    return {row[0][0]: row[1:] for row in rows}


def parsed(recording: Recording) -> list[ResponseEvent]:
    """The events of a recording of any kind."""
    if recording.path.suffix in PAYLOADS:
        return events_of_lines(recording.wire, recording.payloads)
    if recording.path.suffix in BODIES:
        return parse_body(recording.wire, recording.body, status=recording.meta.get("status"))  # type: ignore[arg-type]
    return events_of(recording.wire, recording.body)


def disagreements(recording: Recording, stops: Mapping[str, str]) -> list[str]:
    """Differences between the parser and a recording's facts.

    stops: the wire's table of stop reasons.
    """
    facts, response = recording.expected.get("facts"), accumulate(parsed(recording))
    if not facts:
        return []
    if facts.get("error") or (recording.meta.get("status") or 200) >= 400:
        return [] if response.status == "failed" else ["an error that was not reported"]
    calls = [
        (item.name, arguments(item))
        for item in response.items
        if isinstance(item, (FunctionCall, ServerToolCall))
    ]
    reason = facts.get("stop_reason")
    pairs = {
        "text": (squeezed(facts.get("text")), squeezed(response.text)),
        "reasoning": (squeezed(facts.get("reasoning")), squeezed(response.reasoning)),
        "calls": (
            [(call["name"], call["arguments"] or {}) for call in facts.get("tool_calls") or []],
            calls,
        ),
        "terminal": (response.error, None) if reason else (None, None),
        "stop reason": (stops[reason], response.stop_reason)
        if reason in stops and not calls
        else (None, None),
        "id": (facts["response_id"], response.response_id)
        if facts.get("response_id")
        else (None, None),
        "model": (facts["model"], response.model) if facts.get("model") else (None, None),
    }
    return [f"{name}: {want!r} != {have!r}" for name, (want, have) in pairs.items() if want != have]


def arguments(call: FunctionCall | ServerToolCall) -> Any:
    """The parsed arguments, even if their JSON is invalid."""
    try:
        return json.loads(call.arguments or "{}")
    except ValueError:
        return {"__unparsed__": call.arguments}


def squeezed(text: str | None) -> str:
    """The text without white space, because the facts of some recordings were trimmed."""
    return "".join((text or "").split())
