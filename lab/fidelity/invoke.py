"""Requests of Bedrock InvokeModel for Claude: the types of Messages, with Bedrock's own two keys.

The other families have bodies of Converse (Nova) and of Chat, which their own tables cover.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

import pytest

from lab.fidelity import messages
from lab.fidelity.compare import Body, WireTable, objects_in
from lab.fidelity.sdk_types import BASE64, TypeReader
from lab.fidelity.shapes import Struct
from streamlib import Prompt, Request, Traits, build

MODEL: Final = "us.anthropic.claude-any"
"""A Claude without known limits."""
LEFT_OUT: Final = messages.LEFT_OUT | {
    # the path names the model, and whether a stream is wanted
    "MessageCreateParamsBase.model",
    # docs/wires/invoke.md: a header, and marks that Bedrock does not place by itself
    "MessageCreateParamsBase.service_tier",
    "MessageCreateParamsBase.cache_control",
}


@cache
def request_type() -> Struct:
    """The type of a Messages request, without what InvokeModel has elsewhere."""
    params = pytest.importorskip("anthropic.types.beta.message_create_params")
    return TypeReader(messages.VALUES, LEFT_OUT).struct(params.MessageCreateParamsBase)


def build_again(prompt: Prompt) -> Request:
    """A request to Bedrock, for a model that takes everything."""
    return build(
        prompt,
        f"bedrock:{MODEL}",
        wire_api="invoke",
        base_url="http://127.0.0.1",
        models={MODEL: Traits()},
    )


def complete(body: Body) -> None:
    """As for Messages, with the version that Bedrock requires, and what it takes of the rest."""
    messages.complete(body)
    if body["messages"][0]["role"] != "user":
        # Bedrock wants the user's turn first (A3)
        body["messages"].insert(0, {"role": "user", "content": "hi"})
    for value in objects_in(body["messages"]):
        source = value.get("source")
        if isinstance(source, dict) and source.get("type") in ("url", "file"):
            # A21: bytes only
            media_type = "application/pdf" if value["type"] == "document" else "image/png"
            value["source"] = {"type": "base64", "media_type": media_type, "data": BASE64[0]}
    # of several tools the first: those that Bedrock lacks are left out, and the others move up
    if "tools" in body:
        del body["tools"][1:]
    body["anthropic_version"] = "bedrock-2023-05-31"


TABLE: Final[WireTable] = replace(
    messages.TABLE,
    wire_api="invoke",
    request=request_type,
    build=build_again,
    complete=complete,
    added={r"/anthropic_beta/\d+": "derived from fields of the body that need a beta"},
    chained=(),
    path=f"/model/{MODEL}/invoke-with-response-stream",
)
