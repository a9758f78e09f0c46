"""An Anthropic Messages request as a `Prompt`: the inverse of `build.py`.

An assistant turn is read by the parser of responses, so that what a client sends back is the item
it once received: one block, one item, in order, with its signature and its arguments byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Raw

from streamlib.providers.wire_specs import ANTHROPIC_BETA
from streamlib.request.hosted_forms import read_hosted
from streamlib.request.prompt import CacheOptions, Prompt, ReasoningOptions
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.items import (
    ContentPart,
    Document,
    FunctionCallOutput,
    Image,
    JsonObject,
    Message,
    Opaque,
    Origin,
    ResponseItem,
    Text,
    ToolSpec,
)
from streamlib_parsers.protocol import parse_body

ORIGIN: Final = Origin("messages")
PROMPT_KEYS: Final = frozenset(
    {
        "cache_control",
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "service_tier",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    }
)
"""Keys of the body that fields of `Prompt` hold; the others go into `extra`."""
MEDIA: Final[dict[str, type[Image | Document]]] = {"image": Image, "document": Document}
TOOL_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}
"""Type of `tool_choice` -> `Prompt.tool_choice`; `tool` has the name of one."""


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """The prompt of a request."""
    # raw: arguments of calls keep the bytes that the client sent
    raw = msgspec.json.decode(body, type=dict[str, Raw])
    settings: JsonObject = {}
    for key, value in raw.items():
        if key != "messages":
            settings[key] = msgspec.json.decode(value)
    reader = _Reader()
    system = _system_texts(settings.get("system"))
    instructions: str | None = None
    if system:
        # `instructions` is one text; further ones are items, so that their number stays
        instructions = system.pop(0)
    for text in system:
        reader.items.append(Message("system", (Text(text),), origin=ORIGIN))
    for turn in msgspec.json.decode(raw["messages"], type=list[dict[str, Raw]]):
        reader.read_turn(turn)
    tool_choice, parallel_tools = _tool_choice(settings.get("tool_choice"))
    output_config = settings.get("output_config") or {}
    extra = {key: value for key, value in settings.items() if key not in PROMPT_KEYS}
    return Prompt(
        input=reader.items,
        instructions=instructions,
        tools=[_tool(tool) for tool in settings.get("tools") or ()],
        tool_choice=tool_choice,
        parallel_tools=parallel_tools,
        reasoning=_reasoning(settings.get("thinking"), output_config),
        output_schema=(output_config.get("format") or {}).get("schema"),
        max_output_tokens=settings.get("max_tokens"),
        temperature=settings.get("temperature"),
        top_p=settings.get("top_p"),
        top_k=settings.get("top_k"),
        stop=settings.get("stop_sequences") or (),
        cache=reader.cache(settings.get("cache_control")),
        user_id=(settings.get("metadata") or {}).get("user_id"),
        service_tier=settings.get("service_tier"),
        extra=extra or None,
        model=settings.get("model"),
        stream=bool(settings.get("stream")),
        headers=_beta_header(headers),
    )


def _beta_header(headers: Mapping[str, str]) -> dict[str, str]:
    """The betas that the request names; no other header says anything about the prompt."""
    for name, value in headers.items():
        if name.lower() == ANTHROPIC_BETA and value.strip():
            return {ANTHROPIC_BETA: value.strip()}
    return {}


# --- turns ---


class _ReadItem(NamedTuple):
    """An item, and the number of blocks it was read from."""

    item: ResponseItem
    block_count: int


class _Reader:
    """Reads turns into items, and notes which of them carried a cache marker."""

    def __init__(self) -> None:
        self.items: list[ResponseItem] = []
        """Grows with each turn."""
        self._marked: list[int] = []
        """Indices of the items with a cache marker."""
        self._ttl: str | None = None
        """Lifetime of the last marker that had one."""

    def cache(self, marker: JsonObject | None) -> CacheOptions | Literal["auto"] | None:
        """The cache setting: markers on blocks win over the body's own `cache_control`."""
        if self._marked:
            return CacheOptions(self._ttl, tuple(self._marked))
        if not marker:
            return None
        if marker.get("ttl"):
            return CacheOptions(marker["ttl"])
        return "auto"

    def read_turn(self, turn: dict[str, Raw]) -> None:
        """Reads one message."""
        role = msgspec.json.decode(turn["role"], type=str)
        blocks = msgspec.json.decode(_content(turn["content"]), type=list[dict[str, Raw]])
        is_marked = [self._pop_marker(block) for block in blocks]
        if role == "assistant":
            read_items = _assistant_items(blocks)
        else:
            read_items = _user_items(role, blocks)
        start = 0
        for item, block_count in read_items:
            end = start + block_count
            self.items.append(item)
            if any(is_marked[start:end]):
                self._marked.append(len(self.items) - 1)
            start = end

    def _pop_marker(self, block: dict[str, Raw]) -> bool:
        """Removes the cache marker of a block; returns whether it had one."""
        raw = block.pop("cache_control", None)
        if raw is None:
            return False
        marker = msgspec.json.decode(raw)
        if marker is None:
            return False
        self._ttl = marker.get("ttl") or self._ttl
        return True


