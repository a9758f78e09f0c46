"""The tools of a prompt as the target takes them: hosted tools, native tools, namespaces.

    hosted      in the target's words (`hosted_tools.py`); dropped where it has no such tool
    native      sent to its own wire as it is; to no other
    namespace   sent to Responses as it is; elsewhere its functions one by one

A limit on the number of calls that the target lacks is dropped. A restriction never is: one to
domains or stores is an error, and with any other the tool itself is left out. All is reported.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from streamlib.request import hosted_forms, hosted_tools
from streamlib.request.allowed_tools import AllowedTools
from streamlib.request.history import CALLS, IndexedItem
from streamlib.request.hosted_forms import options_of, value_at
from streamlib.request.hosted_tools import Declaration
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.target import BuildContext
from streamlib_parsers.hosted_tools import HostedTool
from streamlib_parsers.items import JsonObject, ToolSpec, WireApi
from streamlib_parsers.namespaces import flat_call_name, flat_name
from streamlib_parsers.stream_error import StreamError, invalid_request

NATIVE_WIRES: Final[dict[WireApi, frozenset[WireApi]]] = {
    # Claude's own tools are fields of the model in Converse, and the body itself in InvokeModel;
    # the two builders know which model takes which.
    "converse": frozenset({"converse", "messages"}),
    "invoke": frozenset({"messages", "converse", "chat"}),
}
"""Target -> wires whose native tools it takes, besides its own."""

CHOICES: Final = (None, "auto", "required", "none")
"""Tool choices that name no tool."""

NAMED_HOSTED: Final[tuple[WireApi, ...]] = ("messages", "responses")
"""Wires whose tool choice may name a hosted tool."""

FUNCTION_KEYS: Final = frozenset({"type", "name", "description", "parameters", "strict", "format"})
"""Keys of Responses' functions that `ToolSpec` has fields for."""

_DOMAIN_FIELDS: Final = ("allowed_domains", "blocked_domains")


class FittedTools(NamedTuple):
    """A prompt and its history with the tools that the target gets."""

    prompt: Prompt
    items: list[IndexedItem]
    namespaces: dict[str, tuple[str, str]]
    """Flat name -> namespace and name there, of the functions that were in one."""
    paths: list[str]
    """JSON pointer of each tool into the caller's prompt."""


def fit_tools(
    prompt: Prompt,
    items: list[IndexedItem],
    context: BuildContext,
    allowed: AllowedTools | None = None,
) -> FittedTools:
    """The tools, their names in the history, and the tool choice, fitted to the target.

    Args:
        prompt: with the caller's tools.
        items: the history.
        context: the target, and the report.
        allowed: the tools that may be called, where another wire's request named some.

    Raises:
        StreamError: `invalid_request` for a restriction that the target lacks, and for a schema
            that is not an object.
    """
    fitter = _Fitter(prompt, context)
    for index, tool in enumerate(prompt.tools):
        path = f"/tools/{index}"
        _check_schema(tool, path)
        fitter.add_allowed(tool, path, allowed)
    choice = prompt.tool_choice
    if prompt.tools:
        choice = fitter.choice()
    if fitter.is_changed or choice != prompt.tool_choice:
        prompt = replace(prompt, tools=fitter.sent, tool_choice=choice)
        if not fitter.sent and prompt.parallel_tools is not None:
            context.report.dropped("/parallel_tools", "no tool is left")
            prompt = replace(prompt, parallel_tools=None)
    if not fitter.takes_namespaces:
        flat_names = {qualified: flat for flat, qualified in fitter.namespaces.items()}
        items = [_flat_call(entry, flat_names) for entry in items]
    return FittedTools(prompt, items, fitter.namespaces, fitter.paths)


def _check_schema(tool: ToolSpec, path: str) -> None:
    """Raises where a schema is not an object: clients of a gateway send anything."""
    schema: Any = tool.schema
    if schema is not None and not isinstance(schema, dict):
        raise invalid_request(f"{path}/schema: a schema is an object", "tools")
    for index, member in enumerate(tool.tools):
        _check_schema(member, f"{path}/tools/{index}")


def _flat_call(entry: IndexedItem, flat_names: dict[tuple[str, str], str]) -> IndexedItem:
    """A call of the history under the flat name of its tool."""
    item = entry.item
    if not isinstance(item, CALLS) or item.namespace is None:
        return entry
    name = flat_names.get((item.namespace, item.name)) or flat_call_name(item)
    return IndexedItem(entry.position, replace(item, name=name, namespace=None))


