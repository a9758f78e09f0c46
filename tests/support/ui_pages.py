"""Pages without npm: the conversation of a front end after a stream.

`tests/real/test_ui_requests.py` compares it with the conversation of the real clients.
"""

from __future__ import annotations

from typing import Any

from tests.support.ui_streams import payloads

Message = dict[str, Any]

ENDS = {
    "tool-output-available": "output-available",
    "tool-output-error": "output-error",
    "tool-output-denied": "output-denied",
    "tool-input-error": "output-error",
    "tool-input-available": "input-available",
    "tool-approval-request": "approval-requested",
}
"""Parts of a stream -> the state of the tool part of a message that they lead to."""


def vercel_page(body: bytes) -> Message:
    """The message that `useChat` holds after a stream."""
    page = _VercelPage()
    for part in payloads(body):
        if isinstance(part, dict):
            page.take(part)
    return {"id": page.message_id, "role": "assistant", "parts": page.parts}


class _VercelPage:
    def __init__(self) -> None:
        self.message_id = "made-by-the-page"
        self.parts: list[Message] = []
        self._texts: dict[tuple[str, str], Message] = {}
        self._tools: dict[str, Message] = {}

    def take(self, part: Message) -> None:
        kind = part["type"]
        family, _, verb = kind.rpartition("-")
        if kind == "start":
            self.message_id = part.get("messageId", self.message_id)
        elif kind == "start-step":
            self.parts.append({"type": "step-start"})
        elif family in ("text", "reasoning"):
            self._take_text(family, verb, part)
        elif kind == "tool-input-start":
            shown = {"type": f"tool-{part['toolName']}", "state": "input-streaming"}
            names = ["toolCallId", "providerExecuted"]
            if part.get("dynamic"):
                shown["type"] = "dynamic-tool"
                names.append("toolName")
            for key in names:
                if key in part:
                    shown[key] = part[key]
            self._tools[part["toolCallId"]] = shown
            self.parts.append(shown)
        elif kind in ENDS:
            self._end_tool(part)
        elif kind in ("file", "source-url", "source-document", "custom"):
            self.parts.append(part)

    def _take_text(self, family: str, verb: str, part: Message) -> None:
        if verb == "start":
            shown = {"type": family, "text": "", "state": "streaming"}
            self._texts[family, part["id"]] = shown
            self.parts.append(shown)
        shown = self._texts[family, part["id"]]
        if verb == "delta":
            shown["text"] += part["delta"]
        elif verb == "end":
            shown["state"] = "done"
        if "providerMetadata" in part:
            shown["providerMetadata"] = part["providerMetadata"]

    def _end_tool(self, part: Message) -> None:
        shown = self._tools[part["toolCallId"]]
        shown["state"] = ENDS[part["type"]]
        for key in ("input", "output", "errorText"):
            if key in part:
                shown[key] = part[key]
        if "providerMetadata" in part:
            shown["callProviderMetadata"] = part["providerMetadata"]
        if "approvalId" in part:
            shown["approval"] = {"id": part["approvalId"]}
        elif part["type"] == "tool-output-denied":
            shown["approval"] = {**shown.get("approval", {"id": "a"}), "approved": False}


def agui_page(body: bytes) -> list[Message]:
    """The messages that AG-UI's client holds after a run."""
    page = _AguiPage()
    for event in payloads(body):
        page.take(event)
    return page.messages


class _AguiPage:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._calls: dict[str, Message] = {}
        self._parents: dict[str, Message] = {}

    def take(self, event: Message) -> None:
        kind = event["type"]
        if kind == "TEXT_MESSAGE_START":
            self._message(event["messageId"], "assistant")["content"] = ""
        elif kind == "REASONING_MESSAGE_START":
            self._message(event["messageId"], "reasoning")["content"] = ""
        elif kind in ("TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"):
            self._message(event["messageId"], "")["content"] += event["delta"]
        elif kind == "TOOL_CALL_START":
            self._start_call(event)
        elif kind == "TOOL_CALL_ARGS":
            self._calls[event["toolCallId"]]["function"]["arguments"] += event["delta"]
        elif kind == "TOOL_CALL_RESULT":
            self._add_result(event)
        elif kind == "REASONING_ENCRYPTED_VALUE":
            holder = self._calls.get(event["entityId"]) or self._message(event["entityId"], "")
            holder["encryptedValue"] = event["encryptedValue"]

    def _message(self, message_id: str, role: str) -> Message:
        for message in self.messages:
            if message["id"] == message_id:
                return message
        message = {"id": message_id, "role": role}
        self.messages.append(message)
        return message

    def _start_call(self, event: Message) -> None:
        parent = self._message(event["parentMessageId"], "assistant")
        function = {"name": event["toolCallName"], "arguments": ""}
        call = {"id": event["toolCallId"], "type": "function", "function": function}
        parent.setdefault("toolCalls", []).append(call)
        self._calls[call["id"]] = call
        self._parents[call["id"]] = parent

    def _add_result(self, event: Message) -> None:
        result = {"id": event["messageId"], "role": "tool"}
        for key in ("toolCallId", "content", "metadata"):
            if key in event:
                result[key] = event[key]
        # Behind its call, and the results that are there already.
        position = self.messages.index(self._parents[event["toolCallId"]]) + 1
        while position < len(self.messages) and self.messages[position]["role"] == "tool":
            position += 1
        self.messages.insert(position, result)
