"""Parts of Vercel's UI message stream that its stream and its messages have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from streamlib.request.json_objects import without_none
from streamlib.request.report import Report
from streamlib.web.public_errors import error_data
from streamlib.web.run_encoder import Waiting
from streamlib.web.ui_parts import CitedSource, files, shown_output, total_tokens
from streamlib.wires.encoders import sse
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import (
    ApprovalRequest,
    ApprovalResponse,
    BuiltInCall,
    CallOutput,
    JsonObject,
    Message,
    Opaque,
    ResponseItem,
    ServerToolCall,
)
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.responses.wire_items import wire_item

OWN_METADATA: Final = "streamlib"
"""Key of ``providerMetadata`` under which this library has values of its own."""


def part_frame(kind: str, /, **fields: Any) -> bytes:
    """One part of the stream."""
    return sse({"type": kind, **fields})


def provider_executed(item: ResponseItem) -> JsonObject:
    """The field that marks a tool which the provider runs."""
    if isinstance(item, (ServerToolCall, ApprovalRequest)):
        return {"providerExecuted": True}
    return {}


def own_metadata(agent: str | None, sealed_text: str | None = None) -> JsonObject:
    """The field with what the protocol has no field for, and the page sends back.

    Args:
        agent: of a part, if it is another than the one that was asked.
        sealed_text: the sealed state of a part.
    """
    own = without_none({"agent": agent, "sealed": sealed_text})
    if not own:
        return {}
    return {"providerMetadata": {OWN_METADATA: own}}


def named_agent(metadata: JsonObject | None) -> str | None:
    """The agent in a part's metadata that a page sent back."""
    return _own_text(metadata, "agent")


def sealed_state(metadata: JsonObject | None) -> str | None:
    """The sealed state in a part's metadata that a page sent back."""
    return _own_text(metadata, "sealed")


def _own_text(metadata: JsonObject | None, key: str) -> str | None:
    own = (metadata or {}).get(OWN_METADATA)
    text = own.get(key) if isinstance(own, dict) else None
    return text if isinstance(text, str) and text else None


def custom_frame(item: Opaque | BuiltInCall) -> bytes:
    """The `custom` part (version 7) of an item that has no part type of its own."""
    provider: str | None = None
    if item.origin is not None:
        provider = item.origin.provider or item.origin.wire_api
    provider = provider or "unknown"
    if isinstance(item, Opaque):
        kind, payload = item.kind, item.payload
    else:
        payload = wire_item(item)
        kind = payload["type"]
    return part_frame("custom", kind=f"{provider}.{kind}", providerMetadata={provider: payload})


def source_frame(cited: CitedSource, source_id: str) -> bytes:
    """The part of a source: a page, or a document."""
    if cited.url is not None:
        fields: JsonObject = {"sourceId": source_id, "url": cited.url}
        if cited.title:
            fields["title"] = cited.title
        return part_frame("source-url", **fields)
    fields = {"sourceId": source_id, "mediaType": "text/plain", "title": cited.title}
    if cited.filename:
        fields["filename"] = cited.filename
    return part_frame("source-document", **fields)


def citation(cited: CitedSource, source_id: str, annotation: JsonObject) -> JsonObject:
    """A citation at the end of a text (version 7): its source, and where the text cites it."""
    source: JsonObject = {"type": "source", "id": source_id}
    if cited.url is not None:
        source |= {"sourceType": "url", "url": cited.url}
    else:
        source |= {"sourceType": "document", "mediaType": "text/plain"}
    source |= without_none({"title": cited.title, "filename": cited.filename})
    if cited.url is not None:
        source.pop("filename", None)
    fields = {**annotation, **(annotation.get("url_citation") or {})}
    positions = {"startIndex": fields.get("start_index"), "endIndex": fields.get("end_index")}
    quoted: JsonObject = {"source": source}
    for name, position in positions.items():
        if isinstance(position, int) and position >= 0:
            quoted[name] = position
    if isinstance(fields.get("cited_text"), str):
        quoted["citedText"] = fields["cited_text"]
    return quoted


def file_frames(item: Message, report: Report) -> bytes:
    """The parts of the files of a message."""
    out = b""
    for file in files(item):
        if file is None:
            report.dropped("/files", "a file that only its provider can fetch")
        else:
            out += part_frame("file", url=file.url, mediaType=file.media_type)
    return out


def output_frame(call_id: str, item: CallOutput, *, was_asked: bool) -> bytes:
    """The part for the output of a call.

    Args:
        call_id: the id that the page knows the call by.
        item: the output.
        was_asked: whether the page was asked for an approval: a denial needs one.
    """
    if isinstance(item, ApprovalResponse) and not item.approve:
        if was_asked:
            return part_frame("tool-output-denied", toolCallId=call_id)
        denied = item.reason or "the call was not approved"
        return part_frame("tool-output-error", toolCallId=call_id, errorText=denied)
    value, fault = shown_output(item)
    if fault is not None:
        return part_frame("tool-output-error", toolCallId=call_id, errorText=fault)
    return part_frame("tool-output-available", toolCallId=call_id, output=value)


