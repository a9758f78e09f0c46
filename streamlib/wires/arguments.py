"""Arguments of calls, and schemas of arguments, for wires that want JSON objects."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from streamlib.request.report import Report
from streamlib_parsers.items import FunctionCall, JsonObject, ServerToolCall, ToolSpec


def as_object(call: FunctionCall | ServerToolCall, path: str, report: Report) -> Raw:
    """The arguments as one JSON object, in the bytes the provider sent.

    Without arguments it is `{}`. Any other value is wrapped in an object, and reported (A11).
    """
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
