"""Which format a conversation has, where it is plain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from streamlib.history.transcripts.source import JsonSource
from streamlib.history.transcripts.transcript import TranscriptFormat
from streamlib_parsers.items import JsonObject

LOOKED_AT: Final = 200
"""Objects that are looked at: the first lines of a session are mostly about the session."""

CODEX_TYPES: Final = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
CLAUDE_CODE_TYPES: Final = ("user", "assistant", "system", "progress", "attachment", "summary")
LANGCHAIN_TYPES: Final = ("human", "ai", "AIMessageChunk", "HumanMessageChunk")
MESSAGES_BLOCKS: Final = (
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "image",
    "document",
)
RESPONSES_TYPES: Final = (
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "reasoning",
    "input_text",
    "output_text",
    "input_image",
    "input_file",
)
CHAT_ROLES: Final = ("tool", "function")
CHAT_BLOCKS: Final = ("image_url", "input_audio")
WIRE_BODIES: Final[dict[str, TranscriptFormat]] = {"input": "responses", "system": "messages"}
"""Key that only the body of one wire has -> the wire."""


def plain_format(source: JsonSource) -> TranscriptFormat | None:
    """The format of a value; None where it may be several, or none that is known."""
    value = source.value
    if isinstance(value, dict):
        return _of_object(value)
    if not isinstance(value, list):
        return None
    return _of_list([element for element in value[:LOOKED_AT] if isinstance(element, dict)])


def is_of_any_wire(source: JsonSource) -> bool:
    """Whether a value is a list of messages that are alike in Chat, Messages and Responses."""
    value = source.value
    if isinstance(value, dict):
        value = value.get("messages")
    if not isinstance(value, list):
        return False
    return all(
        isinstance(element, dict) and "role" in element and "content" in element
        for element in value
    )


def _of_object(value: JsonObject) -> TranscriptFormat | None:
    if any(key.startswith("gen_ai.") for key in value):
        return "otel"
    if "loglines" in value:
        return "claude-code"
    if "projectHash" in value:
        return "gemini-cli"
    messages = value.get("messages")
    if isinstance(messages, list):
        objects = [element for element in messages[:LOOKED_AT] if isinstance(element, dict)]
        if any("info" in element and "parts" in element for element in objects):
            return "opencode"
        result = _of_list(objects)
        if result is not None:
            return result
    elif "input" not in value:
        return _of_list([value])  # a file of one line
    for key, wire_api in WIRE_BODIES.items():
        if key in value:
            return wire_api
    return None


def _of_list(objects: list[JsonObject]) -> TranscriptFormat | None:
    for element in objects:
        result = _of_element(element)
        if result is not None:
            return result
    for element in objects:
        result = _of_message(element)
        if result is not None:
            return result
    return None


def _of_element(element: JsonObject) -> TranscriptFormat | None:
    """The format of which one element has this form, where it differs from messages of wires."""
    kind = element.get("type")
    if "payload" in element and kind in CODEX_TYPES:
        return "codex"
    if element.get("record_type") == "state":
        return "codex"
    if "$set" in element or "$rewindTo" in element or "projectHash" in element:
        return "gemini-cli"
    if kind in CLAUDE_CODE_TYPES and ("uuid" in element or "leafUuid" in element):
        return "claude-code"
    if "lc" in element or (isinstance(kind, str) and isinstance(element.get("data"), dict)):
        return "langchain"
    if kind in LANGCHAIN_TYPES and "content" in element and "role" not in element:
        return "langchain"
    if "role" in element and isinstance(element.get("parts"), list):
        return _of_parts(element)
    return None


def _of_parts(element: JsonObject) -> TranscriptFormat | None:
    """UI messages and OpenTelemetry's both have parts: texts of the latter are ``content``."""
    for part in element["parts"]:
        if not isinstance(part, dict):
            continue
        kind = str(part.get("type"))
        if "content" in part or kind.startswith("tool_call"):
            return "otel"
        if "text" in part or kind == "dynamic-tool" or kind.startswith("tool-"):
            return "vercel"
    return "vercel" if "id" in element and element["role"] != "tool" else None


def _of_message(element: JsonObject) -> TranscriptFormat | None:
    """The wire of which a message has something that no other wire has."""
    if element.get("type") in RESPONSES_TYPES:
        return "responses"
    if "tool_calls" in element or "tool_call_id" in element or element.get("role") in CHAT_ROLES:
        return "chat"
    kinds = set(_kinds(element.get("content")))
    if kinds.intersection(MESSAGES_BLOCKS):
        return "messages"
    if kinds.intersection(RESPONSES_TYPES):
        return "responses"
    if kinds.intersection(CHAT_BLOCKS):
        return "chat"
    return None


def _kinds(content: Any) -> Iterable[str]:
    if not isinstance(content, list):
        return
    for block in content:
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            continue
        # Mistral has a list of parts there, in Chat.
        if not isinstance(block.get("thinking"), list):
            yield block["type"]
