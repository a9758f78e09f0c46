"""Decodes an OpenAI Responses request into a `Prompt`: the inverse of `build`.

Every object of `input` is one item. The functions that read responses also read the model's own
objects, so that what a client sends back is the item it once received, with its encrypted
content, its phase and the bytes of its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, get_args

import msgspec
from msgspec import Raw

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.hosted_forms import read_hosted
from streamlib.request.json_objects import rest_of
from streamlib.request.prompt import CacheOptions, Prompt
from streamlib.wires.cache_marks import BREAKPOINT
from streamlib.wires.model_turns import body_fields
from streamlib.wires.responses.decode_outputs import BuiltInCalls
from streamlib.wires.responses.settings import SETTINGS, read_choice, read_include
from streamlib.wires.settings import take
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    ApprovalRequest,
    Audio,
    ContentPart,
    CustomToolCallOutput,
    Document,
    FunctionCallOutput,
    Image,
    ItemStatus,
    JsonObject,
    Message,
    Opaque,
    Origin,
    Output,
    Refusal,
    ResponseItem,
    Role,
    ServerToolCall,
    ServerToolResult,
    Text,
    ToolOptions,
    ToolSpec,
    with_origin,
)
from streamlib_parsers.wires.responses.items import item_of, with_agent

ORIGIN: Final = Origin("responses")


REPLACED: Final = ("instructions", "tools")
"""Fields of a request that stand for those of a stored prompt."""


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """Decodes a request.

    Args:
        body: the JSON body.
        headers: not read: this wire keeps nothing there.
        path: not read: the model is in the body.

    Returns:
        The prompt.
    """
    fields, history = body_fields(body, "input", Raw(b"null"))
    reader = _InputReader()
    for item in _objects(history):
        reader.read(item)
    read_include(fields)
    model, stream = fields.pop("model", None), bool(fields.pop("stream", False))
    empty: JsonObject = {}
    if fields.get("prompt"):
        # A stored prompt may have its own, which an empty value replaces.
        empty = {key: fields[key] for key in REPLACED if fields.get(key) in ("", [])}
    instructions = fields.pop("instructions", None)
    # The type of a WebSocket message.
    fields.pop("type", None)
    tools = [_tool(tool) for tool in fields.pop("tools", None) or ()]
    tool_choice = read_choice(fields, tools)
    fields.update(empty)
    cache = reader.take_cache_options(fields)
    return unchecked(Prompt)(
        input=reader.items,
        instructions=instructions,
        tools=tools,
        tool_choice=tool_choice,
        cache=cache,
        model=model,
        stream=stream,
        **SETTINGS.read(fields),
    )


def _objects(raw: Raw) -> list[Raw]:
    """The input's objects; a text is one user message."""
    first_byte = bytes(raw).lstrip()[:1]
    if first_byte == b"n":
        # null
        return []
    if first_byte == b'"':
        message = {"role": "user", "content": msgspec.json.decode(raw)}
        return [Raw(msgspec.json.encode(message))]
    return msgspec.json.decode(raw, type=list[Raw])


# --- items ---


class _InputReader:
    """Converts objects to items, and notes which of them carried a cache breakpoint."""

    def __init__(self) -> None:
        self.items: list[ResponseItem] = []
        """The history so far; each object appends one item."""
        self.marked: list[int] = []
        """Indexes of the items that carried a breakpoint."""
        self.ttl: str | None = None
        """Lifetime of the last breakpoint that named one."""
        self._built_in = BuiltInCalls()
        """The calls of built-in tools so far, which their outputs name."""

    def read(self, raw: Raw) -> None:
        """Appends the item of one object."""
        block = msgspec.json.decode(raw, type=dict[str, Any])
        if block.get("role") != "assistant":
            self._take_breakpoint(block.get("content") or block.get("output"))
        item: ResponseItem | None = self._built_in.output(block)
        if item is None:
            item = _item(block, raw)
        if isinstance(item, BUILT_IN_CALLS):
            self._built_in.add(item)
        self.items.append(with_agent(item))

    def _take_breakpoint(self, parts: Any) -> None:
        """A breakpoint on the last part is the item's; elsewhere it stays with its part."""
        if not isinstance(parts, list) or not parts:
            return
        last = parts[-1]
        if not isinstance(last, dict) or not isinstance(last.get(BREAKPOINT), dict):
            return
        self.marked.append(len(self.items))
        if last[BREAKPOINT].get("ttl") is not None:
            # A lifetime of its own stays with the part; other wires have one for the request.
            self.ttl = last[BREAKPOINT]["ttl"]
        elif last[BREAKPOINT].keys() == {"mode"}:
            del last[BREAKPOINT]

    def take_cache_options(self, fields: JsonObject) -> CacheOptions | None:
        """`Prompt.cache`, from the breakpoints and `prompt_cache_options`."""
        ttl = (fields.get("prompt_cache_options") or {}).get("ttl", self.ttl)
        if self.ttl is None:
            # The builder writes it, unless a breakpoint has a lifetime of its own.
            take(fields, "prompt_cache_options.ttl")
        if ttl is None and not self.marked:
            return None
        return CacheOptions(ttl, tuple(self.marked))


