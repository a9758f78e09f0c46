"""Frames of Gemini Interactions, for `frame_generators.FRAME_GENERATORS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamlib.testing.frame_templates import (
    HALF_HIGH,
    HALF_LOW,
    FrameGenerator,
    fixed,
    indexed,
    placed,
)


def _step(**step: Any) -> FrameGenerator:
    return placed({"event_type": "step.start"}, "index", "step", **step)


def _step_delta(**delta: Any) -> FrameGenerator:
    return placed({"event_type": "step.delta"}, "index", "delta", **delta)


def _interaction(event: str, status: str, **values: Any) -> FrameGenerator:
    interaction = {"id": "v1_1", "model": "m", "object": "interaction", "status": status, **values}
    return fixed(event_type=f"interaction.{event}", interaction=interaction)


INTERACTIONS: Final[Mapping[str, FrameGenerator]] = {
    "created": _interaction("created", "in_progress"),
    "status": fixed(
        event_type="interaction.status_update",
        interaction_id="v1_1",
        status="in_progress",
        continuation_token="tok",  # noqa: S106  # no password
        event_id="e…",
    ),
    "start_text": _step(type="model_output"),
    "start_thought": _step(type="thought"),
    "start_call": _step(type="function_call", id="call_…", name="f", arguments={}),
    "start_complete_call": _step(type="function_call", id="call_…", name="f", arguments={"k": "…"}),
    "start_nameless": _step(type="function_call", id="call_…", arguments={}),
    "start_search": _step(type="google_search_call", id="srv_1", signature=""),
    "start_result": _step(type="google_search_result", call_id="srv_1"),
    "start_unknown": _step(type="hologram", light="…"),
    "start_complete_text": _step(
        type="model_output",
        content=[{"type": "text", "text": "…"}, {"type": "hologram", "light": "…"}],
    ),
    "text": _step_delta(type="text", text="…"),
    "summary": _step_delta(type="thought_summary", content={"type": "text", "text": "…"}),
    "image_summary": _step_delta(type="thought_summary", content={"type": "image", "uri": "…"}),
    "signature": _step_delta(type="thought_signature", signature="c2ln"),
    "empty_signature": _step_delta(type="thought_signature", signature=""),
    "arguments": _step_delta(type="arguments_delta", arguments='{"k": "…"}'),
    "half_arguments": _step_delta(type="arguments_delta", arguments='{"k'),
    "search": _step_delta(type="google_search_call", arguments={"queries": ["…"]}),
    "result": _step_delta(type="google_search_result", result=[{"search_suggestions": "…"}]),
    "image": _step_delta(type="image", data="QUJD", mime_type="image/png"),
    "audio": _step_delta(type="audio", data="QUJD", rate=24000),
    "annotation": _step_delta(
        type="text_annotation_delta",
        annotations=[{"type": "url_citation", "url": "…", "start_index": 0, "end_index": 3}],
    ),
    "high_half": _step_delta(type="text", text=HALF_HIGH),
    "low_half": _step_delta(type="text", text=HALF_LOW),
    "unknown_delta": _step_delta(type="hologram", light="…"),
    "stop": lambda index, _: {
        "event_type": "step.stop",
        **indexed("index", index),
        "usage": {"total_input_tokens": 7},
    },
    "completed": _interaction(
        "completed", "completed", usage={"total_input_tokens": 7, "total_output_tokens": 5}
    ),
    "requires_action": _interaction("completed", "requires_action"),
    "failed": _interaction("completed", "failed", errors=[{"code": "internal", "message": "no"}]),
    "legacy": fixed(event_type="content.start", index=0, content={"type": "text", "text": "…"}),
    "unknown": fixed(event_type="weather.report", wind="…"),
    "error": fixed(
        event_type="error", error={"code": "gateway_timeout", "message": "Deadline expired"}
    ),
    "done_mark": lambda _index, _text: "[DONE]",
}
