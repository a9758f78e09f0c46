"""Requests of Gemini generateContent: models of the `google.genai` SDK in the form of REST.

Sources: SDK is the docstrings of `google.genai.types`, DOCS ai.google.dev/api, WIRE
docs/wires/gemini.md.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import pytest

from lab.fidelity.compare import Body, Equivalent, WireTable, drop_nulls, objects_in
from lab.fidelity.sdk_types import BASE64, TypeReader
from lab.fidelity.shapes import Array, Field, Map, Scalar, Struct
from streamlib import Prompt, Request, build

VALUES: Final = {
    "mimeType": ("image/png",),
    "fileUri": ("https://example.com/a.png",),
    "data": BASE64,
    "thoughtSignature": BASE64,
    "role": ("user", "model"),
    "topK": (40,),
}
LEFT_OUT: Final = frozenset[str]()


@cache
def request_type() -> Struct:
    """The body of REST, which the SDK assembles from its configuration."""
    types = pytest.importorskip("google.genai.types")
    reader = TypeReader(VALUES, LEFT_OUT, has_models=True)
    fields = {
        "systemInstruction": reader.struct(types.Content),
        "tools": Array(reader.struct(types.Tool)),
        "toolConfig": reader.struct(types.ToolConfig),
        "generationConfig": reader.struct(types.GenerationConfig),
        "safetySettings": Array(reader.struct(types.SafetySetting)),
        "modelArmorConfig": reader.struct(types.ModelArmorConfig),
        "cachedContent": Scalar(("cachedContents/a",)),
        "labels": Map(Scalar(("text",))),
        "serviceTier": Scalar(("flex",)),
        "store": Scalar((True, False)),
    }
    body = {name: Field(shape, is_required=False) for name, shape in fields.items()}
    body["contents"] = Field(Array(reader.struct(types.Content)), is_required=True)
    return Struct("GenerateContentRequest", lambda: body)


def build_again(prompt: Prompt) -> Request:
    """A request to a server that takes everything."""
    return build(prompt, f"custom:{prompt.model}", wire_api="gemini", base_url="http://127.0.0.1")


# --- completing a drawn body ---

DATA: Final[dict[str, Body]] = {
    "text": {},
    "inlineData": {"mimeType": "image/png", "data": BASE64[0]},
    "fileData": {"mimeType": "image/png", "fileUri": "https://example.com/a.png"},
    "functionCall": {"name": "text", "args": {}},
    "functionResponse": {"name": "text", "response": {"output": "text"}},
    "executableCode": {"code": "text", "language": "PYTHON"},
    "codeExecutionResult": {"outcome": "OUTCOME_OK"},
    "toolCall": {"toolType": "URL_CONTEXT"},
    "toolResponse": {"toolType": "URL_CONTEXT", "response": {}},
}
"""Fields of a part of which exactly one is set, with what each must have."""

FROM_MODEL: Final = ("functionCall", "executableCode", "codeExecutionResult", "toolCall")


def complete(body: Body) -> None:
    """Gives each part its data, each turn its role, and calls and results each other."""
    if "functionCallingConfig" in body.get("toolConfig", {}):
        body["tools"] = [*body.get("tools", ()), {"functionDeclarations": [{"name": "text"}]}]
    if "tools" in body:
        body["tools"] = [tool for tool in body["tools"] if tool] or [{"googleSearch": {}}]
    for number, tool in enumerate(body.get("tools", ())):
        for index, declaration in enumerate(tool.get("functionDeclarations", ())):
            declaration.setdefault("name", f"f{number}_{index}")
    for part in body.get("systemInstruction", {}).get("parts", ()):
        _keep_alone(part, ("text",))
        part["text"] = "text"
    turns: list[Body] = [{"role": "user", "parts": [{"text": "hi"}]}]
    for number, turn in enumerate(body["contents"]):
        for index, part in enumerate(turn.get("parts", ())):
            for key in ("functionCall", "functionResponse"):
                # an id names one call
                if "id" in part.get(key, {}):
                    part[key]["id"] = f"id{number}_{index}"
        turns += _completed_turn(turn)
    body["contents"] = turns


def _keep_alone(part: Body, kinds: tuple[str, ...]) -> str:
    """Removes all data but the first of these; returns its field."""
    kept = next((kind for kind in DATA if kind in part and kind in kinds), "text")
    for kind in DATA:
        if kind != kept:
            part.pop(kind, None)
    return kept


def _completed_turn(turn: Body) -> list[Body]:
    """One turn has the parts of one role, and results alone."""
    parts = turn.setdefault("parts", [])
    if not parts:
        parts.append({"text": "text"})
    kinds = [_complete_part(part) for part in parts]
    if "functionResponse" in kinds:
        turn["role"] = "user"
        results = [part for part in parts if "functionResponse" in part]
        turn["parts"] = results
        calls: list[Body] = []
        for part in results:
            response = part["functionResponse"]
            call = {key: response[key] for key in ("id", "name") if key in response}
            calls.append({"functionCall": {**call, "args": {}}})
        return [{"role": "model", "parts": calls}, turn]
    is_from_model = any(kind in (*FROM_MODEL, "toolResponse") for kind in kinds)
    if is_from_model or any(part.get("thought") for part in parts):
        turn["role"] = "model"
    results = []
    for part in parts:
        if "functionCall" in part:
            call = part["functionCall"]
            named = {key: call[key] for key in ("id", "name") if key in call}
            results.append({"functionResponse": {**named, "response": {"output": "text"}}})
    if results:
        return [turn, {"role": "user", "parts": results}]
    return [turn]


def _complete_part(part: Body) -> str:
    kind = _keep_alone(part, tuple(DATA))
    if kind == "text":
        part["text"] = "text"
    else:
        part[kind] = {**DATA[kind], **part[kind]}
    if kind == "functionCall":
        # only in streams
        for name in ("partialArgs", "willContinue"):
            part[kind].pop(name, None)
    for fragment in part.get("functionResponse", {}).get("parts", ()):
        field = "inlineData" if "fileData" not in fragment else "fileData"
        fragment.pop("inlineData" if field == "fileData" else "fileData", None)
        fragment[field] = {**DATA[field], **fragment.get(field, {})}
    return kind


# --- equivalent forms ---


def join_turns(body: Body) -> None:
    """Adjacent turns of one role as one turn, adjacent texts of the model as one text."""
    turns: list[Body] = []
    for turn in body["contents"]:
        turn.setdefault("role", "user")
        are_results = ["functionResponse" in part for part in turn["parts"]]
        is_next = bool(turns) and turns[-1]["role"] == turn["role"]
        if is_next and are_results[0] == ("functionResponse" in turns[-1]["parts"][0]):
            turns[-1] = {**turn, **turns[-1], "parts": turns[-1]["parts"] + turn["parts"]}
        else:
            turns.append(turn)
    for turn in turns:
        if turn["role"] == "model":
            turn["parts"] = _joined(turn["parts"])
    body["contents"] = turns


def _joined(parts: list[Body]) -> list[Body]:
    joined: list[Body] = []
    for part in parts:
        is_text = part.keys() == {"text"} or part.keys() == {"text", "thought"}
        if is_text and joined and joined[-1].keys() == part.keys():
            joined[-1]["text"] += part["text"]
        else:
            joined.append(part)
    return joined


def flatten_tools(body: Body) -> None:
    """One field for each tool; all functions in the first tool that has some."""
    if "tools" not in body:
        return
    tools: list[Body] = []
    functions: list[Body] = []
    for tool in body["tools"]:
        for key, value in tool.items():
            if key != "functionDeclarations":
                tools.append({key: value})
                continue
            if not functions:
                tools.append({key: functions})
            functions += value
    body["tools"] = tools
    _drop(body, "tools", [])


RESULT: Final[Body] = {"name": "text", "response": {"output": "done"}}
PROTO_DEFAULTS: Final[Body] = {
    "id": "",
    "displayName": "",
    "description": "",
    "parts": [],
    "functionDeclarations": [],
    "properties": {},
    "additionalProperties": {},
    "response": {},
}
"""Fields of messages that proto3 sends with their default, or not at all."""


def drop_proto_defaults(body: Body) -> None:
    """Drops fields with the default of proto3."""
    for value in objects_in(body):
        for key, default in PROTO_DEFAULTS.items():
            _drop(value, key, default)
        if value.get("response") == {"output": ""}:
            # what is sent where nothing was said: the field is required
            del value["response"]
    for turn in body["contents"]:
        turn.setdefault("parts", [])


def drop_defaults(body: Body) -> None:
    """Fields with the value that they have when they are absent, and empty objects."""
    config = body.get("generationConfig", {})
    _drop(config, "responseLogprobs", False)
    _drop(config, "stopSequences", [])
    _drop(body.get("toolConfig", {}).get("functionCallingConfig", {}), "allowedFunctionNames", [])
    _drop(config.get("thinkingConfig", {}), "includeThoughts", False)
    _drop(config, "thinkingConfig", {})
    _drop(body.get("toolConfig", {}), "functionCallingConfig", {})
    for key in ("generationConfig", "toolConfig", "systemInstruction", "labels"):
        _drop(body, key, {})
    for tool in body.get("tools", ()):
        for declaration in tool.get("functionDeclarations", ()):
            _drop_no_parameters(declaration)
    for turn in body["contents"]:
        for part in turn["parts"]:
            _drop(part, "thought", False)


def _drop(values: Body, key: str, default: Any) -> None:
    if values.get(key) == default and key in values:
        del values[key]


def _drop_no_parameters(declaration: Body) -> None:
    for key in ("parameters", "parametersJsonSchema"):
        schema = declaration.get(key, {"anyOf": []})
        if schema.keys() <= NO_PARAMETERS:
            del declaration[key]


NO_PARAMETERS: Final = frozenset({"type", "required", "title", "nullable"})
"""Keywords that may stand in the schema of a function without parameters."""

EQUIVALENTS: Final = (
    Equivalent("null / absent", "SDK: every such field is Optional", drop_nulls),
    Equivalent(
        "an empty text, list or map / absent",
        "protobuf.dev, ProtoJSON: a field with the default of its type, also of a list or map, is "
        "the same as an absent one",
        drop_proto_defaults,
    ),
    Equivalent(
        "empty settings and lists, responseLogprobs, includeThoughts, thought: false, a schema "
        "without properties / absent",
        "SDK: every field of settings is Optional, the switches are off by default; "
        "FunctionDeclaration.parameters can be left unset (WIRE G13)",
        drop_defaults,
    ),
    Equivalent(
        "adjacent turns of one role / one turn; adjacent texts of the model / one text; no role",
        "WIRE G1; SDK, GenerateContentResponse.text: the concatenation of all text parts; "
        "Content.role: may be left unset",
        join_turns,
    ),
    Equivalent(
        "a tool with several fields / several tools",
        "SDK, GenerateContentConfig.tools: each field of a Tool is a tool of its own",
        flatten_tools,
    ),
)
ADDED: Final = {
    "/toolConfig/includeServerSideToolInvocations": "WIRE G17",
    "/generationConfig/responseMimeType": "SDK, response_schema: needs application/json",
}
REPORTED: Final = {
    "contents": ("/input", "/tools"),
    "systemInstruction": ("/instructions", "/input"),
    "tools": ("/tools",),
    "toolConfig": ("/tool_choice", "/extra/toolConfig"),
    "generationConfig/thinkingConfig": ("/reasoning",),
    **{
        f"generationConfig/{name}": ("/output_schema",)
        for name in ("responseMimeType", "responseSchema", "responseJsonSchema")
    },
    **{
        f"generationConfig/{key}": (path,)
        for key, path in (
            ("temperature", "/temperature"),
            ("topP", "/top_p"),
            ("topK", "/top_k"),
            ("presencePenalty", "/presence_penalty"),
            ("frequencyPenalty", "/frequency_penalty"),
            ("seed", "/seed"),
        )
    },
    "generationConfig/stopSequences": ("/stop",),
    "generationConfig/candidateCount": ("/n",),
    "generationConfig/maxOutputTokens": ("/max_output_tokens",),
    "labels": ("/metadata",),
    "serviceTier": ("/service_tier",),
}
CHAINED: Final[list[Body]] = [
    {
        "cachedContent": "cachedContents/1",
        "contents": [{"role": "user", "parts": [{"functionResponse": {**ids, **RESULT}}]}],
    }
    for ids in ({}, {"id": "call_1"})
]
TABLE: Final = WireTable(
    wire_api="gemini",
    request=request_type,
    build=build_again,
    complete=complete,
    equivalents=EQUIVALENTS,
    added=ADDED,
    reported=REPORTED,
    turns="contents",
    path="/v1beta/models/any-model:generateContent",
    chained=CHAINED,
)
