"""Members of the google-genai SDK's Interactions: every event, step, delta and content."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from typing import Any, Final

from lab.drift.instances import Instances
from lab.drift.member import Member, models_of

Json = dict[str, Any]

types: Final[Any] = importlib.import_module("google.genai._gaos.types.interactions")

POSITIONS: Final = {
    "index",
    "type",
    "event_type",
    "object",
    "is_unknown",
    "raw",
    "start_index",
    "end_index",
}
"""Where a member belongs, what it is, and what the SDK itself makes of kinds it does not know.
Offsets of annotations are numbers of characters in events."""

OF_REQUESTS: Final = {
    "agent_config",
    "cached_content",
    "environment",
    "generation_config",
    "input",
    "response_format",
    "webhook_config",
}
"""Fields of an interaction that only repeat its request."""

SDK_ONLY: Final = {"output_audio", "output_image", "output_text", "output_video"}
"""Fields that the SDK adds; they are not on the wire."""

STEP_OF_DELTA: Final = {
    "text": "model_output",
    "text_annotation_delta": "model_output",
    "image": "model_output",
    "audio": "model_output",
    "document": "model_output",
    "video": "model_output",
    "thought_summary": "thought",
    "thought_signature": "thought",
    "arguments_delta": "function_call",
}
"""The step that a delta belongs to; any other has the name of its step."""

STARTS: Final[dict[str, Json]] = {
    "function_call": {"id": "c", "name": "f", "arguments": {}},
    "function_result": {"call_id": "c"},
}


def sse(*events: Json) -> bytes:
    """A stream of these events."""
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def stream(*events: Json, **interaction: Any) -> bytes:
    """A complete stream with these events of steps."""
    complete = {"id": "v1", "model": "m", "status": "completed", **interaction}
    created = {"event_type": "interaction.created", "interaction": {"id": "v1", "model": "m"}}
    completed = {"event_type": "interaction.completed", "interaction": complete}
    return sse(created, *events, completed)


def members() -> Iterator[Member]:
    """Each step and each delta, each event around them, each field of the interaction."""
    make = Instances(by_alias=True)
    for model in models_of(types.Step):
        for instance in make.of_model(model):
            if instance["type"] == "UNKNOWN":
                continue
            events = (
                {"event_type": "step.start", "index": 0, "step": instance},
                {"event_type": "step.stop", "index": 0},
            )
            yield _member(model.__name__, instance, stream(*events))
    for model in models_of(types.StepDelta.model_fields["delta"].annotation):
        for instance in make.of_model(model):
            if instance["type"] == "UNKNOWN":
                continue
            delta_kind = str(instance["type"])
            kind = STEP_OF_DELTA.get(delta_kind, delta_kind)
            step = {"type": kind, **STARTS.get(kind, {})}
            events = (
                {"event_type": "step.start", "index": 0, "step": step},
                {"event_type": "step.delta", "index": 0, "delta": instance},
                {"event_type": "step.stop", "index": 0},
            )
            yield _member(model.__name__, instance, stream(*events))
    yield from _events(make)
    yield from _interactions(make)


def _events(make: Instances) -> Iterator[Member]:
    step = {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}}
    for instance in make.of_model(types.StepStop):
        events = (step, {**instance, "index": 0})
        yield _member("StepStop", instance, stream(*events))
    for name in ("InteractionStatusUpdate", "ErrorEvent"):
        for instance in make.of_model(getattr(types, name)):
            yield _member(name, instance, sse(instance))
    for instance in make.of_model(types.StepDeltaMetadata):
        delta = {"type": "text", "text": "Hi"}
        event = {"event_type": "step.delta", "index": 0, "delta": delta, "metadata": instance}
        yield _member("StepDeltaMetadata", instance, stream(step, event))


def _interactions(make: Instances) -> Iterator[Member]:
    for name in ("Interaction", "InteractionSseEventInteraction"):
        model = getattr(types, name)
        for key, field in model.model_fields.items():
            if key in OF_REQUESTS | SDK_ONLY | {"steps", "status", "id", "model", "agent"}:
                continue
            for value in make.of_type(field.annotation, key, 1):
                body = stream(**{field.alias or key: value})
                yield _member(f"{name}.{key}", {key: value}, body)


def _member(name: str, instance: Json, body: bytes) -> Member:
    return Member("google-genai interactions", name, "interactions", instance, body, POSITIONS)
