"""Items as the steps of an Interactions request, in the order of the items.

Rules have the numbers of the rule table in docs/wires/interactions.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from msgspec import Raw

from streamlib.request.history import CALLS, IndexedItem, system_text
from streamlib.request.origins import downgrade_item, reasoning_as_text
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.target import BuildContext
from streamlib.wires.arguments import as_object
from streamlib.wires.interactions.build_parts import content, contents
from streamlib_parsers.items import (
    Compaction,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    Item,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from streamlib_parsers.json_text import is_json
from streamlib_parsers.wires.interactions import CALLS as SERVER_CALLS
from streamlib_parsers.wires.interactions import RESULTS as SERVER_RESULTS

NO_SIGNATURE: Final = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""Documented value for a missing signature: base64 of `skip_thought_signature_validator`."""

INPUT_STEPS: Final = frozenset({"user_input", "function_result"})
"""Types of steps that the caller sends; all others are the model's."""

Steps: TypeAlias = Iterator[JsonObject]


def leading_system(
    prompt: Prompt, items: list[IndexedItem], report: Report
) -> tuple[str, list[IndexedItem]]:
    """`system_instruction`, and the items after the leading system messages."""  # rule I1
    texts: list[str] = []
    if prompt.instructions:
        texts.append(prompt.instructions)
    count = 0
    for entry in items:
        item = entry.item
        if not isinstance(item, Message) or item.role not in ("system", "developer"):
            break
        count += 1
        texts.append(system_text(item))
        if any(not isinstance(part, Text) for part in item.content):
            report.dropped(entry.path, "system_instruction is a text")
    return "\n\n".join(filter(None, texts)), items[count:]


def steps(items: list[IndexedItem], context: BuildContext) -> list[JsonObject]:
    """The steps of a history."""
    names: dict[str, str] = {}
    sent: list[JsonObject] = []
    # Whether the model's steps since the caller's last one have signed reasoning.
    is_signed = False
    for entry in items:
        if isinstance(entry.item, CALLS):
            names[entry.item.call_id] = entry.item.name
        for step in _item_steps(entry, names, context):
            kind = step.get("type")
            if kind in INPUT_STEPS:
                is_signed = False
            elif kind == "thought":
                is_signed = True
            elif kind == "function_call" and not is_signed:
                is_signed = True
                if context.target.traits.signed_calls:
                    sent.append({"type": "thought", "signature": NO_SIGNATURE})
                    reason = "no signed thought before it: sent with the stand-in for one"
                    context.report.add("generated", entry.path, reason)
            sent.append(step)
    return sent


def _item_steps(entry: IndexedItem, names: dict[str, str], context: BuildContext) -> Steps:
    path, report = entry.path, context.report
    match entry.item:
        case Message() as item:
            yield from _message(item, path, report)
        case Reasoning() as item:
            yield from _reasoning(item, path, context)
        case FunctionCall() as item:
            arguments = as_object(item, path, report)
            yield _call(item, arguments)
        case CustomToolCall() as item:
            report.add("changed", path, 'a free-form call, sent as {"input": …}')
            yield _call(item, {"input": item.input})
        case FunctionCallOutput() | CustomToolCallOutput() as item:
            yield _output(item, names.get(item.call_id), path, report)
        case ServerToolCall() | ServerToolResult() as item:
            yield from _server_tool(item, path, report)
        case Compaction() as item:
            yield from _compaction(item, path, report)
        case Opaque() as item:
            yield item.payload if "type" in item.payload else {"type": item.kind, **item.payload}
        case _ as item:
            raise TypeError(f"{type(item).__name__} must be converted to text first")


def _with_native(step: JsonObject, item: Item, *notes: str) -> JsonObject:
    """The step with its signature, and the keys that no typed field holds; `notes` are ours."""
    for key, value in (item.native or {}).items():
        if key not in notes:
            step[key] = value
    if item.signature:
        step["signature"] = item.signature
    return step


# --- messages and reasoning ---


def _message(item: Message, path: str, report: Report) -> Steps:
    if item.role in ("system", "developer"):
        reason = "Interactions takes no system message amid a conversation: sent as user text"
        report.add("changed", path, reason)
        text = f"<system>\n{system_text(item)}\n</system>"
        yield {"type": "user_input", "content": [{"type": "text", "text": text}]}
        return
    kind = "model_output" if item.role == "assistant" else "user_input"
    parts = contents(item.content, path, report)
    unknown: JsonObject = (item.native or {}).get("content") or {}
    sent = _with_unknown(parts, unknown)
    if not sent:
        report.dropped(path, "a message without content")
        return
    step = _with_native({"type": kind}, item, "content", "result")
    step.pop("signature", None)
    if item.signature:
        report.dropped(f"{path}/signature", "a model's output has no signature")
    step["content"] = sent
    yield step


