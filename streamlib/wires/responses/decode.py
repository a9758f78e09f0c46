"""An OpenAI Responses request as a `Prompt`: the inverse of builders/responses.py.

Every object of `input` is one item. What the model once said is read by the table that reads answers, so that what a client sends
back is the item it once received, with its sealed content, its phase and its own bytes of arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

import msgspec
from msgspec import Raw

from streamlib.request.prompt import EFFORTS, CacheOptions, Prompt, ReasoningOptions
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
"""Top-level keys with a place in `Prompt`; the others go into `extra`. `type` is that of a WebSocket message."""
WRITTEN: Final = frozenset({"reasoning.encrypted_content", "message.output_text.logprobs"})
"""What the builder asks to be included by itself."""
BREAKPOINT: Final = "prompt_cache_breakpoint"


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """The prompt."""
    raw = msgspec.json.decode(body, type=dict[str, Raw])
    asked: JsonObject = {
        key: msgspec.json.decode(value) for key, value in raw.items() if key != "input"
    }
    reader = _Reader()
    for item in _objects(raw.get("input")):
        reader.read(item)
    tools = [_tool(tool) for tool in asked.get("tools") or ()]
    text = asked.get("text") or {}
    return Prompt(
        input=reader.items,
        instructions=asked.get("instructions"),
        tools=tools,
        tool_choice=_choice(asked.get("tool_choice")),
        parallel_tools=asked.get("parallel_tool_calls"),
        reasoning=_reasoning(asked.get("reasoning")),
        verbosity=text.get("verbosity"),
        output_schema=(text.get("format") or {}).get("schema"),
        max_output_tokens=asked.get("max_output_tokens"),
        temperature=asked.get("temperature"),
        top_p=asked.get("top_p"),
        logprobs=_logprobs(asked),
        cache=_cache(asked.get("prompt_cache_options"), reader),
        metadata=asked.get("metadata") or None,
        service_tier=asked.get("service_tier"),
        conversation_id=asked.get("prompt_cache_key"),
        user_id=asked.get("safety_identifier") or asked.get("user"),
        extra=_extra(asked) or None,
        model=asked.get("model"),
        stream=bool(asked.get("stream")),
    )


def _objects(raw: Raw | None) -> list[Raw]:
    """The input's objects; a text is what the user says."""
    if raw is None or bytes(raw).lstrip()[:1] == b"n":
        return []
    if bytes(raw).lstrip()[:1] == b'"':
        return [Raw(msgspec.json.encode({"role": "user", "content": msgspec.json.decode(raw)}))]
    return msgspec.json.decode(raw, type=list[Raw])


# --- items ---


class _Reader:
    """Objects into items; notes which of them carried a cache breakpoint."""

    def __init__(self) -> None:
        self.items: list[ResponseItem] = []
        self.marked: list[int] = []
        self.ttl: str | None = None

    def read(self, raw: Raw) -> None:
        block = msgspec.json.decode(raw, type=dict[str, Any])
        self._mark(block.get("content") or block.get("output"))
        self.items.append(_item(block, raw))

    def _mark(self, parts: Any) -> None:
        """A breakpoint on the last part is the item's; elsewhere it stays with its part."""
        last = parts[-1] if isinstance(parts, list) and parts else None
        if isinstance(last, dict) and isinstance(last.get(BREAKPOINT), dict):
            self.ttl = last.pop(BREAKPOINT).get("ttl") or self.ttl
            self.marked.append(len(self.items))


def _item(block: JsonObject, raw: Raw) -> ResponseItem:
    kind = block.get("type") or ("message" if "role" in block else "")
    if kind == "message" and block.get("role") in get_args(Role):
        return _message(block)
    if kind in OUTPUTS and isinstance(block.get("call_id"), str):
        native = _rest(block, "type", "id", "status", "call_id", "output")
        answer: ResponseItem = OUTPUTS[kind](
            block["call_id"],
            _output(block["output"]),
            id=block.get("id"),
            native=native,
            origin=ORIGIN,
        )
        return answer
    if kind in OUTPUTS:
        return Opaque(kind, block, id=block.get("id"), origin=ORIGIN)
    return with_origin(item_of(block, raw), ORIGIN)


OUTPUTS: Final[dict[str, Any]] = {
    "function_call_output": FunctionCallOutput,
    "custom_tool_call_output": CustomToolCallOutput,
}


def _message(block: JsonObject) -> Message:
    """Of any role: short (`content` is a text) or in parts."""
    content = block.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
    said = tuple(_part(part) for part in parts)
    status: ItemStatus = "incomplete" if block.get("status") == "incomplete" else "completed"
    native = _rest(block, "type", "id", "status", "role", "content", "phase")
    return Message(
        block["role"],
        said,
        block.get("phase"),
        id=block.get("id"),
        status=status,
        origin=ORIGIN,
        native=native,
    )


def _rest(block: JsonObject, *typed: str) -> JsonObject | None:
    return {
        key: value for key, value in block.items() if key not in typed and value is not None
    } or None


def _output(output: Any) -> Output:
    return output if isinstance(output, str) else tuple(_part(part) for part in output or ())


# --- parts ---


