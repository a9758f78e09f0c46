"""Hosted tools read from, and written in, the form of a wire: the functions behind the table
`hosted_tools.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamlib.request.hosted_tools import WIRE_TOOLS, Declaration, declarations
from streamlib.request.json_objects import merged, nested
from streamlib_parsers.hosted_tools import LOCATION_KEYS, HostedName, HostedTool
from streamlib_parsers.items import JsonObject, WireApi

RESPONSES_TYPES: Final = frozenset(
    {
        "apply_patch",
        "computer",
        "computer_use_preview",
        "image_generation",
        "local_shell",
        "mcp",
        "namespace",
        "programmatic_tool_calling",
        "shell",
        "tool_search",
        "x_search",
    }
)
"""Types of Responses' own tools besides the hosted ones above (openai 3.54.0, `ToolParam`)."""

GEMINI_KEYS: Final = frozenset(
    {
        "computerUse",
        "enterpriseWebSearch",
        "exaAiSearch",
        "functionDeclarations",
        "googleMaps",
        "googleSearchRetrieval",
        "mcpServers",
        "parallelAiSearch",
        "retrieval",
    }
)
"""Keys of Gemini's own tools besides the hosted ones above (google-genai 3.4.0, `Tool`)."""

INTERACTIONS_TYPES: Final = frozenset(
    {"computer_use", "google_maps", "mcp_server", "retrieval", "tool_search"}
)
"""Types of Interactions' own tools besides the hosted ones above (google-genai 3.4.0, `Tool`)."""


def read_hosted(wire_api: WireApi, native: JsonObject) -> HostedTool | None:
    """The hosted tool that an object of a wire declares; None where it is no such tool.

    Raises:
        ValueError: a limit or restriction has a value that no API takes.
    """
    fields: dict[str, Any] = {}
    name: HostedName | None = None
    for candidate, declaration in declarations(wire_api):
        options = options_of(declaration, native)
        if options is None:
            continue
        name = candidate
        for field, value in _read_options(declaration, options).items():
            # Providers of a wire spell an option differently: one of them fits.
            if value not in (None, ()):
                fields[field] = value
    if name is None:
        return None
    return HostedTool(name, **fields)


def declared(wire_api: WireApi, native: JsonObject) -> Iterator[tuple[Declaration, JsonObject]]:
    """The declarations of a wire that an object may be, each with the object of its options."""
    for _, declaration in declarations(wire_api):
        options = options_of(declaration, native)
        if options is not None:
            yield declaration, options


def options_of(declaration: Declaration, native: JsonObject) -> JsonObject | None:
    """The object that holds the options; None where `native` is no such declaration."""
    match declaration.form:
        case "key":
            for kind in declaration.types:
                if kind in native:
                    return _object(native[kind])
        case "system_tool":
            options = _object(native.get("systemTool"))
            if options.get("name") in declaration.types:
                return options
        case "type":
            if native.get("type") in declaration.types:
                return native
    return None


def _object(value: object) -> JsonObject:
    """The value; empty where it is not an object, which has no options."""
    if isinstance(value, dict):
        return value
    return {}


def _read_options(declaration: Declaration, options: JsonObject) -> dict[str, Any]:
    allowed = _strings(value_at(options, declaration.allowed_domains))
    blocked = _strings(value_at(options, declaration.blocked_domains))
    if declaration.minus:
        blocked = tuple(domain[1:] for domain in allowed if domain.startswith("-"))
        allowed = tuple(domain for domain in allowed if not domain.startswith("-"))
    max_uses = value_at(options, declaration.max_uses)
    if max_uses is not None and (isinstance(max_uses, bool) or not isinstance(max_uses, int)):
        raise ValueError(f"{declaration.max_uses} is a number, not {max_uses!r:.100}")
    return {
        "max_uses": max_uses,
        "allowed_domains": allowed,
        "blocked_domains": blocked,
        "location": _location(value_at(options, declaration.location)),
        "stores": _strings(value_at(options, declaration.stores)),
    }


def value_at(values: Any, path: str) -> Any:
    """The value at a dotted path; None where there is none, or no path."""
    if not path:
        return None
    for key in path.split("."):
        if not isinstance(values, dict):
            return None
        values = values.get(key)
    return values


