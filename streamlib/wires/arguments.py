"""Arguments of calls, and schemas of arguments, for wires that want JSON objects."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from streamlib.request.report import Report
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    JsonObject,
    ResponseItem,
    ServerToolCall,
    ToolSpec,
)
from streamlib_parsers.json_text import is_json


def as_object(call: FunctionCall | ServerToolCall, path: str, report: Report) -> Raw:
    """The arguments as one JSON object, in the bytes the provider sent.

    Without arguments it is `{}`. Any other value is wrapped in an object, and reported.
    """  # rule A11
    try:
        call.parsed()
        # our reader accepts a byte order mark, servers do not
        text = call.arguments.removeprefix("\ufeff") or "{}"
        return Raw(text.encode("utf-8"))
    except ValueError:  # not an object, or a lone surrogate, which UTF-8 cannot encode
        report.add("changed", f"{path}/arguments", "not a JSON object: wrapped")
    # no server takes a lone surrogate: it becomes a question mark
    text = call.arguments.encode("utf-8", "replace").decode("utf-8")
    return Raw(msgspec.json.encode({"_raw": text}))


def encoded_object(arguments: str, report: Report) -> Any:
    """The arguments of a complete call as an encoder writes them, where the wire has an object."""
    if not arguments:
        report.dropped("/arguments", "empty arguments are written as {}")
        return {}
    if not arguments.lstrip().startswith("{") or not is_json(arguments):
        report.dropped("/arguments", "arguments that are not a JSON object are wrapped")
        return {"_raw": arguments}
    return Raw(arguments.encode("utf-8"))


def is_free_form(item: ResponseItem, *, own: bool) -> bool:
    """Whether the input of a call may be plain text, which a wire of JSON objects must wrap.

    So it is for a free-form call, and for another provider's own tool: code is the input of some.
    """
    if isinstance(item, ServerToolCall):
        return not own
    return isinstance(item, CustomToolCall)


def free_form_input(item: ResponseItem, text: str, report: Report) -> str:
    """Returns the complete input of such a call as JSON: plain text is `input` of an object."""
    if isinstance(item, ServerToolCall):
        if not text or is_json(text):
            return text
        report.dropped("/arguments", "text that is not JSON is written as `input` of an object")
    return msgspec.json.encode({"input": text}).decode("utf-8")


def free_form_schema(server: str, path: str, report: Report) -> JsonObject:
    """The schema of a free-form tool where there is none: an object of one string, `input`.

    Args:
        server: the wire or the provider that has no such tools.
        path: JSON pointer of the tool.
        report: receives the change.
    """
    reason = f"{server} has no free-form tools: it takes one string, input"
    report.add("changed", f"{path}/format", reason)
    return {
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
    }


def object_schema(tool: ToolSpec, path: str, report: Report) -> JsonObject:
    """The schema of a tool's arguments, of type object as providers require."""
    # a decoded request may hold anything in place of a schema
    if not isinstance(tool.schema, dict):
        return {"type": "object", "properties": {}}
    if tool.schema.get("type") == "object":
        return tool.schema
    report.add("changed", path, "an input schema is of type object")
    schema: JsonObject = {"type": "object"}
    for key, value in tool.schema.items():
        if key != "type":
            schema[key] = value
    return schema
