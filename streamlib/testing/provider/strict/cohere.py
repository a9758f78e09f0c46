"""Rules of Cohere's v2 chat.

Numbers are those of docs/wires/cohere.md. Fields and types are those of cohere 7.3.1
(``ClientV2``). Cohere publishes no list of its errors: a message is our own unless a user has
reported it.
"""

from __future__ import annotations

from typing import Any, Final

from streamlib.testing.provider.strict.rules import (
    Rejection,
    Rule,
    StrictRequest,
    missing_key,
    names,
    object_of,
    objects,
    repeated_call_rejection,
    string,
    unknown_key,
)
from streamlib_parsers.items import JsonObject

FIELDS: Final = names(
    """
    model messages stream tools strict_tools documents citation_options response_format safety_mode
    max_tokens stop_sequences temperature seed frequency_penalty presence_penalty k p logprobs
    tool_choice thinking priority
    """
)
MESSAGES: Final[dict[str, frozenset[str]]] = {
    "system": names("role content"),
    "user": names("role content"),
    "assistant": names("role content tool_plan tool_calls citations"),
    "tool": names("role content tool_call_id"),
}
"""Role -> fields of its messages."""

CONTENTS: Final[dict[str, tuple[str, ...]]] = {
    "system": ("text",),
    "user": ("text", "image_url"),
    "assistant": ("text", "thinking"),
    "tool": ("text", "document"),
}
"""Role -> types of its contents."""

RANGES: Final = {
    "p": (0.01, 0.99),
    "k": (0, 500),
    "temperature": (0, None),
    "max_tokens": (0, None),
}
"""Setting -> the smallest and the largest value in the reference."""


def _invalid(message: str) -> Rejection:
    return Rejection(f"invalid request: {message}")


def check_fields(request: StrictRequest) -> Rejection | None:
    """A model and messages are there, and no unknown fields (reference, "Chat")."""
    missing = missing_key(request.body, ("model", "messages"))
    if missing is not None:
        return _invalid(f"{missing} is required")
    unknown = unknown_key(request.body, FIELDS)
    if unknown is not None:
        return _invalid(f"unknown field: parameter '{unknown}' is not a valid field")
    if not objects(request.body["messages"]):
        return _invalid("messages must not be empty")
    return None


def check_messages(request: StrictRequest) -> Rejection | None:
    """Roles are known, and contents fit them (H1, H2, H3; SDK, ``ChatMessageV2``)."""
    for n, message in enumerate(objects(request.body["messages"])):
        role = string(message.get("role"))
        if role not in MESSAGES:
            return _invalid(f"messages[{n}]: unknown role '{role}'")
        unknown = unknown_key(message, MESSAGES[role])
        if unknown is not None:
            return _invalid(f"messages[{n}]: unknown field '{unknown}'")
        if not message.get("content") and not message.get("tool_calls") and role != "tool":
            return _invalid(f"messages[{n}]: content or tool_calls is required")
        for content in objects(message.get("content")):
            rejection = _content_rejection(content, role, f"messages[{n}].content")
            if rejection is not None:
                return rejection
    return None


def _content_rejection(content: JsonObject, role: str, path: str) -> Rejection | None:
    kind = string(content.get("type"))
    if kind not in CONTENTS[role]:
        return _invalid(f"{path}: a {role} message has no content of type '{kind}'")
    if kind == "text" and not string(content.get("text")):
        return _invalid(f"{path}: text must not be empty")
    if kind == "image_url" and not string(object_of(content.get("image_url")).get("url")):
        return _invalid(f"{path}: image_url.url is required")
    return None


def check_call_ids(request: StrictRequest) -> Rejection | None:
    """No two calls have the same id (see `repeated_call_rejection`)."""
    call_ids: list[Any] = []
    for message in objects(request.body["messages"]):
        call_ids += [call.get("id") for call in objects(message.get("tool_calls"))]
    return repeated_call_rejection(call_ids)


def check_pairs(request: StrictRequest) -> Rejection | None:
    """Every call has one result after it, and every result a call (H4; langchain-oracle#10)."""
    waiting: set[str] = set()
    for message in objects(request.body["messages"]):
        role = message["role"]
        if role == "tool":
            call_id = string(message.get("tool_call_id"))
            if call_id not in waiting:
                return _invalid(f"tool_call_id '{call_id}' is of no tool call before it")
            waiting.discard(call_id)
            continue
        if waiting:
            break
        for call in objects(message.get("tool_calls")):
            waiting.add(string(call.get("id")))
            function = object_of(call.get("function"))
            if not string(function.get("name")) or not isinstance(function.get("arguments"), str):
                return _invalid("a tool call needs a name, and arguments as a string")
    if waiting:
        listed = ", ".join(sorted(waiting))
        return _invalid(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{listed}"
        )
    return None


def check_tools(request: StrictRequest) -> Rejection | None:
    """Tools are functions with parameters, and a tool choice exists (H5; SDK, ``ToolV2``)."""
    body = request.body
    for n, tool in enumerate(objects(body.get("tools"))):
        function = object_of(tool.get("function"))
        if tool.get("type") != "function" or not string(function.get("name")):
            return _invalid(f"tools[{n}]: a function with a name is required")
        if not isinstance(function.get("parameters"), dict):
            return _invalid(f"tools[{n}]: parameters is required")
    choice = body.get("tool_choice")
    if choice not in (None, "REQUIRED", "NONE"):
        return _invalid(f"tool_choice '{choice}' is not one of REQUIRED, NONE")
    if choice == "REQUIRED" and not body.get("tools"):
        return _invalid("tool_choice REQUIRED needs tools")
    return None


def check_settings(request: StrictRequest) -> Rejection | None:
    """Thinking and numbers are in the ranges of the reference (H6; SDK, ``Thinking``)."""
    thinking = request.body.get("thinking")
    if thinking is not None and object_of(thinking).get("type") not in ("enabled", "disabled"):
        return _invalid("thinking.type must be one of enabled, disabled")
    for name, (smallest, largest) in RANGES.items():
        value = request.body.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        if value < smallest or (largest is not None and value > largest):
            return _invalid(f"{name} is out of range")
    return None


RULES: Final[tuple[Rule, ...]] = (
    check_fields,
    check_messages,
    check_call_ids,
    check_pairs,
    check_tools,
    check_settings,
)
"""The rules of this wire, in their order."""
