"""Helpers for tests of Gemini requests: items, and how a request is built and read."""

from __future__ import annotations

from typing import Any

import msgspec

from streamlib import (
    FunctionCall,
    Image,
    Origin,
    Prompt,
    Request,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    ToolSpec,
    build,
    user,
)

HERE = Origin("gemini")
ELSEWHERE = Origin("messages", "anthropic")
CALL = FunctionCall(
    "fc1", "f", '{"b": 1.0, "a": [1e5]}', id="fc1", signature="CiQB", origin=HERE, response_id="r1"
)
BARE = FunctionCall("call_0", "f", "{}", origin=HERE, response_id="r1")
TOOL = ToolSpec("f", "does f", {"type": "object", "properties": {"a": {"type": "string"}}})
SEARCH = ToolSpec("google_search", native={"googleSearch": {}})
PNG = Image(data="iVBORw0KGgo=", media_type="image/png")
NEW, OLD, PRO = "google:gemini-3.5-flash", "google:gemini-2.5-flash", "google:gemini-2.5-pro"


def built(*items: ResponseItem, model: str = "custom:any", **settings: Any) -> Request:
    """A request of the items, or of "hi", to a server of ours unless a model is named."""
    target = {"wire_api": "gemini", "base_url": "http://x"} if model.startswith("custom:") else {}
    prompt = Prompt(input=items or (user("hi"),), **settings)
    return build(prompt, model, **target)  # type: ignore[arg-type]


def body(request: Request) -> dict[str, Any]:
    """The body as JSON."""
    return msgspec.json.decode(request.body)  # type: ignore[no-any-return]


def turns(request: Request) -> list[tuple[str, list[str]]]:
    """Role and the first key of each part."""
    return [
        (turn["role"], [next(iter(part)) for part in turn["parts"]])
        for turn in body(request)["contents"]
    ]


def parts(request: Request, turn: int) -> list[dict[str, Any]]:
    """The parts of one turn."""
    return body(request)["contents"][turn]["parts"]  # type: ignore[no-any-return]


def reasons(request: Request) -> list[str]:
    """The reasons in the report."""
    return [change.reason for change in request.report]


def paths(request: Request) -> set[str]:
    """The paths in the report."""
    return {change.path for change in request.report}


SERVER = [
    ServerToolCall(
        "c",
        "code_execution",
        '{"language":"PYTHON","code":"1"}',
        id="c",
        signature="c2ln",
        native={"type": "executableCode"},
        origin=HERE,
    ),
    ServerToolResult(
        "c",
        "code_execution",
        {"outcome": "OUTCOME_OK"},
        native={"type": "codeExecutionResult"},
        origin=HERE,
    ),
    ServerToolCall(
        "t",
        "FILE_SEARCH",
        '{"q": 1.0}',
        id="t",
        signature="c2lo",
        native={"type": "toolCall"},
        origin=HERE,
    ),
    ServerToolResult(
        "t",
        "FILE_SEARCH",
        {"result": []},
        id="t",
        native={"type": "toolResponse"},
        signature="c2lp",
        origin=HERE,
    ),
]
