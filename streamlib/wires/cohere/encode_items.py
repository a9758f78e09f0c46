"""Items as contents, plan and calls of a Cohere response."""

from __future__ import annotations

from streamlib.request.report import Report
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    Audio,
    Compaction,
    CustomToolCall,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    JsonObject,
    Message,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from streamlib_parsers.json_text import dumps

NO_PLACE = (
    *BUILT_IN_CALLS,
    Compaction,
    FunctionCallOutput,
    ServerToolCall,
    ServerToolResult,
)
"""Items that a Cohere message cannot hold."""


def has_place(item: ResponseItem, report: Report) -> bool:
    """Whether the item can be in a response; one that cannot is reported."""
    if item.choice:
        report.dropped("/choices", "Cohere has one choice")
        return False
    if isinstance(item, NO_PLACE):
        report.dropped(f"/{type(item).__name__}", "Cohere has no such item")
        return False
    return True


def is_plan(item: Message) -> bool:
    """Whether the message is a tool plan."""
    return item.phase == "commentary" and all(isinstance(part, Text) for part in item.content)


def own_fields(item: ResponseItem) -> JsonObject:
    """Further keys of the wire's own object, if the item was made on this wire."""
    return dict(item.native or {})


def signature_fields(item: ResponseItem) -> JsonObject:
    """The signature of reasoning. Cohere has none, but gateways keep their state in it."""
    if isinstance(item, Reasoning) and item.signature:
        return {"signature": item.signature}
    return {}


def call_arguments(item: FunctionCall | CustomToolCall, report: Report) -> str:
    """The arguments of a call; a free-form call has its text as `input`."""
    if isinstance(item, FunctionCall):
        return item.arguments
    report.dropped("/custom_tool_call", "a free-form call is a function's with `input`")
    return dumps({"input": item.input})


def report_losses(item: ResponseItem, report: Report) -> None:
    """Reports what a complete item has and the wire cannot express."""
    if item.signature and not signature_fields(item):
        report.dropped("/signature", "Cohere has no signatures")
    match item:
        case Reasoning() if item.encrypted_content:
            report.dropped("/encrypted_content", "Cohere has no encrypted reasoning")
        case Message():
            if item.phase not in (None, "commentary"):
                report.dropped("/phase", "Cohere has no phases but that of a tool plan")
            for part in item.content:
                if isinstance(part, (Image, Document, Audio)):
                    report.dropped("/media", "Cohere's responses hold texts alone")
                elif isinstance(part, Text):
                    _report_citations(part, report)
        case _:
            pass


def _report_citations(part: Text, report: Report) -> None:
    if any("sources" not in annotation for annotation in part.annotations):
        report.dropped("/annotations", "a citation of another wire")
