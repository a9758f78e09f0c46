"""A Bedrock InvokeModel request as a `Prompt`: the inverse of `build.py`.

The path names the model, and whether a stream is wanted. The body is one of Messages, Converse or
Chat Completions: by the family of the model, or by the body's own keys where the name shows none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw

from streamlib.request.json_objects import merged, nested
from streamlib.request.prompt import Prompt
from streamlib.wires.bedrock import ANY, family
from streamlib.wires.chat import decode as chat
from streamlib.wires.claude_betas import take_betas
from streamlib.wires.converse import decode as converse
from streamlib.wires.converse.settings import MODEL_FIELDS
from streamlib.wires.invoke.build import TIER_HEADER
from streamlib.wires.messages import decode as messages
from streamlib.wires.routes import route
from streamlib.wires.settings import take
from streamlib_parsers.items import JsonObject, Origin, ResponseItem, WireApi, with_origin

ORIGIN: Final = Origin("invoke")
CHAT_KEYS: Final = frozenset(
    {"frequency_penalty", "logprobs", "max_completion_tokens", "n", "presence_penalty"}
    | {"reasoning_effort", "response_format", "seed", "stop"}
)
"""Keys of Chat Completions that Messages lacks."""
CHAT_ROLES: Final = ("system", "developer", "tool")
"""Roles of Chat Completions that Messages lacks."""
NOVA_PATHS: Final = {
    "inferenceConfig.max_new_tokens": "inferenceConfig.maxTokens",
    "inferenceConfig.topK": f"{MODEL_FIELDS}.inferenceConfig.topK",
    "reasoningConfig": f"{MODEL_FIELDS}.reasoningConfig",
}
"""Dotted path in Nova's own body -> the path in a Converse body."""


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """The prompt of a request."""
    raw = msgspec.json.decode(body, type=dict[str, Raw])
    model: str | None = None
    stream: bool | None = None
    matched = route(path)
    if matched is not None:
        model, stream = matched.model, matched.stream
    prompt = _decode_body(raw, model)
    tier_of_header: str | None = None
    for name, value in headers.items():
        if name.lower() == TIER_HEADER:
            tier_of_header = value
    return msgspec.structs.replace(
        prompt,
        input=[_with_own_origin(item) for item in prompt.items],
        service_tier=prompt.service_tier or tier_of_header,
        model=model or prompt.model,
        stream=stream,
    )


def _decode_body(raw: dict[str, Raw], model: str | None) -> Prompt:
    match _wire_of_body(raw, model):
        case "messages":
            return _claude(raw)
        case "converse":
            return _nova(raw)
        case "chat":
            return chat.decode(msgspec.json.encode(raw), {}, "")
        case _:
            raise ValueError(
                "only bodies of Messages, Converse and Chat Completions are read, no text prompts"
            )


def _wire_of_body(raw: dict[str, Raw], model: str | None) -> WireApi | None:
    if "anthropic_version" in raw:
        return "messages"
    # a prompt as one text, in the template of its family
    if "messages" not in raw:
        return None
    match = family(model or "")
    if match is not ANY:
        # Mistral Large, Jamba, gpt-oss and others take Chat Completions beside their text prompts
        return match.body or "chat"
    # the name shows no family, but the body does: these keys are Nova's
    if "schemaVersion" in raw or "inferenceConfig" in raw:
        return "converse"
    return "chat" if _is_chat(raw) else "messages"


def _is_chat(raw: dict[str, Raw]) -> bool:
    """Whether a body has what only Chat Completions has: keys, forms of tools, or roles."""
    if not CHAT_KEYS.isdisjoint(raw) or bytes(raw.get("tool_choice", b"")).startswith(b'"'):
        return True
    tools = msgspec.json.decode(raw.get("tools", b"null"))
    if isinstance(tools, list) and any(
        isinstance(tool, dict) and "function" in tool for tool in tools
    ):
        return True
    messages = msgspec.json.decode(raw["messages"])
    if not isinstance(messages, list):
        return False
    return any(
        isinstance(message, dict) and message.get("role") in CHAT_ROLES for message in messages
    )


def _with_own_origin(item: ResponseItem) -> ResponseItem:
    """The item with this wire's origin, where the inner wire gave it one."""
    if item.origin is None:
        return item
    return with_origin(item, ORIGIN)


def _claude(raw: dict[str, Raw]) -> Prompt:
    body = dict(raw)
    body.pop("anthropic_version", None)
    headers: dict[str, str] = {}
    if "anthropic_beta" in body:
        betas = {"anthropic_beta": msgspec.json.decode(body["anthropic_beta"])}
        headers = take_betas(betas)
        # Anything but a list of names stays where it is.
        if headers:
            del body["anthropic_beta"]
    return messages.decode(msgspec.json.encode(body), headers, "")


def _nova(raw: dict[str, Raw]) -> Prompt:
    """Nova's own body has the keys that Converse passes on to the model beside all others."""
    body: JsonObject = {}
    for key, value in raw.items():
        if key not in ("messages", "schemaVersion"):
            body[key] = msgspec.json.decode(value)
    for path, converse_path in NOVA_PATHS.items():
        setting = take(body, path)
        if setting is not None:
            body = merged(body, nested(converse_path, setting))
    body["messages"] = raw["messages"]
    return converse.decode(msgspec.json.encode(body), {}, "")
