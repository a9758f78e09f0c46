"""Tools as they are offered to a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from msgspec import Struct

from streamlib_parsers.hosted_tools import HostedName, HostedTool
from streamlib_parsers.item_base import JsonObject, NamedFields, WireApi, store_tuple
from streamlib_parsers.signatures import ShortHelp, short_help
from streamlib_parsers.upward import upward


class CacheMark(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """Marks a position up to which the prompt is cached.

    messages: cache_control · converse: cachePoint.

    Attributes:
        ttl: how long, as the wire writes it ("5m", "1h"); None: the provider's default.
    """

    ttl: str | None = None


class ToolOptions(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """Options of a tool that only some wires have. A builder reports those that its wire lacks.

    Attributes:
        defer_loading: the model sees the tool only once a search found it.
            messages, responses: defer_loading.
        eager_input_streaming: arguments are streamed before they are known to be valid.
            messages: eager_input_streaming.
        input_examples: arguments of example calls. messages: input_examples.
        allowed_callers: who may call it, as the wire writes it.
            messages, responses: allowed_callers.
        output_schema: JSON Schema of its output. responses: output_schema ·
            gemini: responseJsonSchema.
        native: further keys of the tool, as `native_wire` writes them.
        native_wire: the only wire that `native` is for; None: any.
    """

    defer_loading: bool | None = None
    eager_input_streaming: bool | None = None
    input_examples: Sequence[JsonObject] = ()
    allowed_callers: Sequence[str] = ()
    output_schema: JsonObject | None = None
    native: JsonObject | None = None
    native_wire: WireApi | None = None

    def __post_init__(self) -> None:
        store_tuple(self, "input_examples")
        store_tuple(self, "allowed_callers")


class ToolSpecMeta(ShortHelp, NamedFields):
    """A short signature, and errors that name the field that was meant."""


class ToolSpec(
    Struct,
    metaclass=ToolSpecMeta,
    frozen=True,
    gc=False,
    omit_defaults=True,
    repr_omit_defaults=True,
):
    """A tool offered to the model.

        ToolSpec.of(weather)                  # from a function of yours
        ToolSpec.hosted("web_search")         # a tool that the provider runs
        ToolSpec("weather", "…", schema={…})  # its JSON Schema, written out

    Attributes:
        name: the function's name.
        description: what it does, for the model.
        schema: JSON Schema of its arguments.
        strict: the arguments must follow the schema exactly.
        format: makes it a free-form tool (Responses and Chat `custom`): its
            grammar object, or `{"type": "text"}`.
        native: a hosted or versioned tool of one wire, as that wire's own
            object (`{"type": "computer_20250124", …}`): sent unchanged there,
            and to no other wire.
        native_wire: the wire that `native` is of; None: the one that has such a
            tool, or the one that the prompt is sent to. Set by `parse_request`.
        provider_run: a tool that the provider runs itself, for any wire that
            has it: see `hosted`.
        tools: makes it a namespace of functions (Responses: namespace). Other
            wires get them one by one, under names with the namespace's before
            them.
        cache: caches the prompt up to this tool.
        options: further options that only some wires have.
    """

    _meant: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("parameters", "input_schema", "inputSchema", "json_schema"), "schema"),
        **dict.fromkeys(("cache_control", "cachePoint"), "cache"),
    }
    """Name in other libraries -> the field."""

    name: str
    description: str | None = None
    schema: JsonObject | None = None
    strict: bool | None = None
    format: JsonObject | None = None
    native: JsonObject | None = None
    native_wire: WireApi | None = None
    provider_run: HostedTool | None = None
    tools: Sequence[ToolSpec] = ()
    cache: CacheMark | None = None
    options: ToolOptions | None = None

    def __post_init__(self) -> None:
        store_tuple(self, "tools")

    @classmethod
    @short_help
    def hosted(
        cls,
        name: HostedName,
        *,
        max_uses: int | None = None,
        allowed_domains: Sequence[str] = (),
        blocked_domains: Sequence[str] = (),
        location: dict[str, str] | None = None,
        stores: Sequence[str] = (),
    ) -> ToolSpec:
        """A tool that the provider runs itself, for any wire.

        A target that lacks the tool, the limit or the location gets the request
        without it, and the report names that. A restriction to domains or
        stores that a target lacks is an error when the request is built.

        Args:
            name: `web_search`, `web_fetch`, `code_execution` or `file_search`.
            max_uses: how often it may be called in one response.
            allowed_domains: the only domains to search or fetch from.
            blocked_domains: domains never to search or fetch from.
            location: where the user is (``city``, ``region``, ``country``,
                ``timezone``).
            stores: the file stores to search.

        Raises:
            ValueError: there is no such tool, or no such key of a location.
        """
        tool = HostedTool(name, max_uses, allowed_domains, blocked_domains, location, stores)
        return cls(name, provider_run=tool)

    @classmethod
    @short_help
    def of(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        strict: bool | None = None,
    ) -> ToolSpec:
        """Makes a tool of a function, from its signature and docstring.

        The types of the parameters make the schema: plain types, pydantic
        models, msgspec Structs, dataclasses, TypedDicts, enums, and what is
        made of them. A parameter with a default may be left out. Parameters are
        described by ``Annotated[str, "the city"]``, by their library's own
        field description, or by the docstring in Google's, NumPy's or Sphinx's
        style.

        Args:
            function: sync or async; a method, an object with ``__call__``, a
                ``functools.partial``.
            name: the default is the function's own.
            description: the default is the docstring up to its first section.
            strict: see `ToolSpec`.

        Raises:
            TypeError: a parameter has no JSON Schema, or the function no name.
        """
        if not name:
            name = str(upward("structured.functions", "function_name")(function))
        signature = upward("structured.functions", "signature_of")(function)
        return cls(name, description or signature.description, signature.schema(), strict)

    @classmethod
    def from_mcp(cls, tool: Any) -> ToolSpec:
        """A tool of an MCP server. `FunctionCall.output_mcp` makes the output of
        its calls.

        Args:
            tool: a ``Tool`` as ``list_tools`` of the MCP SDK returns it, or its
                JSON as a dict.

        Raises:
            TypeError: it has no name or no input schema.
        """
        name, description, schema, output_schema = upward("tools.mcp", "mcp_fields")(tool)
        options = ToolOptions(output_schema=output_schema) if output_schema else None
        return cls(name, description, schema, options=options)
