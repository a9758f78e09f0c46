"""Frames that a server of each wire may send, valid or not: `name -> (index, text) -> payload`.

`index` is any JSON value, allowed by the wire or not (`INDEXES`); `MISSING` omits the key. `text`
is the content, so that a test can send a mark and look for it in the events. Nothing is checked
here: calling the generators in another order makes a delta before its start, a second end, or a
stop without a start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamlib.testing.cohere_frames import COHERE
from streamlib.testing.frame_templates import (
    HALF_HIGH,
    HALF_LOW,
    MISSING,
    FrameGenerator,
    filled,
    fixed,
    indexed,
    placed,
)
from streamlib.testing.interactions_frames import INTERACTIONS
from streamlib_parsers.items import WireApi

LEGAL: Final = (0, 1, 2, 3)
ILLEGAL: Final[tuple[Any, ...]] = (
    -1,
    2**53,
    2**63,
    "0",
    "",
    None,
    0.5,
    1e300,
    True,
    [],
    {},
    MISSING,
)
"""Values that no wire allows as index. An integral float is allowed: some servers write `1.0`."""
INDEXES: Final[tuple[Any, ...]] = (*LEGAL, 1.0, *ILLEGAL)

# --- messages ---


def _start(**block: Any) -> FrameGenerator:
    return placed({"type": "content_block_start"}, "index", "content_block", **block)


def _delta(**delta: Any) -> FrameGenerator:
    return placed({"type": "content_block_delta"}, "index", "delta", **delta)


_MESSAGE: Final = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
}

MESSAGES: Final[Mapping[str, FrameGenerator]] = {
    "message_start": fixed(
        type="message_start", message={**_MESSAGE, "usage": {"input_tokens": 7, "output_tokens": 1}}
    ),
    "start_text": _start(type="text", text=""),
    "start_thinking": _start(type="thinking", thinking="", signature=""),
    "start_call": _start(type="tool_use", id="call_…", name="f", input={}),
    "start_complete_call": _start(type="tool_use", id="call_…", name="f", input={"k": "…"}),
    "start_server_call": _start(type="server_tool_use", id="srv_1", name="web_search", input={}),
    "start_result": _start(
        type="web_search_tool_result", tool_use_id="srv_1", content=[{"title": "…"}]
    ),
    # Encrypted reasoning: no delta follows.
    "start_redacted": _start(type="redacted_thinking", data="c2VhbGVk"),
    "start_nameless": _start(type="tool_use", id="call_…", input={}),
    "start_unknown": _start(type="hologram", text="…"),
    "text": _delta(type="text_delta", text="…"),
    "reasoning": _delta(type="thinking_delta", thinking="…"),
    "signature": _delta(type="signature_delta", signature="c2ln"),
    "arguments": _delta(type="input_json_delta", partial_json='{"k": "…"}'),
    "half_arguments": _delta(type="input_json_delta", partial_json='{"k'),
    "high_half": _delta(type="text_delta", text=HALF_HIGH),
    "low_half": _delta(type="text_delta", text=HALF_LOW),
    "citation": _delta(type="citations_delta", citation={"cited_text": "…"}),
    "unknown_delta": _delta(type="hologram_delta", light="…"),
    "stop": lambda index, _: {"type": "content_block_stop", **indexed("index", index)},
    "message_delta": fixed(
        type="message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 5}
    ),
    "message_stop": fixed(type="message_stop"),
    "ping": fixed(type="ping"),
    "unknown": fixed(type="weather_report", wind="…"),
    "error": fixed(type="error", error={"type": "overloaded_error", "message": "Overloaded"}),
}

# --- responses ---


def _item_event(kind: str, **values: Any) -> FrameGenerator:
    return lambda index, text: {
        "type": f"response.{kind}",
        **indexed("output_index", index),
        "item_id": f"it_{index}",
        **filled(values, text),
    }


def _item(kind: str, **values: Any) -> FrameGenerator:
    status = "in_progress"
    if kind == "done":
        status = "completed"
    item = {"id": "it", "status": status, **values}
    return lambda index, text: {
        "type": f"response.output_item.{kind}",
        **indexed("output_index", index),
        "item": {**filled(item, text), "id": f"it_{index}"},
    }


def _final(status: str, **values: Any) -> FrameGenerator:
    response = {"id": "resp_1", "model": "m", "status": status, "output": [], **values}
    return fixed(type=f"response.{status}", response=response)


_CALL: Final = {"type": "function_call", "call_id": "call_…", "name": "f"}
_COMPUTER: Final = {"type": "computer_call", "call_id": "call_…", "pending_safety_checks": []}
_PATCH: Final = {
    "type": "apply_patch_call",
    "call_id": "call_…",
    "operation": {"type": "create_file", "path": "a.txt", "diff": ""},
}
_PART: Final = {"type": "output_text", "annotations": []}

RESPONSES: Final[Mapping[str, FrameGenerator]] = {
    "created": fixed(
        type="response.created",
        response={"id": "resp_1", "model": "m", "status": "in_progress", "output": []},
    ),
    "add_message": _item("added", type="message", role="assistant", content=[]),
    "add_reasoning": _item("added", type="reasoning", summary=[]),
    "add_call": _item("added", **_CALL, arguments=""),
    "add_custom": _item("added", type="custom_tool_call", call_id="call_…", name="g", input=""),
    "add_search": _item("added", type="web_search_call"),
    # Calls of tools that the provider defines and the caller runs; they have no deltas.
    "add_computer": _item("added", **_COMPUTER, actions=[]),
    "add_shell": _item("added", type="shell_call", call_id="call_…", action={"commands": []}),
    "add_patch": _item("added", **_PATCH),
    "add_nameless": _item("added", type="function_call", call_id="call_…", arguments=""),
    "add_unknown": _item("added", type="hologram", light="…"),
    "part": _item_event("content_part.added", content_index=0, part={**_PART, "text": ""}),
    "text": _item_event("output_text.delta", content_index=0, delta="…"),
    "text_done": _item_event("output_text.done", content_index=0, text="…"),
    "refusal": _item_event("refusal.delta", content_index=1, delta="…"),
    "summary": _item_event("reasoning_summary_text.delta", summary_index=0, delta="…"),
    "reasoning": _item_event("reasoning_text.delta", content_index=0, delta="…"),
    "arguments": _item_event("function_call_arguments.delta", delta='{"k": "…"}'),
    "arguments_done": _item_event("function_call_arguments.done", arguments='{"k": "…"}'),
    "input": _item_event("custom_tool_call_input.delta", delta="…"),
    "high_half": _item_event("output_text.delta", content_index=0, delta=HALF_HIGH),
    "low_half": _item_event("output_text.delta", content_index=0, delta=HALF_LOW),
    "annotation": _item_event(
        "output_text.annotation.added",
        content_index=0,
        annotation={"type": "url_citation", "url": "…"},
    ),
    "searching": _item_event("web_search_call.searching"),
    "done_message": _item(
        "done", type="message", role="assistant", content=[{**_PART, "text": "…"}]
    ),
    "done_reasoning": _item(
        "done", type="reasoning", summary=[{"type": "summary_text", "text": "…"}]
    ),
    "done_call": _item("done", **_CALL, arguments='{"k": "…"}'),
    "done_computer": _item("done", **_COMPUTER, actions=[{"type": "type", "text": "…"}]),
    # Models before 2026 send one `action`, not a list.
    "done_old_computer": _item("done", **_COMPUTER, action={"type": "type", "text": "…"}),
    "done_shell": _item(
        "done", type="shell_call", call_id="call_…", action={"commands": ["…"], "timeout_ms": 1000}
    ),
    "done_local_shell": _item(
        "done",
        type="local_shell_call",
        call_id="call_…",
        action={"type": "exec", "command": ["…"], "env": {}},
    ),
    "patch_diff": _item_event("apply_patch_call_operation_diff.delta", delta="…"),
    "done_patch": _item(
        "done",
        type="apply_patch_call",
        call_id="call_…",
        operation={"type": "create_file", "path": "a.txt", "diff": "…"},
    ),
    "done_approval": _item(
        "done",
        type="mcp_approval_request",
        server_label="files",
        name="f",
        arguments='{"k": "…"}',
    ),
    "done_tool_search": _item(
        "done",
        type="tool_search_call",
        call_id="call_…",
        execution="client",
        arguments={"goal": "…"},
    ),
    # A final item that lacks the text of its deltas.
    "done_empty": _item("done", type="message", role="assistant", content=[]),
    "done_unknown": _item("done", type="hologram", light="…"),
    "keepalive": fixed(type="keepalive"),
    "unknown": fixed(type="response.weather", wind="…"),
    "completed": _final("completed", usage={"input_tokens": 7, "output_tokens": 5}),
    "incomplete": _final("incomplete", incomplete_details={"reason": "max_output_tokens"}),
    "failed": _final("failed", error={"code": "server_error", "message": "no"}),
    "error": fixed(type="error", code="rate_limit_exceeded", message="slow down"),
    "done_mark": lambda _index, _text: "[DONE]",
}

# --- chat ---


def _chunk(delta: Any = None, finish_reason: str | None = None, **values: Any) -> FrameGenerator:
    """Generates a chunk; `index` is the index of its choice."""

    def generate(index: Any, text: str) -> Any:
        choice = {
            **indexed("index", index),
            "delta": filled(delta or {}, text),
            "finish_reason": finish_reason,
        }
        return {"id": "c1", "model": "m", "choices": [choice], **values}

    return generate


def _call(**call: Any) -> FrameGenerator:
    """Generates a chunk of choice 0; `index` is the index of its call."""

    def generate(index: Any, text: str) -> Any:
        calls = [{**indexed("index", index), **filled(call, text)}]
        return {
            "id": "c1",
            "model": "m",
            "choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": None}],
        }

    return generate


CHAT: Final[Mapping[str, FrameGenerator]] = {
    "role": _chunk({"role": "assistant", "content": ""}),
    "text": _chunk({"content": "…"}),
    "reasoning": _chunk({"reasoning_content": "…"}),
    "refusal": _chunk({"refusal": "…"}),
    "begin_call": _call(id="call_…", type="function", function={"name": "f", "arguments": ""}),
    "arguments": _call(function={"arguments": '{"k": "…"}'}),
    "half_arguments": _call(function={"arguments": '{"k'}),
    "complete_call": _call(
        id="call_…", type="function", function={"name": "f", "arguments": '{"k": "…"}'}
    ),
    "nameless_call": _call(id="call_…", type="function", function={"arguments": "{}"}),
    # A call of a custom tool, whose input is free text.
    "custom_call": _call(id="call_…", type="custom", custom={"name": "g", "input": "…"}),
    "unknown_call": _call(id="call_…", type="hologram", hologram={"light": "…"}),
    "high_half": _chunk({"content": HALF_HIGH}),
    "low_half": _chunk({"content": HALF_LOW}),
    "audio": _chunk({"audio": {"id": "a", "data": "QUJD", "transcript": "…"}}),
    "unknown_key": _chunk({"hologram": "…"}),
    "stop": _chunk({}, "stop"),
    "tool_calls": _chunk({}, "tool_calls"),
    "length": _chunk({}, "length"),
    "usage": fixed(
        id="c1",
        model="m",
        choices=[],
        usage={"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
    ),
    "empty": fixed(id="c1", choices=[]),
    "error": fixed(
        error={
            "message": "Rate limit reached",
            "type": "rate_limit_error",
            "code": "rate_limit_exceeded",
        }
    ),
    "done": lambda _index, _text: "[DONE]",
}

# --- gemini ---


def _parts(*parts: Any, finish: Any = None, **values: Any) -> FrameGenerator:
    def generate(index: Any, text: str) -> Any:
        candidate: dict[str, Any] = {}
        if parts:
            candidate["content"] = {"parts": filled(list(parts), text), "role": "model"}
        candidate.update(indexed("index", index))
        if finish:
            candidate["finishReason"] = finish
        return {
            "candidates": [candidate],
            "responseId": "r1",
            "modelVersion": "m",
            **values,
        }

    return generate


GEMINI: Final[Mapping[str, FrameGenerator]] = {
    "text": _parts({"text": "…"}),
    "reasoning": _parts({"text": "…", "thought": True}),
    "signed": _parts({"text": "…", "thoughtSignature": "c2ln"}),
    "call": _parts({"functionCall": {"name": "f", "args": {"k": "…"}}}),
    # A part with the id of an earlier call is a repetition of that call.
    "call_again": _parts({"functionCall": {"id": "same", "name": "f", "args": {"k": "…"}}}),
    "begin_call": _parts({"functionCall": {"name": "f", "willContinue": True}}),
    "argument": _parts(
        {
            "functionCall": {
                "partialArgs": [{"jsonPath": "$.k", "stringValue": "…"}],
                "willContinue": True,
            }
        }
    ),
    "end_call": _parts({"functionCall": {}}),
    "nameless_call": _parts({"functionCall": {"args": {"k": "…"}}}),
    "code": _parts({"executableCode": {"code": "…", "language": "PYTHON"}}),
    "code_result": _parts({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "…"}}),
    "image": _parts({"inlineData": {"mimeType": "image/png", "data": "QUJD"}}),
    "unknown_part": _parts({"hologram": "…"}),
    "empty_part": _parts({}),
    "high_half": _parts({"text": HALF_HIGH}),
    "low_half": _parts({"text": HALF_LOW}),
    "stop": _parts(finish="STOP"),
    "length": _parts({"text": "…"}, finish="MAX_TOKENS"),
    "filtered": _parts(finish="SAFETY"),
    "continuation": _parts(finish="CONTINUATION"),
    # Clients that request integer enums receive them.
    "number": _parts(finish=1),
    "usage": fixed(usageMetadata={"promptTokenCount": 7, "candidatesTokenCount": 5}),
    "blocked": fixed(promptFeedback={"blockReason": "SAFETY"}),
    "error": fixed(error={"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}),
}

# --- converse ---


def _block(name: str, **values: Any) -> FrameGenerator:
    return lambda index, text: {
        name: {**indexed("contentBlockIndex", index), **filled(values, text)}
    }


CONVERSE: Final[Mapping[str, FrameGenerator]] = {
    "message_start": fixed(messageStart={"role": "assistant"}),
    "start_call": _block(
        "contentBlockStart", start={"toolUse": {"toolUseId": "call_…", "name": "f"}}
    ),
    "start_nameless": _block("contentBlockStart", start={"toolUse": {"toolUseId": "call_…"}}),
    "start_unknown": _block("contentBlockStart", start={"hologram": {"light": "…"}}),
    "text": _block("contentBlockDelta", delta={"text": "…"}),
    "reasoning": _block("contentBlockDelta", delta={"reasoningContent": {"text": "…"}}),
    "signature": _block("contentBlockDelta", delta={"reasoningContent": {"signature": "c2ln"}}),
    "redacted": _block(
        "contentBlockDelta", delta={"reasoningContent": {"redactedContent": "c2VhbGVk"}}
    ),
    "arguments": _block("contentBlockDelta", delta={"toolUse": {"input": '{"k": "…"}'}}),
    "half_arguments": _block("contentBlockDelta", delta={"toolUse": {"input": '{"k'}}),
    "citation": _block("contentBlockDelta", delta={"citation": {"title": "…"}}),
    "image": _block(
        "contentBlockDelta", delta={"image": {"format": "png", "source": {"bytes": "QUJD"}}}
    ),
    "unknown_delta": _block("contentBlockDelta", delta={"hologram": "…"}),
    "high_half": _block("contentBlockDelta", delta={"text": HALF_HIGH}),
    "low_half": _block("contentBlockDelta", delta={"text": HALF_LOW}),
    "stop": _block("contentBlockStop"),
    "message_stop": fixed(messageStop={"stopReason": "end_turn"}),
    "message_stop_calls": fixed(messageStop={"stopReason": "tool_use"}),
    "metadata": fixed(metadata={"usage": {"inputTokens": 7, "outputTokens": 5, "totalTokens": 12}}),
    "unknown": fixed(weatherReport={"wind": "…"}),
    "exception": lambda _index, _text: {
        "exception:throttlingException": {"message": "Too many requests"}
    },
}

# --- ollama ---


def _line(**message: Any) -> FrameGenerator:
    return lambda _, text: {
        "model": "m",
        "message": {"role": "assistant", **filled(message, text)},
        "done": False,
    }


def _line_with_done(index: Any, text: str) -> Any:
    """A line with `index` as the value of `done`: this wire has no index field."""
    done = index
    if index is MISSING:
        done = None
    return {"model": "m", "message": {"content": text}, "done": done}


OLLAMA: Final[Mapping[str, FrameGenerator]] = {
    "text": _line(content="…"),
    "reasoning": _line(content="", thinking="…"),
    "call": _line(content="", tool_calls=[{"function": {"name": "f", "arguments": {"k": "…"}}}]),
    # Some servers of the wire write arguments as JSON text.
    "text_arguments": _line(
        content="", tool_calls=[{"function": {"name": "f", "arguments": '{"k": "…"}'}}]
    ),
    "nameless_call": _line(content="", tool_calls=[{"function": {"arguments": {"k": "…"}}}]),
    "images": _line(content="", images=["iVBORw0KGgo="]),
    # A line of /api/generate, which this wire does not use.
    "generate": fixed(model="m", response="…", done=False),
    "unknown_key": _line(content="", hologram="…"),
    "high_half": _line(content=HALF_HIGH),
    "low_half": _line(content=HALF_LOW),
    "placed": _line_with_done,
    "done": fixed(
        model="m",
        message={"role": "assistant", "content": ""},
        done=True,
        done_reason="stop",
        eval_count=5,
    ),
    "length": fixed(
        model="m", message={"role": "assistant", "content": "…"}, done=True, done_reason="length"
    ),
    "error": fixed(error="model runner has unexpectedly stopped"),
}

_TITAN: Final[Mapping[str, FrameGenerator]] = {
    "titan": fixed(outputText="…", index=0, completionReason=None),
    "titan_end": fixed(
        outputText="…",
        index=0,
        completionReason="FINISH",
        **{"amazon-bedrock-invocationMetrics": {"inputTokenCount": 7}},
    ),
}

FRAME_GENERATORS: Final[Mapping[WireApi, Mapping[str, FrameGenerator]]] = {
    "messages": MESSAGES,
    "responses": RESPONSES,
    "chat": CHAT,
    "gemini": GEMINI,
    "interactions": INTERACTIONS,
    "converse": CONVERSE,
    "invoke": {**MESSAGES, **_TITAN},
    "ollama": OLLAMA,
    "cohere": COHERE,
}
"""Wire -> its generators by name."""


def frame_generators(wire_api: WireApi) -> Mapping[str, FrameGenerator]:
    """The generators of a wire, by the name of the frame.

    Raises:
        ValueError: the wire has no generators, so it cannot be fuzzed yet.
    """
    generators = FRAME_GENERATORS.get(wire_api)
    if generators is None:
        raise ValueError(
            f"no frames to fuzz {wire_api!r} with: add them to FRAME_GENERATORS "
            "in streamlib/testing/frame_generators.py"
        )
    return generators