class _Fitter:
    """Fits one tool after the other."""

    def __init__(self, prompt: Prompt, context: BuildContext) -> None:
        self.sent: list[ToolSpec] = []
        """The tools that the target gets."""
        self.paths: list[str] = []
        """JSON pointer of each of these tools into the prompt."""
        self.namespaces: dict[str, tuple[str, str]] = {}
        """Flat name -> namespace and name there."""
        self.is_changed = False
        """Whether `sent` differs from the prompt's tools."""
        self._target = context.target
        self._report = context.report
        self._choice = prompt.tool_choice
        self._taken = {tool.name for tool in prompt.tools}
        """Names that a flat name must not have."""
        self._functions: set[str] = set()
        """Names of the caller's own functions."""
        for tool in prompt.tools:
            if tool.native is None and tool.provider_run is None:
                self._functions.add(tool.name)
        self._sent_names: dict[str, str | None] = {}
        """Name or type of a hosted or native tool -> the name it is sent under; None: it is not."""
        self._hosted_names: set[str] = set()
        """Sent names of hosted tools."""
        target = context.target
        self._available = hosted_tools.tools_of(target.wire_api, target.provider.name, target.model)

    @property
    def takes_namespaces(self) -> bool:
        """Whether the target has namespaces."""
        is_known = self._target.provider.name in hosted_tools.WITHOUT_NAMESPACES
        return self._target.wire_api == "responses" and not is_known

    def add_allowed(self, tool: ToolSpec, path: str, allowed: AllowedTools | None) -> None:
        """Adds a tool, if it is among the allowed ones; None: all are."""
        if allowed is None:
            self.add(tool, path)
            return
        fitted = allowed.fitted(tool)
        if fitted is not tool:
            self.is_changed = True
            reason = f"not among the allowed tools, which {self._target.wire_api} cannot name"
            self._report.dropped(path, reason)
        if fitted is not None:
            self.add(fitted, path)

    def add(self, tool: ToolSpec, path: str) -> None:
        """Adds a tool in the target's form, or reports that it is dropped."""
        if tool.tools:
            self._add_namespace(tool, path)
            return
        fitted = self._fitted(tool, path)
        if fitted is not tool:
            self.is_changed = True
        self._note_names(tool, fitted)
        if fitted is not None:
            self._send(fitted, path)

    def _send(self, tool: ToolSpec, path: str) -> None:
        self.sent.append(tool)
        self.paths.append(path)

    def choice(self) -> str | None:
        """`tool_choice`, which may name a tool that is not sent, or sent under another name."""
        choice = self._choice
        if choice in CHOICES:
            if self.sent or choice is None:
                return choice
            self._report.dropped("/tool_choice", "no tool is left")
            return None
        name: str | None = choice
        for tool in self.sent:
            # A function of this name wins over the type of a hosted tool.
            if tool.name == choice and tool.native is None:
                return choice
        if choice in self._sent_names:
            name = self._sent_names[choice]
        if name is None:
            self._report.dropped("/tool_choice", f"{choice} is not sent")
        elif name in self._hosted_names and self._target.wire_api not in NAMED_HOSTED:
            reason = f"{self._target.wire_api} cannot choose a hosted tool by its name"
            self._report.dropped("/tool_choice", reason)
            return None
        return name

    def _note_names(self, tool: ToolSpec, fitted: ToolSpec | None) -> None:
        if tool.native is None and tool.provider_run is None:
            return
        sent: str | None = None
        if fitted is not None:
            sent = fitted.name
            if fitted.provider_run is not None:
                self._hosted_names.add(sent)
        kind = (tool.native or {}).get("type")
        if isinstance(kind, str):
            self._sent_names[kind] = sent
        if tool.provider_run is not None:
            self._sent_names[tool.provider_run.name] = sent
        self._sent_names[tool.name] = sent

    # --- namespaces ---

    def _add_namespace(self, tool: ToolSpec, path: str) -> None:
        if self.takes_namespaces:
            self._send(tool, path)
            return
        self.is_changed = True
        names: list[str] = []
        for index, member in enumerate(tool.tools):
            member_path = f"{path}/tools/{index}"
            fitted = self._fitted(member, member_path)
            if fitted is None:
                continue
            name = self._free_name(tool.name, member.name)
            names.append(name)
            self.namespaces[name] = (tool.name, member.name)
            self._sent_names.setdefault(member.name, name)
            self._send(replace(fitted, name=name), member_path)
        reason = f"{_api_name(self._target)} has no namespaces: sent as {', '.join(names)}"
        if tool.description:
            reason += ", without the description that they share"
        self._report.add("changed", path, reason)

    def _free_name(self, namespace: str, member: str) -> str:
        """The flat name, or one that no other tool has."""
        name = flat_name(namespace, member)
        if name in self._taken:
            # Of both: `a`, `b__c` and `a__b`, `c` have the same flat name.
            qualified = f"{namespace}\0{member}".encode("utf-8", "surrogatepass")
            name = f"{name}_{hashlib.sha256(qualified).hexdigest()[:8]}"
        self._taken.add(name)
        return name

    # --- one tool ---

    def _fitted(self, tool: ToolSpec, path: str) -> ToolSpec | None:
        """The tool in the target's form; None, and reported, where it has none."""
        hosted = tool.provider_run
        if tool.native is None:
            if hosted is None:
                return tool
            return self._translated(tool, hosted, None, path)
        wire_api = self._target.wire_api
        native_wire = tool.native_wire or hosted_forms.wire_of(tool.native, wire_api)
        if tool.native.get("type") in ("function", "custom") and native_wire != wire_api:
            return _plain_function(tool, tool.native, path, self._report)
        if hosted is None and native_wire is not None:
            hosted = _read(native_wire, tool.native, path)
        if hosted is not None:
            return self._fitted_native_hosted(tool, hosted, native_wire, path)
        accepted = NATIVE_WIRES.get(wire_api, frozenset({wire_api}))
        if native_wire is None or native_wire in accepted:
            return tool
        self._report.dropped(path, f"{tool.name} is a tool of {native_wire} alone")
        return None

    def _fitted_native_hosted(
        self, tool: ToolSpec, hosted: HostedTool, native_wire: WireApi | None, path: str
    ) -> ToolSpec | None:
        """A hosted tool that came as an object of a wire: unchanged where the target takes that."""
        target, native = self._target, tool.native or {}
        if native_wire is None or native_wire != target.wire_api:
            return self._translated(tool, hosted, native_wire, path)
        declaration = self._available.get(hosted.name)
        is_own = declaration is not None and options_of(declaration, native) is not None
        is_listed = (target.wire_api, target.provider.name) in hosted_tools.PROVIDER_TOOLS
        if (is_own or not is_listed) and _read(native_wire, native, path) == hosted:
            return tool
        return self._translated(tool, hosted, native_wire, path)

    def _translated(
        self, tool: ToolSpec, hosted: HostedTool, native_wire: WireApi | None, path: str
    ) -> ToolSpec | None:
        """A hosted tool in the target's words."""
        api = _api_name(self._target)
        declaration = self._available.get(hosted.name)
        if declaration is None:
            self._report.dropped(path, f"{api} has no {hosted.name}")
            return None
        if native_wire is not None:
            restriction = _other_restriction(native_wire, tool.native or {})
            if restriction:
                reason = f"{restriction} restricts {hosted.name}, which {api} cannot"
                self._report.dropped(path, reason)
                return None
            if hosted.stores and native_wire != self._target.wire_api:
                raise _refused(path, f"the stores of {hosted.name} are not known to {api}")
        _check_restrictions(declaration, hosted, path, api)
        for field in ("max_uses", "location"):
            if getattr(hosted, field) is not None and not getattr(declaration, field):
                self._report.dropped(f"{path}/{field}", f"{hosted.name} of {api} has no {field}")
        own: JsonObject | None = None
        if native_wire == self._target.wire_api:
            own = tool.native
        native = hosted_forms.declare(declaration, hosted, own)
        if native_wire is not None:
            _report_options(native_wire, tool.native or {}, native, path, self._report)
        name = native.get("name", tool.name)
        is_taken = name in self._functions or name in self._hosted_names
        if "name" in native and is_taken:
            self._report.dropped(path, f"{api} wants unique names, and another tool is {name}")
            return None
        return replace(
            tool,
            name=name,
            native=native,
            native_wire=self._target.wire_api,
            provider_run=hosted,
        )


