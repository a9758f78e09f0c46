"""What no value can say: small steps between a wire's builder and a provider's values, by name (`Provider.prepare`).

A step is given what the builder made and gives what is to be sent instead; it never changes what it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from streamlib.errors import invalid_request
from streamlib.request.context import BuildContext
from streamlib.request.history import OUTPUTS
from streamlib.request.prompt import Prompt
from streamlib.request.target import BuiltRequest
from streamlib.request.typed_schemas import typed_schema
from streamlib_parsers.items import Image, JsonObject, Message

RequestStep: TypeAlias = Callable[[Prompt, BuiltRequest, BuildContext], BuiltRequest]

EPHEMERAL: Final = {"type": "ephemeral"}


def apply_steps(prompt: Prompt, built: BuiltRequest, context: BuildContext) -> BuiltRequest:
    """The request after the steps of its provider, in order."""
    for name in context.target.provider.prepare:
        if name not in STEPS:
            raise invalid_request(
                f"{context.target.provider.name}: there is no step {name!r}: one of {', '.join(STEPS)}",
                "prepare",
            )
        built = STEPS[name](prompt, built, context)
    return built


def mark_system(prompt: Prompt, built: BuiltRequest, context: BuildContext) -> BuiltRequest:
    """A cache marker on the last part of the system message, unless there are markers already."""
    first, *rest = messages = built.body["messages"]
    parts = first.get("content")
    marked = any(
        "cache_control" in part
        for message in messages
        for part in message.get("content") or ()
        if isinstance(part, dict)
    )
    if first["role"] != "system" or not isinstance(parts, list) or marked:
        return built
    return _with_body(
        built,
        messages=[
            {**first, "content": [*parts[:-1], {**parts[-1], "cache_control": EPHEMERAL}]},
            *rest,
        ],
    )


def drop_strict(prompt: Prompt, built: BuiltRequest, context: BuildContext) -> BuiltRequest:
    """Functions without `strict`."""

    def plain(function: JsonObject, at: int) -> JsonObject:
        if function.get("strict"):
            context.report.dropped(
                f"/tools/{at}/strict", f"{context.target.provider.name} has no strict tools"
            )
        return {key: value for key, value in function.items() if key != "strict"}

    return _with_functions(built, plain)


def type_schemas(prompt: Prompt, built: BuiltRequest, context: BuildContext) -> BuiltRequest:
    """Parameters in Moonshot's subset of JSON schema."""

    def typed(function: JsonObject, at: int) -> JsonObject:
        schema = function.get("parameters")
        fitted = typed_schema(schema) if isinstance(schema, dict) else schema
        if fitted != schema:
            context.report.add(
                "changed",
                f"/tools/{at}/schema",
                f"{context.target.provider.name}: one type a node, and lists of what is required",
            )
        return {**function, "parameters": fitted}

    return _with_functions(built, typed)


def initiator(prompt: Prompt, built: BuiltRequest, context: BuildContext) -> BuiltRequest:
    """Whether a person or an agent asks, and whether there are images to be seen: Copilot bills and routes by these headers."""
    last = prompt.items[-1] if prompt.items else None
    headers = {
        "x-initiator": "user" if isinstance(last, Message) and last.role == "user" else "agent"
    }
    if any(isinstance(part, Image) for item in prompt.items for part in _parts(item)):
        headers["copilot-vision-request"] = "true"
    return BuiltRequest(built.body, {**built.headers, **headers})


STEPS: Final[dict[str, RequestStep]] = {
    "mark_system": mark_system,
    "drop_strict": drop_strict,
    "type_schemas": type_schemas,
    "initiator": initiator,
}


def _parts(item: Any) -> Any:
    content = (
        item.content
        if isinstance(item, Message)
        else item.output
        if isinstance(item, OUTPUTS)
        else ()
    )
    return () if isinstance(content, str) else content


def _with_functions(
    built: BuiltRequest, change: Callable[[JsonObject, int], JsonObject]
) -> BuiltRequest:
    """The same with every function of Chat's tools changed."""
    tools = [
        {**tool, "function": change(tool["function"], at)}
        if isinstance(tool.get("function"), dict)
        else tool
        for at, tool in enumerate(built.body.get("tools", ()))
    ]
    return _with_body(built, tools=tools) if tools else built


def _with_body(built: BuiltRequest, **fields: Any) -> BuiltRequest:
    return BuiltRequest({**built.body, **fields}, built.headers)
