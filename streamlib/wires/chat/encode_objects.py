"""The objects of Chat Completions that an encoder writes: calls, media, reasoning, usage."""

from __future__ import annotations

from typing import Any, Final

from streamlib.request.json_objects import without_none
from streamlib.request.media import data_url
from streamlib.request.report import Report
from streamlib_parsers.events import StopReason
from streamlib_parsers.items import (
    Audio,
    CustomToolCall,
    FunctionCall,
    Image,
    JsonObject,
    Reasoning,
    ServerToolCall,
)
from streamlib_parsers.namespaces import flat_call_name
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.chat import CHUNK_KEYS, STOP_REASONS
from streamlib_parsers.wires.chat import usage as read_usage
from streamlib_parsers.wires.chat.reasoning_details import (
    OPAQUE_REASONING_KEY,
    REASONING_DETAIL_KEYS,
    TEXT_OF,
)

ID_PREFIX: Final = "chatcmpl-"
"""Beginning of the id of a response that has none: clients require one."""
NOT_IN_CHAT: Final = "Chat has no field for it"
FINISH_REASONS: Final[dict[StopReason, str]] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "pause": "stop",
    "other": "stop",
}
KNOWN_FINISH_REASONS: Final = frozenset(
    {"stop", "tool_calls", "length", "content_filter", "function_call"}
)
"""Values of `finish_reason` that the wire's clients know."""
RESERVED_KEYS: Final = CHUNK_KEYS | {"error", "type", "data"}
"""Envelope keys that have another meaning in a chunk."""


# --- the envelope ---


def finish_reason(
    reason: StopReason, native: str | None, report: Report, *, own: bool, refused: bool = False
) -> str:
    """The `finish_reason` of a choice.

    Args:
        reason: why the choice ended.
        native: the value on the wire that the response came from.
        report: receives a reason that the wire has no value for.
        own: whether the response is from this wire: then the server's value is kept, known or not.
        refused: whether the choice has refusal text: OpenAI then ends with an ordinary `stop`.
    """
    if native and own:
        return native
    if native in KNOWN_FINISH_REASONS and STOP_REASONS.get(native.lower()) == reason:
        return native
    if refused and reason == "refusal":
        return "stop"
    finish = FINISH_REASONS[reason]
    if reason in ("pause", "other", "refusal"):
        report.dropped("/stop_reason", f"Chat has no value for {native or reason}: {finish}")
    return finish


# --- calls ---


def call_object(item: FunctionCall | CustomToolCall, *, empty: bool = False) -> JsonObject:
    """An entry of `tool_calls`.

    Args:
        item: the call.
        empty: leave out its arguments, since deltas will carry them.
    """
    if isinstance(item, CustomToolCall):
        custom = {"name": flat_call_name(item), "input": item.input}
        if empty:
            custom["input"] = ""
        return {"id": item.call_id, "type": "custom", "custom": custom}
    function = {"name": flat_call_name(item), "arguments": item.arguments}
    if empty:
        function["arguments"] = ""
    return {"id": item.call_id, "type": "function", "function": function}


def call_extras(item: FunctionCall | CustomToolCall) -> JsonObject:
    """What is beside a call of this wire: Gemini's signature, unknown keys."""
    extras: JsonObject = dict(item.native or {})
    if item.signature:
        extras.update(signed(item.signature, item.native))
    return extras


def signed(signature: str, native: JsonObject | None) -> JsonObject:
    """`extra_content.google.thought_signature`, where Gemini's Chat API has signatures."""
    extra_content: JsonObject = dict((native or {}).get("extra_content") or {})
    google = extra_content.get("google") or {}
    extra_content["google"] = {**google, "thought_signature": signature}
    return {"extra_content": extra_content}


def executed_object(item: ServerToolCall, index: int) -> JsonObject:
    """An entry of `executed_tools`: Groq's list of tools that the provider ran."""
    return {"index": index, "type": item.name, "arguments": item.arguments}


def is_call_entry(payload: JsonObject) -> bool:
    """Whether an unknown object of this wire is an entry of `tool_calls`, not a content part."""
    return "id" in payload or "index" in payload or "function" in payload


# --- media and citations ---


def image_object(part: Image) -> JsonObject:
    """An image of a response, as OpenRouter sends it."""
    return {"type": "image_url", "image_url": {"url": data_url(part)}}


