"""Tools and results of MCP servers: dicts of the protocol, objects of both versions of the SDK."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from streamlib_parsers import (
    Audio,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Text,
    ToolOptions,
    ToolSpec,
)
from streamlib_parsers.item_base import snake_case
from tests.support.cases import each_case

TOOL = {
    "name": "read_file",
    "title": "Read a file",
    "description": "Reads a file.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}


def as_version_1(value: Any) -> Any:
    """As objects whose attributes have the protocol's names."""
    if isinstance(value, list):
        return [as_version_1(element) for element in value]
    if not isinstance(value, dict):
        return value
    return SimpleNamespace(**{key: as_version_1(child) for key, child in value.items()})


def as_version_2(value: Any) -> Any:
    """As objects whose attributes have Python's names."""
    if isinstance(value, list):
        return [as_version_2(element) for element in value]
    if not isinstance(value, dict):
        return value
    return SimpleNamespace(**{snake_case(key): as_version_2(child) for key, child in value.items()})


def as_dict(value: Any) -> Any:
    return value


each_form = pytest.mark.parametrize("form", [as_dict, as_version_1, as_version_2])


def output(result: Any) -> FunctionCallOutput:
    return FunctionCall("call_1", "read_file", "{}").output_mcp(result)


@pytest.mark.parametrize("names", [str, snake_case])
def test_tool_becomes_a_tool_spec(names: Callable[[str], str]) -> None:
    tool = SimpleNamespace(**{names(key): value for key, value in TOOL.items()})
    expected = ToolSpec(
        "read_file",
        "Reads a file.",
        {"type": "object", "properties": {"path": {"type": "string"}}},
        options=ToolOptions(output_schema={"type": "object"}),
    )
    assert ToolSpec.from_mcp(tool) == ToolSpec.from_mcp(TOOL) == expected


def test_title_describes_a_tool_without_description() -> None:
    tool = {"name": "now", "title": "The time", "inputSchema": {"type": "object"}}
    assert ToolSpec.from_mcp(tool) == ToolSpec("now", "The time", {"type": "object"})


@pytest.mark.parametrize("tool", [{}, {"name": "a"}, "a", None, {"inputSchema": {}}])
def test_value_that_is_not_a_tool_is_a_type_error(tool: Any) -> None:
    with pytest.raises(TypeError, match="an MCP tool has a name and an input schema"):
        ToolSpec.from_mcp(tool)


@each_form
def test_content_of_every_kind(form: Callable[[Any], Any]) -> None:
    content = [
        {"type": "text", "text": "seen"},
        {"type": "image", "data": "iVBORw0K", "mimeType": "image/png"},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///a/b.md", "text": "# Hi"}},
        {
            "type": "resource",
            "resource": {
                "uri": "file:///a/b.pdf",
                "blob": "JVBERi0=",
                "mimeType": "application/pdf",
            },
        },
        {
            "type": "resource",
            "resource": {"uri": "file:///a/b.png", "blob": "iVBORw0K", "mimeType": "image/png"},
        },
        {"type": "resource", "resource": {"uri": "x:y", "blob": "AAAA"}},
        {"type": "resource_link", "uri": "https://example.com", "name": "a", "description": "more"},
    ]
    result = output(form({"content": content, "isError": True}))
    assert result == FunctionCallOutput(
        "call_1",
        (
            Text("seen"),
            Image("iVBORw0K", media_type="image/png"),
            Audio("UklGRg==", media_type="audio/wav"),
            Text("# Hi"),
            Document("JVBERi0=", media_type="application/pdf", name="b.pdf"),
            Image("iVBORw0K", media_type="image/png", name="b.png"),
            Document("AAAA", media_type="application/octet-stream", name="x:y"),
            Text("a\nmore\nhttps://example.com"),
        ),
        is_error=True,
    )


@each_case(
    "texts, structured, sent",
    [
        ([], None, ""),
        ([], {"a": 1}, '{"a":1}'),
        (["hi"], None, "hi"),
        (['{ "a": 1 }'], {"a": 1}, '{ "a": 1 }'),
        (["3"], {"result": 3}, "3"),
        (["hi"], {"result": "hi"}, "hi"),
        (["3"], {"result": "3"}, "3"),
        (["1", "2"], {"result": [1, 2]}, (Text("1"), Text("2"))),
        (["A table"], {"rows": [1]}, (Text("A table"), Text('{"rows":[1]}'))),
    ],
)
def test_structured_content_is_sent_once(texts: list[str], structured: Any, sent: Any) -> None:
    """A server need not repeat it as text; most do."""
    content = [{"type": "text", "text": text} for text in texts]
    result = output({"content": content, "structuredContent": structured})
    assert result == FunctionCallOutput("call_1", sent)


@each_form
def test_unknown_content_is_sent_as_json(form: Callable[[Any], Any]) -> None:
    result = output(form({"content": [{"type": "hologram", "depth": 3}]}))
    assert isinstance(result.output, str)
    assert "hologram" in result.output


@pytest.mark.parametrize("result", [None, "text", {}, {"content": "text"}, {"toolResult": 1}])
def test_value_that_is_not_a_result_is_a_type_error(result: Any) -> None:
    with pytest.raises(TypeError, match="the result of an MCP tool has a list `content`"):
        output(result)
