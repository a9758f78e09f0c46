"""Payloads and frames of every family of Bedrock InvokeModel."""

from __future__ import annotations

import base64
import json
from typing import Any

from streamlib_parsers import (
    ResponseEvent,
)
from streamlib_parsers.framing.eventstream import encode_message
from streamlib_parsers.wires.invoke import METRICS
from tests.support import wires

Json = dict[str, Any]
MEASURED = {
    METRICS: {
        "inputTokenCount": 7,
        "outputTokenCount": 3,
        "invocationLatency": 268,
        "firstByteLatency": 169,
    }
}


def chunk(payload: Any) -> bytes:
    return raw_chunk(
        json.dumps(
            {"bytes": base64.b64encode(json.dumps(payload).encode()).decode(), "p": "abcdef"}
        ).encode()
    )


def raw_chunk(payload: bytes) -> bytes:
    return encode_message(
        {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"},
        payload,
    )


def exception(name: str, **payload: Any) -> bytes:
    return encode_message(
        {":exception-type": name, ":message-type": "exception"}, json.dumps(payload).encode()
    )


def stream(payloads: list[Json]) -> bytes:
    return b"".join(chunk(payload) for payload in payloads)


def events_of(*chunks: bytes, **options: Any) -> list[ResponseEvent]:
    return wires.events_of("invoke", *chunks, **options)


def codes(events: list[ResponseEvent]) -> list[str]:
    return [event.code for event in events if hasattr(event, "code")]


def claude_payloads() -> list[Json]:
    usage = {"input_tokens": 45, "output_tokens": 1}
    return [
        {
            "type": "message_start",
            "message": {
                "id": "msg_bdrk_1",
                "type": "message",
                "role": "assistant",
                "model": "claude-x",
                "usage": usage,
            },
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 3},
        },
        {"type": "message_stop", **MEASURED},
    ]


def titan(text: str, reason: str | None, total: int | None) -> Json:
    read = None if total else 7
    return {
        "outputText": text,
        "index": 0,
        "totalOutputTextTokenCount": total,
        "completionReason": reason,
        "inputTextTokenCount": read,
    }


def llama(text: str, reason: str | None, counted: int) -> Json:
    read = 7 if counted == 1 else None
    return {
        "generation": text,
        "prompt_token_count": read,
        "generation_token_count": counted,
        "stop_reason": reason,
    }


def mistral(text: str, reason: str | None) -> Json:
    return {"outputs": [{"text": text, "stop_reason": reason}]}


def cohere(text: str) -> Json:
    return {"is_finished": False, "event_type": "text-generation", "text": text}


COHERE_END = {
    "text": "Hello",
    "response_id": "r1",
    "generation_id": "g1",
    "chat_history": [{"role": "USER"}],
    "finish_reason": "COMPLETE",
}
STREAMED: dict[str, list[Json]] = {
    "claude": claude_payloads(),
    "claude-2": [
        {"type": "completion", "completion": "Hel", "stop_reason": None, "stop": None},
        {
            "type": "completion",
            "completion": "lo",
            "stop_reason": "stop_sequence",
            "stop": "\n\nHuman:",
            **MEASURED,
        },
    ],
    "nova": [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"delta": {"text": "Hel"}, "contentBlockIndex": 0}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"contentBlockDelta": {"delta": {"text": "lo"}, "contentBlockIndex": 1}},
        {"contentBlockStop": {"contentBlockIndex": 1}},
        {"messageStop": {"stopReason": "end_turn"}},
        {"metadata": {"usage": {"inputTokens": 7, "outputTokens": 3}, "metrics": {}}, **MEASURED},
    ],
    "completions": [
        {"choices": [{"index": 0, "text": "Hel", "stop_reason": None}]},
        {"choices": [{"index": 0, "text": "lo", "stop_reason": "stop"}], **MEASURED},
    ],
    "chat": [
        {
            "id": "c1",
            "choices": [
                {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
            ],
        },
        {"id": "c1", "choices": [{"index": 0, "delta": {"content": "Hel"}, "finish_reason": None}]},
        {
            "id": "c1",
            "choices": [
                {
                    "index": 0,
                    "delta": {"content": "lo"},
                    "finish_reason": "stop",
                    "stop_reason": 518,
                }
            ],
        },
        MEASURED,
    ],
    "titan": [titan("Hel", None, None), {**titan("lo", "FINISH", 3), **MEASURED}],
    "llama": [llama("Hel", None, 1), {**llama("lo", "stop", 3), **MEASURED}],
    "mistral": [mistral("Hel", None), {**mistral("lo", "stop"), **MEASURED}],
    "cohere": [
        cohere("Hel"),
        cohere("lo"),
        {
            "is_finished": True,
            "event_type": "stream-end",
            "response": COHERE_END,
            "finish_reason": "COMPLETE",
            **MEASURED,
        },
    ],
}

BODY: dict[str, Json] = {
    "claude": {
        "id": "msg_bdrk_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [{"type": "text", "text": "Hello"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 7, "output_tokens": 3},
    },
    "claude-2": {
        "type": "completion",
        "completion": "Hello",
        "stop_reason": "stop_sequence",
        "stop": "\n\nHuman:",
    },
    "nova": {
        "output": {"message": {"content": [{"text": "Hello"}], "role": "assistant"}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 7, "outputTokens": 3},
    },
    "completions": {"choices": [{"text": "Hello", "stop_reason": "stop"}]},
    "chat": {
        "id": "c1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello"},
                "finish_reason": "stop",
            }
        ],
    },
    "titan": {
        "inputTextTokenCount": 7,
        "results": [{"tokenCount": 3.0, "outputText": "Hello", "completionReason": "FINISH"}],
    },
    "llama": {
        "generation": "Hello",
        "prompt_token_count": 7,
        "generation_token_count": 3,
        "stop_reason": "stop",
    },
    "mistral": {"outputs": [{"text": "Hello", "stop_reason": "stop"}]},
    "cohere": COHERE_END,
}
