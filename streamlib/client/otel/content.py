"""What a conversation says, in the JSON of the GenAI conventions, after the user's redaction.

Recorded only where somebody asks for it. Bytes of images, documents and audio never are: no stage
could redact them.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from streamlib.client.otel.attributes import decoded
from streamlib.pipeline.machine import Stage, without_loop
from streamlib.pipeline.stages import as_stages, through
from streamlib.request.build import Request
from streamlib.request.history import ALL_OUTPUTS
from streamlib.request.prompt import Prompt
from streamlib_parsers.accumulate import Choice, Response, accumulate
from streamlib_parsers.item_base import Item, Media
from streamlib_parsers.items import (
    ContentPart,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    JsonObject,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
    ToolSpec,
    snake_case,
)

Content: TypeAlias = Literal["none", "spans", "events", "both"]
"""Where content is recorded."""

CAPTURE_MODES: Final[dict[str, Content]] = {
    "NO_CONTENT": "none",
    "SPAN_ONLY": "spans",
    "EVENT_ONLY": "events",
    "SPAN_AND_EVENT": "both",
}
"""Value of ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` -> where content is recorded."""

PROVIDER_STATE: Final = ("encrypted_content", "payload")
"""Fields that only the provider can read."""

PLAIN_KEYS: Final = frozenset({"type", "id", "name", "modality", "mime_type", "file_id"})
"""Keys of a part that say what it is, not what it holds."""


class ContentWriter:
    """Writes content, after redaction.

    Args:
        redact: stages that every text goes through, each as a message of its own.

    Raises:
        TypeError: one of them is no stage, or needs an event loop.
    """

    def __init__(self, redact: Stage | Sequence[Stage] = ()) -> None:
        self._stages = as_stages((redact,) if isinstance(redact, Stage) else redact)
        without_loop(self._stages)

    def of_request(self, prompt: Prompt | None, request: Request) -> JsonObject:
        """The attributes of what was asked."""
        return self.of_prompt(decoded(request, "parse_request") if prompt is None else prompt)

    def of_prompt(self, prompt: Prompt) -> JsonObject:
        """The same of a prompt."""
        attributes: JsonObject = {"gen_ai.input.messages": self._messages(prompt.items)}
        if prompt.instructions is not None:
            part = {"type": "text", "content": prompt.instructions}
            attributes["gen_ai.system_instructions"] = [self._redacted_part(part)]
        if prompt.tools:
            definitions = [self._redacted_part(_definition(tool)) for tool in prompt.tools]
            attributes["gen_ai.tool.definitions"] = definitions
        return attributes

    def of_response(self, response: Response) -> JsonObject:
        """The attributes of the answer: a message for each choice."""
        messages: list[JsonObject] = []
        for choice in response.choices or (Choice(0, response.items),):
            parts = [part for item in choice.items for part in self.parts(item)]
            messages.append({"role": "assistant", "parts": parts})
        return {"gen_ai.output.messages": messages}

    def parts(self, item: ResponseItem) -> list[JsonObject]:
        """The parts that an item becomes. Provider state, signed or encrypted, is none of them."""
        return [self._redacted_part(part) for part in item_parts(item)]

    def _messages(self, items: Iterable[ResponseItem]) -> list[JsonObject]:
        """A history as messages: neighbours of one role are one."""
        messages: list[JsonObject] = []
        for item in items:
            role = "tool" if isinstance(item, ALL_OUTPUTS) else "assistant"
            if isinstance(item, Message):
                role = "system" if item.role == "developer" else item.role
            if not messages or messages[-1]["role"] != role:
                messages.append({"role": role, "parts": []})
            messages[-1]["parts"] += self.parts(item)
        return messages

    def _redacted_part(self, part: JsonObject) -> JsonObject:
        redacted: JsonObject = {}
        for key, value in part.items():
            redacted[key] = value if key in PLAIN_KEYS else self._redacted(value)
        return redacted

    def _redacted(self, value: Any) -> Any:
        """A JSON value with each of its texts redacted, those of its keys, too."""
        if not self._stages:
            return value
        if isinstance(value, str):
            return self._redacted_text(value)
        if isinstance(value, (list, tuple)):
            return [self._redacted(entry) for entry in value]
        if isinstance(value, dict):
            return {self._redacted(key): self._redacted(member) for key, member in value.items()}
        return value

    def _redacted_text(self, text: str) -> str:
        message = Message("assistant", (Text(text),))
        response = Response(status="completed", items=(message,), stop_reason="stop")
        # By name at run time: clients and wires do not import each other.
        module: Any = importlib.import_module("streamlib.wires.missing_deltas")
        stages: Any = self._stages
        return accumulate(through(module.events_of(response), *stages)).text


def item_parts(item: ResponseItem, *, with_bytes: bool = False) -> list[JsonObject]:
    """The parts that an item becomes; without `with_bytes` its images and files have no content."""
    match item:
        case Message():
            return [_content(part, with_bytes=with_bytes) for part in item.content]
        case Reasoning():
            return [{"type": "reasoning", "content": item.text}] if item.text else []
        case FunctionCall():
            call = {"id": item.call_id, "name": item.name, "arguments": _json(item.arguments)}
            return [{"type": "tool_call", **call}]
        case CustomToolCall():
            call = {"id": item.call_id, "name": item.name, "arguments": item.input}
            return [{"type": "tool_call", **call}]
        case FunctionCallOutput() | CustomToolCallOutput():
            response: Any = item.output
            if not isinstance(response, str):
                response = [_content(part, with_bytes=with_bytes) for part in response]
            return [{"type": "tool_call_response", "id": item.call_id, "response": response}]
        case ServerToolCall():
            named = {"type": item.name, "arguments": _json(item.arguments)}
            part = {"type": "server_tool_call", "id": item.call_id, "name": item.name}
            return [{**part, "server_tool_call": named}]
        case ServerToolResult():
            named = {"type": item.name, "output": item.output}
            part = {"type": "server_tool_call_response", "id": item.call_id}
            return [{**part, "server_tool_call_response": named}]
        case _:
            return [_own_part(item)]


def _own_part(item: ResponseItem) -> JsonObject:
    """An item of a kind that the conventions have no part for: its own fields, under its name."""
    part: JsonObject = {"type": snake_case(type(item).__name__)}
    for name in item.__struct_fields__:
        value = getattr(item, name)
        if name in Item.__struct_fields__ or name in PROVIDER_STATE:
            continue
        key = "id" if name == "call_id" else name
        part[key] = _content(value) if isinstance(value, Media) else msgspec.to_builtins(value)
    return part


def _content(part: ContentPart | Media, *, with_bytes: bool = False) -> JsonObject:
    if isinstance(part, Text):
        return {"type": "text", "content": part.text}
    if isinstance(part, Refusal):
        return {"type": "text", "content": part.refusal}
    kind: JsonObject = {"modality": snake_case(type(part).__name__), "mime_type": part.media_type}
    if part.url is not None and (with_bytes or not part.url.startswith("data:")):
        return {"type": "uri", **kind, "uri": part.url}
    if part.file_id is not None:
        return {"type": "file", **kind, "file_id": part.file_id}
    return {"type": "blob", **kind, "content": part.data or "" if with_bytes else ""}


def _definition(tool: ToolSpec) -> JsonObject:
    if tool.schema is None:
        return {"type": "extension", "name": tool.name}
    definition: JsonObject = {"type": "function", "name": tool.name, "parameters": tool.schema}
    if tool.description:
        definition["description"] = tool.description
    return definition


def _json(text: str) -> Any:
    """A JSON text as its value; another text as it is."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
