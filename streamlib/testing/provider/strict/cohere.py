"""Rules of Cohere's v2 chat.

Numbers are those of docs/wires/cohere.md. Fields and types are those of cohere 7.3.1
(``ClientV2``). Cohere publishes no list of its errors: a message is our own unless a user has
reported it.
"""

from __future__ import annotations

from typing import Final

from streamlib.testing.provider.strict.rules import (
    Rejection,
    Rule,
    StrictRequest,
    check_call_ids,
    missing_key,
    names,
    object_of,
    string,
    unknown_key,
)
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import objects_in

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


def check_fields(request: StrictRequest) -> None:
    """A model and messages are there, and no unknown fields (reference, "Chat")."""
    missing = missing_key(request.body, ("model", "messages"))
    if missing is not None:
        raise _invalid(f"{missing} is required")
    unknown = unknown_key(request.body, FIELDS)
    if unknown is not None:
        raise _invalid(f"unknown field: parameter '{unknown}' is not a valid field")
    if not objects_in(request.body["messages"]):
        raise _invalid("messages must not be empty")


def check_messages(request: StrictRequest) -> None:
    """Roles are known, and contents fit them (H1, H2, H3; SDK, ``ChatMessageV2``)."""
    for n, message in enumerate(objects_in(request.body["messages"])):
        role = string(message.get("role"))
        if role not in MESSAGES:
            raise _invalid(f"messages[{n}]: unknown role '{role}'")
        unknown = unknown_key(message, MESSAGES[role])
        if unknown is not None:
            raise _invalid(f"messages[{n}]: unknown field '{unknown}'")
        if not message.get("content") and not message.get("tool_calls") and role != "tool":
            raise _invalid(f"messages[{n}]: content or tool_calls is required")
        for content in objects_in(message.get("content")):
            _check_content(content, role, f"messages[{n}].content")


def _check_content(content: JsonObject, role: str, path: str) -> None:
    kind = string(content.get("type"))
    if kind not in CONTENTS[role]:
        raise _invalid(f"{path}: a {role} message has no content of type '{kind}'")
    if kind == "text" and not string(content.get("text")):
        raise _invalid(f"{path}: text must not be empty")
    if kind == "image_url" and not string(object_of(content.get("image_url")).get("url")):
        raise _invalid(f"{path}: image_url.url is required")


def check_pairs(request: StrictRequest) -> None:
    """Every call has one result after it, and every result a call (H4; langchain-oracle#10)."""
    waiting: set[str] = set()
    for message in objects_in(request.body["messages"]):
        role = message["role"]
        if role == "tool":
            call_id = string(message.get("tool_call_id"))
            if call_id not in waiting:
                raise _invalid(f"tool_call_id '{call_id}' is of no tool call before it")
            waiting.discard(call_id)
            continue
        if waiting:
            break
        for call in objects_in(message.get("tool_calls")):
            waiting.add(string(call.get("id")))
            function = object_of(call.get("function"))
            if not string(function.get("name")) or not isinstance(function.get("arguments"), str):
                raise _invalid("a tool call needs a name, and arguments as a string")
    if waiting:
        listed = ", ".join(sorted(waiting))
        raise _invalid(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{listed}"
        )


def check_tools(request: StrictRequest) -> None:
    """Tools are functions with parameters, and a tool choice exists (H5; SDK, ``ToolV2``)."""
    body = request.body
    for n, tool in enumerate(objects_in(body.get("tools"))):
        function = object_of(tool.get("function"))
        if tool.get("type") != "function" or not string(function.get("name")):
            raise _invalid(f"tools[{n}]: a function with a name is required")
        if not isinstance(function.get("parameters"), dict):
            raise _invalid(f"tools[{n}]: parameters is required")
    choice = body.get("tool_choice")
    if choice not in (None, "REQUIRED", "NONE"):
        raise _invalid(f"tool_choice '{choice}' is not one of REQUIRED, NONE")
    if choice == "REQUIRED" and not body.get("tools"):
        raise _invalid("tool_choice REQUIRED needs tools")


def check_settings(request: StrictRequest) -> None:
    """Thinking and numbers are in the ranges of the reference (H6; SDK, ``Thinking``)."""
    thinking = request.body.get("thinking")
    if thinking is not None and object_of(thinking).get("type") not in ("enabled", "disabled"):
        raise _invalid("thinking.type must be one of enabled, disabled")
    for name, (smallest, largest) in RANGES.items():
        value = request.body.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        if value < smallest or (largest is not None and value > largest):
            raise _invalid(f"{name} is out of range")


RULES: Final[tuple[Rule, ...]] = (
    check_fields,
    check_messages,
    check_call_ids,
    check_pairs,
    check_tools,
    check_settings,
)
"""The rules of this wire, in their order."""
