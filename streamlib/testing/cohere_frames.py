"""Frames of Cohere's v2 chat, for `frame_generators.FRAME_GENERATORS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamlib.testing.frame_templates import (
    HALF_HIGH,
    HALF_LOW,
    FrameGenerator,
    filled,
    fixed,
    indexed,
)


def _event(kind: str, **message: Any) -> FrameGenerator:
    """Generates an event with an index and a message."""
    return lambda index, text: {
        "type": kind,
        **indexed("index", index),
        "delta": {"message": filled(message, text)},
    }


def _content(kind: str, **content: Any) -> FrameGenerator:
    return _event(kind, content=content)


def _call(kind: str, **call: Any) -> FrameGenerator:
    return _event(kind, tool_calls=call)


def _end(reason: str, **delta: Any) -> FrameGenerator:
    return fixed(type="message-end", delta={"finish_reason": reason, **delta})


_SOURCE: Final = {"type": "document", "id": "d"}
_CITATION: Final = {"start": 0, "end": 3, "text": "…", "sources": [_SOURCE]}

COHERE: Final[Mapping[str, FrameGenerator]] = {
    "message_start": fixed(
        type="message-start",
        id="c14c80c3",
        delta={
            "message": {
                "role": "assistant",
                "content": [],
                "tool_plan": "",
                "tool_calls": [],
                "citations": [],
            }
        },
    ),
    "start_text": _content("content-start", type="text", text=""),
    "start_thinking": _content("content-start", type="thinking", thinking=""),
    "start_complete_text": _content("content-start", type="text", text="…"),
    "start_unknown": _content("content-start", type="hologram", light="…"),
    "text": _content("content-delta", text="…"),
    "reasoning": _content("content-delta", thinking="…"),
    "high_half": _content("content-delta", text=HALF_HIGH),
    "low_half": _content("content-delta", text=HALF_LOW),
    "unknown_delta": _content("content-delta", light="…"),
    "logprobs": lambda index, text: {
        "type": "content-delta",
        **indexed("index", index),
        "delta": {"message": {"content": {"text": text}}},
        "logprobs": {"text": text, "token_ids": [7], "logprobs": [-0.5]},
    },
    "content_end": lambda index, _: {"type": "content-end", **indexed("index", index)},
    "plan": fixed(type="tool-plan-delta", delta={"message": {"tool_plan": "…"}}),
    "start_call": _call(
        "tool-call-start", id="call_…", type="function", function={"name": "f", "arguments": ""}
    ),
    "start_nameless": _call(
        "tool-call-start", id="call_…", type="function", function={"arguments": ""}
    ),
    "arguments": _call("tool-call-delta", function={"arguments": '{"k": "…"}'}),
    "half_arguments": _call("tool-call-delta", function={"arguments": '{"k'}),
    "call_end": lambda index, _: {"type": "tool-call-end", **indexed("index", index)},
    "citation": _event(
        "citation-start", citations={**_CITATION, "type": "TEXT_CONTENT", "content_index": 0}
    ),
    "citation_of_plan": _event("citation-start", citations={**_CITATION, "type": "PLAN"}),
    "citation_of_thinking": _event(
        "citation-start", citations={**_CITATION, "type": "THINKING_CONTENT"}
    ),
    "citation_end": lambda index, _: {"type": "citation-end", **indexed("index", index)},
    "complete": _end(
        "COMPLETE",
        usage={
            "billed_units": {"input_tokens": 3, "output_tokens": 5},
            "tokens": {"input_tokens": 7, "output_tokens": 5},
            "cached_tokens": 2,
        },
    ),
    "tool_call": _end("TOOL_CALL"),
    "failed": _end("ERROR", error="the model is not available"),
    "timeout": _end("TIMEOUT"),
    "debug": fixed(type="debug", prompt="…"),
    "unknown": fixed(type="weather-report", wind="…"),
    "error": fixed(id="e", message="too many tokens", error_type="TOO_MANY_TOKENS"),
    "done_mark": lambda _index, _text: "[DONE]",
}