ID_FIELDS: Final = ("id", "call_id", "approval_request_id")
"""Fields by which calls and their outputs are paired."""


def _item(block: JsonObject, raw: Raw) -> ResponseItem:
    kind = block.get("type")
    if kind is not None and not isinstance(kind, str):
        raise TypeError("the type of an item is a string")
    for name in ID_FIELDS:
        if isinstance(block.get(name), (dict, list)):
            raise TypeError(f"{name} is a string")
    if not kind and "role" in block:
        # The short form of a message has no type.
        kind = "message"
    if kind == "message":
        if block["role"] not in get_args(Role):
            raise KeyError(block["role"])
        return _message(block)
    if kind in ("function_call_output", "custom_tool_call_output"):
        return _call_output(block, kind)
    item = with_origin(item_of(block, bytes(raw)), ORIGIN)
    is_built_in = isinstance(item, BUILT_IN_CALLS) and not isinstance(item, ApprovalRequest)
    if is_built_in and block.get("status") != "completed":
        # None: a call without a status is sent back without one.
        native = {**(item.native or {}), "status": block.get("status")}
        return msgspec.structs.replace(item, native=native)
    if isinstance(item, (ServerToolCall, ServerToolResult)) and item.status == "completed":
        return _with_status(item, block.get("status"))
    return item


def _with_status(
    item: ServerToolCall | ServerToolResult, status: Any
) -> ServerToolCall | ServerToolResult:
    """The item with its wire status (`in_progress`, `searching`): some kinds require one."""
    if status is None:
        return item
    return msgspec.structs.replace(item, native={**(item.native or {}), "status": status})


def _call_output(block: JsonObject, kind: str) -> ResponseItem:
    item_id = block.get("id")
    if not isinstance(block.get("call_id"), str):
        return Opaque(kind, block, id=item_id, origin=ORIGIN)
    call_id, output = block["call_id"], _output(block["output"])
    native = rest_of(block, "type", "id", "status", "call_id", "output")
    if kind == "custom_tool_call_output":
        return CustomToolCallOutput(call_id, output, id=item_id, native=native, origin=ORIGIN)
    return FunctionCallOutput(call_id, output, id=item_id, native=native, origin=ORIGIN)


def _message(block: JsonObject) -> Message:
    """A message of any role: in the short form (`content` is a text) or in parts."""
    content = block.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    status: ItemStatus = "completed"
    if block.get("status") == "incomplete":
        status = "incomplete"
    return Message(
        block["role"],
        tuple(_part(part) for part in content or ()),
        block.get("phase"),
        id=block.get("id"),
        status=status,
        origin=ORIGIN,
        native=rest_of(block, "type", "id", "status", "role", "content", "phase"),
    )


def _output(output: Any) -> Output:
    if isinstance(output, str):
        return output
    return tuple(_part(part) for part in output or ())


# --- parts ---


def _part(part: JsonObject) -> ContentPart:
    """One part. A part of an unknown kind is its JSON as text, and goes back as received."""
    match part["type"]:
        case "input_text" | "output_text" | "text":
            annotations = tuple(part.get("annotations") or ())
            read = ["type", "text", "annotations"]
            if not part.get("logprobs"):
                read.append("logprobs")
            return Text(part["text"], annotations, native=rest_of(part, *read))
        case "input_image":
            return _image(part)
        case "input_file":
            return _document(part)
        case "input_audio":
            return _audio(part)
        case "refusal":
            return Refusal(part["refusal"], native=rest_of(part, "type", "refusal"))
        case _:
            return Text(msgspec.json.encode(part).decode(), native=part)


