"""The tools of a Gemini request: declarations, their schemas, how they may be called; and back.

Rules have the numbers of the rule table in docs/wires/gemini.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from streamlib.request.hosted_forms import read_hosted
from streamlib.request.json_objects import camel_case, without_none
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.schemas import with_subschemas
from streamlib.request.target import BuildContext
from streamlib.request.tool_options import option_fields
from streamlib.wires.arguments import free_form_schema
from streamlib.wires.settings import put, take
from streamlib_parsers.items import JsonObject, ToolOptions, ToolSpec

MODES: Final = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
"""`Prompt.tool_choice` -> `functionCallingConfig.mode`."""


class Tools(NamedTuple):
    """`tools` as they are sent."""

    sent: list[JsonObject]
    functions: list[str]
    """Names of the functions among them."""
    hosted: bool
    """Whether one of them is run by the provider."""


def tools(prompt: Prompt, context: BuildContext) -> Tools:
    """Puts all functions at the position of the first; hosted tools where they may be."""
    # rule G17
    target = context.target
    declarations: list[JsonObject] = []
    sent: list[JsonObject] = []
    has_functions = any(not _is_hosted(tool) for tool in prompt.tools)
    hosted = False
    for index, tool in enumerate(prompt.tools):
        if tool.native is None:
            if not declarations:
                # One tool for all functions: the list is filled by the ones that follow.
                sent.append({"functionDeclarations": declarations})
            declarations.append(_declaration(tool, index, context.report))
            continue
        if _is_hosted(tool):
            if has_functions and not target.traits.mixed_tools:
                context.report.dropped(
                    f"/tools/{index}", f"{target.model} takes no hosted tool beside functions"
                )
                continue
            hosted = True
        sent.append(tool.native)
    names: list[str] = []
    for sent_tool in sent:
        declared = sent_tool.get("functionDeclarations") or ()
        names.extend(declaration["name"] for declaration in declared)
    return Tools(sent, names, hosted)


def _is_hosted(tool: ToolSpec) -> bool:
    return tool.native is not None and "functionDeclarations" not in tool.native


def _declaration(tool: ToolSpec, index: int, report: Report) -> JsonObject:
    body: JsonObject = {"name": tool.name}
    if tool.description is not None:
        body["description"] = tool.description
    options = option_fields(tool)
    if "output_schema" in options:
        body["responseJsonSchema"] = options.pop("output_schema")
    openapi_schema = options.pop("parameters", None)
    body.update(options)
    schema = tool.schema or {}
    if tool.strict:
        report.dropped(f"/tools/{index}/strict", "Gemini has no strict functions")
    if tool.format is not None:
        schema = free_form_schema("Gemini", f"/tools/{index}", report)
    if openapi_schema is not None and is_same_schema(openapi_schema, schema):
        body["parameters"] = openapi_schema
        return body
    if openapi_schema is not None and schema != schema_of_openapi(openapi_schema):
        path = f"/tools/{index}/options/native/parameters"
        report.dropped(path, "the tool's schema is another one")
    if _has_no_arguments(schema):
        return body
    path = f"/tools/{index}/schema"
    if schema.get("type") != "object":
        report.add("changed", path, "parameters are of type object")
        schema = {**schema, "type": "object"}
    body["parametersJsonSchema"] = json_schema(schema, path, report)
    return body


def is_same_schema(openapi_schema: Any, schema: JsonObject) -> bool:
    """Whether an object schema in OpenAPI's dialect means the same as the JSON Schema."""
    return schema.get("type") == "object" and schema_of_openapi(openapi_schema) == schema


def _has_no_arguments(schema: JsonObject) -> bool:
    """G13: an object without properties is refused as parameters."""
    if not schema.keys() <= EMPTY_OBJECT_KEYWORDS:
        return False
    return not schema.get("properties") and not schema.get("additionalProperties")


def tool_config(
    prompt: Prompt, offered: Tools, context: BuildContext, *, replays_hosted_call: bool
) -> JsonObject:
    """`toolConfig`: which functions may be called, and the switch for mixed tools.

    Args:
        prompt: its `tool_choice` is read.
        offered: the tools of the request.
        context: the target and the report.
        replays_hosted_call: whether a call of a hosted tool is in the history.

    Returns:
        The object, empty if nothing is to be sent.
    """
    report = context.report
    config: JsonObject = {}
    choice = prompt.tool_choice
    if choice in MODES and offered.sent and (offered.functions or choice == "none"):
        config["functionCallingConfig"] = {"mode": MODES[choice]}
    elif choice in offered.functions:
        config["functionCallingConfig"] = {"mode": "ANY", "allowedFunctionNames": [choice]}
    elif choice not in (None, "auto", "none"):
        report.dropped("/tool_choice", "there is no such function to call")
    mixes_tools = replays_hosted_call or (offered.hosted and bool(offered.functions))
    switch = "toolConfig.includeServerSideToolInvocations"
    # The Developer API asks for the switch (G17); Vertex AI does not know it.
    if mixes_tools and switch not in context.target.provider.unsupported:
        config["includeServerSideToolInvocations"] = True
    return config


# --- schemas ---

EMPTY_OBJECT_KEYWORDS: Final = frozenset(
    {"type", "properties", "required", "additionalProperties", "title", "$schema"}
)
"""Keywords that a schema without arguments may have."""

UNSUPPORTED_KEYWORDS: Final = frozenset(
    {"examples", "discriminator", "exclusiveMinimum", "exclusiveMaximum"}
)
"""Keywords that Gemini refuses."""  # rule G12

STRING_FORMATS: Final = frozenset({"date-time", "date", "time"})
"""The formats of strings that Gemini accepts."""


