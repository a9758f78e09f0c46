"""AG-UI messages: what a reader of the stream has at its end."""

from __future__ import annotations

from collections.abc import Iterable

from streamlib_parsers.items import JsonObject


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
