"""OpenAI Responses: items of the wire to `ResponseItem`. `wire_items.py` converts back.

Used by the machine, and by the request builder, decoder and encoder of this wire. The items (28
output-item types of OpenAI's Python SDK 3.54, and what other servers add):

    {"type":"message","id":…,"role":"assistant","content":[{"type":"output_text",…}],"phase":…}
        -> Message
    {"type":"reasoning","id":…,"summary":[…],"content":[…],"encrypted_content":…}
        -> Reasoning
    {"type":"function_call" | "custom_tool_call","call_id":…,"name":…,"arguments" | "input":…}
        -> FunctionCall, CustomToolCall
    {"type":"web_search_call","action":{…}} and all else that the provider runs itself (`HOSTED`)
        -> ServerToolCall
    {"type":"program_output" | "tool_search_output", …} (`RESULTS`)
        -> ServerToolResult
    {"type":"compaction" | "compaction_summary","encrypted_content":…}
        -> Compaction
    {"type":"computer_call" | "shell_call" | "local_shell_call" | "apply_patch_call" |
     "mcp_approval_request" | "tool_search_call", …} that the caller runs (`TO_ANSWER`)
        -> ComputerCall, ShellCall, ApplyPatchCall, ApprovalRequest, ToolSearchCall
    {"type":"multi_agent_call" | "multi_agent_call_output","action":"spawn_agent",…}
        -> ServerToolCall, ServerToolResult
    everything else ({"type":"agent_message"}, mail between agents, too)
        -> Opaque

In the response of several agents each item has `agent`: {"agent_name":"/root/a"}; without one, or
with the name ``/root``, it is of the agent that was asked.

An item that carries call and result in one stays one item: its results (`outputs`, `results`,
`result`, `output`) are in `native`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Set
from typing import Any, Final, NamedTuple, get_args

import msgspec
from msgspec import Raw

from streamlib_parsers.item_text import STREAMED_FIELDS
from streamlib_parsers.items import (
    ApplyPatchCall,
    ApprovalRequest,
    Compaction,
    ComputerCall,
    ContentPart,
    CustomToolCall,
    FunctionCall,
    ItemStatus,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    ResponseItem,
    Role,
    ServerToolCall,
    ServerToolResult,
    ShellCall,
    Text,
    ToolSearchCall,
)
from streamlib_parsers.json_text import objects_at

__all__ = [
    "HOSTED",
    "READERS",
    "RESULTS",
    "TO_ANSWER",
    "Hosted",
    "agent_name",
    "item_of",
    "names_agent",
    "outline",
    "unknown_parts",
    "with_agent",
]


class Hosted(NamedTuple):
    """A tool that the provider runs.

    Attributes:
        name: this library's name for it; "" if the item has a name of its own.
        arguments: the fields that may hold its arguments, the usual one first. A JSON value keeps
            its own bytes.
        free_text: whether the arguments are a program, not JSON.
        name_field: the field of the item's own name.
    """

    name: str
    arguments: tuple[str, ...] = ()
    free_text: bool = False
    name_field: str = "name"


HOSTED: Final[dict[str, Hosted]] = {
    "web_search_call": Hosted("web_search", ("action", "arguments")),  # xAI: arguments
    "file_search_call": Hosted("file_search"),
    "code_interpreter_call": Hosted("code_interpreter", ("code", "arguments"), free_text=True),
    "image_generation_call": Hosted("image_generation"),
    "mcp_call": Hosted("", ("arguments",)),
    "x_search_call": Hosted("", ("arguments",)),
    "tool_search_call": Hosted("tool_search", ("arguments",)),  # where `execution` is `server`
    "program": Hosted("program", ("code",), free_text=True),
    "custom_tool_call": Hosted("", ("input",), free_text=True),  # where `is_run_by_xai`
    "multi_agent_call": Hosted("", ("arguments",), name_field="action"),
}

RESULTS: Final[dict[str, tuple[str, str]]] = {
    "tool_search_output": ("tool_search", "tools"),
    "program_output": ("program", "result"),
    "multi_agent_call_output": ("", "output"),
}
"""Results that are items of their own: (name of the tool, field of the output).

