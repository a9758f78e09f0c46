"""AG-UI events and fields that its stream and its messages have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from streamlib.request.json_objects import without_none
from streamlib.request.origins import opaque_state
from streamlib.web.run_encoder import Waiting
from streamlib.web.ui_parts import (
    CALLS,
    MEDIA_TYPES,
    output_parts,
    shown_output,
    total_tokens,
)
from streamlib.wires.encoders import sse
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import (
    Audio,
    CallOutput,
    ContentPart,
    Document,
    Image,
    JsonObject,
    Refusal,
    ResponseItem,
    Text,
    tag,
)
from streamlib_parsers.json_text import text_or_json
from streamlib_parsers.usage import Usage

APPROVAL_SCHEMA: Final = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}
"""JSON Schema of the answer to an interrupt."""


FILTERED: Final = ErrorInfo("content_filter", "a content filter has ended the response")
"""The failure of a run whose text was stopped: no outcome of the protocol says that."""


def event_frame(kind: str, /, **fields: Any) -> bytes:
    """One event of the protocol."""
    return sse({"type": kind, **fields})


def result_id(prefix: str, call_id: str) -> str:
    """The message id of a result that came with its call."""
    return f"{prefix}-{call_id}-result"


def interrupt(waiting: Waiting) -> JsonObject:
    """The interrupt of a run that waits for an approval; its id is the id of the call."""
    name = getattr(waiting.item, "name", "a tool")
    return {
        "id": waiting.shown_id,
        "reason": "tool_call",
        "message": f"Approve the call of {name}?",
        "toolCallId": waiting.shown_id,
        "responseSchema": APPROVAL_SCHEMA,
    }


def output_fields(item: CallOutput) -> JsonObject:
    """The content of a result. `metadata` marks an error, which has no field."""
    value, fault = shown_output(item)
    fields: JsonObject = {"content": text_or_json(value)}
    parts = output_parts(item)
    if len(parts) > 1 or (parts and not isinstance(parts[0], Text)):
        fields["content"] = [part_of_content(part) for part in parts]
    if fault is not None:
        fields["metadata"] = {"is_error": True}
    return fields


def part_of_content(part: ContentPart) -> JsonObject:
    """A content part of a message."""
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Refusal():
            return {"type": "text", "text": part.refusal}
        case Image() | Document() | Audio():
            return {"type": tag(type(part)), "source": _source(part)}


def _source(part: Image | Document | Audio) -> JsonObject:
    media_type = part.media_type or MEDIA_TYPES[type(part)]
    if part.url:
        return {"type": "url", "value": part.url, "mimeType": media_type}
    if part.file_id:
        return {"type": "file", "value": part.file_id, "mimeType": media_type}
    return {"type": "data", "value": part.data or "", "mimeType": media_type}


def agui_usage(usage: Usage, model: str | None) -> JsonObject:
    """The protocol's usage of one model."""
    body: JsonObject = {}
    if model:
        body["model"] = model
    counts = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": total_tokens(usage),
        "reasoningTokens": usage.reasoning_output_tokens,
        "cachedInputTokens": usage.cache_read_input_tokens,
        "cacheWriteInputTokens": usage.cache_write_input_tokens,
    }
    body.update(without_none(counts))
    return body


def error_body(error: ErrorInfo) -> JsonObject:
    """The protocol's error event."""
    return {"type": "RUN_ERROR", "message": error.message, "code": error.kind}


def end_reasoning(message_id: str) -> bytes:
    """The end of a reasoning message, and of reasoning."""
    out = event_frame("REASONING_MESSAGE_END", messageId=message_id)
    return out + event_frame("REASONING_END", messageId=message_id)


def encrypted_value(item: ResponseItem, entity_id: str, sealed_text: str | None) -> bytes:
    """The protocol's event for a signature or encrypted reasoning, if there is one.

    Args:
        item: the item.
        entity_id: the id of its message or call.
        sealed_text: its state as the page may have it; None: as the provider sent it.
    """
    state = sealed_text or opaque_state(item)
    if not state:
        return b""
    subtype = "message"
    if isinstance(item, CALLS):
        subtype = "tool-call"
    return event_frame(
        "REASONING_ENCRYPTED_VALUE", subtype=subtype, entityId=entity_id, encryptedValue=state
    )


# --- the messages that a reader of the events has ---


def messages_of(events: Iterable[JsonObject]) -> list[JsonObject]:
    """Returns the messages that the events of a stream make."""
    messages = _Messages()
    for event in events:
        messages.add(event)
    return messages.in_order()


class _Messages:
    """The messages so far."""

    def __init__(self) -> None:
        # Messages and calls by their ids; messages without those of results.
        self._messages: dict[str, JsonObject] = {}
        self._calls: dict[str, JsonObject] = {}
        # Id of a call -> the results of its message.
        self._results_of_call: dict[str, list[JsonObject]] = {}
        # Id of a message -> the results of its calls.
        self._results: dict[str, list[JsonObject]] = {}

    def in_order(self) -> list[JsonObject]:
        """Returns all messages, each result after the message with its call."""
        ordered: list[JsonObject] = []
        for message_id, message in self._messages.items():
            ordered.append(message)
            ordered += self._results.get(message_id, ())
        return ordered

    def add(self, event: JsonObject) -> None:
        """Takes one event; events beside the messages change nothing."""
        match event["type"]:
            case "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START":
                message_id = event["messageId"]
                message = {"id": message_id, "role": event["role"], "content": ""}
                self._messages[message_id] = message | _agent(event)
            case "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT":
                self._messages[event["messageId"]]["content"] += event["delta"]
            case "TOOL_CALL_START":
                self._start_call(event)
            case "TOOL_CALL_ARGS":
                self._calls[event["toolCallId"]]["function"]["arguments"] += event["delta"]
            case "TOOL_CALL_RESULT":
                call_id = event["toolCallId"]
                result = {"id": event["messageId"], "role": "tool", "toolCallId": call_id}
                self._results_of_call[call_id].append({**result, "content": event["content"]})
            case "REASONING_ENCRYPTED_VALUE":
                entities = self._messages
                if event["subtype"] == "tool-call":
                    entities = self._calls
                entities[event["entityId"]]["encryptedValue"] = event["encryptedValue"]
            case _:
                pass

    def _start_call(self, event: JsonObject) -> None:
        """Adds a call to its message, which it starts if there is none."""
        call_id, message_id = event["toolCallId"], event["parentMessageId"]
        function = {"name": event["toolCallName"], "arguments": ""}
        call: JsonObject = {"id": call_id, "type": "function", "function": function}
        new = {"id": message_id, "role": "assistant", **_agent(event)}
        message = self._messages.setdefault(message_id, new)
        message.setdefault("toolCalls", []).append(call)
        self._calls[call_id] = call
        self._results_of_call[call_id] = self._results.setdefault(message_id, [])


def _agent(event: JsonObject) -> JsonObject:
    """The agent of a message, as its first event names it."""
    if "subagentRunId" not in event:
        return {}
    return {"subagentRunId": event["subagentRunId"]}
