"""Requests of Gemini Interactions: the parameters of the `google.genai` SDK.

Sources: SDK is ``google/genai/_gaos/types/interactions``, DOCS ai.google.dev/gemini-api/docs, WIRE
docs/wires/interactions.md.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import pytest

from lab.fidelity.compare import Body, Equivalent, WireTable, drop_nulls, objects_in
from lab.fidelity.sdk_types import BASE64, TypeReader
from lab.fidelity.shapes import Struct
from streamlib import Prompt, Request, build
from streamlib.wires.interactions.build_steps import NO_SIGNATURE

VALUES: Final = {
    "model": ("any-model",),
    "uri": ("https://example.com/a",),
    "data": BASE64,
    "signature": BASE64,
    "parameters": ({"type": "object", "properties": {"a": {"type": "string"}}},),
    "schema": ({"type": "object", "properties": {"a": {"type": "string"}}},),
    # Offsets into the text of four bytes.
    "start_index": (0,),
    "end_index": (4,),
}
LEFT_OUT: Final = frozenset({"ModelOutputStepParam.error"})
"""Why a step failed is told, not sent."""


@cache
def request_type() -> Struct:
    """The body of a request to a model."""
    types = pytest.importorskip("google.genai._gaos.types.interactions")
    return TypeReader(VALUES, LEFT_OUT).struct(types.CreateModelInteractionParam)


def build_again(prompt: Prompt) -> Request:
    """A request to a server that takes everything."""
    return build(
        prompt, f"custom:{prompt.model}", wire_api="interactions", base_url="http://127.0.0.1"
    )


# --- completing a drawn body ---


def complete(body: Body) -> None:
    """Gives contents their data, and calls and results each other."""
    body["input"] = as_steps(body.get("input", "hi"))
    for tool in body.get("tools", ()):
        if tool["type"] == "function":
            tool.setdefault("name", "text")
        if tool["type"] == "file_search":
            tool.setdefault("file_search_store_names", ["text"])
    choice = body.get("generation_config", {}).get("tool_choice")
    if choice is not None and "tools" not in body:
        body["tools"] = [{"type": "function", "name": "text"}]
    steps: list[Body] = [{"type": "user_input", "content": [{"type": "text", "text": "hi"}]}]
    for number, step in enumerate(body["input"]):
        if step["type"] == "function_call":
            # a call without a name is refused
            step["name"] = step["name"] or "text"
        result = step.get("result")
        contents = result if isinstance(result, list) else step.get("content", [])
        for content in contents:
            if step["type"] not in RESULTS_OF_TOOLS:
                _complete_content(content)
        if step["type"] in ("user_input", "model_output") and not step.get("content"):
            step["content"] = [{"type": "text", "text": "text"}]
        steps += _completed(step, f"id_{number}")
    body["input"] = steps


RESULTS_OF_TOOLS: Final = (
    "google_search_result",
    "google_maps_result",
    "url_context_result",
    "tool_search_result",
    "mcp_server_tool_result",
    "code_execution_result",
)
"""Steps whose result has another form than contents, or is not read at all."""


def _completed(step: Body, call_id: str) -> list[Body]:
    match step["type"]:
        case "function_call":
            step["id"] = call_id
            return [step, {"type": "function_result", "call_id": call_id, "result": "text"}]
        case "function_result":
            step["call_id"] = call_id
            call = {"type": "function_call", "id": call_id, "name": "text", "arguments": {}}
            return [call, step]
        case _:
            return [step]


def _complete_content(content: Body) -> None:
    if content["type"] not in MIME_TYPES:
        return
    # One of both; a type for what is not told by its address.
    if "data" in content:
        content.pop("uri", None)
    content.setdefault("mime_type", MIME_TYPES[content["type"]])
    if "uri" not in content:
        content.setdefault("data", BASE64[0])


MIME_TYPES: Final = {
    "image": "image/png",
    "audio": "audio/wav",
    "document": "application/pdf",
    "video": "video/mp4",
}


# --- equivalent forms ---


def as_steps(value: Any) -> list[Body]:
    """The input as steps: a text, a content or a list of contents is what the user says."""
    if isinstance(value, str):
        value = {"type": "text", "text": value}
    if isinstance(value, dict):
        value = [value]
    if value and all(element["type"] in ("text", *MIME_TYPES) for element in value):
        return [{"type": "user_input", "content": value}]
    return list(value)


def normalize_input(body: Body) -> None:
    """The input as steps; a result has the name of its call."""
    body["input"] = as_steps(body["input"])
    names: dict[str, str] = {}
    for step in body["input"]:
        if step["type"] == "function_call":
            names[step["id"]] = step["name"]
        elif step["type"] == "function_result":
            if step["call_id"] in names:
                step.setdefault("name", names[step["call_id"]])
            _drop(step, "is_error", False)
        for content in objects_in(step):
            for key, empty in (("annotations", []), ("name", ""), ("id", "")):
                _drop(content, key, empty)
        _drop(step, "summary", [])


def drop_defaults(body: Body) -> None:
    """Fields with the value that they have when they are absent, and empty objects."""
    _drop(body, "stream", False)
    _drop(body, "system_instruction", "")
    config = body.get("generation_config", {})
    _drop(config, "stop_sequences", [])
    if isinstance(config.get("tool_choice"), dict):
        _drop(config["tool_choice"], "allowed_tools", {})
    for key in ("generation_config", "labels", "tools"):
        _drop(body, key, {})
        _drop(body, key, [])
    formats = body.get("response_format")
    if isinstance(formats, list) and len(formats) == 1:
        body["response_format"] = formats[0]


def drop_stand_ins(body: Body) -> None:
    """The builder's own thoughts before calls that have none."""
    body["input"] = [step for step in body["input"] if step.get("signature") != NO_SIGNATURE]