def _part(part: JsonObject) -> ContentPart:
    read = PARTS.get(part["type"])
    return read(part) if read else Text(msgspec.json.encode(part).decode(), native=part)


def _text(part: JsonObject) -> Text:
    return Text(
        part["text"],
        tuple(part.get("annotations") or ()),
        native=_rest(part, "type", "text", "annotations", "logprobs"),
    )


def _refusal(part: JsonObject) -> Refusal:
    return Refusal(part["refusal"], native=_rest(part, "type", "refusal"))


def _image(part: JsonObject) -> Image:
    place = _placed(part.get("image_url"), part.get("file_id"))
    return Image(**place, native=_rest(part, "type", "image_url", "file_id"))


def _document(part: JsonObject) -> Document:
    """A name beside a URL or an id has no place in the builder's form, so it stays the wire's own."""
    place = _placed(part.get("file_data") or part.get("file_url"), part.get("file_id"))
    typed = [
        "type",
        "file_data",
        "file_url",
        "file_id",
        *(["filename"] if place.get("data") else []),
    ]
    return Document(**place, name=part.get("filename"), native=_rest(part, *typed))


def _audio(part: JsonObject) -> Audio:
    sound = part["input_audio"]
    return Audio(
        data=sound["data"],
        media_type="audio/mpeg"
        if sound.get("format") == "mp3"
        else f"audio/{sound.get('format') or 'wav'}",
    )


def _placed(url: str | None, file_id: str | None) -> dict[str, Any]:
    """Where the bytes are: in a `data:` URL, in bare base64, behind a URL or an id."""
    if not url:
        return {"file_id": file_id}
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return {"data": data, "media_type": head[5:-7].partition(";")[0] or None}
    return {"url": url} if ":" in url[:12] else {"data": url}


PARTS: Final[dict[str, Any]] = {
    "input_text": _text,
    "output_text": _text,
    "text": _text,
    "refusal": _refusal,
    "input_image": _image,
    "input_file": _document,
    "input_audio": _audio,
}


# --- settings ---

TOOL_KEYS: Final = frozenset({"type", "name", "description", "parameters", "strict"})


def _tool(tool: JsonObject) -> ToolSpec:
    """A function tool with keys of its own (`defer_loading` …) is the wire's own object."""
    if tool["type"] == "custom":
        return ToolSpec(
            tool["name"], tool.get("description"), format=tool.get("format") or {"type": "text"}
        )
    if tool["type"] == "function":
        more = {key for key, value in tool.items() if value is not None} - TOOL_KEYS
        return ToolSpec(
            tool["name"],
            tool.get("description"),
            tool.get("parameters"),
            tool.get("strict"),
            native=tool if more else None,
        )
    return ToolSpec(tool.get("name") or tool.get("server_label") or tool["type"], native=tool)


def _choice(choice: Any) -> str | None:
    """The word or the tool's name; a form with neither stays in `extra`."""
    if isinstance(choice, dict):
        choice = choice.get("name") or choice["type"] if _is_one_tool(choice) else None
    return choice if isinstance(choice, str) else None


def _is_one_tool(choice: JsonObject) -> bool:
    return not set(choice) - {"type", "name"} and choice["type"] != "allowed_tools"


def _reasoning(reasoning: Any) -> Any:
    if not reasoning:
        return None
    effort = "off" if reasoning.get("effort") == "none" else reasoning.get("effort")
    options = ReasoningOptions(
        effort=effort if effort in EFFORTS else None, summary=reasoning.get("summary")
    )
    return options if options != ReasoningOptions() else None


def _logprobs(asked: JsonObject) -> int | None:
    count = asked.get("top_logprobs")
    return (
        0
        if count is None and "message.output_text.logprobs" in (asked.get("include") or ())
        else count
    )


def _cache(options: Any, reader: _Reader) -> CacheOptions | None:
    ttl = (options or {}).get("ttl") or reader.ttl
    return CacheOptions(ttl, tuple(reader.marked)) if ttl or reader.marked else None


def _extra(asked: JsonObject) -> JsonObject:
    """Unknown keys, and known ones that say more than `Prompt` can: those stay whole."""
    extra = {key: value for key, value in asked.items() if key not in READ}
    text, reasoning, options = (
        asked.get(key) or {} for key in ("text", "reasoning", "prompt_cache_options")
    )
    whole = {
        "include": bool(set(asked.get("include") or ()) - WRITTEN),
        "text": not (
            _is_typed_format(text.get("format") or {"type": "text"})
            and not set(text) - {"format", "verbosity"}
        ),
        "reasoning": bool(set(reasoning) - {"effort", "summary"})
        or reasoning.get("effort") not in (None, "none", *EFFORTS),
        "tool_choice": isinstance(asked.get("tool_choice"), dict)
        and not _is_one_tool(asked["tool_choice"]),
        "prompt_cache_options": bool(set(options) - {"ttl"}),
    }
    return {**extra, **{key: asked[key] for key, kept in whole.items() if kept}}


def _is_typed_format(form: JsonObject) -> bool:
    return form["type"] == "text" or (form["type"] == "json_schema" and form.get("strict") is True)
