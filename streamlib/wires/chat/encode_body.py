"""Encodes a response as a non-streaming `chat.completion`."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from streamlib.request.origins import is_own
from streamlib.request.report import Report
from streamlib.wires.chat.encode_objects import (
    ID_PREFIX,
    NOT_IN_CHAT,
    annotation_object,
    audio_object,
    call_extras,
    call_object,
    envelope_of,
    finish_reason,
    image_object,
    signed,
)
from streamlib.wires.chat.encode_reasoning import reasoning_keys
from streamlib.wires.chat.encode_usage import chat_usage
from streamlib.wires.generated_ids import new_id
from streamlib.wires.openai_errors import error_body
from streamlib.wires.reasoning_text import reasoning_text
from streamlib_parsers.accumulate import Choice, Response
from streamlib_parsers.items import (
    Audio,
    CustomToolCall,
    FunctionCall,
    Image,
    JsonObject,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
    Text,
)

TEXT_KEYS: Final = ("content", "refusal", "reasoning_content")
"""Keys of a message whose fragments are joined; elements of other lists stay separate."""


def encode_body(
    response: Response, model: str | None, report: Report, *, created_at: int | None = None
) -> bytes:
    """Returns a `chat.completion`, or the error body of a response that failed."""
    if response.error is not None:
        return msgspec.json.encode(error_body(response.error))
    choices = response.choices
    if not choices:
        stop = (response.stop_reason, response.native_stop_reason)
        choices = (Choice(0, response.items, *stop),)
    envelope = envelope_of(response.metadata, report)
    body: JsonObject = {
        "id": response.response_id or new_id(ID_PREFIX),
        "object": "chat.completion",
        "created": 0,
        "model": response.model or model or "",
        "choices": [_choice_object(choice, report) for choice in choices],
        **envelope,
    }
    if created_at:
        body["created"] = created_at
    own = any(_has_own_items(choice) for choice in choices)
    usage = chat_usage(response.usage, report, own=own)
    if usage:
        body["usage"] = usage
    return msgspec.json.encode(body)


def _has_own_items(choice: Choice) -> bool:
    return any(is_own(item, "chat") for item in choice.items)


def _choice_object(choice: Choice, report: Report) -> JsonObject:
    fields: JsonObject = {}
    for item in choice.items:
        _add_item(item, fields, report)
    texts: JsonObject = {}
    for key in TEXT_KEYS:
        if key in fields:
            texts[key] = "".join(fields.pop(key))
    # A message without text has null content only if it holds something else.
    content: str | None = ""
    if "refusal" in texts or "tool_calls" in fields or "audio" in fields:
        content = None
    message = {"role": "assistant", "content": content, "refusal": None, **texts, **fields}
    finish = finish_reason(
        choice.stop_reason or "other",
        choice.native_stop_reason,
        report,
        own=_has_own_items(choice),
        refused="refusal" in texts,
    )
    return {"index": choice.index, "message": message, "finish_reason": finish}


def _add_item(item: ResponseItem, fields: JsonObject, report: Report) -> None:
    match item:
        case Message():
            _add_message(item, fields, report)
        case Reasoning():
            _add_reasoning(item, fields)
        case FunctionCall() | CustomToolCall():
            _add_call(item, fields)
        case _:
            report.dropped(f"/{type(item).__name__}", NOT_IN_CHAT)


def _append(fields: JsonObject, key: str, *values: Any) -> None:
    fields.setdefault(key, []).extend(values)


def _add_message(item: Message, fields: JsonObject, report: Report) -> None:
    for part in item.content:
        match part:
            case Text():
                _append(fields, "content", part.text)
                for note in part.annotations:
                    annotation = annotation_object(note, report, own=is_own(item, "chat"))
                    if annotation:
                        _append(fields, "annotations", annotation)
            case Refusal():
                _append(fields, "refusal", part.refusal)
            case Image():
                _append(fields, "images", image_object(part))
            case Audio():
                fields["audio"] = audio_object(part, item.native)
            case _:
                report.dropped("/media", NOT_IN_CHAT)
    if item.signature:
        fields.update(signed(item.signature, item.native))


def _add_reasoning(item: Reasoning, fields: JsonObject) -> None:
    text = reasoning_text(item)
    if text:
        _append(fields, "reasoning_content", text)
    if not is_own(item, "chat"):
        return
    for key, value in reasoning_keys(item, textless=False).items():
        if isinstance(value, list):
            _append(fields, key, *value)
        else:
            fields[key] = value


def _add_call(item: FunctionCall | CustomToolCall, fields: JsonObject) -> None:
    # An incomplete call would look callable in a body.
    if item.status != "completed":
        return
    entry = call_object(item)
    extras = call_extras(item)
    if "function" in extras:
        # Unknown keys of the function belong beside its name and arguments.
        extras["function"] = {**entry.get("function", {}), **extras["function"]}
    _append(fields, "tool_calls", {**entry, **extras})
