"""Tools of MCP servers and the results of their calls, read without the SDK.

Objects of the SDK are read by their attributes (version 1 writes ``inputSchema``, version 2
``input_schema``), and dicts by the keys of the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from streamlib_parsers.item_base import (
    Audio,
    ContentPart,
    Document,
    Image,
    JsonObject,
    Text,
    snake_case,
    unchecked,
)

UNKNOWN_TYPE: Final = "application/octet-stream"


class McpFields(NamedTuple):
    """What a `ToolSpec` takes from a tool of an MCP server."""

    name: str
    description: str | None
    schema: JsonObject
    output_schema: JsonObject | None


class McpOutput(NamedTuple):
    """The output of a call, and whether it failed."""

    output: str | tuple[ContentPart, ...]
    is_error: bool


def mcp_fields(tool: Any) -> McpFields:
    """The fields of a tool.

    Raises:
        TypeError: it has no name or no input schema.
    """
    name = _field(tool, "name")
    schema = _field(tool, "inputSchema")
    if not isinstance(name, str) or not isinstance(schema, Mapping):
        raise TypeError(f"an MCP tool has a name and an input schema, unlike {tool!r:.100}")
    output_schema = _field(tool, "outputSchema")
    if output_schema is not None:
        output_schema = dict(output_schema)
    description = _field(tool, "description") or _field(tool, "title")
    return McpFields(name, description, dict(schema), output_schema)


def mcp_output(result: Any) -> McpOutput:
    """The result of a call as text or content parts.

    Structured content that no text holds is added as JSON: servers should send it as text as well,
    but need not.

    Raises:
        TypeError: it is not the result of a tool.
    """
    content = _field(result, "content")
    if isinstance(content, str) or not isinstance(content, Sequence):
        raise TypeError(f"the result of an MCP tool has a list `content`, unlike {result!r:.100}")
    parts: list[ContentPart] = []
    for block in content:
        parts.append(_part(block))
    structured = _field(result, "structuredContent")
    if structured is not None and not _has_text_of(parts, structured):
        parts.append(Text(msgspec.json.encode(structured).decode()))
    is_error = bool(_field(result, "isError"))
    if not parts:
        return McpOutput("", is_error)
    if len(parts) == 1 and isinstance(parts[0], Text):
        return McpOutput(parts[0].text, is_error)
    return McpOutput(tuple(parts), is_error)


def _field(value: Any, name: str) -> Any:
    """A field by its name in the protocol; None if there is none."""
    if isinstance(value, Mapping):
        return value.get(name)
    return getattr(value, name, getattr(value, snake_case(name), None))


def _part(block: Any) -> ContentPart:
    match _field(block, "type"):
        case "text":
            return Text(str(_field(block, "text")))
        case "image":
            return unchecked(Image)(
                data=_field(block, "data"), media_type=_field(block, "mimeType")
            )
        case "audio":
            return unchecked(Audio)(
                data=_field(block, "data"), media_type=_field(block, "mimeType")
            )
        case "resource":
            return _embedded(_field(block, "resource"))
        case "resource_link":
            about = [_field(block, name) for name in ("title", "name", "description", "uri")]
            return Text("\n".join([str(text) for text in about if text]))
        case _:
            return Text(_as_json(block))


def _embedded(resource: Any) -> ContentPart:
    """A file in a result."""
    text = _field(resource, "text")
    if text is not None:
        return Text(str(text))
    data = _field(resource, "blob")
    media_type = _field(resource, "mimeType") or UNKNOWN_TYPE
    name = str(_field(resource, "uri") or "").rpartition("/")[2] or None
    if media_type.startswith("image/"):
        return unchecked(Image)(data=data, media_type=media_type, name=name)
    if media_type.startswith("audio/"):
        return unchecked(Audio)(data=data, media_type=media_type, name=name)
    return unchecked(Document)(data=data, media_type=media_type, name=name)


def _has_text_of(parts: list[ContentPart], structured: Any) -> bool:
    """Whether texts hold the structured content: one as JSON, or one for each element.

    The SDK's servers wrap what is not an object into one with the key ``result``.
    """
    texts = [part.text for part in parts if isinstance(part, Text)]
    values: list[Any] = []
    for text in texts:
        try:
            values.append(msgspec.json.decode(text))
        except msgspec.DecodeError:
            values.append(text)
    if structured in (*values, values):
        return True
    return any(structured == {"result": value} for value in (*values, values, *texts))


def _as_json(block: Any) -> str:
    dump = getattr(block, "model_dump", None)
    if dump is not None:
        block = dump(mode="json", by_alias=True)
    return msgspec.json.encode(block, enc_hook=repr).decode()