def _strings(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)) or not all(isinstance(text, str) for text in value):
        # To read it as "no restriction" would lift one.
        raise ValueError(f"a restriction is a list of strings, not {value!r:.100}")
    return tuple(value)


def _location(value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict):
        return None
    location: dict[str, str] = {}
    for key in LOCATION_KEYS:
        if isinstance(value.get(key), str):
            location[key] = value[key]
    return location or None


def declare(
    declaration: Declaration, tool: HostedTool, native: JsonObject | None = None
) -> JsonObject:
    """The wire's own object for a tool.

    Args:
        declaration: how the API declares it; options for which it has no path are left out.
        tool: the tool.
        native: an object of the same declaration, whose other options and type are kept.
    """
    kind = declaration.types[0]
    options: JsonObject = {}
    own_options = options_of(declaration, native or {})
    if own_options is not None:
        options = _without_typed(declaration, own_options)
        kind = _type_of(declaration, native or {})
    allowed, blocked = list(tool.allowed_domains), list(tool.blocked_domains)
    if declaration.minus:
        allowed.extend(f"-{domain}" for domain in blocked)
        blocked = []
    location: JsonObject | None = None
    if tool.location:
        location = {"type": "approximate", **tool.location}
    for path, value in (
        (declaration.max_uses, tool.max_uses),
        (declaration.allowed_domains, allowed),
        (declaration.blocked_domains, blocked),
        (declaration.location, location),
        (declaration.stores, list(tool.stores)),
    ):
        if path and value not in (None, []):
            options = merged(options, nested(path, value))
    options = merged(declaration.fixed, options)
    if declaration.form == "key":
        return {kind: options}
    if declaration.form == "system_tool":
        return {"systemTool": {**options, "name": kind}}
    options.pop("type", None)
    return {"type": kind, **options}


def _type_of(declaration: Declaration, native: JsonObject) -> str:
    for kind in declaration.types:
        if kind in native or kind == native.get("type"):
            return kind
    return declaration.types[0]


def typed_paths(declaration: Declaration) -> list[str]:
    """The paths of the options that `HostedTool` has fields for."""
    paths = [
        declaration.max_uses,
        declaration.allowed_domains,
        declaration.blocked_domains,
        declaration.location,
        declaration.stores,
    ]
    return [path for path in paths if path]


def _without_typed(declaration: Declaration, options: JsonObject) -> JsonObject:
    """The options that `HostedTool` has no field for."""
    rest = dict(options)
    for path in typed_paths(declaration):
        parent, _, child = path.rpartition(".")
        if not parent:
            rest.pop(child, None)
        elif isinstance(rest.get(parent), dict):
            below = {key: value for key, value in rest[parent].items() if key != child}
            rest[parent] = below
            if not below:
                del rest[parent]
    return rest


def wire_of(native: JsonObject, target: WireApi) -> WireApi | None:
    """The wire that has such a tool; `target` where it is one of several; None: it is not known."""
    if _is_of(target, native):
        return target
    for wire_api in WIRE_TOOLS:
        if _is_of(wire_api, native):
            return wire_api
    return None


def _is_of(wire_api: WireApi, native: JsonObject) -> bool:
    """Whether an object is a tool of a wire, by its form."""
    for _, declaration in declarations(wire_api):
        if options_of(declaration, native) is not None:
            return True
    kind = native.get("type")
    match wire_api:
        case "messages":
            return isinstance(kind, str) and (_is_dated(kind) or kind == "mcp_toolset")
        case "responses":
            return kind in RESPONSES_TYPES or (kind in ("function", "custom") and "name" in native)
        case "chat":
            # `{"type": "function", "function": {…}}`, and what other servers built after it
            return isinstance(kind, str) and isinstance(native.get(kind), dict)
        case "gemini":
            return kind is None and not GEMINI_KEYS.isdisjoint(native)
        case "interactions":
            return kind in INTERACTIONS_TYPES
        case "converse":
            return kind is None and ("systemTool" in native or "toolSpec" in native)
        case _:
            return False


def _is_dated(kind: str) -> bool:
    """Whether a type ends with a date, as all of Anthropic's do: `bash_20250124`."""
    name, _, date = kind.rpartition("_")
    return bool(name) and len(date) == 8 and date.isdigit()
