"""Helpers for tests of Converse requests: items, models, and how a request is built and read."""

from __future__ import annotations

from typing import Any

from streamlib import (
    Document,
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
from tests.support.bedrock_readers import validated

HERE = Origin("converse")
RUNTIME = "https://bedrock-runtime.eu-west-1.amazonaws.com"
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NEWEST = "us.anthropic.claude-opus-5"
NOVA = "amazon.nova-lite-v1:0"
NOVA_2 = "us.amazon.nova-2-lite-v1:0"
LLAMA = "us.meta.llama3-3-70b-instruct-v1:0"
KIMI = "moonshot.kimi-k2-thinking"
CALL = FunctionCall("tooluse_1", "f", '{"b": 1.0, "a": [1e5]}', origin=HERE)
SIGNED = Reasoning("hm", signature="EqQB", origin=HERE)
REDACTED = Reasoning(redacted=True, encrypted_content="RXU4RUNr", origin=HERE)
REPLY = Message("assistant", [Text("so")], origin=HERE)
TOOL = ToolSpec("f", "does f", {"type": "object", "properties": {"a": {"type": "string"}}})
PNG = Image(data="iVBORw0KGgo=", media_type="image/png")
PDF = Document(data="JVBERi0=", name="report", media_type="application/pdf")


def built(
    *items: ResponseItem, model: str = CLAUDE, models: Any = None, **settings: Any
) -> Request:
    """A request of the items, or of "hi", to Bedrock."""
    return build(
        Prompt(input=items or (user("hi"),), **settings), f"bedrock:{model}", models=models
    )


def body(request: Request) -> dict[str, Any]:
    """The body, which botocore validated."""
    return validated(request)


def turns(request: Request) -> list[tuple[str, list[str]]]:
    """Each turn: its role and the members of its blocks."""
    return [
        (turn["role"], [next(iter(block)) for block in turn["content"]])
        for turn in body(request)["messages"]
    ]


def fields(request: Request) -> dict[str, Any]:
    """The fields that Converse passes on to the model."""
    return body(request).get("additionalModelRequestFields", {})


def reasons(request: Request) -> list[str]:
    """The reasons in the report."""
    return [change.reason for change in request.report]
