"""OpenAI Responses: items of the wire <-> `ResponseItem`, both directions of one table. Used by the wire, its builder and encoder.

What the wire promises (28 output-item types of OpenAI's Python SDK 3.54, and what other servers add):

    {"type":"message","id":…,"role":"assistant","content":[{"type":"output_text",…}],"phase":…}    Message
    {"type":"reasoning","id":…,"summary":[…],"content":[…],"encrypted_content":…}                   Reasoning
    {"type":"function_call" | "custom_tool_call","call_id":…,"name":…,"arguments" | "input":…}      FunctionCall, CustomToolCall
    {"type":"web_search_call","action":{…}} and whatever else the provider runs itself              ServerToolCall (`HOSTED`)
    {"type":"program_output" | "tool_search_output", …}                                             ServerToolResult (`RESULTS`)
    {"type":"compaction" | "compaction_summary","encrypted_content":…}                              Compaction
    everything else, calls that the caller answers in the wire's own words among them (`TO_ANSWER`) Opaque

An item that carries call and result in one stays one item: its results (`outputs`, `results`, `result`, `output`) are in `native`.
`wire_item(item_of(x))` gives `x` back, less `status`, `logprobs` and the boundaries between several reasoning parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, get_args

import msgspec
from msgspec import Raw

from streamlib_parsers.items import (
    Compaction,
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
    Text,
)

__all__ = [
    "HOSTED",
    "RESULTS",
    "TO_ANSWER",
    "item_of",
    "outline",
    "to_answer",
    "unknown_parts",
    "wire_item",
]


class Hosted(NamedTuple):
    """A tool that the provider runs.

    name: what we call it; "" where the item has a name of its own. arguments: the fields that may hold them, the usual one first;
    a JSON value keeps its own bytes. free_text: they are a program, not JSON.
    """

    name: str
    arguments: tuple[str, ...] = ()
    free_text: bool = False


HOSTED: Final[dict[str, Hosted]] = {
    "web_search_call": Hosted("web_search", ("action", "arguments")),  # xAI: arguments
    "file_search_call": Hosted("file_search"),
    "code_interpreter_call": Hosted("code_interpreter", ("code", "arguments"), free_text=True),
    "image_generation_call": Hosted("image_generation"),
    "mcp_call": Hosted("", ("arguments",)),
    "x_search_call": Hosted("", ("arguments",)),
    "tool_search_call": Hosted("tool_search", ("arguments",)),  # where `execution` is `server`
    "program": Hosted("program", ("code",), free_text=True),
}

RESULTS: Final[dict[str, tuple[str, str]]] = {
    "tool_search_output": ("tool_search", "tools"),
    "program_output": ("program", "result"),
}
"""Results that are items of their own: (name of the tool, field of the output)."""

TO_ANSWER: Final[dict[str, tuple[str, str]]] = {
    "local_shell_call": ("call_id", "local_shell_call_output"),
    "shell_call": ("call_id", "shell_call_output"),
    "apply_patch_call": ("call_id", "apply_patch_call_output"),
    "computer_call": ("call_id", "computer_call_output"),
    "tool_search_call": ("call_id", "tool_search_output"),
    "mcp_approval_request": ("id", "mcp_approval_response"),
}
"""Opaque calls that the caller answers with an item of the wire: (field of the call's name, type of the answer)."""

PARTS: Final[dict[str, Callable[[dict[str, Any]], ContentPart]]] = {
    "output_text": lambda part: Text(
        _string(part, "text"), tuple(_objects(part.get("annotations")))
    ),
    "input_text": lambda part: Text(_string(part, "text")),
    "text": lambda part: Text(_string(part, "text"), tuple(_objects(part.get("annotations")))),
    "refusal": lambda part: Refusal(_string(part, "refusal")),
}
"""Content parts of a message; every other kind becomes an Opaque of its own (`unknown_parts`)."""

_TEXT_KEYS: Final = ("type", "text", "annotations", "logprobs")
_REFUSAL_KEYS: Final = ("type", "refusal")
_BASE: Final = ("type", "id", "status")
_STATUSES: Final = (None, *get_args(ItemStatus), "in_progress")
"""Words of `status` that say nothing more than the typed field and the event they came in."""


def item_of(block: dict[str, Any], raw: bytes) -> ResponseItem:
    """The item that `block` is. raw: its own bytes, for arguments that are a JSON value.

    A call without a name or id has "" there. `done` means done whatever `status` says (Azure: `searching`, OpenAI: `in_progress`).
    """
    kind = block["type"] if isinstance(block.get("type"), str) else ""
    read = READERS.get(kind)
    if (
        read is None or block.get("execution", "server") != "server"
    ):  # a tool search that the caller runs
        return Opaque(kind, block, id=_id(block), status=_status(block))
    return read(block, raw)


def _id(block: dict[str, Any]) -> str | None:
    return _string(block, "id") or None


def _status(block: dict[str, Any]) -> ItemStatus:
    return "incomplete" if block.get("status") == "incomplete" else "completed"


def _string(block: dict[str, Any], key: str) -> str:
    value = block.get(key)
    return value if isinstance(value, str) else ""


def _objects(value: Any) -> list[JsonObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _common(block: dict[str, Any], typed: Sequence[str], **native: Any) -> dict[str, Any]:
    """`id`, `status` and, as `native`, what no typed field holds."""
    rest = _rest(block, (*_BASE, *typed))
    rest.update({key: value for key, value in native.items() if value is not None})
    if block.get("status") not in _STATUSES:
        rest["status"] = block["status"]
    return {"id": _id(block), "status": _status(block), "native": rest or None}


def _argument_text(block: dict[str, Any], raw: bytes, key: str) -> str:
    """A string as it is, a JSON value as its own bytes, null as ""."""
    value = block.get(key)
    if value is None or isinstance(value, str):
        return value or ""
    return bytes(msgspec.json.decode(raw, type=dict[str, Raw])[key]).decode("utf-8", "replace")


def _rests(parts: Any) -> list[JsonObject] | None:
    """For each part the keys that no typed field holds; None where no part has any."""
    rests = [
        _rest(part, _REFUSAL_KEYS if part.get("type") == "refusal" else _TEXT_KEYS)
        for part in _objects(parts)
    ]
    return rests if any(rests) else None


def _rest(part: JsonObject, typed: Sequence[str]) -> JsonObject:
    return {key: value for key, value in part.items() if key not in typed}


def _message(block: dict[str, Any], raw: bytes) -> Message:
    role: Role = block["role"] if block.get("role") in get_args(Role) else "assistant"
    known = [part for part in _objects(block.get("content")) if _string(part, "type") in PARTS]
    return Message(
        role,
        tuple(PARTS[part["type"]](part) for part in known),
        _string(block, "phase") or None,
        **_common(block, ("role", "content", "phase"), content=_rests(known)),
    )


def _reasoning(block: dict[str, Any], raw: bytes) -> Reasoning:
    content, summary = _objects(block.get("content")), _objects(block.get("summary"))
    return Reasoning(
        "".join(_string(part, "text") for part in content),
        tuple(_string(part, "text") for part in summary),
        _string(block, "encrypted_content") or None,
        **_common(
            block,
            ("content", "summary", "encrypted_content"),
            content=[] if block.get("content") == [] else _rests(content),
            summary=_rests(summary),
        ),
    )


def _function_call(block: dict[str, Any], raw: bytes) -> FunctionCall:
    typed = ("call_id", "name", "arguments")
    arguments = _argument_text(block, raw, "arguments")
    return FunctionCall(
        _string(block, "call_id"), _string(block, "name"), arguments, **_common(block, typed)
    )


def _custom_tool_call(block: dict[str, Any], raw: bytes) -> CustomToolCall:
    typed = ("call_id", "name", "input")
    return CustomToolCall(
        _string(block, "call_id"),
        _string(block, "name"),
        _argument_text(block, raw, "input"),
        **_common(block, typed),
    )


def _hosted_call(block: dict[str, Any], raw: bytes) -> ServerToolCall:
    """`native` keeps `type`, and `name` and `call_id` where the typed fields say something else."""
    kind = HOSTED[block["type"]]
    field = next((key for key in kind.arguments if block.get(key)), "")
    call_id, name = (
        _string(block, "call_id") or _string(block, "id"),
        kind.name or _string(block, "name"),
    )
    typed = [
        field,
        *(["name"] if not kind.name else []),
        *(["call_id"] if _string(block, "call_id") else []),
    ]
    common = _common(block, typed, type=block["type"])
    if field and field != kind.arguments[0]:
        common["native"][field] = None  # stands where the typed field's text belongs
    return ServerToolCall(
        call_id, name, _argument_text(block, raw, field) if field else "", **common
    )


def _result(block: dict[str, Any], raw: bytes) -> ServerToolResult:
    name, field = RESULTS[block["type"]]
    typed = (field, *(["call_id"] if _string(block, "call_id") else []))
    return ServerToolResult(
        _string(block, "call_id"),
        name,
        block.get(field),
        **_common(block, typed, type=block["type"]),
    )


def _compaction(block: dict[str, Any], raw: bytes) -> Compaction:
    kind = block["type"] if block["type"] != "compaction" else None
    return Compaction(
        None,
        _string(block, "encrypted_content") or None,
        **_common(block, ("encrypted_content",), type=kind),
    )


READERS: Final[dict[str, Callable[[dict[str, Any], bytes], ResponseItem]]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _function_call,
    "custom_tool_call": _custom_tool_call,
    "compaction": _compaction,
    "compaction_summary": _compaction,
    **dict.fromkeys(HOSTED, _hosted_call),
    **dict.fromkeys(RESULTS, _result),
}
"""Item types with an item of their own; every other type is an Opaque."""


def unknown_parts(block: dict[str, Any]) -> Iterator[Opaque]:
    """The parts of a message that no typed part holds; `native` says where they stood."""
    for place, part in enumerate(
        _objects(block.get("content")) if block.get("type") == "message" else ()
    ):
        kind = _string(part, "type")
        if kind not in PARTS:
            yield Opaque(kind, part, native={"item_id": block.get("id"), "content_index": place})


_EMPTY: Final[dict[type, dict[str, Any]]] = {
    Message: {"content": ()},
    Reasoning: {"content": "", "summary": ()},
    FunctionCall: {"arguments": ""},
    ServerToolCall: {"arguments": ""},
    CustomToolCall: {"input": ""},
}


def outline(item: ResponseItem) -> ResponseItem:
    """The item without the texts that deltas bring."""
    return msgspec.structs.replace(item, **_EMPTY.get(type(item), {}))


def to_answer(item: Opaque) -> str | None:
    """The name under which this call waits for an answer of the caller; None for every other item, and for a shell of the provider's."""
    row, environment = TO_ANSWER.get(item.kind), item.payload.get("environment")
    if row is None or (
        isinstance(environment, dict) and environment.get("type") == "container_reference"
    ):
        return None
    return _string(item.payload, row[0]) or item.id or ""


# --- back to the wire ---


def wire_item(item: ResponseItem) -> JsonObject:
    """The wire's own object for an item that `item_of` made: `native`, with the typed fields over it. JSON arguments are `Raw`."""
    head = {"id": item.id} if item.id is not None else {}
    if isinstance(item, Opaque):
        return {**item.payload, **head}
    return {**head, **(item.native or {}), **WRITERS[type(item)](item)}


def _with_rests(parts: list[JsonObject], rests: Any) -> list[JsonObject]:
    known = rests if isinstance(rests, list) and len(rests) == len(parts) else [{}] * len(parts)
    return [{**part, **rest} for part, rest in zip(parts, known, strict=True)]


def _wire_message(item: Message) -> JsonObject:
    text = "output_text" if item.role == "assistant" else "input_text"
    parts = [_wire_part(part, text) for part in item.content]
    phase = {"phase": item.phase} if item.phase is not None else {}
    return {
        "type": "message",
        "role": item.role,
        "content": _with_rests(parts, (item.native or {}).get("content")),
        **phase,
    }


def _wire_part(part: ContentPart, text: str) -> JsonObject:
    if isinstance(part, Text):
        annotations = {"annotations": list(part.annotations)} if text == "output_text" else {}
        return {"type": text, "text": part.text, **annotations}
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.refusal}
    raise TypeError(f"a {type(part).__name__} part never came from this wire")


def _wire_reasoning(item: Reasoning) -> JsonObject:
    native = item.native or {}
    summary: list[JsonObject] = [{"type": "summary_text", "text": text} for text in item.summary]
    content: list[JsonObject] = (
        [{"type": "reasoning_text", "text": item.content}] if item.content else []
    )
    fields: JsonObject = {
        "type": "reasoning",
        "summary": _with_rests(summary, native.get("summary")),
    }
    if content or "content" in native:
        fields["content"] = _with_rests(content, native.get("content"))
    if item.encrypted_content is not None:
        fields["encrypted_content"] = item.encrypted_content
    return fields


def _wire_function_call(item: FunctionCall) -> JsonObject:
    return {
        "type": "function_call",
        "call_id": item.call_id,
        "name": item.name,
        "arguments": item.arguments,
    }


def _wire_custom_tool_call(item: CustomToolCall) -> JsonObject:
    return {
        "type": "custom_tool_call",
        "call_id": item.call_id,
        "name": item.name,
        "input": item.input,
    }


def _wire_hosted_call(item: ServerToolCall) -> JsonObject:
    native = item.native or {}
    kind = HOSTED.get(native.get("type", ""), Hosted(""))
    fields: JsonObject = {} if kind.name else {"name": item.name}
    if "call_id" not in native and item.call_id != item.id:
        fields["call_id"] = item.call_id
    field = next(
        (key for key in kind.arguments[1:] if key in native and native[key] is None),
        next(iter(kind.arguments), ""),
    )
    if field and item.arguments:
        is_json = field == "action" or native.get("type") == "tool_search_call"
        fields[field] = Raw(item.arguments.encode()) if is_json else item.arguments
    return fields


def _wire_result(item: ServerToolResult) -> JsonObject:
    native: Mapping[str, Any] = item.native or {}
    call_id = {} if "call_id" in native else {"call_id": item.call_id}
    return {RESULTS[native["type"]][1]: item.output, **call_id}


def _wire_compaction(item: Compaction) -> JsonObject:
    kind = (item.native or {}).get("type", "compaction")
    return {"type": kind, "encrypted_content": item.encrypted_content}


WRITERS: Final[dict[type, Callable[[Any], JsonObject]]] = {
    Message: _wire_message,
    Reasoning: _wire_reasoning,
    FunctionCall: _wire_function_call,
    CustomToolCall: _wire_custom_tool_call,
    ServerToolCall: _wire_hosted_call,
    ServerToolResult: _wire_result,
    Compaction: _wire_compaction,
}
