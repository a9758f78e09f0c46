"""Streams of Cohere's v2 chat, written by hand."""

from __future__ import annotations

import json
from typing import Any

from streamlib import Response, ResponseEvent, accumulate, parse_body, parser

DONE = b"data: [DONE]\n\n"


def frame(kind: str, **fields: Any) -> bytes:
    """One event, as Cohere writes it."""
    data = json.dumps({"type": kind, **fields}, ensure_ascii=False)
    return f"event: {kind}\ndata: {data}\n\n".encode()


def event(kind: str, index: int | None = None, **message: Any) -> bytes:
    """An event with a message."""
    position = {} if index is None else {"index": index}
    return frame(kind, **position, delta={"message": message})


def started(**fields: Any) -> bytes:
    message = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": []}
    delta = {"message": {**message, "citations": []}}
    return frame("message-start", **{"id": "r1", "delta": delta, **fields})


def text(index: int, *fragments: str, end: bool = True) -> bytes:
    """A content of text."""
    return _content(index, "text", fragments, end=end)


def thinking(index: int, *fragments: str, end: bool = True) -> bytes:
    """A content of reasoning."""
    return _content(index, "thinking", fragments, end=end)


def _content(index: int, kind: str, fragments: tuple[str, ...], *, end: bool) -> bytes:
    body = event("content-start", index, content={"type": kind, kind: ""})
    for fragment in fragments:
        body += event("content-delta", index, content={kind: fragment})
    if end:
        body += frame("content-end", index=index)
    return body


def plan(*fragments: str) -> bytes:
    return b"".join(event("tool-plan-delta", tool_plan=fragment) for fragment in fragments)


def call(index: int, *fragments: str, end: bool = True, **fields: Any) -> bytes:
    """A call of the function `f`."""
    start = {"id": f"f_{index}", "type": "function", "function": {"name": "f", "arguments": ""}}
    body = event("tool-call-start", index, tool_calls={**start, **fields})
    for fragment in fragments:
        function = {"arguments": fragment}
        body += event("tool-call-delta", index, tool_calls={"function": function})
    if end:
        body += frame("tool-call-end", index=index)
    return body


def citation(start: int, end: int, cited: str, **fields: Any) -> bytes:
    sources = [{"type": "document", "id": "doc:0", "document": {"text": "…"}}]
    value = {"start": start, "end": end, "text": cited, "sources": sources, **fields}
    body = event("citation-start", 0, citations=value)
    return body + frame("citation-end", index=0)


def ended(reason: str | None = "COMPLETE", **fields: Any) -> bytes:
    return frame("message-end", delta={"finish_reason": reason, **fields}) + DONE


def events_of(*chunks: bytes) -> list[ResponseEvent]:
    wire_parser = parser("cohere")
    events: list[ResponseEvent] = []
    for chunk in chunks:
        events += wire_parser.feed(chunk)
    return events + wire_parser.close()


def read(*chunks: bytes) -> Response:
    return accumulate(events_of(*chunks))


def read_body(status: int | None = None, **fields: Any) -> Response:
    """A complete body."""
    return accumulate(parse_body("cohere", json.dumps(fields).encode(), status=status))