Without a name, the result has one of its own, in `action`."""

ROOT_AGENT: Final = "/root"
"""Name of the agent that was asked; its sub-agents are ``/root/a``, ``/root/a/b`` …"""

MAIL: Final = "agent_message"
"""Mail between agents: `agent` is its recipient, and `author` the agent that wrote it."""

TO_ANSWER: Final[dict[str, tuple[str, str]]] = {
    "local_shell_call": ("call_id", "local_shell_call_output"),
    "shell_call": ("call_id", "shell_call_output"),
    "apply_patch_call": ("call_id", "apply_patch_call_output"),
    "computer_call": ("call_id", "computer_call_output"),
    "tool_search_call": ("call_id", "tool_search_output"),
    "mcp_approval_request": ("id", "mcp_approval_response"),
}
"""Calls that the caller answers by an item of the wire: (field of the id, type of that item)."""

XAI_CALL_ID: Final = "xs_call"
"""Prefix of the ids of searches that xAI runs itself (`xs_call-557c03fd-0`, tools
`x_keyword_search`, ``x_thread_fetch`` …). It sends them as custom tool calls, although no custom
tool was offered; later models send `x_search_call`. Source: recorded items in the tests of clients
of xAI's Responses API; a caller's own call has an id `call_…`."""

_TEXT_KEYS: Final = frozenset({"type", "text", "annotations", "logprobs"})
_REFUSAL_KEYS: Final = frozenset({"type", "refusal"})
_COMMON_KEYS: Final = frozenset({"type", "id", "status"})
_ROLES: Final = get_args(Role)

_REDUNDANT_STATUSES: Final = (None, *get_args(ItemStatus), "in_progress")
"""Values of `status` that add nothing to the typed field and the event they came in."""


def item_of(
    block: dict[str, Any], raw: bytes, offered: Collection[str] = frozenset()
) -> ResponseItem:
    """Converts an item of the wire.

    `output_item.done` means done whatever `status` is (Azure: `searching`, OpenAI: `in_progress`).

    Args:
        block: the item.
        raw: its own bytes, for arguments that are a JSON value.
        offered: names of the tools that the request offered, as far as they are known.

    Returns:
        The item; a call without a name or id has "" there.
    """
    kind = _string(block, "type")
    read = READERS.get(kind)
    if kind == "tool_search_call" and _is_run_by_caller(block):
        return with_agent(_tool_search_call(block, raw))
    # The result of a call that the caller, or another client, ran.
    is_callers_result = kind in RESULTS and _is_run_by_caller(block)
    if read is None or is_callers_result or _is_in_container(block):
        agent = agent_name(block.get("agent"))
        if kind == MAIL:
            agent = _other_than_root(block.get("author"))
        return Opaque(kind, block, id=_id(block), status=_status(block), agent=agent)
    if kind == "custom_tool_call" and is_run_by_xai(block, offered):
        read = _hosted_call
    return with_agent(read(block, raw))


def _is_run_by_caller(block: dict[str, Any]) -> bool:
    return bool(block.get("execution", "server") != "server")


def _is_in_container(block: dict[str, Any]) -> bool:
    """Whether the provider runs a shell itself, in its own container."""
    environment = block.get("environment")
    if not isinstance(environment, dict):
        return False
    return bool(environment.get("type") == "container_reference")


def is_run_by_xai(block: dict[str, Any], offered: Collection[str]) -> bool:
    """Whether a custom tool call is xAI's own search, which no caller may answer."""
    return _string(block, "call_id").startswith(XAI_CALL_ID) and block.get("name") not in offered


def _id(block: dict[str, Any]) -> str | None:
    return _string(block, "id") or None


