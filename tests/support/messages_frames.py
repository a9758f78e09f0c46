"""Frames of an Anthropic Messages stream, and what the parser makes of them."""

from __future__ import annotations

import json
from typing import Any

from streamlib_parsers import (
    Failed,
    Response,
    ResponseEvent,
    accumulate,
    parser,
)

Json = dict[str, Any]


def frame(kind: str, **values: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (
        kind.encode(),
        json.dumps({"type": kind, **values}).encode(),
    )


def start(**message: Any) -> bytes:
    usage = {"input_tokens": 25, "output_tokens": 1}
    return frame(
        "message_start",
        message={
            "id": "msg_1",
            "type": "message",
            "model": "claude-x",
            "content": [],
            "usage": usage,
            **message,
        },
    )


def block(index: int, content: Json, *deltas: Json) -> bytes:
    return (
        frame("content_block_start", index=index, content_block=content)
        + b"".join(delta(index, **values) for values in deltas)
        + frame("content_block_stop", index=index)
    )


def delta(index: int, kind: str, **values: Any) -> bytes:
    return frame("content_block_delta", index=index, delta={"type": kind, **values})


def end(reason: str | None = "end_turn", **values: Any) -> bytes:
    return (
        frame(
            "message_delta",
            delta={"stop_reason": reason, "stop_sequence": None},
            usage={"output_tokens": 9},
            **values,
        )
        + STOP
    )


STOP = frame("message_stop")
TEXT = {"type": "text", "text": ""}
THINKING = {"type": "thinking", "thinking": "", "signature": ""}
TOOL = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}


def text_deltas(*texts: str) -> list[Json]:
    return [{"kind": "text_delta", "text": text} for text in texts]


def events_of(*chunks: bytes, **options: Any) -> list[ResponseEvent]:
    p = parser("messages", **options)
    return [*(event for chunk in chunks for event in p.feed(chunk)), *p.close()]


def response_of(*chunks: bytes) -> Response:
    return accumulate(events_of(*chunks))


def error_of(*chunks: bytes) -> str:
    last = events_of(*chunks)[-1]
    assert isinstance(last, Failed)
    return last.error.kind
