"""Recordings for the inspector: bodies of `tests/recordings` with times, and made ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from streamlib.recording import Chunk, Recording
from streamlib_parsers.items import WireApi
from tests.support.shared import ROOT

RECORDINGS: Final = ROOT / "tests" / "recordings"

HOSTILE_TEXTS: Final = (
    "</script><script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 2'>",
    "<!--<style>*{display:none}",
    "before \u202e after \u2066 isolated \x1b[31m\x00",
    "javascript:window.hit=3",
)


def body_of(name: str) -> bytes:
    """A body of `tests/recordings`, for example `chat/llama-tool.sse`."""
    return (RECORDINGS / name).read_bytes()


def paced(
    body: bytes,
    wire_api: WireApi,
    *,
    chunk_bytes: int = 200,
    step: float = 0.02,
    pauses: Mapping[int, float] | None = None,
    end: str | None = None,
) -> Recording:
    """A recording of a body: chunks of one size, one every `step` seconds.

    Args:
        body: all bytes.
        wire_api: the wire.
        chunk_bytes: bytes of a chunk.
        step: seconds between two chunks.
        pauses: number of a chunk -> further seconds before it.
        end: what ended it; None: it is complete.
    """
    chunks: list[Chunk] = []
    now = 0.3
    for offset in range(0, len(body), chunk_bytes):
        now += step + (pauses or {}).get(len(chunks), 0.0)
        chunks.append(Chunk(round(now, 6), body[offset : offset + chunk_bytes]))
    headers = {
        "content-type": "text/event-stream",
        "x-request-id": "req_7",
        "x-ratelimit-limit-requests": "1000",
        "x-ratelimit-remaining-requests": "997",
    }
    url = "https://api.example/v1"
    return Recording(200, headers, tuple(chunks), end, "POST", url, wire_api)


def messages_body(blocks: Iterable[Mapping[str, Any]], deltas: Sequence[Sequence[Any]]) -> bytes:
    """A Messages stream: the blocks, one after the other, each with its deltas."""
    message = {"id": "msg_1", "model": "claude", "role": "assistant", "content": []}
    usage = {"input_tokens": 2000, "cache_read_input_tokens": 1500, "output_tokens": 1}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "type": "message", "usage": usage}}
    ]
    for index, block in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        for delta in deltas[index]:
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": "end_turn"}
    events.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": 300}})
    events.append({"type": "message_stop"})
    return b"".join(sse(event) for event in events)


def sse(event: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    data = json.dumps(event, ensure_ascii=False)
    return f"event: {event['type']}\ndata: {data}\n\n".encode()


def text_deltas(texts: Iterable[str]) -> list[dict[str, str]]:
    """Deltas of a block of text."""
    return [{"type": "text_delta", "text": text} for text in texts]


def argument_deltas(fragments: Iterable[str]) -> list[dict[str, str]]:
    """Deltas of the arguments of a call."""
    return [{"type": "input_json_delta", "partial_json": fragment} for fragment in fragments]


def hostile_body() -> bytes:
    """A stream whose texts would all run code in a page that inserted them as HTML."""
    call = {"type": "tool_use", "id": "c1", "name": HOSTILE_TEXTS[1], "input": {}}
    fragment = json.dumps({HOSTILE_TEXTS[0]: HOSTILE_TEXTS[1], "x": HOSTILE_TEXTS[3]})
    arguments = argument_deltas([fragment[:40], fragment[40:]])
    blocks = [{"type": "text", "text": ""}, call]
    body = messages_body(blocks, [text_deltas(HOSTILE_TEXTS), arguments])
    unknown = sse({"type": HOSTILE_TEXTS[1], "data": HOSTILE_TEXTS[0]})
    return body + unknown


def long_body(deltas: int) -> bytes:
    """A stream of so many deltas, about half of them reasoning."""
    thoughts = [f"step {number} " for number in range(deltas // 2)]
    thinking = [{"type": "thinking_delta", "thinking": thought} for thought in thoughts]
    words = text_deltas(f"wörd{number} " for number in range(deltas - deltas // 2))
    blocks = [{"type": "thinking", "thinking": ""}, {"type": "text", "text": ""}]
    return messages_body(blocks, [thinking, words])
