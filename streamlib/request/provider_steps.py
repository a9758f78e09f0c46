"""Provider differences that no value can express, as named steps (`Provider.prepare`).

A step runs after the wire's builder and before the provider's own fields. It returns what is sent
instead; it never changes its argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from streamlib.request.history import content_parts
from streamlib.request.prompt import Prompt
from streamlib.request.schemas import typed_schema
from streamlib.request.target import BuildContext, BuiltRequest
from streamlib_parsers.items import Image, JsonObject, Message
from streamlib_parsers.stream_error import invalid_request

RequestStep: TypeAlias = Callable[[Prompt, BuiltRequest, BuildContext], BuiltRequest]

EPHEMERAL: Final = {"type": "ephemeral"}


def apply_steps(prompt: Prompt, built: BuiltRequest, context: BuildContext) -> BuiltRequest:
    """The request after the steps of its provider, in order."""
    provider = context.target.provider
    for name in provider.prepare:
        if name not in STEPS:
            known = ", ".join(STEPS)
            raise invalid_request(
                f"{provider.name}: there is no step {name!r}: one of {known}", "prepare"
            )
        built = STEPS[name](prompt, built, context)
    return built


def mark_system(prompt: Prompt, built: BuiltRequest, context: BuildContext) -> BuiltRequest:
    """A cache marker on the last part of the system message, unless there is a marker already."""
    messages = built.body["messages"]
    first = messages[0]
    parts = first.get("content")
    if first["role"] != "system" or not isinstance(parts, list) or _has_cache_marker(messages):
        return built
    marked = [*parts[:-1], {**parts[-1], "cache_control": EPHEMERAL}]
    return _with_body(built, messages=[{**first, "content": marked}, *messages[1:]])


def _has_cache_marker(messages: list[JsonObject]) -> bool:
    for message in messages:
        for part in message.get("content") or ():
            if isinstance(part, dict) and "cache_control" in part:
                return True
    return False


def drop_strict(prompt: Prompt, built: BuiltRequest, context: BuildContext) -> BuiltRequest:
    """Functions without `strict`."""

    def without_strict(function: JsonObject, index: int) -> JsonObject:
        if function.get("strict"):
            reason = f"{context.target.provider.name} has no strict tools"
            context.report.dropped(f"/tools/{index}/strict", reason)
        return {key: value for key, value in function.items() if key != "strict"}

    return _with_functions(built, without_strict)


def type_schemas(prompt: Prompt, built: BuiltRequest, context: BuildContext) -> BuiltRequest:
    """Parameters in Moonshot's subset of JSON Schema."""

    def typed(function: JsonObject, index: int) -> JsonObject:
        schema = function.get("parameters")
        if not isinstance(schema, dict):
            return function
        fitted = typed_schema(schema)
        if fitted != schema:
            name = context.target.provider.name
            reason = f"{name}: one type a node, and lists of what is required"
            context.report.add("changed", f"/tools/{index}/schema", reason)
        return {**function, "parameters": fitted}

    return _with_functions(built, typed)


def initiator(prompt: Prompt, built: BuiltRequest, context: BuildContext) -> BuiltRequest:
    """Headers by which Copilot bills and routes: user or agent, and whether there are images."""
    headers = {"x-initiator": "agent"}
    if prompt.items:
        last = prompt.items[-1]
        if isinstance(last, Message) and last.role == "user":
            headers["x-initiator"] = "user"
    for item in prompt.items:
        if any(isinstance(part, Image) for part in content_parts(item)):
            headers["copilot-vision-request"] = "true"
    return msgspec.structs.replace(built, headers={**built.headers, **headers})


STEPS: Final[dict[str, RequestStep]] = {
    "mark_system": mark_system,
    "drop_strict": drop_strict,
    "type_schemas": type_schemas,
    "initiator": initiator,
}


def _with_functions(
    built: BuiltRequest, change: Callable[[JsonObject, int], JsonObject]
) -> BuiltRequest:
    """The same with each function of Chat's tools changed; `change` takes function and index."""
    tools: list[Any] = []
    for index, tool in enumerate(built.body.get("tools", ())):
        function = tool.get("function")
        if isinstance(function, dict):
            tool = {**tool, "function": change(function, index)}  # noqa: PLW2901
        tools.append(tool)
    if not tools:
        return built
    return _with_body(built, tools=tools)


def _with_body(built: BuiltRequest, **fields: Any) -> BuiltRequest:
    return msgspec.structs.replace(built, body={**built.body, **fields})
