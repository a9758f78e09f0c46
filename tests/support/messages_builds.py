"""Helpers for tests of Messages requests: items, and how a request is built and read."""

from __future__ import annotations

from typing import Any

import msgspec

from streamlib import (
    FunctionCall,
    Image,
    Origin,
    Prompt,
    Reasoning,
    Request,
    ResponseItem,
    ToolSpec,
    build,
    user,
)

HERE = Origin("messages")
CALL = FunctionCall("toolu_1", "f", '{"b": 1.0, "a": [1e5]}', origin=HERE, response_id="r1")
SIGNED = Reasoning("hm", signature="EqQB", origin=HERE, response_id="r1")
TOOL = ToolSpec("f", "does f", {"type": "object", "properties": {"a": {"type": "string"}}})
PNG = Image(data="iVBORw0KGgo=", media_type="image/jpeg")


def built(*items: ResponseItem, model: str = "custom:any", **settings: Any) -> Request:
    """A request of the items, or of "hi", to a server of ours unless a model is named."""
    prompt = Prompt(input=items or (user("hi"),), **settings)
    if model.startswith("custom:"):
        return build(prompt, model, wire_api="messages", base_url="http://x")
    return build(prompt, model)


def body(request: Request) -> dict[str, Any]:
    """The body."""
    return msgspec.json.decode(request.body)  # type: ignore[no-any-return]


def turns(request: Request) -> list[tuple[str, list[str]]]:
    """Each turn: its role and the types of its blocks."""
    return [
        (turn["role"], [block["type"] for block in turn["content"]])
        for turn in body(request)["messages"]
    ]


def reasons(request: Request) -> list[str]:
    """The reasons in the report."""
    return [change.reason for change in request.report]
