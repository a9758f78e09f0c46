"""Decodes a Gemini request's settings into those of a `Prompt`.

What `Prompt` has no field for goes into `extra`, in the same object as in the body.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamlib.request.hosted_forms import read_hosted
from streamlib.request.json_objects import camel_case
from streamlib.request.prompt import Prompt, ReasoningOptions
from streamlib.request.schemas import ANY_OBJECT
from streamlib_parsers.items import JsonObject, ToolOptions, ToolSpec

READ: Final = frozenset({"tools", "toolConfig", "generationConfig", "labels", "serviceTier"})
"""Fields of the body that are read here; the others go into `extra`."""

PLAIN: Final = {
    "temperature": "temperature",
    "topP": "top_p",
    "topK": "top_k",
    "maxOutputTokens": "max_output_tokens",
    "stopSequences": "stop",
    "seed": "seed",
    "candidateCount": "n",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
}
"""Field of generationConfig -> field of `Prompt` with the same meaning."""

LEVELS: Final = frozenset({"MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH"})
"""Values of `thinkingLevel` that are an effort of `ReasoningOptions`."""


def settings(body: JsonObject) -> Prompt:
    """Decodes everything but the conversation.

    Args:
        body: The request's fields without `contents`, `systemInstruction` and `model`.

    Returns:
        A prompt without input.
    """
    config = _known(body.get("generationConfig"))
    tool_config = _known(body.get("toolConfig"))
    values: JsonObject = {}
    for key, name in PLAIN.items():
        if key in config:
            values[name] = config.pop(key)
    # Each of these takes what it can express out of `config`; what remains goes into `extra`.
    values.update(_logprobs(config))
    values.update(_thinking(config))
    values.update(_schema(config))
    choice = _choice(tool_config)
    extra = {key: value for key, value in body.items() if key not in READ}
    if config:
        extra["generationConfig"] = config
    if tool_config:
        extra["toolConfig"] = tool_config
    tools: list[ToolSpec] = []
    for tool in listed(body.get("tools")):
        tools.extend(_tools(_known(tool)))
    return Prompt(
        tools=tools,
        tool_choice=choice,
        metadata=body.get("labels"),
        service_tier=body.get("serviceTier"),
        extra=extra or None,
        **values,
    )


def _known(values: Any) -> JsonObject:
    """An object with its names in camelCase, without nulls; an absent one is empty."""
    return {key: value for key, value in camel_case(values or {}).items() if value is not None}


def listed(value: Any) -> list[Any]:
    """A list. One object alone is read as its only element, as Google's servers do."""
    if isinstance(value, list):
        return value
    if value:
        return [value]
    return []


def _logprobs(config: JsonObject) -> JsonObject:
    if not config.pop("responseLogprobs", False):
        return {}
    return {"logprobs": config.pop("logprobs", 0)}


def _thinking(config: JsonObject) -> JsonObject:
    """`thinkingConfig`. A budget of -1 leaves the decision to the model and stays in `config`."""
    thinking = _known(config.pop("thinkingConfig", None))
    if not thinking or thinking == {"includeThoughts": False}:
        return {}
    budget = thinking.get("thinkingBudget")
    level = str(thinking.get("thinkingLevel") or "").upper()
    if budget == 0:
        return {"reasoning": "off"}
    if budget == -1 or (level and level not in LEVELS):
        thinking_rest = dict(thinking)
        thinking_rest.pop("includeThoughts", None)
        config["thinkingConfig"] = thinking_rest
        budget, level = None, ""
    display = None
    if not thinking.get("includeThoughts"):
        display = "omitted"
    effort: Any = level.lower() or None  # one of LEVELS
    return {"reasoning": ReasoningOptions(effort, budget, display=display)}


def _schema(config: JsonObject) -> JsonObject:
    """The output schema in either form. `Prompt` has no other formats: they stay in `config`."""
    media_type = config.get("responseMimeType", "application/json")
    has_schema = "responseJsonSchema" in config or "responseSchema" in config
    if media_type == "application/json" and has_schema:
        config.pop("responseMimeType", None)
        if "responseJsonSchema" in config:
            return {"output_schema": config.pop("responseJsonSchema")}
        # The schema itself stays in `extra`: the builder sends it as long as it means the same.
        return {"output_schema": json_schema(config["responseSchema"])}
    if config.get("responseMimeType") == "application/json":
        del config["responseMimeType"]
        return {"output_schema": ANY_OBJECT}
    if media_type == "text/plain":
        # The default value adds nothing.
        del config["responseMimeType"]
    return {}


# --- tools ---


def _tools(tool: JsonObject) -> Iterator[ToolSpec]:
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
            yield _function(_known(function))


def _function(declaration: JsonObject) -> ToolSpec:
    """One function. A schema of OpenAPI's dialect is kept beside the JSON Schema it means."""
    rest = dict(declaration)
    name, description = rest.pop("name"), rest.pop("description", None)
    schema = rest.pop("parametersJsonSchema", None)
    if not schema:
        schema = json_schema(rest.get("parameters"))
    options: JsonObject = {}
    if "responseJsonSchema" in rest:
        options["output_schema"] = rest.pop("responseJsonSchema")
    if rest:
        options |= {"native": rest, "native_wire": "gemini"}
    return ToolSpec(name, description, schema, options=ToolOptions(**options) if options else None)


CHOICES: Final = {"AUTO": "auto", "ANY": "required", "NONE": "none"}
"""`functionCallingConfig.mode` -> `Prompt.tool_choice`."""


def _choice(tool_config: JsonObject) -> str | None:
    """The tool choice.

    `Prompt` cannot express several names or `VALIDATED`: these stay in `tool_config`, and the
    mode's nearest choice is returned.
    """
    config = _known(tool_config.pop("functionCallingConfig", None))
    mode = str(config.pop("mode", "") or "").upper()
    names = config.pop("allowedFunctionNames", None) or []
    is_one_function = mode == "ANY" and len(names) == 1
    is_expressible = mode in CHOICES and (not names or is_one_function)
    if not is_expressible:
        if mode:
            config["mode"] = mode
        if names:
            config["allowedFunctionNames"] = names
    if config:
        tool_config["functionCallingConfig"] = config
    if is_expressible and names:
        return str(names[0])
    return CHOICES.get(mode)


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


def json_schema(node: Any) -> Any:
    """Converts a schema of OpenAPI's dialect to JSON Schema.

    Types are written in lower case, and `nullable` becomes a type.
    """
    if isinstance(node, list):
        return [json_schema(child) for child in node]
    if not isinstance(node, dict):
        return node
    node = camel_case(node)
    schema: JsonObject = {}
    for key, value in node.items():
        if key in {"items", "anyOf"}:
            schema[key] = json_schema(value)
        elif key == "properties" and isinstance(value, dict):
            schema[key] = {name: json_schema(child) for name, child in value.items()}
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
