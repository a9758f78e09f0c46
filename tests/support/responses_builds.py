"""Helpers for tests of Responses requests: items, and how a request is built and read."""

from __future__ import annotations

from typing import Any

import msgspec

from streamlib import (
    FunctionCall,
    Image,
    Message,
    Origin,
    Prompt,
    Reasoning,
    Request,
    ResponseItem,
    Text,
    ToolSpec,
    build,
    user,
)

HERE = Origin("responses")
MESSAGES = Origin("messages")
CALL = FunctionCall(
    "call_1", "f", '{"b": 1.0, "a": [1e5]}', id="fc_1", origin=HERE, response_id="r1"
)
REASONING = Reasoning(
    summary=["s"], encrypted_content="gAAA", id="rs_1", origin=HERE, response_id="r1"
)
MESSAGE = Message(
    "assistant", [Text("so")], "final_answer", id="msg_1", origin=HERE, response_id="r1"
)
TOOL = ToolSpec("f", "does f", {"type": "object", "properties": {"a": {"type": "string"}}})
PNG = Image(data="iVBORw0KGgo=", media_type="image/png")


def built(*items: ResponseItem, model: str = "custom:any", **settings: Any) -> Request:
    """A request of the items, or of "hi", to a server of ours unless a model is named."""
    target = (
        {"wire_api": "responses", "base_url": "http://x"}
        if model.startswith(("custom:", "azure:"))
        else {}
    )
    prompt = Prompt(input=items or (user("hi"),), **settings)
    return build(prompt, model, **target)  # type: ignore[arg-type]


def body(request: Request) -> dict[str, Any]:
    """The body as JSON."""
    return msgspec.json.decode(request.body)  # type: ignore[no-any-return]


def sent(*items: ResponseItem, **settings: Any) -> list[dict[str, Any]]:
    """The input of a request of these items."""
    return body(built(*items, **settings))["input"]  # type: ignore[no-any-return]


def changes(request: Request) -> list[tuple[str, str]]:
    """Action and path of each change in the report."""
    return [(change.action, change.path) for change in request.report]
