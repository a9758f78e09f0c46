"""Recorded Gemini requests are decoded and rebuilt turn for turn."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.gemini_requests import camel, decoded, rebuilt, turns
from tests.support.shared import BODIES, PAYLOADS, STREAMS, Recording, each_recording


def schema(node: Any) -> Any:
    """A schema in either dialect, without empty values, with types in lower case."""
    if isinstance(node, list):
        return [schema(child) for child in node]
    if not isinstance(node, dict):
        return node
    types = {"type": node["type"].lower()} if isinstance(node.get("type"), str) else {}
    return {
        key: schema(value) for key, value in (node | types).items() if value not in (None, [], {})
    }


def functions(request: Any) -> list[Any]:
    """Name, description and arguments of each function that is offered."""
    tools = request.get("tools") or []
    groups = [
        camel(tool).get("functionDeclarations") or []
        for tool in (tools if isinstance(tools, list) else [tools])
    ]
    offered = [
        camel(declaration)
        for group in groups
        for declaration in (group if isinstance(group, list) else [group])
    ]
    return [
        (declaration["name"], declaration.get("description") or None, _arguments(declaration))
        for declaration in offered
    ]


def _arguments(declaration: Any) -> Any:
    parameters = schema(
        declaration.get("parametersJsonSchema") or declaration.get("parameters") or {}
    )
    return parameters.get("properties"), parameters.get("required")


NUMBERS = {1: "string", 2: "number", 3: "integer", 4: "boolean", 5: "array", 6: "object"}


def spelled_out(request: dict[str, Any]) -> Any:
    """The request with types by name: protobuf clients send their numbers."""
    return json.loads(
        re.sub(
            r'"type": (\d)',
            lambda number: f'"type": "{NUMBERS[int(number[1])]}"',
            json.dumps(request),
        )
    )


@each_recording("gemini-generatecontent", [*STREAMS, *BODIES, *PAYLOADS])
def test_recorded_request_is_rebuilt_turn_for_turn(recording: Recording) -> None:
    request = recording.meta.get("request_json")
    if not isinstance(request, dict) or not request.get("contents"):
        return
    prompt = decoded(request)
    again = rebuilt(prompt)
    assert turns(again) == turns(request)
    assert functions(spelled_out(again)) == functions(spelled_out(request))
    settings = camel(request.get("generationConfig") or {})
    sent = again.get("generationConfig", {})
    for key in settings.keys() - {"thinkingConfig", "responseSchema"}:
        assert sent[key] == settings[key]
