"""Streams of Gemini Interactions, written by hand."""

from __future__ import annotations

import json
from typing import Any

from streamlib import Response, ResponseEvent, accumulate, parse_body, parser


def frame(event_type: str, **fields: Any) -> bytes:
    """One event, as Google writes it."""
    data = json.dumps({**fields, "event_type": event_type}, ensure_ascii=False)
    return f"event: {event_type}\ndata: {data}\n\n".encode()


def created(**fields: Any) -> bytes:
    interaction = {"id": "v1_a", "status": "in_progress", "object": "interaction", "model": "m"}
    return frame("interaction.created", interaction={**interaction, **fields})


def step(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> bytes:
    """A complete step."""
    body = frame("step.start", index=index, step=start)
    for delta in deltas:
        body += frame("step.delta", index=index, delta=delta)
    return body + frame("step.stop", index=index)


def completed(status: str = "completed", **fields: Any) -> bytes:
    interaction = {"id": "v1_a", "status": status, "object": "interaction", "model": "m"}
    last = frame("interaction.completed", interaction={**interaction, **fields})
    return last + b"event: done\ndata: [DONE]\n\n"


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def events_of(*chunks: bytes) -> list[ResponseEvent]:
    wire_parser = parser("interactions")
    events: list[ResponseEvent] = []
    for chunk in chunks:
        events += wire_parser.feed(chunk)
    return events + wire_parser.close()


def read(*chunks: bytes) -> Response:
    return accumulate(events_of(*chunks))


def read_body(**fields: Any) -> Response:
    """A complete body."""
    body = {"id": "v1_a", "model": "m", "status": "completed", **fields}
    return accumulate(parse_body("interactions", json.dumps(body).encode()))
