"""A UI message of Vercel's AI SDK: what a reader of the stream has at its end."""

from __future__ import annotations

from collections.abc import Iterable

from streamlib_parsers.items import JsonObject

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