def _image(part: JsonObject) -> Image:
    """Reads an image. If it has two sources, one goes into a field, the other into `native`."""
    key = _first_filled(part, "image_url", "file_id")
    source = _source(key, part)
    native = rest_of(part, "type", key)
    return unchecked(Image)(
        source.data, source.url, source.file_id, source.media_type, native=native
    )


def _document(part: JsonObject) -> Document:
    """The builder writes no name beside a URL or an id, so such a name stays in `native`."""
    key = _first_filled(part, "file_data", "file_url", "file_id")
    source = _source(key, part)
    read = ["type", key]
    if source.data:
        read.append("filename")
    return unchecked(Document)(
        source.data,
        source.url,
        source.file_id,
        source.media_type,
        part.get("filename"),
        native=rest_of(part, *read),
    )


def _audio(part: JsonObject) -> Audio:
    audio = part["input_audio"]
    audio_format = audio.get("format") or "wav"
    if audio_format == "mp3":
        # The registered subtype of MP3.
        audio_format = "mpeg"
    return unchecked(Audio)(data=audio["data"], media_type=f"audio/{audio_format}")


class _Source(NamedTuple):
    """Where the bytes of a part are: one of the first three is set."""

    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    media_type: str | None = None


def _first_filled(part: JsonObject, *keys: str) -> str:
    """The first of the keys that has a value; the last one if none has."""
    for key in keys:
        if part.get(key):
            return key
    return keys[-1]


def _source(key: str, part: JsonObject) -> _Source:
    """Reads a `data:` URL, bare base64, another URL, or an id."""
    if key == "file_id":
        return _Source(file_id=part.get(key))
    url = str(part[key])
    prefix, comma, data = url.partition(",")
    if comma and prefix.startswith("data:") and prefix.endswith(";base64"):
        media_type = prefix.removeprefix("data:").removesuffix(";base64")
        # `text/plain;charset=utf-8` has parameters after the type.
        return _Source(data, media_type=media_type.partition(";")[0] or None)
    # A scheme ends within the first characters; base64 has no colon.
    if key == "file_url" or ":" in url[:12]:
        return _Source(url=url)
    return _Source(url)


# --- settings ---

TOOL_KEYS: Final = {
    "function": frozenset({"type", "name", "description", "parameters", "strict"}),
    "custom": frozenset({"type", "name", "description", "format"}),
}
"""Kinds of tools of the caller's own, with the keys that have a field in `ToolSpec`."""


def _tool(tool: JsonObject) -> ToolSpec:
    kind = tool["type"]
    if kind not in TOOL_KEYS:
        return _native_tool(tool)
    name, description, options = tool["name"], tool.get("description"), _tool_options(tool)
    if kind == "custom":
        tool_format = tool.get("format") or {"type": "text"}
        return ToolSpec(name, description, format=tool_format, options=options)
    return ToolSpec(name, description, tool.get("parameters"), tool.get("strict"), options=options)


def _tool_options(tool: JsonObject) -> ToolOptions | None:
    """Further keys of a tool of yours."""
    rest = rest_of(tool, *TOOL_KEYS[tool["type"]])
    if rest is None:
        return None
    values: JsonObject = {}
    for name in WIRE_SPECS["responses"].tool_options:
        # an empty list says something else than none, and has no typed field
        if rest.get(name) not in (None, []):
            values[name] = rest.pop(name)
    if rest:
        values |= {"native": rest, "native_wire": "responses"}
    return ToolOptions(**values)


def _native_tool(tool: JsonObject) -> ToolSpec:
    """A hosted tool, a namespace, or a tool of a kind that is not known."""
    hosted = read_hosted("responses", tool)
    if hosted is not None:
        return ToolSpec(hosted.name, native=tool, native_wire="responses", provider_run=hosted)
    members: list[ToolSpec] = []
    if tool["type"] == "namespace":
        members = [_tool(member) for member in tool["tools"]]
    name = tool.get("name") or tool.get("server_label") or tool["type"]
    return ToolSpec(
        name, tool.get("description"), native=tool, native_wire="responses", tools=members
    )