def _api_name(target: Any) -> str:
    return f"{target.provider.name} ({target.wire_api})"


def _read(wire_api: WireApi, native: JsonObject, path: str) -> HostedTool | None:
    try:
        return hosted_forms.read_hosted(wire_api, native)
    except ValueError as error:
        raise _refused(path, str(error)) from None


def _refused(path: str, reason: str) -> StreamError:
    return invalid_request(f"{path}: {reason}", "hosted_tool")


def _check_restrictions(declaration: Declaration, hosted: HostedTool, path: str, api: str) -> None:
    """Raises where a restriction to domains or stores would be lost."""
    for field in (*_DOMAIN_FIELDS, "stores"):
        if getattr(hosted, field) and not getattr(declaration, field):
            reason = f"{hosted.name} of {api} takes no {field}"
            reason += ", without which the tool may do more than you allow"
            raise _refused(f"{path}/{field}", reason)
    if declaration.one_list and hosted.allowed_domains and hosted.blocked_domains:
        reason = f"{api} takes allowed_domains or blocked_domains, not both"
        raise _refused(path, reason)
    if declaration.stores and not hosted.stores:
        raise _refused(f"{path}/stores", f"{hosted.name} of {api} needs stores")


def _other_restriction(wire_api: WireApi, native: JsonObject) -> str:
    """The path of an option that restricts the tool in a way that has no portable field; ""."""
    for declaration, options in hosted_forms.declared(wire_api, native):
        for path, harmless in declaration.restrictions.items():
            value = value_at(options, path)
            if value is not None and value != harmless:
                return path
    # A filter restricts, whatever it is.
    for path in _unknown_options(wire_api, native):
        if path.startswith("filters."):
            return path
    return ""