def _with_unknown(parts: list[JsonObject], unknown: JsonObject) -> list[JsonObject]:
    """The contents, with unknown contents and further keys inserted at their positions."""
    if not unknown:
        return parts
    merged: list[JsonObject] = []
    remaining = iter(parts)
    for position in range(len(parts) + len(unknown)):
        own: JsonObject = unknown.get(str(position)) or {}
        if "type" not in own:
            part = next(remaining, None)
            own = {**part, **own} if part is not None else {}
        if own:
            merged.append(own)
    return [*merged, *remaining]


def _reasoning(item: Reasoning, path: str, context: BuildContext) -> Steps:
    """Signed reasoning goes back as it came; any other is sent as text or left out."""  # rule I3
    # by their positions; empty where the summary was, and None where the step had none
    unknown: JsonObject | None = (item.native or {}).get("summary")
    # The signature of incomplete reasoning does not match its summary.
    if item.signature and item.status == "completed":
        paragraphs = list(item.summary)
        if item.content:
            paragraphs.append(item.content)
        summary = [{"type": "text", "text": text} for text in paragraphs]
        summary = _with_unknown(summary, unknown or {})
        step = _with_native({"type": "thought"}, item, "summary")
        if summary or unknown is not None:
            step["summary"] = summary
        yield step
        return
    message = reasoning_as_text(item)
    if message is None:
        context.report.dropped(path, "reasoning without text or signature")
        return
    context.report.add("downgraded", path, "reasoning without its signature, sent as text")
    yield {"type": "model_output", "content": [{"type": "text", "text": message.text}]}


# --- calls and their results ---


def _call(item: FunctionCall | CustomToolCall, arguments: Any) -> JsonObject:
    step = {
        "type": "function_call",
        "id": item.call_id,
        "name": item.name,
        "arguments": arguments,
    }
    return _with_native(step, item)


def _output(
    item: FunctionCallOutput | CustomToolCallOutput, name: str | None, path: str, report: Report
) -> JsonObject:
    """The result: a text, contents, or the JSON that the caller had."""  # rule I4
    native = item.native or {}
    step: JsonObject = {"type": "function_result", "call_id": item.call_id}
    own_name = native.get("name") or name
    if own_name:
        step["name"] = own_name
    if not isinstance(item.output, str):
        step["result"] = contents(item.output, path, report)
    elif native.get("result") == "json" and is_json(item.output) and item.output:
        step["result"] = Raw(item.output.encode("utf-8", "surrogatepass"))
    else:
        step["result"] = item.output
    if item.is_error:
        step["is_error"] = True
    return _with_native(step, item, "result")


def _server_tool(item: ServerToolCall | ServerToolResult, path: str, report: Report) -> Steps:
    """A tool that is none of Google's is downgraded, whatever its origin claims."""
    kind: str = (item.native or {}).get("type") or ""
    known = SERVER_CALLS if isinstance(item, ServerToolCall) else SERVER_RESULTS
    if kind not in known:
        _, reason, downgraded = downgrade_item(item)
        report.add("downgraded", path, reason)
        if isinstance(downgraded, Message):
            yield from _message(downgraded, path, report)
        return
    if isinstance(item, ServerToolCall):
        step: JsonObject = {"type": kind, "id": item.call_id}
        if item.arguments:
            step["arguments"] = as_object(item, path, report)
    else:
        step = {"type": kind, "call_id": item.call_id}
        if item.output is not None:
            step["result"] = item.output
    # Only the tools of MCP servers have names of their own.
    if kind.startswith("mcp_") and item.name not in ("", "mcp_server_tool"):
        step["name"] = item.name
    yield _with_native(step, item)


# --- items without a step of their own ---


def _compaction(item: Compaction, path: str, report: Report) -> Steps:
    if not item.content:
        report.dropped(path, "Interactions has no compactions, and this one holds no text")
        return
    report.add("downgraded", path, "Interactions has no compactions: sent as user text")
    yield {"type": "user_input", "content": [content(Text(item.content), path, report)]}
