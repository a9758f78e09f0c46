"""The objects that a Chat Completions chunk and a `chat.completion` have in common."""

from __future__ import annotations

from typing import Final

from streamlib.request.media import data_url
from streamlib.request.report import Report
from streamlib.wires.json_objects import without_none
from streamlib_parsers.events import StopReason
from streamlib_parsers.items import (
    Audio,
    CustomToolCall,
    FunctionCall,
    Image,
    JsonObject,
    ServerToolCall,
)
from streamlib_parsers.namespaces import flat_call_name
from streamlib_parsers.wires.chat import CHUNK_KEYS, STOP_REASONS

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
