"""An Anthropic Messages request as a `Prompt`: the inverse of builders/messages.py.

An assistant turn is read by the machine that reads answers, so that what a client sends back is the item it once received:
one block, one item, in order, with its signature and its own bytes of arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

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
READ: Final = frozenset(
    {
        *(
            "model",
            "messages",
            "system",
            "max_tokens",
            "tools",
            "tool_choice",
            "thinking",
            "output_config",
            "stop_sequences",
        ),
        *("stream", "temperature", "top_p", "top_k", "metadata", "service_tier", "cache_control"),
    }
)
"""Top-level keys with a place in `Prompt`; the others go into `extra`."""


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """The prompt."""
    raw = msgspec.json.decode(body, type=dict[str, Raw])
    asked: JsonObject = {
        key: msgspec.json.decode(value) for key, value in raw.items() if key != "messages"
    }
    reader = _Reader()
    system = _texts(asked.get("system"))
    for text in system[1:]:
        reader.items.append(Message("system", (Text(text),), origin=ORIGIN))
    for turn in msgspec.json.decode(raw["messages"], type=list[dict[str, Raw]]):
        reader.turn(turn)
    config = asked.get("output_config") or {}
    return Prompt(
        input=reader.items,
        instructions=system[0] if system else None,
        tools=[_tool(tool) for tool in asked.get("tools") or ()],
        tool_choice=_choice(asked.get("tool_choice")),
        parallel_tools=False
        if (asked.get("tool_choice") or {}).get("disable_parallel_tool_use")
        else None,
        reasoning=_reasoning(asked.get("thinking"), config),
        output_schema=(config.get("format") or {}).get("schema"),
        max_output_tokens=asked.get("max_tokens"),
        temperature=asked.get("temperature"),
        top_p=asked.get("top_p"),
        top_k=asked.get("top_k"),
        stop=asked.get("stop_sequences") or (),
        cache=_cache(asked.get("cache_control"), reader),
        user_id=(asked.get("metadata") or {}).get("user_id"),
        service_tier=asked.get("service_tier"),
        extra={key: value for key, value in asked.items() if key not in READ} or None,
        model=asked.get("model"),
        stream=bool(asked.get("stream")),
    )


class _Reader:
    """Turns into items; notes which of them carried a cache marker."""

    def __init__(self) -> None:
        self.items: list[ResponseItem] = []
        self.marked: list[int] = []
        self.ttl: str | None = None

    def turn(self, turn: dict[str, Raw]) -> None:
        role = msgspec.json.decode(turn["role"], type=str)
        content = turn["content"]
        if bytes(content).lstrip()[:1] == b'"':
            content = Raw(
                msgspec.json.encode([{"type": "text", "text": msgspec.json.decode(content)}])
            )
        blocks = msgspec.json.decode(content, type=list[dict[str, Raw]])
        marks = [self._mark(block) for block in blocks]
        made = self._assistant(blocks) if role == "assistant" else list(self._user(role, blocks))
        for item, count in made:
            self.items.append(item)
            if any(marks[:count]):
                self.marked.append(len(self.items) - 1)
            del marks[:count]

    def _mark(self, block: dict[str, Raw]) -> bool:
        marker = block.pop("cache_control", None)
        if marker is None:
            return False
        found = msgspec.json.decode(marker)
        self.ttl = (found or {}).get("ttl") or self.ttl
        return found is not None

    def _assistant(self, blocks: list[dict[str, Raw]]) -> list[tuple[ResponseItem, int]]:
        body = msgspec.json.encode({"type": "message", "content": blocks})
        response = accumulate(parse_body("messages", body, origin=ORIGIN))
        if response.error is not None:
            raise ValueError(response.error.message)
        return [(item, 1) for item in response.items]

    def _user(self, role: Any, blocks: list[dict[str, Raw]]) -> Iterator[tuple[ResponseItem, int]]:
        """Adjacent parts are one message; each tool result is an item."""
        parts: list[ContentPart] = []
        for raw in blocks:
            block = {key: msgspec.json.decode(value) for key, value in raw.items()}
            part = _part(block)
            if part is not None:
                parts.append(part)
                continue
            if parts:
                yield Message(role, tuple(parts), origin=ORIGIN), len(parts)
                parts = []
            yield _other(block, role), 1
        if parts:
            yield Message(role, tuple(parts), origin=ORIGIN), len(parts)


MEDIA: Final[dict[str, type[Image | Document]]] = {"image": Image, "document": Document}


def _part(block: JsonObject) -> ContentPart | None:
    source = block.get("source")
    if block["type"] == "text":
        return Text(
            block["text"],
            tuple(block.get("citations") or ()),
            native=_rest(block, "type", "text", "citations"),
        )
    if (
        block["type"] not in MEDIA
        or not isinstance(source, dict)
        or source.get("type") == "content"
    ):
        return None
    data = source.get("data")
    if source["type"] == "text":
        data = msgspec.to_builtins(str(data).encode("utf-8"))
    return MEDIA[block["type"]](
        data,
        source.get("url"),
        source.get("file_id"),
        source.get("media_type"),
        block.get("title"),
        native=_rest(block, "type", "source", "title"),
    )


def _rest(block: JsonObject, *typed: str) -> JsonObject | None:
    return {
        key: value for key, value in block.items() if key not in typed and value is not None
    } or None


def _other(block: JsonObject, role: str) -> ResponseItem:
    if block["type"] != "tool_result":
        return Opaque(block["type"], block, origin=ORIGIN, native={"role": role})
    output = block.get("content") or ""
    if isinstance(output, list):
        output = tuple(
            _part(part) or Text(msgspec.json.encode(part).decode(), native=part) for part in output
        )
    native = _rest(block, "type", "tool_use_id", "content", "is_error")
    return FunctionCallOutput(
        block["tool_use_id"], output, bool(block.get("is_error")), native=native, origin=ORIGIN
    )


def _texts(system: Any) -> list[str]:
    if not system:
        return []
    return [system] if isinstance(system, str) else [block["text"] for block in system]


def _tool(tool: JsonObject) -> ToolSpec:
    if tool.get("type", "custom") != "custom":
        return ToolSpec(tool.get("name") or tool["type"], native=tool)
    return ToolSpec(
        tool["name"], tool.get("description"), tool.get("input_schema"), tool.get("strict")
    )


def _choice(choice: Any) -> str | None:
    if not choice:
        return None
    words: dict[str, str | None] = {
        "auto": "auto",
        "any": "required",
        "none": "none",
        "tool": choice.get("name"),
    }
    return words[choice["type"]]


def _reasoning(thinking: Any, config: JsonObject) -> Any:
    if not thinking:
        return ReasoningOptions(effort=config["effort"]) if config.get("effort") else None
    if thinking["type"] in ("disabled", "between_tools"):
        return "off"
    return ReasoningOptions(
        effort=config.get("effort"),
        budget=thinking.get("budget_tokens"),
        display=thinking.get("display"),
    )


def _cache(marker: Any, reader: _Reader) -> Any:
    if reader.marked:
        return CacheOptions(reader.ttl, tuple(reader.marked))
    if not marker:
        return None
    return CacheOptions(marker["ttl"]) if marker.get("ttl") else "auto"
