"""Encodes a response as AG-UI messages."""

from __future__ import annotations

import msgspec

from streamlib.web.agui.events import result_id
from streamlib.web.ui_parts import (
    TRUNCATED_CALL,
    Call,
    CallIds,
    as_text,
    inline_result,
    message_text,
    opaque_state,
    visible_reasoning,
    why_hidden,
)
from streamlib.wires.generated_ids import new_id
from streamlib_parsers.accumulate import Response
from streamlib_parsers.items import (
    ApprovalRequest,
    CustomToolCall,
    FunctionCall,
    JsonObject,
    Message,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)


def encode_body(
    response: Response, model: str | None = None, message_id: str | None = None
) -> bytes:
    """A response as the AG-UI messages that a reader of its stream would have at the end.

    Args:
        response: the response.
        model: not used: messages do not name it.
        message_id: prefix of the message ids; random if not given.
    """
    messages = _Messages(message_id or new_id("run-"))
    for index, item in enumerate(response.items):
        if why_hidden(item) is None:
            messages.add(index, item)
    # After a pause the provider continues its calls in the next response.
    if response.stop_reason != "pause":
        messages.end_running_calls()
    return msgspec.json.encode(messages.in_order())


class _Messages:
    """The messages of a response while they are collected."""

    def __init__(self, prefix: str) -> None:
        # Prefix of every message id.
        self._prefix = prefix
        # Messages without those of results.
        self._messages: list[JsonObject] = []
        # For each of them, the results of its calls.
        self._results: list[list[JsonObject]] = []
        # Id of a call -> the results of its message.
        self._results_of_call: dict[str, list[JsonObject]] = {}
        # Ids of provider-run calls that have no result yet, as keys.
        self._running: dict[str, None] = {}
        self._call_ids = CallIds(prefix)

    def in_order(self) -> list[JsonObject]:
        """All messages, each result after the message with its call."""
        ordered: list[JsonObject] = []
        for message, results in zip(self._messages, self._results, strict=True):
            ordered.append(message)
            ordered += results
        return ordered

    def add(self, index: int, item: ResponseItem) -> None:
        """Adds an item that the front end shows."""
        message_id = f"{self._prefix}-{index}"
        match item:
            case FunctionCall() | CustomToolCall() | ServerToolCall() | ApprovalRequest():
                self._add_call(message_id, self._call_ids.add(index, item.call_id), item)
            case ServerToolResult():
                call_id = self._call_ids.of_result(item.call_id)
                if call_id is not None:
                    self._add_result(message_id, call_id, as_text(item.output))
            case Reasoning():
                self._append(message_id, "reasoning", visible_reasoning(item), item)
            case Message():
                text = message_text(item)
                if text or item.signature:
                    self._append(message_id, "assistant", text, item)
            case _:
                pass

    def end_running_calls(self) -> None:
        """Gives provider-run calls without a result an empty one: the response has ended."""
        for call_id in list(self._running):
            self._add_result(result_id(self._prefix, call_id), call_id, "")

    def _append(self, message_id: str, role: str, content: str, item: ResponseItem) -> None:
        message = {"id": message_id, "role": role, "content": content}
        self._append_message({**message, **_encrypted_value(item)})

    def _append_message(self, message: JsonObject) -> None:
        self._messages.append(message)
        self._results.append([])

    def _add_call(self, message_id: str, call_id: str, item: Call) -> None:
        """Adds a call to the assistant's message before it, as providers expect it back."""
        follows_text = bool(self._messages) and self._messages[-1]["role"] == "assistant"
        if not follows_text or self._results[-1]:
            self._append_message({"id": message_id, "role": "assistant"})
        if isinstance(item, CustomToolCall):
            arguments = item.input
        else:
            arguments = item.arguments
        call: JsonObject = {
            "id": call_id,
            "type": "function",
            "function": {"name": item.name, "arguments": arguments},
            **_encrypted_value(item),
        }
        self._messages[-1].setdefault("toolCalls", []).append(call)
        self._results_of_call[call_id] = self._results[-1]
        result = inline_result(item)
        if item.status == "incomplete":
            self._add_result(result_id(self._prefix, call_id), call_id, TRUNCATED_CALL)
        elif result is not None:
            self._add_result(result_id(self._prefix, call_id), call_id, as_text(result))
        elif isinstance(item, ServerToolCall):
            self._running[call_id] = None

    def _add_result(self, message_id: str, call_id: str, content: str) -> None:
        """Adds a result after the message with its call and the results that follow it."""
        results = self._results_of_call.get(call_id)
        if results is None:
            return
        message = {"id": message_id, "role": "tool", "toolCallId": call_id, "content": content}
        results.append(message)
        self._running.pop(call_id, None)


def _encrypted_value(item: ResponseItem) -> JsonObject:
    state = opaque_state(item)
    if not state:
        return {}
    return {"encryptedValue": state}