def _status(block: dict[str, Any]) -> ItemStatus:
    if block.get("status") == "incomplete":
        return "incomplete"
    return "completed"


def _string(block: dict[str, Any], key: str) -> str:
    value = block.get(key)
    if isinstance(value, str):
        return value
    return ""


def _common_fields(
    block: dict[str, Any], typed_keys: Collection[str], **native: Any
) -> dict[str, Any]:
    """The fields that every item has.

    Args:
        block: the item of the wire.
        typed_keys: its keys that typed fields hold, besides those that every item has.
        native: further native fields; None is left out.

    Returns:
        `id`, `status` and, as `native`, all keys that no typed field holds.
    """
    rest = _untyped(block, _COMMON_KEYS.union(typed_keys))
    for key, value in native.items():
        if value is not None:
            rest[key] = value
    if block.get("status") not in _REDUNDANT_STATUSES:
        rest["status"] = block["status"]
    return {"id": _id(block), "status": _status(block), "native": rest or None}


def _untyped(values: JsonObject, typed_keys: Set[str]) -> JsonObject:
    if values.keys() <= typed_keys:
        return {}
    return {key: value for key, value in values.items() if key not in typed_keys}


def _untyped_of_parts(parts: list[JsonObject]) -> list[JsonObject] | None:
    """The keys of each part that no typed field holds; None if no part has any."""
    rests: list[JsonObject] = []
    for part in parts:
        typed_keys = _REFUSAL_KEYS if part.get("type") == "refusal" else _TEXT_KEYS
        rests.append(_untyped(part, typed_keys))
    if any(rests):
        return rests
    return None


def _argument_text(block: dict[str, Any], raw: bytes, key: str) -> str:
    """A string as it is, a JSON value as its own bytes, null as ""."""
    value = block.get(key)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return bytes(msgspec.json.decode(raw, type=dict[str, Raw])[key]).decode("utf-8", "replace")


# --- readers ---


def _annotated_text(part: dict[str, Any]) -> Text:
    return Text(_string(part, "text"), tuple(objects_at(part, "annotations")))


def _plain_text(part: dict[str, Any]) -> Text:
    return Text(_string(part, "text"))


def _refusal(part: dict[str, Any]) -> Refusal:
    return Refusal(_string(part, "refusal"))


PART_READERS: Final[dict[str, Callable[[dict[str, Any]], ContentPart]]] = {
    "output_text": _annotated_text,
    "input_text": _plain_text,
    "text": _annotated_text,
    "refusal": _refusal,
}
"""Content parts of a message; every other kind becomes an Opaque of its own (`unknown_parts`)."""


def _message(block: dict[str, Any], raw: bytes) -> Message:
    role: Role = "assistant"
    if block.get("role") in _ROLES:
        role = block["role"]
    known = known_parts(block)
    return Message(
        role,
        tuple(PART_READERS[part["type"]](part) for part in known),
        _string(block, "phase") or None,
        **_common_fields(block, ("role", "content", "phase"), content=_untyped_of_parts(known)),
    )


def _reasoning(block: dict[str, Any], raw: bytes) -> Reasoning:
    content = objects_at(block, "content")
    summary = objects_at(block, "summary")
    native_content = _untyped_of_parts(content)
    if block.get("content") == []:
        native_content = []  # so that replay sends the empty list again
    if len(content) > 1:
        native_content = content  # complete: the typed text has lost their boundaries
    return Reasoning(
        "".join(_string(part, "text") for part in content),
        tuple(_string(part, "text") for part in summary),
        _string(block, "encrypted_content") or None,
        **_common_fields(
            block,
            ("content", "summary", "encrypted_content"),
            content=native_content,
            summary=_untyped_of_parts(summary),
        ),
    )


def _function_call(block: dict[str, Any], raw: bytes) -> FunctionCall:
    return FunctionCall(
        _string(block, "call_id"),
        _string(block, "name"),
        _argument_text(block, raw, "arguments"),
        _string(block, "namespace") or None,
        **_common_fields(block, ("call_id", "name", "arguments", "namespace")),
    )


