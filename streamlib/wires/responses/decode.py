"""Decodes an OpenAI Responses request into a `Prompt`: the inverse of `build`.

Every object of `input` is one item. The model's own objects are read by the functions that read
responses, so that what a client sends back is the item it once received, with its encrypted
content, its phase and the bytes of its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, get_args

import msgspec
from msgspec import Raw

from streamlib.request.prompt import EFFORTS, CacheOptions, Prompt, ReasoningOptions
from streamlib.request.schemas import ANY_OBJECT
from streamlib_parsers.items import (
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
    Text,
    ToolSpec,
    with_origin,
)
from streamlib_parsers.wires.responses.items import item_of

ORIGIN: Final = Origin("responses")

READ: Final = frozenset(
    {
        # The type of a WebSocket message.
        "type",
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "reasoning",
        "text",
        "include",
        "max_output_tokens",
        "temperature",
        "top_p",
        "top_logprobs",
        "metadata",
        "service_tier",
        "safety_identifier",
        "user",
        "prompt_cache_key",
        "prompt_cache_options",
        "stream",
    }
)
"""Keys with a field in `Prompt`; the others go into `extra`."""

LOGPROBS: Final = "message.output_text.logprobs"

INCLUDED: Final = frozenset({"reasoning.encrypted_content", LOGPROBS})
"""Elements of `include` that the builder writes by itself."""

BREAKPOINT: Final = "prompt_cache_breakpoint"


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """Decodes a request.

    Args:
        body: The JSON body.
        headers: Not read: this wire keeps nothing there.
        path: Not read: the model stands in the body.

    Returns:
        The prompt.
    """
    raw = msgspec.json.decode(body, type=dict[str, Raw])
    fields: JsonObject = {
        key: msgspec.json.decode(value) for key, value in raw.items() if key != "input"
    }
    reader = _InputReader()
    for item in _objects(raw.get("input")):
        reader.read(item)
    tools = [_tool(tool) for tool in fields.get("tools") or ()]
    text = fields.get("text") or {}
    return Prompt(
        input=reader.items,
        instructions=fields.get("instructions"),
        tools=tools,
        tool_choice=_choice(fields.get("tool_choice")),
        parallel_tools=fields.get("parallel_tool_calls"),
        reasoning=_reasoning(fields.get("reasoning")),
        verbosity=text.get("verbosity"),
        output_schema=_schema(text.get("format") or {}),
        max_output_tokens=fields.get("max_output_tokens"),
        temperature=fields.get("temperature"),
        top_p=fields.get("top_p"),
        logprobs=_logprobs(fields),
        cache=_cache(fields.get("prompt_cache_options"), reader),
        metadata=fields.get("metadata") or None,
        service_tier=fields.get("service_tier"),
        conversation_id=fields.get("prompt_cache_key"),
        user_id=fields.get("safety_identifier") or fields.get("user"),
        extra=_extra(fields) or None,
        model=fields.get("model"),
        stream=bool(fields.get("stream")),
    )


def _objects(raw: Raw | None) -> list[Raw]:
    """The input's objects; a text is one user message."""
    if raw is None:
        return []
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
        """Of the last breakpoint that named one."""

    def read(self, raw: Raw) -> None:
        """Appends the item of one object."""
        block = msgspec.json.decode(raw, type=dict[str, Any])
        self._take_breakpoint(block.get("content") or block.get("output"))
        self.items.append(_item(block, raw))

    def _take_breakpoint(self, parts: Any) -> None:
        """A breakpoint on the last part is the item's; elsewhere it stays with its part."""
        if not isinstance(parts, list) or not parts:
            return
        last = parts[-1]
        if isinstance(last, dict) and isinstance(last.get(BREAKPOINT), dict):
            self.ttl = last.pop(BREAKPOINT).get("ttl") or self.ttl
            self.marked.append(len(self.items))


def _item(block: JsonObject, raw: Raw) -> ResponseItem:
    kind = block.get("type")
    if not kind and "role" in block:
        # The short form of a message has no type.
        kind = "message"
    if kind == "message" and block.get("role") in get_args(Role):
        return _message(block)
    if kind in ("function_call_output", "custom_tool_call_output"):
        return _call_output(block, kind)
    return with_origin(item_of(block, raw), ORIGIN)


def _call_output(block: JsonObject, kind: str) -> ResponseItem:
    item_id = block.get("id")
    if not isinstance(block.get("call_id"), str):
        return Opaque(kind, block, id=item_id, origin=ORIGIN)
    call_id, output = block["call_id"], _output(block["output"])
    native = _rest(block, "type", "id", "status", "call_id", "output")
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
        native=_rest(block, "type", "id", "status", "role", "content", "phase"),
    )


def _rest(block: JsonObject, *read: str) -> JsonObject | None:
    """The keys that no typed field holds."""
    rest = {key: value for key, value in block.items() if key not in read and value is not None}
    return rest or None


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
            native = _rest(part, "type", "text", "annotations", "logprobs")
            return Text(part["text"], annotations, native=native)
        case "input_image":
            return _image(part)
        case "input_file":
            return _document(part)
        case "input_audio":
            return _audio(part)
        case "refusal":
            return Refusal(part["refusal"], native=_rest(part, "type", "refusal"))
        case _:
            return Text(msgspec.json.encode(part).decode(), native=part)


def _image(part: JsonObject) -> Image:
    source = _source(part.get("image_url"), part.get("file_id"))
    native = _rest(part, "type", "image_url", "file_id")
    return Image(source.data, source.url, source.file_id, source.media_type, native=native)


