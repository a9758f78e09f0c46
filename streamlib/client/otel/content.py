"""What a conversation says, in the JSON of the GenAI conventions, after the user's redaction.

Recorded only where somebody asks for it. Bytes of images, documents and audio never are: no stage
could redact them.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from streamlib.pipeline.stages import Stage, as_stages, through, without_loop
from streamlib.request.build import Request
from streamlib.request.prompt import Prompt
from streamlib_parsers.accumulate import Choice, Response, accumulate
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.item_base import Item, Part
from streamlib_parsers.items import (
    BUILT_IN_OUTPUTS,
    Audio,
    CallOutput,
    Compaction,
    ContentPart,
    CustomToolCall,
    CustomToolCallOutput,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    Opaque,
    PendingCall,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
    ToolSpec,
    snake_case,
)
from streamlib_parsers.stream_error import StreamError

Content: TypeAlias = Literal["none", "spans", "events", "both"]
"""Where content is recorded."""

CAPTURE_MODES: Final[dict[str, Content]] = {
    "NO_CONTENT": "none",
    "SPAN_ONLY": "spans",
    "EVENT_ONLY": "events",
    "SPAN_AND_EVENT": "both",
}
"""Value of ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` -> where content is recorded."""

MODALITIES: Final[dict[type, str]] = {Image: "image", Document: "document", Audio: "audio"}
"""Kind of part -> its modality."""

OUTPUTS: Final = (FunctionCallOutput, CustomToolCallOutput, *BUILT_IN_OUTPUTS)
"""Items that the caller sends for a call."""


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

    def of_request(self, prompt: Prompt | None, request: Request) -> dict[str, Any]:
        """The attributes of what was asked."""
        return self.of_prompt(_prompt_of(prompt, request))

    def of_prompt(self, asked: Prompt) -> dict[str, Any]:
        """The same of a prompt."""
        attributes: dict[str, Any] = {"gen_ai.input.messages": self.messages(asked.items)}
        if asked.instructions is not None:
            parts = [{"type": "text", "content": self.redacted(asked.instructions)}]
            attributes["gen_ai.system_instructions"] = parts
        if asked.tools:
            definitions = [self._definition(tool) for tool in asked.tools]
            attributes["gen_ai.tool.definitions"] = definitions
        return attributes

    def of_response(self, response: Response) -> dict[str, Any]:
        """The attributes of the answer: a message for each choice."""
        messages: list[Any] = []
        for choice in response.choices or (Choice(0, response.items),):
            parts = [part for item in choice.items for part in self._parts(item)]
            messages.append({"role": "assistant", "parts": parts})
        return {"gen_ai.output.messages": messages}

    def messages(self, items: Iterable[ResponseItem]) -> list[Any]:
        """A history as messages: neighbours of one role are one."""
        messages: list[Any] = []
        for item in items:
            role = _role(item)
            if not messages or messages[-1]["role"] != role:
                messages.append({"role": role, "parts": []})
            messages[-1]["parts"] += self._parts(item)
        return messages

    def redacted(self, value: Any) -> Any:
        """A JSON value with each of its texts redacted, those of its keys, too."""
        if not self._stages:
            return value
        if isinstance(value, str):
            return self._redacted_text(value)
        if isinstance(value, (list, tuple)):
            return [self.redacted(entry) for entry in value]
        if isinstance(value, dict):
            return {self.redacted(key): self.redacted(member) for key, member in value.items()}
        return value

    def _redacted_text(self, text: str) -> str:
        message = Message("assistant", (Text(text),))
        response = Response(status="completed", items=(message,), stop_reason="stop")
        # By name at run time: clients and wires do not import each other.
        module: Any = importlib.import_module("streamlib.wires.missing_deltas")
        events: Iterable[ResponseEvent] = module.events_of(response)
        return accumulate(through(events, *self._stages)).text

    def _parts(self, item: ResponseItem) -> list[Any]:
        """The parts that an item becomes. Provider state, signed or encrypted, is none of them."""
        match item:
            case Message():
                return [self._part(part) for part in item.content]
            case Reasoning():
                content = self.redacted(item.text)
                return [{"type": "reasoning", "content": content}] if item.text else []
            case Compaction():
                return [{"type": "compaction", "content": self.redacted(item.content)}]
            case Opaque():
                return [{"type": item.kind}]
        part: dict[str, Any] = {"id": item.call_id}
        if isinstance(item, ServerToolCall):
            call = {"type": item.name, "arguments": self._json(item.arguments)}
            return [
                {"type": "server_tool_call", "name": item.name, "server_tool_call": call, **part}
            ]
        if isinstance(item, ServerToolResult):
            result = {"type": item.name, "output": self.redacted(item.output)}
            return [
                {"type": "server_tool_call_response", "server_tool_call_response": result, **part}
            ]
        if isinstance(item, OUTPUTS):
            return [{"type": "tool_call_response", "response": self.output_of(item), **part}]
        name = getattr(item, "name", None) or snake_case(type(item).__name__)
        return [{"type": "tool_call", "name": name, "arguments": self.arguments_of(item), **part}]

    def arguments_of(self, call: PendingCall) -> Any:
        """What a call was called with."""
        if isinstance(call, FunctionCall):
            return self._json(call.arguments)
        if isinstance(call, CustomToolCall):
            return self.redacted(call.input)
        return self._fields(call)

    def output_of(self, output: CallOutput) -> Any:
        """What a call gave."""
        if isinstance(output, (FunctionCallOutput, CustomToolCallOutput)):
            return self._value(output.output)
        return self._fields(output)

    def _fields(self, item: PendingCall | CallOutput) -> dict[str, Any]:
        """The fields that only an item of this kind has."""
        fields: dict[str, Any] = {}
        for name in item.__struct_fields__:
            if name not in Item.__struct_fields__ and name != "call_id":
                fields[name] = self._value(getattr(item, name))
        return fields

    def _value(self, value: Any) -> Any:
        if isinstance(value, Part):
            return self._part(cast(ContentPart, value))
        if isinstance(value, (list, tuple)):
            return [self._value(entry) for entry in value]
        return self.redacted(msgspec.to_builtins(value))

    def _part(self, part: ContentPart) -> dict[str, Any]:
        if isinstance(part, Text):
            return {"type": "text", "content": self.redacted(part.text)}
        if isinstance(part, Refusal):
            return {"type": "text", "content": self.redacted(part.refusal)}
        kind: dict[str, Any] = {"modality": MODALITIES[type(part)], "mime_type": part.media_type}
        if isinstance(part, Audio) and part.transcript is not None:
            kind["transcript"] = self.redacted(part.transcript)
        if part.url is not None and not part.url.startswith("data:"):
            return {"type": "uri", **kind, "uri": self.redacted(part.url)}
        if part.file_id is not None:
            return {"type": "file", **kind, "file_id": part.file_id}
        return {"type": "blob", **kind, "content": ""}

    def _definition(self, tool: ToolSpec) -> dict[str, Any]:
        if tool.schema is None:
            return {"type": "extension", "name": tool.name}
        definition: dict[str, Any] = {"type": "function", "name": tool.name}
        if tool.description:
            definition["description"] = self.redacted(tool.description)
        definition["parameters"] = self.redacted(tool.schema)
        return definition

    def _json(self, text: str) -> Any:
        """A JSON text as its value; another text as it is."""
        try:
            return self.redacted(msgspec.json.decode(text))
        except (msgspec.DecodeError, RecursionError):
            return self.redacted(text)


def _prompt_of(prompt: Prompt | None, request: Request) -> Prompt:
    """What was asked: the caller's prompt, or what a `Request` of the caller's says."""
    if prompt is not None:
        return prompt
    decoders: Any = importlib.import_module("streamlib.wires.decoders")
    try:
        decoded: Prompt = decoders.parse_request(
            request.wire_api, request.body, headers=request.headers, path=request.url
        )
    except StreamError:
        return Prompt()
    return decoded


def _role(item: ResponseItem) -> str:
    if isinstance(item, Message):
        return "system" if item.role == "developer" else item.role
    return "tool" if isinstance(item, OUTPUTS) else "assistant"
