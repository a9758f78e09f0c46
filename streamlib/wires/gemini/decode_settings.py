"""A Gemini request beside its contents as the settings of a `Prompt`. What has no place there goes into `extra`, where it stood."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamlib.request.json_objects import camel_case
from streamlib.request.prompt import Prompt, ReasoningOptions
from streamlib_parsers.items import JsonObject, ToolSpec

READ: Final = frozenset({"tools", "toolConfig", "generationConfig", "labels", "serviceTier"})
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
"""Members of generationConfig with a place in `Prompt`."""
LEVELS: Final = frozenset({"MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH"})


def settings(asked: JsonObject) -> Prompt:
    """A prompt without its input. asked: the body's other fields."""
    config = _known(asked.get("generationConfig"))
    calling = _known(asked.get("toolConfig"))
    values: JsonObject = {PLAIN[key]: config.pop(key) for key in PLAIN.keys() & config.keys()}
    extra = {key: value for key, value in asked.items() if key not in READ}
    values |= _logprobs(config) | _thinking(config) | _schema(config)
    choice = _choice(calling)
    extra |= {
        key: left for key, left in (("generationConfig", config), ("toolConfig", calling)) if left
    }
    return Prompt(
        tools=[tool for one in listed(asked.get("tools")) for tool in _tools(_known(one))],
        tool_choice=choice,
        metadata=asked.get("labels"),
        service_tier=asked.get("serviceTier"),
        extra=extra or None,
        **values,
    )


def _known(values: Any) -> JsonObject:
    """An object with its names in camelCase, without nulls; an absent one is empty."""
    return {key: value for key, value in camel_case(values or {}).items() if value is not None}


def listed(value: Any) -> list[Any]:
    """A list; one object that stands where a list should is its only element, as Google's servers read it."""
    return value if isinstance(value, list) else [value] if value else []


def _logprobs(config: JsonObject) -> JsonObject:
    asked = config.pop("responseLogprobs", False)
    alternatives = config.pop("logprobs", 0)
    return {"logprobs": alternatives} if asked else {}


def _thinking(config: JsonObject) -> JsonObject:
    """A budget of -1 is what the model does by itself; it stays where it stood."""
    thinking = _known(config.pop("thinkingConfig", None))
    if not thinking or thinking == {"includeThoughts": False}:
        return {}
    budget, word = thinking.get("thinkingBudget"), str(thinking.get("thinkingLevel") or "").upper()
    if budget == 0:
        return {"reasoning": "off"}
    if budget == -1 or (word and word not in LEVELS):
        config["thinkingConfig"] = {
            key: value for key, value in thinking.items() if key != "includeThoughts"
        }
        budget, word = None, ""
    display = None if thinking.get("includeThoughts") else "omitted"
    return {"reasoning": ReasoningOptions(word.lower() or None, budget, display=display)}  # type: ignore[arg-type]  # one of LEVELS


def _schema(config: JsonObject) -> JsonObject:
    """A schema in either form. JSON without one, and the other types of answers, have no place in a prompt."""
    kind = config.get("responseMimeType", "application/json")
    if kind == "application/json" and {"responseJsonSchema", "responseSchema"} & config.keys():
        config.pop("responseMimeType", None)
        older = config.pop("responseSchema", None)
        return {"output_schema": config.pop("responseJsonSchema", None) or json_schema(older)}
    if kind == "text/plain":
        del config["responseMimeType"]
    return {}


# --- tools ---


def _tools(tool: JsonObject) -> Iterator[ToolSpec]:
    """Functions one by one; each hosted tool by itself, under the name of its member."""
    for key, value in tool.items():
        if key != "functionDeclarations":
            yield ToolSpec(key, native={key: value})
            continue
        for one in listed(value):
            declaration = _known(one)
            schema = declaration.get("parametersJsonSchema") or json_schema(
                declaration.get("parameters")
            )
            yield ToolSpec(declaration["name"], declaration.get("description"), schema)


WORDS: Final = {"AUTO": "auto", "ANY": "required", "NONE": "none"}


def _choice(calling: JsonObject) -> str | None:
    """The choice; what it cannot say (several names, `VALIDATED`) stays in toolConfig beside it."""
    config = _known(calling.pop("functionCallingConfig", None))
    mode, names = (
        str(config.pop("mode", "") or "").upper(),
        config.pop("allowedFunctionNames", None) or [],
    )
    sayable = mode in WORDS and (not names or (mode == "ANY" and len(names) == 1))
    if not sayable:
        config |= ({"mode": mode} if mode else {}) | (
            {"allowedFunctionNames": names} if names else {}
        )
    if config:
        calling["functionCallingConfig"] = config
    return names[0] if sayable and names else WORDS.get(mode)


TYPES: Final = {
    1: "string",
    2: "number",
    3: "integer",
    4: "boolean",
    5: "array",
    6: "object",
    7: "null",
}
"""Types by their number, which clients of protobuf send."""


def json_schema(node: Any) -> Any:
    """A schema in OpenAPI's dialect as plain JSON schema: types in small letters, `nullable` as a type."""
    if isinstance(node, list):
        return [json_schema(child) for child in node]
    if not isinstance(node, dict):
        return node
    node = camel_case(node)
    schema = {
        key: json_schema(value) if key in {"items", "anyOf"} else value
        for key, value in node.items()
        if key != "nullable"
    }
    kind = node.get("type")
    if isinstance(kind, (str, int)):
        kind = kind.lower() if isinstance(kind, str) else TYPES[kind]
        schema["type"] = [kind, "null"] if node.get("nullable") is True else kind
    if isinstance(node.get("properties"), dict):
        schema["properties"] = {
            name: json_schema(child) for name, child in node["properties"].items()
        }
    return schema
