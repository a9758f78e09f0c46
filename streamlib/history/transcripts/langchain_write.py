"""Writes messages of LangChain, as `messages_to_dict` has them and `messages_from_dict` reads.

What a provider signed goes into the provider's own blocks, as LangChain's packages keep it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from streamlib.history.transcripts.langchain import ORIGINS
from streamlib.history.transcripts.langchain_parts import written_content, written_part
from streamlib.history.transcripts.wire_lists import wire_list
from streamlib.request.history import OUTPUTS, IndexedItem, drop_incomplete, reasoning_text
from streamlib.request.origins import OTHER_PROVIDER, as_text, name_of
from streamlib.request.report import Report
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    BUILT_IN_OUTPUTS,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    JsonObject,
    Message,
    Origin,
    Reasoning,
    ResponseItem,
    Text,
    WireApi,
)

TYPES: Final = {"user": "human", "system": "system", "developer": "system"}
"""Role -> type of message."""

BLOCK_WIRES: Final = ("messages", "responses")
"""Wires whose own blocks LangChain keeps."""


def write_langchain(entries: list[IndexedItem], report: Report) -> list[JsonObject]:
    """The messages of items; what one response of a model has is one."""
    writer = _LangChainWriter(report)
    for entry in drop_incomplete(entries, report):
        writer.take(entry)
    return writer.messages


class _LangChainWriter:
    """Takes items in order, and writes their messages."""

    def __init__(self, report: Report) -> None:
        self.messages: list[JsonObject] = []
        self._report = report
        self._response: JsonObject | None = None
        """The fields of the response that is written; None between two."""
        self._response_id: str | None = None
        self._provider: str | None = None
        """LangChain's name of the provider of that response, once an item has one."""

    def add(self, kind: str, content: Any, **fields: Any) -> JsonObject:
        """Appends a message, and returns its fields."""
        data: JsonObject = {
            "content": content,
            "additional_kwargs": {},
            "response_metadata": {},
            "type": kind,
            "name": None,
            "id": None,
            **fields,
        }
        self.messages.append({"type": kind, "data": data})
        return data

    def take(self, entry: IndexedItem) -> None:
        """Writes the next item."""
        item = entry.item
        if isinstance(item, Message) and item.role != "assistant":
            self._response = None
            if item.role == "developer":
                reason = "LangChain knows no role developer: a system message"
                self._report.add("changed", f"{entry.path}/role", reason)
            self.add(TYPES[item.role], written_content(item.content, entry.path, self._report))
        elif isinstance(item, OUTPUTS):
            self._output(item, entry)
        elif not self._has_block(item):
            readable = as_text(entry, self._report)
            if readable is not None:
                self.take(readable)
        else:
            self._add_to_response(entry)

    def _has_block(self, item: ResponseItem) -> bool:
        """Whether LangChain has a block for an item: its own, or one of Messages or Responses."""
        if isinstance(item, (Message, Reasoning, FunctionCall, CustomToolCall)):
            return True
        if isinstance(item, BUILT_IN_CALLS + BUILT_IN_OUTPUTS):
            return False  # their outputs are no messages of LangChain
        return name_of(item.origin, ORIGINS) is not None and _block_wire(item) is not None

    def _output(self, item: FunctionCallOutput | CustomToolCallOutput, entry: IndexedItem) -> None:
        self._response = None
        content: Any = item.output
        if not isinstance(content, str):
            content = written_content(content, entry.path, self._report)
        status = "error" if item.is_error else "success"
        self.add("tool", content, tool_call_id=item.call_id, artifact=None, status=status)

    # --- responses ---

    def _add_to_response(self, entry: IndexedItem) -> None:
        item = entry.item
        provider = name_of(item.origin, ORIGINS)
        is_other = provider is not None and self._provider not in (None, provider)
        is_next = item.response_id is not None and item.response_id != self._response_id
        if self._response is None or is_other or is_next:
            fields: JsonObject = {"tool_calls": [], "invalid_tool_calls": []}
            self._response = self.add("ai", [], **fields, usage_metadata=None)
            self._response_id, self._provider = item.response_id, None
        if provider is not None and self._provider is None:
            self._provider = provider
            self._response["response_metadata"] = {"model_provider": provider}
        content: list[JsonObject] = self._response["content"]
        content += self._blocks(entry)
        if isinstance(item, FunctionCall):
            self._list_call(item, self._response)

    def _list_call(self, item: FunctionCall, response: JsonObject) -> None:
        call: JsonObject = {"name": item.name, "id": item.call_id}
        try:
            args = item.parsed()
            response["tool_calls"].append({**call, "args": args, "type": "tool_call"})
        except ValueError:
            fields = {"args": item.arguments, "error": None, "type": "invalid_tool_call"}
            response["invalid_tool_calls"].append({**call, **fields})

    def _blocks(self, entry: IndexedItem) -> list[JsonObject]:
        """The blocks of an item, in the provider's form where that has one."""
        item = entry.item
        wire_api = _block_wire(item)
        if isinstance(item, Message):
            return self._texts(item, entry)
        if wire_api is not None and self._provider is not None:
            return self._wire_blocks(entry, wire_api)
        match item:
            case FunctionCall():
                extras = self._signature(item, entry)
                block = {"type": "tool_call", "id": item.call_id, "name": item.name}
                return [{**block, "args": _args(item), **extras}]
            case Reasoning():
                text = reasoning_text(item)
                if item.encrypted_content:
                    self._report.dropped(f"{entry.path}/encrypted_content", OTHER_PROVIDER)
                extras = self._signature(item, entry)
                if not text and not extras:
                    return []
                return [{"type": "reasoning", "reasoning": text, **extras}]
            case CustomToolCall():
                own = replace(item, origin=Origin("responses"))
                return self._wire_blocks(IndexedItem(entry.position, own), "responses")
            case _:
                return []

    def _wire_blocks(self, entry: IndexedItem, wire_api: WireApi) -> list[JsonObject]:
        """The block of Messages, or the object of Responses."""
        report = Report()
        objects = wire_list(wire_api, [IndexedItem(0, entry.item)], report)
        for change in report.changes:
            path = change.path.replace("/input/0", entry.path)
            self._report.add(change.action, path, change.reason)
        if wire_api == "responses":
            return objects
        return [block for turn in objects for block in turn["content"]]

    def _texts(self, item: Message, entry: IndexedItem) -> list[JsonObject]:
        extras = self._signature(item, entry)
        blocks: list[JsonObject] = []
        for part in item.content:
            block = written_part(part, entry.path, self._report)
            if isinstance(part, Text):
                if part.annotations:
                    block["annotations"] = list(part.annotations)
                block |= extras
                if item.id is not None:
                    block["id"] = item.id
                if item.phase is not None:
                    block["phase"] = item.phase
            blocks.append(block)
        if extras and not blocks:
            blocks.append({"type": "text", "text": "", **extras})
        return blocks

    def _signature(self, item: ResponseItem, entry: IndexedItem) -> JsonObject:
        """The field of a block with a signature, which only its provider reads."""
        if item.signature is None:
            return {}
        if self._provider is None:
            self._report.dropped(f"{entry.path}/signature", OTHER_PROVIDER)
            return {}
        return {"extras": {"signature": item.signature}}


def _block_wire(item: ResponseItem) -> WireApi | None:
    """The wire in whose form LangChain keeps a block; None for LangChain's own."""
    if item.origin is None or item.origin.wire_api not in BLOCK_WIRES:
        return None
    return item.origin.wire_api


def _args(item: FunctionCall) -> Any:
    try:
        return item.parsed()
    except ValueError:
        return msgspec.json.decode(msgspec.json.encode(item.arguments))
