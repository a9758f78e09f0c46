"""Rules of Chat for signatures: those of Claude at OpenRouter, and of Gemini at Google.

OpenRouter passes on what Anthropic signs, as `reasoning_details` of a message, and Anthropic checks
it (docs/wires/chat.md, C6). Google's endpoint signs the first call of a step, beside the call
(``extra_content``; C4).
"""

from __future__ import annotations

from typing import Any, Final

from streamlib.providers.models import traits
from streamlib.testing.provider.strict.gemini import is_placeholder
from streamlib.testing.provider.strict.rules import (
    Rejection,
    Rule,
    StrictRequest,
    names,
    object_of,
    string,
)
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import objects_in

OPENROUTER_FIELDS: Final = names("reasoning models plugins provider session_id top_k usage")
"""Fields of OpenRouter's requests that this library or its users send."""

NOTHING: Final[frozenset[str]] = frozenset()


def signs_reasoning(model: str) -> bool:
    """Whether a model is a Claude at OpenRouter, by its name there."""
    return model.startswith("anthropic/claude-")


def signs_calls(model: str) -> bool:
    """Whether a model is a Gemini that signs its calls, by its name."""
    return model.startswith("gemini-") and traits(model).signed_calls


def request_keys(model: str) -> frozenset[str]:
    """Fields of a request that OpenAI does not have."""
    return OPENROUTER_FIELDS if "/" in model else NOTHING


def message_keys(model: str) -> frozenset[str]:
    """Fields of an assistant message that OpenAI does not have."""
    return names("reasoning reasoning_details") if "/" in model else NOTHING


def call_keys(model: str) -> frozenset[str]:
    """Fields of a call that OpenAI does not have."""
    return names("extra_content") if model.startswith("gemini-") else NOTHING


def check_reasoning_details(request: StrictRequest) -> None:
    """Signed reasoning is sent back unmodified (C6; anthropics/claude-code#10627)."""
    for n, message in enumerate(objects_in(request.body["messages"])):
        for m, element in enumerate(objects_in(message.get("reasoning_details"))):
            signature = element.get("signature")
            if signature is None:
                continue
            text = string(element.get("text"))
            if request.ledger.read("chat", signature, text) is None:
                raise Rejection(
                    f"messages.{n}.content.{m}: Invalid `signature` in `thinking` block"
                )


def check_call_signatures(request: StrictRequest) -> None:
    """Gemini 3: the first call of each step of the current turn is signed (C4; langroid#969)."""
    if not signs_calls(request.model):
        return
    messages = objects_in(request.body["messages"])
    start = 0
    for n, message in enumerate(messages):
        if message.get("role") == "user":
            start = n
    for n, message in enumerate(messages):
        for m, call in enumerate(objects_in(message.get("tool_calls"))):
            name = string(object_of(call.get("function")).get("name"))
            signature = _signature_of(call)
            is_missing = signature is None and m == 0 and n > start
            if is_missing:
                raise Rejection(
                    "Function call is missing a thought_signature in functionCall parts. This is "
                    "required for tools to work correctly, and missing thought_signature may lead "
                    f"to degraded model performance. Additional data, function call `{name}` , "
                    f"position {n + 1}."
                )
            is_known = signature is None or is_placeholder(signature)
            if not is_known and request.ledger.read("chat", signature, name) is None:
                raise Rejection("Thought signature is not valid.")


def _signature_of(call: JsonObject) -> Any:
    google = object_of(object_of(call.get("extra_content")).get("google"))
    return google.get("thought_signature")


SIGNATURE_RULES: Final[tuple[Rule, ...]] = (check_reasoning_details, check_call_signatures)