def _content(content: Raw) -> Raw:
    """The content as a list of blocks: a string is one text block."""
    if not bytes(content).lstrip().startswith(b'"'):
        return content
    text = msgspec.json.decode(content)
    return Raw(msgspec.json.encode([{"type": "text", "text": text}]))


def _assistant_items(blocks: list[dict[str, Raw]]) -> Iterator[_ReadItem]:
    body = msgspec.json.encode({"type": "message", "content": blocks})
    response = accumulate(parse_body("messages", body, origin=ORIGIN))
    if response.error is not None:
        raise ValueError(response.error.message)
    for item in response.items:
        yield _ReadItem(item, 1)


def _user_items(role: Any, blocks: list[dict[str, Raw]]) -> Iterator[_ReadItem]:
    """Adjacent parts are one message; each other block is an item.

    Args:
        role: As on the wire: `Prompt` is checked for it, when it is complete.
    """
    parts: list[ContentPart] = []
    for raw in blocks:
        block = {key: msgspec.json.decode(value) for key, value in raw.items()}
        part = _part(block)
        if part is not None:
            parts.append(part)
            continue
        if parts:
            yield _ReadItem(Message(role, tuple(parts), origin=ORIGIN), len(parts))
            parts = []
        if block["type"] == "tool_result":
            yield _ReadItem(_call_output(block), 1)
        else:
            opaque = Opaque(block["type"], block, origin=ORIGIN, native={"role": role})
            yield _ReadItem(opaque, 1)
    if parts:
        yield _ReadItem(Message(role, tuple(parts), origin=ORIGIN), len(parts))


def _call_output(block: JsonObject) -> FunctionCallOutput:
    output = block.get("content") or ""
    if isinstance(output, list):
        output = tuple(_output_part(part) for part in output)
    return FunctionCallOutput(
        block["tool_use_id"],
        output,
        bool(block.get("is_error")),
        native=_native(block, "type", "tool_use_id", "content", "is_error"),
        origin=ORIGIN,
    )


def _output_part(block: JsonObject) -> ContentPart:
    part = _part(block)
    if part is not None:
        return part
    # no part stands for it: readable as JSON text, complete in `native`
    return Text(msgspec.json.encode(block).decode(), native=block)


# --- parts ---


def _part(block: JsonObject) -> ContentPart | None:
    """The part that a block is, or None where no part stands for it."""
    if block["type"] == "text":
        return _text(block)
    media_class = MEDIA.get(block["type"])
    if media_class is None:
        return None
    return _media(media_class, block)


def _text(block: JsonObject) -> Text:
    return Text(
        block["text"],
        tuple(block.get("citations") or ()),
        native=_native(block, "type", "text", "citations"),
    )


def _media(media_class: type[Image | Document], block: JsonObject) -> Image | Document | None:
    source = block.get("source")
    # a document of content blocks has no bytes
    if not isinstance(source, dict) or source.get("type") == "content":
        return None
    data = source.get("data")
    if source["type"] == "text":
        # parts hold base64
        data = msgspec.to_builtins(str(data).encode("utf-8"))
    return media_class(
        data,
        source.get("url"),
        source.get("file_id"),
        source.get("media_type"),
        block.get("title"),
        native=_native(block, "type", "source", "title"),
    )


def _native(block: JsonObject, *typed_keys: str) -> JsonObject | None:
    """The keys of a block that no typed field holds; a null says nothing."""
    native: JsonObject = {}
    for key, value in block.items():
        if key not in typed_keys and value is not None:
            native[key] = value
    return native or None


# --- settings ---


def _system_texts(system: Any) -> list[str]:
    if not system:
        return []
    if isinstance(system, str):
        return [system]
    return [block["text"] for block in system]


def _tool(tool: JsonObject) -> ToolSpec:
    if tool.get("type", "custom") != "custom":
        # a tool of Anthropic's own; some have no name
        name = tool.get("name") or tool["type"]
        return ToolSpec(
            name, native=tool, native_wire="messages", provider_run=read_hosted("messages", tool)
        )
    return ToolSpec(
        tool["name"], tool.get("description"), tool.get("input_schema"), tool.get("strict")
    )


def _tool_choice(choice: JsonObject | None) -> tuple[str | None, bool | None]:
    """`Prompt.tool_choice` and `.parallel_tools`."""
    if not choice:
        return None, None
    parallel_tools: bool | None = None
    if choice.get("disable_parallel_tool_use"):
        parallel_tools = False
    if choice["type"] == "tool":
        return choice.get("name"), parallel_tools
    return TOOL_CHOICES[choice["type"]], parallel_tools


def _reasoning(
    thinking: JsonObject | None, output_config: JsonObject
) -> ReasoningOptions | Literal["off"] | None:
    effort = output_config.get("effort")
    if thinking:
        if thinking["type"] in ("disabled", "between_tools"):
            return "off"
        return ReasoningOptions(
            effort=effort,
            budget=thinking.get("budget_tokens"),
            display=thinking.get("display"),
        )
    if effort:
        return ReasoningOptions(effort=effort)
    return None