def _custom_tool_call(block: dict[str, Any], raw: bytes) -> CustomToolCall:
    return CustomToolCall(
        _string(block, "call_id"),
        _string(block, "name"),
        _argument_text(block, raw, "input"),
        _string(block, "namespace") or None,
        **_common_fields(block, ("call_id", "name", "input", "namespace")),
    )


def _hosted_call(block: dict[str, Any], raw: bytes) -> ServerToolCall:
    """Reads a call of a hosted tool.

    `native` keeps `type`, and `name` and `call_id` where the typed fields have other values.
    """
    tool = HOSTED[block["type"]]
    typed_keys: list[str] = []
    name = tool.name
    if not name:
        name = _string(block, tool.name_field)
        typed_keys.append(tool.name_field)
    call_id = _string(block, "call_id")
    if not call_id:
        call_id = _string(block, "id")
    elif call_id != block.get("id"):
        typed_keys.append("call_id")
    field = _first_filled(block, tool.arguments)
    if field is None:
        return ServerToolCall(
            call_id, name, "", **_common_fields(block, typed_keys, type=block["type"])
        )
    common = _common_fields(block, (field, *typed_keys), type=block["type"])
    if field != tool.arguments[0]:
        common["native"][field] = None  # marks the field that the typed text came from
    return ServerToolCall(call_id, name, _argument_text(block, raw, field), **common)