def approval_frames(approvals: list[Waiting]) -> bytes:
    """The parts that ask the page for approvals; each has the id of its call."""
    out = b""
    for waiting in approvals:
        call_id = waiting.shown_id
        out += part_frame("tool-approval-request", approvalId=call_id, toolCallId=call_id)
    return out


def error_frames(error: ErrorInfo, *, public: bool) -> bytes:
    """The end of a message that failed: what a page can do about it, and the text.

    Args:
        error: the failure.
        public: whether its message is for readers: then it is sent alone, without the kind.
    """
    if error.kind == "cancelled":
        return part_frame("abort", reason=error.message)
    data = part_frame("data-error", data=error_data(error), transient=True)
    if public:
        return data + part_frame("error", errorText=error.message)
    return data + sse(error_body(error))


def message_metadata(usage: Usage | None, model: str | None) -> JsonObject:
    """The metadata of a message: usage and model, as far as they are known."""
    metadata: JsonObject = {}
    if usage:
        metadata["usage"] = usage_metadata(usage)
    if model:
        metadata["model"] = model
    return metadata


def usage_metadata(usage: Usage) -> JsonObject:
    """The SDK's ``LanguageModelUsage``: totals, and what they consist of."""
    read = usage.cache_read_input_tokens
    written = usage.cache_write_input_tokens
    reasoning = usage.reasoning_output_tokens
    totals = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": total_tokens(usage),
    }
    input_details = {
        "noCacheTokens": _remaining(usage.input_tokens, read, written or 0),
        "cacheReadTokens": read,
        "cacheWriteTokens": written,
    }
    output_details = {
        "textTokens": _remaining(usage.output_tokens, reasoning),
        "reasoningTokens": reasoning,
    }
    return {
        **without_none(totals),
        "inputTokenDetails": without_none(input_details),
        "outputTokenDetails": without_none(output_details),
    }


def _remaining(total: int | None, *counts: int | None) -> int | None:
    """A total without some of its counts; None if any of the numbers is not known."""
    if total is None:
        return None
    for count in counts:
        if count is None:
            return None
        total -= count
    return total


def error_body(error: ErrorInfo) -> JsonObject:
    """The protocol's error part."""
    return {"type": "error", "errorText": f"{error.kind}: {error.message}"}


# --- the message that a reader of the parts has ---


TEXTS = ("text", "reasoning")
"""Kinds of parts that grow by deltas."""


def message_of(chunks: Iterable[JsonObject], message_id: str) -> JsonObject:
    """Returns the UI message `{id, role, metadata, parts}` that the chunks of a stream make.

    Args:
        chunks: The parts of the stream, as JSON values.
        message_id: The message's id.
    """
    metadata: JsonObject = {}
    parts: list[JsonObject] = []
    texts: dict[str, JsonObject] = {}
    tools: dict[str, JsonObject] = {}
    for chunk in chunks:
        metadata |= chunk.get("messageMetadata", {})
        kind, _, change = chunk["type"].partition("-")
        if kind == "tool":
            _change_tool(tools, parts, change, chunk)
        elif kind in TEXTS:
            _change_text(texts, parts, change, chunk)
        elif chunk["type"] == "start-step":
            parts.append({"type": "step-start"})
        elif kind in ("file", "source", "custom") or (kind == "data" and "transient" not in chunk):
            parts.append(chunk)
    body: JsonObject = {"id": message_id, "role": "assistant"}
    if metadata:
        body["metadata"] = metadata
    return {**body, "parts": parts}


def _change_text(
    texts: dict[str, JsonObject], parts: list[JsonObject], change: str, chunk: JsonObject
) -> None:
    if change == "start":
        kind = chunk["type"].removesuffix("-start")
        part = texts[chunk["id"]] = {"type": kind, "text": "", "state": "streaming"}
        if kind == "reasoning":
            part["id"] = chunk["id"]
        parts.append(part)
    part = texts[chunk["id"]]
    part["text"] += chunk.get("delta", "")
    if change == "end":
        part["state"] = "done"
    if "providerMetadata" in chunk:
        part["providerMetadata"] = chunk["providerMetadata"]


def _change_tool(
    tools: dict[str, JsonObject], parts: list[JsonObject], change: str, chunk: JsonObject
) -> None:
    call_id = chunk["toolCallId"]
    part = tools.get(call_id)
    if part is None:
        part = tools[call_id] = _new_tool(chunk)
        parts.append(part)
    for name in ("input", "output", "errorText", "providerExecuted"):
        if name in chunk:
            part[name] = chunk[name]
    if "providerMetadata" in chunk:
        part["callProviderMetadata"] = chunk["providerMetadata"]
    match change:
        case "input-available" | "output-available":
            part["state"] = change
        case "input-error" | "output-error":
            part["state"] = "output-error"
        case "approval-request":
            part["state"] = "approval-requested"
            part["approval"] = {"id": chunk["approvalId"]}
        case _:
            pass


def _new_tool(chunk: JsonObject) -> JsonObject:
    name = chunk["toolName"]
    part: JsonObject = {"type": f"tool-{name}", "toolCallId": chunk["toolCallId"]}
    if chunk.get("dynamic"):
        part |= {"type": "dynamic-tool", "toolName": name}
    return {**part, "state": "input-streaming"}
