"""Helpers for tests of Chat requests: items, and how a request is built and read."""

from __future__ import annotations

from typing import Any

import msgspec

from streamlib import (
    FunctionCall,
    Image,
    Message,
    Origin,
    Prompt,
    Provider,
    Reasoning,
    Request,
    ResponseItem,
    Text,
    ToolSpec,
    build,
    user,
)
from streamlib.providers.models import Traits
from streamlib.providers.shapes import (
    ANYTHING,
    ChatShape,
)

HERE = Origin("chat")
REASONING = Reasoning("hm", origin=HERE, response_id="r1")
TEXT = Message("assistant", [Text("so")], origin=HERE, response_id="r1")
CALL = FunctionCall("call_1", "f", '{"b": 1.0, "a": [1e5]}', origin=HERE, response_id="r1")
OTHER = FunctionCall("call_2", "g", "{}", origin=HERE, response_id="r1")
TOOL = ToolSpec("f", "does f", {"type": "object", "properties": {"a": {"type": "string"}}})
PNG = Image(data="iVBORw0KGgo=", media_type="image/png")
PNG_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def built(
    *items: ResponseItem,
    shape: ChatShape = ANYTHING,
    model: str = "m",
    traits: Traits | None = None,
    **settings: Any,
) -> Request:
    """A request of the items, or of "hi", to a provider of this shape."""
    provider = Provider("there", base_url="http://x", chat=shape)
    return build(
        Prompt(input=items or (user("hi"),), **settings),
        model,
        provider=provider,
        models={model: traits} if traits else None,
    )


def body(request: Request) -> dict[str, Any]:
    """The body as JSON."""
    return msgspec.json.decode(request.body)  # type: ignore[no-any-return]


def sent(*items: ResponseItem, **settings: Any) -> list[dict[str, Any]]:
    """The messages of a request of these items."""
    return body(built(*items, **settings))["messages"]  # type: ignore[no-any-return]


def changes(request: Request) -> list[tuple[str, str]]:
    """Action and path of each change in the report."""
    return [(change.action, change.path) for change in request.report]


OPENROUTER = ChatShape(reasoning_echo=("reasoning_details", "reasoning"))