def _first_filled(block: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        if block.get(key):
            return key
    return None


def _result(block: dict[str, Any], raw: bytes) -> ServerToolResult:
    name, field = RESULTS[block["type"]]
    call_id = _string(block, "call_id")
    typed_keys = [field]
    if not name:
        name = _string(block, "action")
        typed_keys.append("action")
    if call_id:
        typed_keys.append("call_id")
    common = _common_fields(block, typed_keys, type=block["type"])
    return ServerToolResult(call_id, name, block.get(field), **common)


# --- readers of the calls that the caller runs (`TO_ANSWER`) ---

# A value of another type than the API documents stays in `native`.


def _call_id(block: dict[str, Any], typed_keys: list[str]) -> str:
    """The id that the output repeats: `call_id`, or where that is null, the item's id."""
    call_id = _string(block, "call_id")
    if call_id:
        typed_keys.append("call_id")
        return call_id
    return _string(block, "id")


def _object_list(block: dict[str, Any], key: str, typed_keys: list[str]) -> list[JsonObject]:
    value = block.get(key)
    if not isinstance(value, list) or not all(isinstance(element, dict) for element in value):
        return []
    typed_keys.append(key)
    return value


def _object(block: dict[str, Any], key: str, typed_keys: list[str]) -> JsonObject:
    value = block.get(key)
    if not isinstance(value, dict):
        return {}
    typed_keys.append(key)
    return value


def _computer_call(block: dict[str, Any], raw: bytes) -> ComputerCall:
    """Reads `actions`, or the one `action` of older models: then `native["actions"]` is None."""
    typed_keys: list[str] = []
    call_id = _call_id(block, typed_keys)
    checks = _object_list(block, "pending_safety_checks", typed_keys)
    actions: list[JsonObject] = []
    if block.get("actions"):  # an empty list stays in `native`
        actions = _object_list(block, "actions", typed_keys)
    action = None
    if not actions:
        action = _object(block, "action", typed_keys)
    if action:
        actions = [action]
    common = _common_fields(block, typed_keys)
    if action:
        common["native"] = {**(common["native"] or {}), "actions": None}
    return ComputerCall(call_id, actions, checks, **common)


def _shell_call(block: dict[str, Any], raw: bytes) -> ShellCall:
    typed_keys: list[str] = []
    call_id = _call_id(block, typed_keys)
    action = _object(block, "action", typed_keys)
    kind = None
    if block["type"] != "shell_call":
        kind = block["type"]
    return ShellCall(call_id, action, **_common_fields(block, typed_keys, type=kind))


def _apply_patch_call(block: dict[str, Any], raw: bytes) -> ApplyPatchCall:
    typed_keys: list[str] = []
    call_id = _call_id(block, typed_keys)
    operation = _object(block, "operation", typed_keys)
    return ApplyPatchCall(call_id, operation, **_common_fields(block, typed_keys))


def _approval_request(block: dict[str, Any], raw: bytes) -> ApprovalRequest:
    return ApprovalRequest(
        _string(block, "id"),
        _string(block, "server_label"),
        _string(block, "name"),
        _argument_text(block, raw, "arguments"),
        **_common_fields(block, ("server_label", "name", "arguments")),
    )


def _tool_search_call(block: dict[str, Any], raw: bytes) -> ToolSearchCall:
    typed_keys = ["arguments"]
    call_id = _call_id(block, typed_keys)
    arguments = _argument_text(block, raw, "arguments")
    return ToolSearchCall(call_id, arguments, **_common_fields(block, typed_keys))


def _compaction(block: dict[str, Any], raw: bytes) -> Compaction:
    kind = None
    if block["type"] != "compaction":
        kind = block["type"]
    return Compaction(
        None,
        _string(block, "encrypted_content") or None,
        **_common_fields(block, ("encrypted_content",), type=kind),
    )


READERS: Final[dict[str, Callable[[dict[str, Any], bytes], ResponseItem]]] = {
    **dict.fromkeys(HOSTED, _hosted_call),
    **dict.fromkeys(RESULTS, _result),
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _function_call,
    "custom_tool_call": _custom_tool_call,
    "compaction": _compaction,
    "compaction_summary": _compaction,
    "computer_call": _computer_call,
    "shell_call": _shell_call,
    "local_shell_call": _shell_call,
    "apply_patch_call": _apply_patch_call,
    "mcp_approval_request": _approval_request,
}
"""Item types with an item of their own; every other type is an Opaque."""


def known_parts(block: JsonObject) -> list[JsonObject]:
    """The parts of a message that a typed part holds, in order."""
    return [part for part in objects_at(block, "content") if _string(part, "type") in PART_READERS]


def unknown_parts(block: dict[str, Any]) -> Iterator[Opaque]:
    """Yields the parts of a message that no typed part holds; `native` has their position."""
    if block.get("type") != "message":
        return
    for index, part in enumerate(objects_at(block, "content")):
        kind = _string(part, "type")
        if kind not in PART_READERS:
            yield Opaque(kind, part, native={"item_id": block.get("id"), "content_index": index})


# --- questions about items ---


def agent_name(agent: Any) -> str | None:
    """The name in an `agent` object; None for the agent that was asked, and any other value."""
    if not isinstance(agent, dict):
        return None
    return _other_than_root(agent.get("agent_name"))


def _other_than_root(name: Any) -> str | None:
    if isinstance(name, str) and name not in ("", ROOT_AGENT):
        return name
    return None


def with_agent(item: ResponseItem) -> ResponseItem:
    """The item with the agent that its `native` names; further keys of that object stay there."""
    native = item.native
    # Most items have none: no call for each.
    if native is None or "agent" not in native:
        return item
    agent = agent_name(native["agent"])
    if agent is None:
        return item
    rest = _untyped(native, {"agent"})
    further = _untyped(native["agent"], {"agent_name"})
    if further:
        rest["agent"] = further
    return msgspec.structs.replace(item, native=rest or None, agent=agent)


def names_agent(block: JsonObject) -> bool:
    """Whether an item names the agent that made it, so that its event cannot."""
    return block.get("agent") is not None or block.get("type") == MAIL


def outline(item: ResponseItem) -> ResponseItem:
    """The item without the texts that deltas bring."""
    texts = STREAMED_FIELDS.get(type(item))
    if texts is None:
        return item
    return msgspec.structs.replace(item, **texts)
