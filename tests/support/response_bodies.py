"""Small responses of four wires, as bytes."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any, Final

HELLO_TEXT: Final = "Hello there"


def sse(data: Any, event: str | None = None) -> bytes:
    """A server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data)
    return ((f"event: {event}\n" if event else "") + f"data: {text}\n\n").encode()


def named(kind: str, **values: Any) -> bytes:
    """An event of Messages or Responses, with its name in `event:` and in the data."""
    return sse({"type": kind, **values}, kind)


# --- messages ---

START: Final = named(
    "message_start",
    message={
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": [],
        "usage": {"input_tokens": 7, "output_tokens": 1},
    },
)


def block(index: int, kind: str = "text", **values: Any) -> bytes:
    """The start of a content block."""
    content: dict[str, Any] = {"type": kind}
    if kind == "text":
        content["text"] = ""
    return named("content_block_start", index=index, content_block={**content, **values})


def text(delta: str, index: Any = 0) -> bytes:
    """Text of a block."""
    return named("content_block_delta", index=index, delta={"type": "text_delta", "text": delta})


def arguments(delta: str, index: int = 0) -> bytes:
    """Arguments of a call."""
    return named(
        "content_block_delta",
        index=index,
        delta={"type": "input_json_delta", "partial_json": delta},
    )


def stop(index: int = 0) -> bytes:
    """The end of a block."""
    return named("content_block_stop", index=index)


def finish(reason: str = "end_turn", tokens: int = 5) -> bytes:
    """Stop reason and usage, before the end."""
    return named("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": tokens})


LAST: Final = named("message_stop")
PING: Final = named("ping")
OPENED: Final = START + block(0)
HELLO: Final = OPENED + text("Hello") + text(" there")
MESSAGE: Final = HELLO + stop() + finish() + LAST
CALL: Final = START + block(0, "tool_use", id="toolu_1", name="get_weather", input={})
OVERLOADED: Final = named("error", error={"type": "overloaded_error", "message": "Overloaded"})

COMPLETE_BODY: Final = json.dumps(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": [{"type": "text", "text": HELLO_TEXT}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 7, "output_tokens": 5},
    }
).encode()


def error_body(kind: str, message: str = "no") -> bytes:
    """An error as Anthropic writes it."""
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


# --- chat ---


def part(
    delta: dict[str, Any] | None = None, finish_reason: str | None = None, **values: Any
) -> bytes:
    """A Chat chunk with one choice."""
    return sse(
        {
            "id": "c-1",
            "model": "m-1",
            "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish_reason}],
            **values,
        }
    )


def calls(*fragments: dict[str, Any]) -> bytes:
    """A Chat chunk with fragments of tool calls."""
    return part({"tool_calls": list(fragments)})


DONE: Final = sse("[DONE]")
CHAT: Final = (
    part({"content": "Hello"}) + part({"content": " there"}) + part(finish_reason="stop") + DONE
)

# --- responses ---

CREATED: Final = named(
    "response.created",
    response={"id": "resp_1", "model": "m-1", "status": "in_progress", "output": []},
)


def response_end(status: str, **values: Any) -> bytes:
    """The terminal event of Responses."""
    return named(
        f"response.{status}",
        response={"id": "resp_1", "model": "m-1", "status": status, "output": [], **values},
    )


# --- converse ---


def aws(payload: Any, **headers: str) -> bytes:
    """A frame of AWS's event stream."""
    lines = b"".join(
        bytes([len(name)])
        + name.encode()
        + b"\x07"
        + struct.pack(">H", len(value))
        + value.encode()
        for name, value in ((f":{key.replace('_', '-')}", value) for key, value in headers.items())
    )
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    start = struct.pack(">II", 16 + len(lines) + len(body), len(lines))
    frame = start + struct.pack(">I", zlib.crc32(start)) + lines + body
    return frame + struct.pack(">I", zlib.crc32(frame))


def converse(kind: str, **payload: Any) -> bytes:
    """An event of ConverseStream."""
    return aws(payload, message_type="event", event_type=kind, content_type="application/json")


def frames_of(count: int) -> list[bytes]:
    """A message of so many words, one event each."""
    return [START, block(0), *(text(f"word {n} ") for n in range(count)), stop(), finish(), LAST]
