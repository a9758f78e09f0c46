"""Namespaces of tools: flattened into plain functions for APIs without them, and restored.

    ToolSpec("crm", tools=[ToolSpec("lookup")])   ->   crm__lookup
    FunctionCall(name="crm__lookup")              ->   FunctionCall(name="lookup", namespace="crm")

OpenAI's Responses API is the only one that has namespaces: a group of functions, whose calls carry
`name` and `namespace`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import OutputItemAdded, OutputItemDone, ResponseEvent
from streamlib_parsers.items import CustomToolCall, FunctionCall, ToolSpec

Namespaces: TypeAlias = Mapping[str, tuple[str, str]]
"""Flat name of a tool -> its namespace and its name there."""


def flat_name(namespace: str, name: str) -> str:
    """The name of a namespace's tool where there are no namespaces (``mcp__fs__`` + ``read``)."""
    if namespace.endswith("__"):
        return namespace + name
    return f"{namespace}__{name}"


def flat_call_name(call: FunctionCall | CustomToolCall) -> str:
    """The name of a call on a wire without namespaces."""
    # A function that a tool search loaded is in a namespace of its own name.
    if call.namespace in (None, call.name):
        return call.name
    return flat_name(call.namespace or "", call.name)


def flat_tools(tools: Sequence[ToolSpec], namespaces: Namespaces) -> list[ToolSpec]:
    """The tools with those of namespaces among them, under their flat names."""
    flat_names = {qualified: flat for flat, qualified in namespaces.items()}
    flat: list[ToolSpec] = []
    for tool in tools:
        if not tool.tools:
            flat.append(tool)
        for member in tool.tools:
            name = flat_names.get((tool.name, member.name)) or flat_name(tool.name, member.name)
            flat.append(replace(member, name=name))
    return flat


class NamespaceFilter:
    """Gives calls of flattened tools their namespace and name back."""

    def __init__(self, namespaces: Namespaces) -> None:
        self.failure: ErrorInfo | None = None
        """Always None: this filter has no limit."""
        self._namespaces = namespaces
        """Flat names, as the tools were offered."""

    def feed(self, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """The events, their calls with namespaces."""
        types = set(map(type, events))
        if OutputItemAdded not in types and OutputItemDone not in types:  # most batches
            return events
        return [self._restored(event) for event in events]

    def close(self) -> list[ResponseEvent]:
        """Nothing is buffered."""
        return []

    def _restored(self, event: ResponseEvent) -> ResponseEvent:
        if not isinstance(event, (OutputItemAdded, OutputItemDone)):
            return event
        item = event.item
        if not isinstance(item, (FunctionCall, CustomToolCall)):
            return event
        qualified = self._namespaces.get(item.name)
        if qualified is None or item.namespace is not None:
            return event
        namespace, name = qualified
        return replace(event, item=replace(item, namespace=namespace, name=name))