def _unknown_options(wire_api: WireApi, native: JsonObject) -> dict[str, Any]:
    """Path and value of the options that no declaration has; objects that hold known options are
    looked into."""
    known: set[str] = {"type", "name", "systemTool"}
    options: JsonObject = native
    for declaration, own_options in hosted_forms.declared(wire_api, native):
        options = own_options
        known.update(declaration.types)
        known.update(hosted_forms.typed_paths(declaration))
        # The value that restricts nothing says nothing.
        known.update(declaration.restrictions)
        known.update(_paths(declaration.fixed, options))
    parents = {path.partition(".")[0] for path in known if "." in path}
    unknown: dict[str, Any] = {}
    for key, value in options.items():
        if key in known or value is None:
            continue
        if key not in parents or not isinstance(value, dict):
            unknown[key] = value
            continue
        for child, inner in value.items():
            if f"{key}.{child}" not in known and inner is not None:
                unknown[f"{key}.{child}"] = inner
    return unknown


def _paths(fixed: JsonObject, options: JsonObject, parent: str = "") -> list[str]:
    """The paths of the fixed values that the options have."""
    paths: list[str] = []
    for key, value in fixed.items():
        own = options.get(key)
        if own == value:
            paths.append(f"{parent}{key}")
        elif isinstance(value, dict) and isinstance(own, dict):
            paths += _paths(value, own, f"{parent}{key}.")
    return paths


def _report_options(
    wire_api: WireApi, native: JsonObject, sent: JsonObject, path: str, report: Report
) -> None:
    """Reports the options of a declaration that have no portable field, and are not sent."""
    for option, value in _unknown_options(wire_api, native).items():
        if value_at(sent, option) != value:
            pointer = option.replace(".", "/")
            report.dropped(f"{path}/native/{pointer}", f"an option of {wire_api}")


def _plain_function(tool: ToolSpec, native: JsonObject, path: str, report: Report) -> ToolSpec:
    """A function of another wire without the keys that only that wire has.

    Raises:
        StreamError: `invalid_request`; its schema is not an object.
    """
    schema = tool.schema or native.get("parameters")
    if not isinstance(schema, (dict, type(None))):
        raise invalid_request(f"{path}/native/parameters: a schema is an object", "tools")
    for key, value in native.items():
        if key not in FUNCTION_KEYS and value is not None:
            report.dropped(f"{path}/native/{key}", "a key of another wire")
    return replace(
        tool,
        description=tool.description or native.get("description"),
        schema=schema,
        native=None,
        native_wire=None,
    )


def without_natives_of_others(prompt: Prompt, wire_api: WireApi, report: Report) -> Prompt:
    """The prompt without native tools of other wires, for a body that another body encloses."""
    tools: list[ToolSpec] = []
    for index, tool in enumerate(prompt.tools):
        native_wire: WireApi | None = None
        if tool.native is not None:
            native_wire = tool.native_wire or hosted_forms.wire_of(tool.native, wire_api)
        if native_wire in (None, wire_api):
            tools.append(tool)
        else:
            report.dropped(f"/tools/{index}", f"{tool.name} is a tool of {native_wire} alone")
    if len(tools) == len(prompt.tools):
        return prompt
    return replace(prompt, tools=tools)
