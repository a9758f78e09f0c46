"""A conversation as UI messages that a server of the AI SDK keeps: read, and written.

A page gets `to_ui_messages`, which shows it no more than it may see. These messages are the
caller's own: they hold instructions, reasoning and the providers' signatures. The functions of
`request.py` read them, and `signatures.py` has the metadata of both directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from streamlib.request.conversation import History
from streamlib.request.history import IndexedItem
from streamlib.request.origins import OTHER_PROVIDER, as_text, opaque_state
from streamlib.request.report import Report
from streamlib.web.parsed_request import ParsedRequest, RequestContext
from streamlib.web.request_body import UIRequestError, UIRequestLimits
from streamlib.web.request_tools import RequestTools
from streamlib.web.ui_messages import user_part
from streamlib.web.ui_parts import call_input, inline_result, shown_output
from streamlib.web.vercel.parts import own_metadata
from streamlib.web.vercel.request import parse_vercel
from streamlib.web.vercel.signatures import provider_metadata
from streamlib_parsers.items import (
    Audio,
    ContentPart,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    JsonObject,
    Media,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from streamlib_parsers.json_text import text_or_json

MESSAGES: Final = 1_000_000
"""UI messages of one transcript: a page shows hundreds."""

STATE: Final = "hosted tools keep their input and result, not their provider's own state"
MOVED: Final = "a UI message has outputs beside their calls: in the order of these"


def read_transcript(messages: list[Any], report: Report) -> History:
    """The items of UI messages.

    Raises:
        UIRequestError: they are no UI messages, or two have one id; the error names the place.
    """
    ids: dict[str, int] = {}
    for index, message in enumerate(messages):
        message_id = message.get("id") if isinstance(message, dict) else None
        if isinstance(message_id, str) and ids.setdefault(message_id, index) != index:
            raise UIRequestError(f"/messages/{index}/id is that of /messages/{ids[message_id]}")
    context = RequestContext(
        offered=RequestTools(None),
        limits=UIRequestLimits(messages=MESSAGES),
        report=report,
        takes_urls=True,
        origin=None,
        seal=None,
        is_transcript=True,
    )
    parsed = ParsedRequest(context)
    parse_vercel({"messages": messages}, parsed)
    return parsed.history


def write_transcript(items: Iterable[IndexedItem], report: Report) -> list[JsonObject]:
    """The UI messages of items; what follows a message of the user is one message."""
    writer = _UIMessageWriter(report)
    for entry in items:
        writer.take(entry)
    return writer.messages


class _UIMessageWriter:
    """Takes items in order, and writes their messages."""

    def __init__(self, report: Report) -> None:
        self.messages: list[JsonObject] = []
        self._report = report
        self._parts: list[JsonObject] = []
        """The parts of the newest message."""
        self._is_in_response = False
        """Whether that message is the assistant's."""
        self._has_output = False
        """Whether the step has an output, so that the next item begins another step."""
        self._waiting: dict[str, JsonObject] = {}
        """Id of a call that has no output yet -> its part."""
        self._calls: dict[str, int] = {}
        """Id of a call of this step -> its number there."""
        self._last_output = -1
        """The number of the call of the step that has the last output so far."""

    def take(self, entry: IndexedItem) -> None:
        """Writes the next item."""
        match entry.item:
            case Message() as item if item.role != "assistant":
                self._caller_message(item, entry)
            case Message() as item:
                self._begin_item()
                self._message(item, entry)
            case Reasoning() as item:
                self._begin_item()
                self._reasoning(item, entry)
            case FunctionCall() | CustomToolCall() | ServerToolCall() as item:
                self._begin_item()
                self._call(item, entry)
            case FunctionCallOutput() | CustomToolCallOutput() | ServerToolResult() as item:
                self._output(item, entry)
            case _:
                readable = as_text(entry, self._report)
                if readable is not None:
                    self.take(readable)

    # --- messages ---

    def _add_message(self, role: str, parts: list[JsonObject]) -> None:
        message_id = f"message-{len(self.messages)}"
        self.messages.append({"id": message_id, "role": role, "parts": parts})

    def _caller_message(self, item: Message, entry: IndexedItem) -> None:
        self._is_in_response = False
        self._begin_step()
        role = item.role
        if role == "developer":
            self._report.add("changed", f"{entry.path}/role", "a UI message has the role system")
            role = "system"
        parts = self._content(item.content, entry)
        if parts:
            self._add_message(role, parts)
        else:
            self._report.dropped_message(entry.path)

    def _content(self, content: Sequence[ContentPart], entry: IndexedItem) -> list[JsonObject]:
        parts: list[JsonObject] = []
        for part in content:
            if isinstance(part, Refusal):
                self._report.add("changed", entry.path, "a refusal, written as text")
            elif isinstance(part, Text):
                if part.annotations:
                    self._report.dropped(entry.path, "citations have no place in a text part")
            elif isinstance(part, Audio) and part.transcript:
                self._report.dropped(f"{entry.path}/transcript", "a file has no transcript")
            if isinstance(part, Media) and not (part.url or part.data):
                self._report.dropped(entry.path, "a file that only its provider can fetch")
                continue
            parts.append(user_part(part))
        return parts

    def _begin_item(self) -> None:
        """Begins a message, or a step, where the next item of the model needs one."""
        if not self._is_in_response:
            self._is_in_response = True
            self._parts = []
            self._add_message("assistant", self._parts)
        elif not self._has_output:
            return
        self._begin_step()
        self._parts.append({"type": "step-start"})

    def _begin_step(self) -> None:
        self._has_output = False
        self._calls.clear()
        self._last_output = -1

    # --- what the model made ---

    def _message(self, item: Message, entry: IndexedItem) -> None:
        metadata = self._metadata(item, entry)
        for part in self._content(item.content, entry):
            if part["type"] == "text":
                self._parts.append({**part, "state": "done", **metadata})
                metadata = own_metadata(item.agent)
            else:
                self._parts.append(part)
        if not item.content and item.signature:
            self._parts.append({"type": "text", "text": "", "state": "done", **metadata})

    def _reasoning(self, item: Reasoning, entry: IndexedItem) -> None:
        metadata = self._metadata(item, entry)
        # The SDK has a part for each paragraph of a summary.
        texts = [*item.summary, item.content] if item.content else list(item.summary)
        for text in texts or [""]:
            if text or metadata:
                self._parts.append({"type": "reasoning", "text": text, "state": "done", **metadata})

    def _metadata(self, item: ResponseItem, entry: IndexedItem) -> JsonObject:
        """The field with signature and agent."""
        state = provider_metadata(item)
        if opaque_state(item) and not state:
            self._report.dropped(f"{entry.path}/signature", OTHER_PROVIDER)
        own = own_metadata(item.agent).get("providerMetadata", {})
        if not state and not own:
            return {}
        return {"providerMetadata": {**state, **own}}

    def _call(
        self, item: FunctionCall | CustomToolCall | ServerToolCall, entry: IndexedItem
    ) -> None:
        value, _ = call_input(item)
        if isinstance(item, FunctionCall) and not isinstance(value, dict):
            self._report.add("changed", entry.path, "arguments that are no JSON object: free text")
        state = "input-available" if item.status == "completed" else "input-streaming"
        part: JsonObject = {"type": f"tool-{item.name}", "toolCallId": item.call_id}
        part |= {"state": state, "input": value}
        metadata = self._metadata(item, entry).get("providerMetadata")
        if metadata:
            part["callProviderMetadata"] = metadata
        self._parts.append(part)
        self._waiting[item.call_id] = part
        self._calls[item.call_id] = len(self._calls)
        if isinstance(item, ServerToolCall):
            self._report.add("changed", entry.path, STATE)
            part["providerExecuted"] = True
            result = inline_result(item)
            if result is not None:
                part |= {"state": "output-available", "output": result}

    def _output(
        self, item: FunctionCallOutput | CustomToolCallOutput | ServerToolResult, entry: IndexedItem
    ) -> None:
        part = self._waiting.get(item.call_id)
        if part is None:
            self._report.dropped(entry.path, "an output without its call")
            return
        number = self._calls.get(item.call_id, -1)
        if number <= self._last_output:
            self._report.add("changed", entry.path, MOVED)
        self._last_output = max(number, self._last_output)
        del self._waiting[item.call_id]
        if isinstance(item, ServerToolResult):
            part |= {"state": "output-available", "output": item.output}
            return
        self._has_output = True
        value, _ = shown_output(replace(item, is_error=False))
        if item.is_error:
            part |= {"state": "output-error", "errorText": text_or_json(value)}
        else:
            part |= {"state": "output-available", "output": value}
