"""A Bedrock InvokeModel request as a `Prompt`: the inverse of builders/invoke.py.

The path names the model, and whether a stream is wanted; the body is one of Messages, Converse or Chat Completions, told by the model's
family, or by its own look where the name tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib.request.json_objects import merged, nested
from streamlib.request.prompt import Prompt
from streamlib.wires.bedrock import ANY, family
from streamlib.wires.chat import decode as chat
from streamlib.wires.converse import decode as converse
from streamlib.wires.converse.build import EXTRA
from streamlib.wires.converse.decode import taken
from streamlib.wires.invoke.build import TIER_HEADER
from streamlib.wires.messages import decode as messages
from streamlib.wires.routes import route
from streamlib_parsers.items import JsonObject, Origin, ResponseItem, WireApi, with_origin

ORIGIN: Final = Origin("invoke")
Raws = dict[str, Raw]


def decode(body: bytes, headers: Mapping[str, str], path: str) -> Prompt:
    """The prompt."""
    raw = msgspec.json.decode(body, type=Raws)
    found = route(path)
    model = found.model if found else None
    prompt = BODIES[_wire(raw, model)](raw)
    sent = {name.lower(): value for name, value in headers.items()}
    return msgspec.structs.replace(
        prompt,
        input=[_own(item) for item in prompt.items],
        service_tier=prompt.service_tier or sent.get(TIER_HEADER),
        model=model or prompt.model,
        stream=found.stream if found else None,
    )


def _wire(raw: Raws, model: str | None) -> WireApi | None:
    kind = family(model or "")
    if "anthropic_version" in raw or "messages" not in raw:
        return "messages" if "anthropic_version" in raw else None
    if kind is not ANY:
        return kind.body
    return "converse" if raw.keys() & {"schemaVersion", "inferenceConfig"} else "messages"


def _own(item: ResponseItem) -> ResponseItem:
    return with_origin(item, ORIGIN) if item.origin is not None else item


def _claude(raw: Raws) -> Prompt:
    kept = {key: value for key, value in raw.items() if key != "anthropic_version"}
    return messages.decode(msgspec.json.encode(kept), {}, "")


def _nova(raw: Raws) -> Prompt:
    """Keys that Converse passes on to the model stand beside its own here."""
    values: JsonObject = {
        key: msgspec.json.decode(value)
        for key, value in raw.items()
        if key not in ("messages", "schemaVersion")
    }
    for path, renamed in RENAMED.items():
        if (value := taken(values, path)) is not None:
            values = merged(values, nested(renamed, value))
    return converse.decode(msgspec.json.encode({**values, "messages": raw["messages"]}), {}, "")


RENAMED: Final = {
    "inferenceConfig.max_new_tokens": "inferenceConfig.maxTokens",
    "inferenceConfig.topK": f"{EXTRA}.inferenceConfig.topK",
    "reasoningConfig": f"{EXTRA}.reasoningConfig",
}


def _chat(raw: Raws) -> Prompt:
    return chat.decode(msgspec.json.encode(raw), {}, "")


def _neither(raw: Raws) -> Prompt:
    raise ValueError(
        "only bodies of Messages, Converse and Chat Completions are read, no text prompts"
    )


BODIES: Final[dict[Any, Callable[[Raws], Prompt]]] = {
    "messages": _claude,
    "converse": _nova,
    "chat": _chat,
    None: _neither,
}
