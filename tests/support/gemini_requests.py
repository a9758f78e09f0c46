"""How the tests decode a Gemini request and build it again."""

from __future__ import annotations

import json
import re
from typing import Any

from streamlib import (
    Prompt,
    build,
    parse_request,
)

PATH = "/v1beta/models/gemini-3.5-flash:streamGenerateContent?alt=sse"


def decoded(request: Any, path: str = PATH) -> Prompt:
    """The prompt of a request."""
    return parse_request("gemini", json.dumps(request).encode(), path=path)


def rebuilt(prompt: Prompt) -> dict[str, Any]:
    """The body that is built of a prompt."""
    return json.loads(
        build(prompt, "any", provider="custom", wire_api="gemini", base_url="http://x").body
    )  # type: ignore[no-any-return]


def camel(value: Any) -> Any:
    """As the API reads it: names in camelCase; null and false are as good as absent."""
    if not isinstance(value, dict):
        return value
    named = {
        re.sub(r"_([a-z])", lambda letter: letter[1].upper(), key): inner
        for key, inner in value.items()
    }
    return {key: inner for key, inner in named.items() if inner is not None and inner is not False}


INNER = (
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "toolCall",
    "toolResponse",
    "executableCode",
)


def part(raw: Any) -> Any:
    """A part as the API reads it, the objects in it too."""
    named = camel(raw)
    named |= {key: camel(named[key]) for key in INNER if key in named}
    if named.get("functionResponse", {}).get("parts") is not None:
        named["functionResponse"]["parts"] = [
            part(inner) for inner in named["functionResponse"]["parts"]
        ]
        named["functionResponse"] = {
            key: value for key, value in named["functionResponse"].items() if value != []
        }
    return named


def turns(request: Any) -> list[Any]:
    """Runs of one role, results apart; adjacent texts of the model are joined."""
    runs: list[Any] = []
    for content in request["contents"]:
        for converted in map(part, content["parts"]):
            role = "model" if content.get("role") == "model" else "user"
            if "functionResponse" in converted:
                role = "results"
            if not runs or runs[-1][0] != role:
                runs.append((role, [converted]))
            elif role == "model" and set(converted) == {"text"} == set(runs[-1][1][-1]):
                runs[-1][1][-1]["text"] += converted["text"]
            else:
                runs[-1][1].append(converted)
    return runs