def audio_object(part: Audio, native: JsonObject | None) -> JsonObject:
    """The complete audio of a response."""
    audio = {"id": part.name, "data": part.data, "transcript": part.transcript}
    native_audio = (native or {}).get("audio") or {}
    return without_none({**audio, **native_audio})


def annotation_object(annotation: JsonObject, report: Report, *, own: bool) -> JsonObject | None:
    """A citation in this wire's form, or None if it has none.

    Responses' citations of URLs are flat; Chat's have an inner `url_citation`.
    """
    if own or "url_citation" in annotation:
        return annotation
    if annotation.get("type") != "url_citation" or not annotation.get("url"):
        report.dropped("/annotations", "Chat cites URLs only")
        return None
    citation: JsonObject = {}
    for key in ("url", "title", "start_index", "end_index"):
        if key in annotation:
            citation[key] = annotation[key]
    return {"type": "url_citation", "url_citation": citation}


# --- reasoning ---


def reasoning_keys(item: Reasoning) -> JsonObject:
    """The detail lists and the opaque state of reasoning made on this wire.

    Texts in the lists are empty: deltas have carried them. A signature that no list carries gets a
    list in OpenRouter's form.
    """
    native = item.native or {}
    keys: JsonObject = {}
    for key in REASONING_DETAIL_KEYS:
        elements = native.get(key)
        if elements:
            keys[key] = [_with_text(element, "") for element in elements]
    if item.signature and not _has_signature(keys):
        detail = {"type": "reasoning.text", "text": "", "signature": item.signature, "index": 0}
        keys["reasoning_details"] = [detail]
    if native.get(OPAQUE_REASONING_KEY):
        keys[OPAQUE_REASONING_KEY] = native[OPAQUE_REASONING_KEY]
    return keys


def _has_signature(keys: dict[str, list[dict[str, Any]]]) -> bool:
    for elements in keys.values():
        for element in elements:
            if element.get("signature"):
                return True
    return False


def has_details(delta: JsonObject) -> bool:
    """Whether a delta has one of the lists."""
    return any(key in delta for key in REASONING_DETAIL_KEYS)


def with_reasoning(delta: JsonObject, text: str) -> JsonObject:
    """A delta whose lists have the text that came before it: in a body they are complete.

    Text of several elements is in the first.
    """
    filled = dict(delta)
    for key in REASONING_DETAIL_KEYS:
        elements = list(delta.get(key, ()))
        for position, element in enumerate(elements):
            if element.get("type") in TEXT_OF:
                elements[position] = _with_text(element, text)
                break
        if elements:
            filled[key] = elements
    return filled


def _with_text(element: JsonObject, text: str) -> JsonObject:
    key = TEXT_OF.get(str(element.get("type")))
    if key not in element:
        return element
    return {**element, key: text}


# --- usage ---


def chat_usage(usage: Usage | None, report: Report, *, own: bool) -> JsonObject | None:
    """The usage object.

    The provider's own object is returned if this wire reads the same numbers from it.

    Args:
        usage: the counts; None if they are not known.
        report: receives counts that the object cannot carry.
        own: whether an item of the response was made on this wire.
    """
    if usage is None:
        return None
    has_totals = "prompt_tokens" in usage.raw and "completion_tokens" in usage.raw
    if (own or has_totals) and read_usage(usage.raw).same_numbers(usage):
        return usage.raw
    input_tokens = usage.input_tokens or 0
    output_tokens = usage.output_tokens or 0
    body: JsonObject = {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    }
    for name, counts in _details(usage).items():
        known = without_none(counts)
        if known:
            body[name] = known
    if not read_usage(body).same_numbers(usage):
        reason = "clients want totals: an unknown one is 0; some counts have no name here"
        report.add("changed", "/usage", reason)
    return body


def _details(usage: Usage) -> dict[str, dict[str, int | None]]:
    return {
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read_input_tokens,
            "cache_write_tokens": usage.cache_write_input_tokens,
            **_modalities(usage.input_modalities),
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_output_tokens,
            **_modalities(usage.output_modalities),
        },
        # Anthropic's names, as OpenRouter and LiteLLM pass them on.
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write_5m_input_tokens,
            "ephemeral_1h_input_tokens": usage.cache_write_1h_input_tokens,
            "ephemeral_24h_input_tokens": usage.cache_write_24h_input_tokens,
        },
    }


def _modalities(modalities: dict[str, int]) -> dict[str, int]:
    return {f"{modality}_tokens": count for modality, count in modalities.items()}