def json_schema(node: Any, path: str, report: Report) -> Any:
    """Moves what makes Gemini refuse a schema into the description.

    Args:
        node: a schema; anything else is returned as it is.
        path: JSON pointer of the schema in the prompt.
        report: receives one change for each schema that had to change.

    Returns:
        A copy that the API accepts.
    """  # rule G12
    if not isinstance(node, dict):
        return node
    moved: JsonObject = {}
    schema: JsonObject = {}
    for key, value in node.items():
        if _is_refused(key, value, node.get("type")):
            moved[key] = value
        elif key not in {"$schema", "const"}:
            schema[key] = with_subschemas(key, value, path, partial(json_schema, report=report))
    if "const" in node:
        # Gemini knows no `const`; an enum of one value means the same.
        schema["enum"] = [node["const"]]
    if moved:
        names = ", ".join(sorted(moved))
        report.add("changed", path, f"not taken here, moved into the description: {names}")
        note = ", ".join(f"{key}: {value}" for key, value in moved.items())
        if schema.get("description"):
            schema["description"] = f"{schema['description']} ({note})"
        else:
            schema["description"] = f"({note})"
    return schema


def _is_refused(key: str, value: Any, kind: Any) -> bool:
    """Whether Gemini refuses a keyword. kind: the schema's type, or its list of types."""
    if key in UNSUPPORTED_KEYWORDS:
        return True
    if key != "format":
        return False
    kinds = kind if isinstance(kind, list) else [kind]
    return "string" in kinds and value not in STRING_FORMATS


# --- read ---


def known(values: Any) -> JsonObject:
    """An object with its names in camelCase, without nulls; an absent one is empty."""
    if values is None:
        return {}
    return without_none(camel_case(values))


def listed(value: Any) -> list[Any]:
    """A list. One object alone is read as its only element, as Google's servers do."""
    if isinstance(value, list):
        return value
    if value:
        return [value]
    return []


def read_tools(value: Any) -> list[ToolSpec]:
    """The tools of a decoded request."""
    tools: list[ToolSpec] = []
    for tool in listed(value):
        tools.extend(_specs(known(tool)))
    return tools


def _specs(tool: JsonObject) -> Iterator[ToolSpec]:
    """Each function by itself; each hosted tool by itself, named after its field."""
    for key, value in tool.items():
        if key != "functionDeclarations":
            native = {key: value}
            if isinstance(value, dict):
                native = {key: camel_case(value)}
            hosted = read_hosted("gemini", native)
            name = key
            if hosted is not None:
                name = hosted.name
            yield ToolSpec(name, native=native, native_wire="gemini", provider_run=hosted)
            continue
        for function in listed(value):
            yield _read_function(known(function))


def _read_function(declaration: JsonObject) -> ToolSpec:
    """One function. A schema of OpenAPI's dialect is kept beside the JSON Schema it means."""
    rest = dict(declaration)
    name, description = rest.pop("name"), rest.pop("description", None)
    schema = rest.pop("parametersJsonSchema", None)
    if not schema:
        schema = schema_of_openapi(rest.get("parameters"))
    options: JsonObject = {}
    if "responseJsonSchema" in rest:
        options["output_schema"] = rest.pop("responseJsonSchema")
    if rest:
        options |= {"native": rest, "native_wire": "gemini"}
    return ToolSpec(name, description, schema, options=ToolOptions(**options) if options else None)


CHOICES: Final = {mode: choice for choice, mode in MODES.items()}
"""`functionCallingConfig.mode` -> `Prompt.tool_choice`."""


def read_choice(fields: JsonObject) -> str | None:
    """The tool choice.

    `Prompt` cannot express several names or `VALIDATED`: these stay in `extra`, and the
    mode's nearest choice is returned.
    """
    config = known(take(fields, "toolConfig.functionCallingConfig"))
    mode = str(config.pop("mode", "") or "").upper()
    names = config.pop("allowedFunctionNames", None) or []
    is_one_function = mode == "ANY" and len(names) == 1
    choice = CHOICES.get(mode)
    is_expressible = choice is not None and (not names or is_one_function)
    if not is_expressible:
        if mode:
            config["mode"] = mode
        if names:
            config["allowedFunctionNames"] = names
    if config:
        put(fields, "toolConfig.functionCallingConfig", config)
    if is_expressible and names:
        return str(names[0])
    return choice


TYPE_NUMBERS: Final = {
    1: "string",
    2: "number",
    3: "integer",
    4: "boolean",
    5: "array",
    6: "object",
    7: "null",
}
"""Types by their enum number, which protobuf clients send."""


def schema_of_openapi(node: Any) -> Any:
    """Converts a schema of OpenAPI's dialect to JSON Schema.

    Types are written in lower case, and `nullable` becomes a type.
    """
    if isinstance(node, list):
        return [schema_of_openapi(child) for child in node]
    if not isinstance(node, dict):
        return node
    node = camel_case(node)
    schema: JsonObject = {}
    for key, value in node.items():
        if key in {"items", "anyOf"}:
            schema[key] = schema_of_openapi(value)
        elif key == "properties" and isinstance(value, dict):
            schema[key] = {name: schema_of_openapi(child) for name, child in value.items()}
        elif key != "nullable":
            schema[key] = value
    kind = node.get("type")
    if isinstance(kind, str):
        schema["type"] = kind.lower()
    elif isinstance(kind, int):
        schema["type"] = TYPE_NUMBERS[kind]
    if "type" in schema and isinstance(kind, (str, int)) and node.get("nullable") is True:
        schema["type"] = [schema["type"], "null"]
    return schema