def _drop(values: Body, key: str, default: Any) -> None:
    if key in values and values[key] == default:
        del values[key]


EQUIVALENTS: Final = (
    Equivalent("null / absent", "SDK: every such field is NotRequired", drop_nulls),
    Equivalent(
        "a text, a content, contents / one step of user input; a result without and with the name "
        "of its call; is_error: false / absent",
        "SDK, InteractionsInput; FunctionResultStepParam.name is NotRequired",
        normalize_input,
    ),
    Equivalent(
        "stream: false, empty settings and lists / absent; one response format / a list of one",
        "SDK: every field of settings is NotRequired; ResponseFormat or a list of them",
        drop_defaults,
    ),
    Equivalent(
        "a call without a signed thought, and with the stand-in for one",
        "DOCS, thought-signatures, FAQ; WIRE I3",
        drop_stand_ins,
    ),
)
ADDED: Final = {
    r"/input/\d+/id": "WIRE: every call has an id, by which its result names it",
}
REPORTED: Final = {
    "input": ("/input", "/tools"),
    "system_instruction": ("/instructions",),
    "tools": ("/tools",),
    **{
        f"generation_config/{name}": (f"/{name}",)
        for name in ("temperature", "top_p", "seed", "max_output_tokens", "tool_choice")
    },
    "generation_config/stop_sequences": ("/stop",),
    "generation_config/thinking_level": ("/reasoning",),
    "generation_config/thinking_summaries": ("/reasoning/summary", "/reasoning/display"),
    "response_format": ("/output_schema", "/extra/response_format"),
    "labels": ("/metadata",),
    "service_tier": ("/service_tier",),
}
CHAINED: Final[list[Body]] = [
    {
        "model": "any-model",
        field: "id_1",
        "input": [{"type": "function_result", "call_id": "call_1", "result": "done", **name}],
    }
    for field in ("previous_interaction_id", "cached_content")
    for name in ({}, {"name": "text"})
]
TABLE: Final = WireTable(
    wire_api="interactions",
    request=request_type,
    build=build_again,
    complete=complete,
    equivalents=EQUIVALENTS,
    added=ADDED,
    reported=REPORTED,
    turns="input",
    chained=CHAINED,
)
