"""Members of the unions of the openai SDK's Responses API, each inside a whole response."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from openai.types import beta, responses
from pydantic import BaseModel

from lab.drift.instances import Instances
from lab.drift.member import Member, models_of
from tests.support.responses_frames import added, completed, created, done, frame

Json = dict[str, Any]

POSITIONS: Final = {
    "type",
    "sequence_number",
    "output_index",
    "content_index",
    "summary_index",
    "annotation_index",
    "command_index",
    "item_id",
    "stream_id",
}
"""Where a member belongs, and what it is."""

ITEM_ID: Final = "it_0"
TEXT_MESSAGE: Final[Json] = {"type": "message", "id": ITEM_ID, "role": "assistant", "content": []}
CALL: Final[Json] = {"id": ITEM_ID, "call_id": "call_1", "name": "look", "status": "in_progress"}

ITEMS: Final[dict[str, Json]] = {
    "output_text": TEXT_MESSAGE,
    "refusal": TEXT_MESSAGE,
    "content_part": TEXT_MESSAGE,
    "audio": TEXT_MESSAGE,
    "audio.transcript": TEXT_MESSAGE,
    "reasoning_summary_part": {"type": "reasoning", "id": ITEM_ID, "summary": []},
    "reasoning_summary_text": {"type": "reasoning", "id": ITEM_ID, "summary": []},
    "reasoning_text": {"type": "reasoning", "id": ITEM_ID, "summary": []},
    "function_call_arguments": CALL | {"type": "function_call", "arguments": ""},
    "custom_tool_call_input": CALL | {"type": "custom_tool_call", "input": ""},
    "mcp_call_arguments": CALL | {"type": "mcp_call", "server_label": "s", "arguments": ""},
    "mcp_call": CALL | {"type": "mcp_call", "server_label": "s", "arguments": ""},
    "mcp_list_tools": {"type": "mcp_list_tools", "id": ITEM_ID, "server_label": "s", "tools": []},
    "code_interpreter_call": {
        "type": "code_interpreter_call",
        "id": ITEM_ID,
        "code": "",
        "container_id": "c",
        "outputs": [],
        "status": "in_progress",
    },
    "code_interpreter_call_code": {
        "type": "code_interpreter_call",
        "id": ITEM_ID,
        "code": "",
        "container_id": "c",
        "outputs": [],
        "status": "in_progress",
    },
    "file_search_call": {
        "type": "file_search_call",
        "id": ITEM_ID,
        "queries": [],
        "status": "in_progress",
    },
    "web_search_call": {"type": "web_search_call", "id": ITEM_ID, "status": "in_progress"},
    "image_generation_call": {
        "type": "image_generation_call",
        "id": ITEM_ID,
        "status": "in_progress",
        "result": None,
    },
    "shell_call_command": CALL
    | {"type": "shell_call", "action": {"commands": []}, "environment": {"type": "local"}},
    "shell_call_output_content": {
        "type": "shell_call_output",
        "id": ITEM_ID,
        "call_id": "call_1",
        "output": [],
        "status": "in_progress",
    },
    "compaction": {"type": "compaction", "id": ITEM_ID, "encrypted_content": ""},
}
"""The item that an event is about, by the event's name without its last word."""

IMAGE_SETTINGS: Final = ("background", "quality", "size", "output_format")
"""Fields of an image that its partial images repeat."""

OF_CONNECTION: Final = ("steer.", "inject.")
"""Beginnings of the events of a WebSocket that are about none of its items."""

WHOLE: Final = ("created", "in_progress", "queued", "completed", "incomplete", "failed")
"""Events that hold the response."""


def members() -> Iterator[Member]:
    """Every event, and every output item: streamed, and in a whole body; stable, then beta.

    The events of a WebSocket's server are those of the stream, and some about the connection.
    """
    events = models_of(responses.ResponseStreamEvent) + models_of(responses.ResponsesServerEvent)
    yield from _of("openai", events, responses.ResponseOutputItem)
    events = models_of(beta.BetaResponseStreamEvent) + models_of(beta.BetaResponsesServerEvent)
    yield from _of("openai beta", events, beta.BetaResponseOutputItem)


def _of(sdk: str, events: list[type[BaseModel]], items: Any) -> Iterator[Member]:
    for model in events:
        for member in _of_event(model):
            yield replace(member, sdk=sdk)
    make = Instances()
    for model in models_of(items):
        for instance in make.of_model(model):
            start = added(instance | {"status": "in_progress"})
            body = created() + start + done(instance) + completed(instance)
            yield replace(_member(f"{model.__name__} (streamed)", instance, body), sdk=sdk)
            whole = json.dumps(_response(output=[instance])).encode()
            name = f"{model.__name__} (whole)"
            yield replace(_member(name, instance, whole, is_stream=False), sdk=sdk)


def _of_event(model: type[BaseModel]) -> Iterator[Member]:
    make = Instances()
    for instance in make.of_model(model):
        kind = instance["type"]
        name = kind.removeprefix("response.")
        if name in ("output_item.added", "output_item.done"):
            continue  # the items are members of their own
        if name in WHOLE:
            yield _member(model.__name__, *_whole(kind, name, instance))
            continue
        if kind == "error":
            yield _member(model.__name__, instance, created() + _frame(instance))
            continue
        if name.startswith(OF_CONNECTION):
            body = created() + _frame(instance) + completed()
            yield _member(model.__name__, instance, body)
            continue
        item = ITEMS[name.rsplit(".", 1)[0].removesuffix(".annotation")]
        for key in POSITIONS - {"type"}:
            if key in instance:
                instance[key] = ITEM_ID if key == "item_id" else 0
        final = _final(item, instance)
        body = created() + added(item) + _frame(instance) + done(final) + completed(final)
        yield _member(model.__name__, instance, body)


def _final(item: Json, event: Json) -> Json:
    """The item as it is once it is done: it repeats what the event brought."""
    if event.get("part", {}).get("type") in ("output_text", "refusal"):
        return item | {"content": [event["part"]]}
    if event["type"] == "response.output_text.done":
        part = {"type": "output_text", "text": event["text"], "logprobs": event["logprobs"]}
        return item | {"content": [part]}
    settings = {key: event[key] for key in IMAGE_SETTINGS if key in event}
    return item | settings


def _whole(kind: str, name: str, instance: Json) -> tuple[Json, bytes]:
    response = instance["response"] | {"output": [], "status": name}
    if name != "failed":
        response["error"] = None
    if name != "incomplete":
        response["incomplete_details"] = None
    # `agent`, and what else may stand beside the response.
    beside = {key: instance[key] for key in instance.keys() - POSITIONS - {"response"}}
    body = frame(kind, response=response, **beside)
    if name in ("created", "in_progress", "queued"):
        body += completed()
    return response | beside, body


def _frame(instance: Json) -> bytes:
    kind = instance["type"]
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), json.dumps(instance).encode())


def _response(**values: Any) -> Json:
    return {"id": "resp_1", "object": "response", "status": "completed", "model": "m", **values}


def _member(name: str, instance: Json, body: bytes, *, is_stream: bool = True) -> Member:
    return Member("openai", name, "responses", instance, body, POSITIONS, is_stream)