def _document(part: JsonObject) -> Document:
    """A name beside a URL or an id has no place in the builder's form, so it stays in `native`."""
    source = _source(part.get("file_data") or part.get("file_url"), part.get("file_id"))
    read = ["type", "file_data", "file_url", "file_id"]
    if source.data:
        read.append("filename")
    return Document(
        source.data,
        source.url,
        source.file_id,
        source.media_type,
        part.get("filename"),
        native=_rest(part, *read),
    )


def _audio(part: JsonObject) -> Audio:
    audio = part["input_audio"]
    audio_format = audio.get("format") or "wav"
    if audio_format == "mp3":
        # The registered subtype of MP3.
        audio_format = "mpeg"
    return Audio(data=audio["data"], media_type=f"audio/{audio_format}")


class _Source(NamedTuple):
    """Where the bytes of a part are: one of the first three is set."""

    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    media_type: str | None = None


def _source(url: str | None, file_id: str | None) -> _Source:
    """Reads a `data:` URL, bare base64, another URL, or an id."""
    if not url:
        return _Source(file_id=file_id)
    prefix, comma, data = url.partition(",")
    if comma and prefix.startswith("data:") and prefix.endswith(";base64"):
        media_type = prefix.removeprefix("data:").removesuffix(";base64")
        # `text/plain;charset=utf-8` has parameters after the type.
        return _Source(data, media_type=media_type.partition(";")[0] or None)
    # A scheme ends within the first characters; base64 has no colon.
    if ":" in url[:12]:
        return _Source(url=url)
    return _Source(url)


# --- settings ---

TOOL_KEYS: Final = frozenset({"type", "name", "description", "parameters", "strict"})
"""Keys of a function tool with a field in `ToolSpec`."""


def _tool(tool: JsonObject) -> ToolSpec:
    """A function tool with further keys (`defer_loading` …) keeps the wire's own object."""
    if tool["type"] == "custom":
        tool_format = tool.get("format") or {"type": "text"}
        return ToolSpec(tool["name"], tool.get("description"), format=tool_format)
    if tool["type"] == "function":
        keys = {key for key, value in tool.items() if value is not None}
        native = None if keys <= TOOL_KEYS else tool
        return ToolSpec(
            tool["name"],
            tool.get("description"),
            tool.get("parameters"),
            tool.get("strict"),
            native=native,
        )
    return ToolSpec(tool.get("name") or tool.get("server_label") or tool["type"], native=tool)


def _choice(choice: Any) -> str | None:
    """The choice or the tool's name; a form with neither stays in `extra`."""
    if isinstance(choice, dict) and _is_one_tool(choice):
        choice = choice.get("name") or choice["type"]
    if isinstance(choice, str):
        return choice
    return None


def _is_one_tool(choice: JsonObject) -> bool:
    return choice.keys() <= {"type", "name"} and choice["type"] != "allowed_tools"


def _reasoning(reasoning: Any) -> ReasoningOptions | None:
    if not reasoning:
        return None
    effort = reasoning.get("effort")
    if effort == "none":
        effort = "off"
    elif effort not in EFFORTS:
        effort = None
    summary = reasoning.get("summary")
    if effort is None and summary is None:
        return None
    return ReasoningOptions(effort, summary=summary)


def _logprobs(fields: JsonObject) -> int | None:
    count: int | None = fields.get("top_logprobs")
    if count is None and LOGPROBS in (fields.get("include") or ()):
        # Only the chosen tokens.
        return 0
    return count


def _cache(options: Any, reader: _InputReader) -> CacheOptions | None:
    ttl = (options or {}).get("ttl") or reader.ttl
    if not ttl and not reader.marked:
        return None
    return CacheOptions(ttl, tuple(reader.marked))


def _extra(fields: JsonObject) -> JsonObject:
    """Unknown keys, and known ones that hold more than `Prompt` can: those stay complete."""
    extra = {key: value for key, value in fields.items() if key not in READ}
    for key, exceeds_prompt in (
        ("include", _include_exceeds),
        ("text", _text_exceeds),
        ("reasoning", _reasoning_exceeds),
        ("tool_choice", _choice_exceeds),
        ("prompt_cache_options", _cache_options_exceed),
    ):
        value = fields.get(key)
        if value and exceeds_prompt(value):
            extra[key] = value
    return extra


def _schema(text_format: JsonObject) -> JsonObject | None:
    if text_format.get("type") == "json_object":
        return ANY_OBJECT
    schema: JsonObject | None = text_format.get("schema")
    return schema


def _include_exceeds(include: Any) -> bool:
    return not set(include) <= INCLUDED


def _text_exceeds(text: Any) -> bool:
    text_format = text.get("format") or {"type": "text"}
    is_typed = text_format["type"] in ("text", "json_object") or (
        text_format["type"] == "json_schema" and text_format.get("strict") is True
    )
    return not is_typed or not text.keys() <= {"format", "verbosity"}


def _reasoning_exceeds(reasoning: Any) -> bool:
    if reasoning.get("effort") not in (None, "none", *EFFORTS):
        return True
    return not reasoning.keys() <= {"effort", "summary"}


def _choice_exceeds(choice: Any) -> bool:
    return isinstance(choice, dict) and not _is_one_tool(choice)


def _cache_options_exceed(options: Any) -> bool:
    return not options.keys() <= {"ttl"}
