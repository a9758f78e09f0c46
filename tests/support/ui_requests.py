"""Request bodies in the format of each page's client."""

from __future__ import annotations

from typing import Any, Final

from streamlib_parsers import ToolSpec

WEATHER: Final = ToolSpec("weather", schema={"type": "object"})
PNG: Final = "data:image/png;base64,aGk="

Part = dict[str, Any]


def text(words: str) -> Part:
    return {"type": "text", "text": words, "state": "done"}


def page_message(*parts: Part, message_id: str = "u1") -> dict[str, Any]:
    return {"id": message_id, "role": "user", "parts": list(parts)}


def model_message(*parts: Part, message_id: str = "a1") -> dict[str, Any]:
    return {"id": message_id, "role": "assistant", "metadata": {}, "parts": list(parts)}


def vercel_body(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The body that ``DefaultChatTransport`` sends."""
    return {"id": "chat-1", "messages": list(messages), "trigger": "submit-message", **fields}


def tool_part(state: str, call_id: str = "c1", **fields: Any) -> Part:
    """A part of the tool `weather` in one of its states."""
    return {
        "type": "dynamic-tool",
        "toolName": "weather",
        "toolCallId": call_id,
        "state": state,
        "input": {"city": "Paris"},
        **fields,
    }


def agui_body(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The body that ``HttpAgent`` sends."""
    return {
        "threadId": "t1",
        "runId": "r1",
        "protocolVersion": "1.0",
        "messages": list(messages),
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": {},
        **fields,
    }


def agui_call(call_id: str = "c1", name: str = "weather", **fields: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": '{"city":"Paris"}'}
    return {"id": call_id, "type": "function", "function": function, **fields}
