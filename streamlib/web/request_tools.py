"""The tools that a server offers, and what a page may send about their calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from streamlib.structured.functions import asks_approval, function_name
from streamlib.web.request_body import json_text
from streamlib_parsers.items import (
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    ItemStatus,
    JsonObject,
    Origin,
    ServerToolCall,
    ServerToolResult,
    ToolSpec,
)

PAGE: Final = Origin()
"""The origin of calls and results of a provider's own tools that a page sends. It is no target's
origin, so every target gets them as text."""

UICall: TypeAlias = FunctionCall | CustomToolCall | ServerToolCall
UIOutput: TypeAlias = FunctionCallOutput | CustomToolCallOutput | ServerToolResult


OfferedTool: TypeAlias = ToolSpec | Callable[..., Any] | tuple[ToolSpec, Any] | str
"""A tool that the server offers: what `Prompt` or `agent` take, or its name alone."""


class RequestTools:
    """The tools of a request, by name.

    Args:
        tools: the server's tools; None: any tool.
    """

    def __init__(self, tools: Iterable[OfferedTool] | None) -> None:
        self._takes_any = tools is None
        self._tools: dict[str, ToolSpec | None] = {}
        """The tools by name; None where only the name is known."""
        self.approval_names: list[str] = []
        """Names of tools whose calls somebody approves first."""
        if isinstance(tools, str):  # its letters would be the tools
            raise TypeError(f"tools is a list of tools and names, not {tools!r:.100}")
        for tool in tools or ():
            match tool:
                case ToolSpec():
                    self.add(tool)
                case (ToolSpec() as spec, function):
                    self.add(spec)
                    self._note_approval(spec.name, function)
                case str():
                    self._tools[tool] = None
                case _ if callable(tool):
                    name = function_name(tool)
                    self._tools[name] = None
                    self._note_approval(name, tool)
                case _:
                    message = "a tool is a ToolSpec, a function or a name, not"
                    raise TypeError(f"{message} {tool!r:.100}")

    def _note_approval(self, name: str, function: Any) -> None:
        if asks_approval(function):
            self.approval_names.append(name)

    def add(self, tool: ToolSpec) -> None:
        """Adds a tool, and the functions of a namespace."""
        self._tools[tool.name] = tool
        for member in tool.tools:
            self._tools[member.name] = member

    @property
    def names(self) -> list[str]:
        """The names of all tools."""
        return list(self._tools)

    def has_name(self, name: str) -> bool:
        """Whether a tool of this name is known."""
        return name in self._tools

    def offers(self, name: str) -> bool:
        """Whether a page may have calls of this name."""
        return self._takes_any or name in self._tools

    def call(
        self, call_id: str, name: str, value: Any, *, is_complete: bool, provider_run: bool
    ) -> UICall:
        """A call as an item.

        Args:
            call_id: its id.
            name: the tool's name.
            value: the arguments as a JSON value; a text is taken as it is.
            is_complete: whether the model finished writing the call.
            provider_run: whether the provider ran the tool, by the page's account.
        """
        tool = self._tools.get(name)
        text = value if isinstance(value, str) else json_text(value)
        if value is None:
            text = ""
        status: ItemStatus = "completed" if is_complete else "incomplete"
        if provider_run or (tool is not None and tool.provider_run is not None):
            return ServerToolCall(call_id, name, text, status=status, origin=PAGE)
        if tool is not None and tool.format is not None:
            return CustomToolCall(call_id, name, text, status=status)
        return FunctionCall(call_id, name, text, status=status)


def output_of(call: UICall, value: Any, *, is_error: bool) -> UIOutput:
    """The output of a call as an item.

    Args:
        call: the call.
        value: a text, content parts, or any other JSON value.
        is_error: whether the tool failed.
    """
    if isinstance(call, ServerToolCall):
        return ServerToolResult(call.call_id, call.name, value, origin=PAGE)
    return call.output(value, is_error=is_error)


def tool_spec(name: str, description: str | None, schema: Any) -> ToolSpec:
    """A tool that a page offers."""
    parameters: JsonObject | None = None
    if isinstance(schema, dict):
        parameters = schema
    return ToolSpec(name, description, parameters)
