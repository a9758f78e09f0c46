"""What a Chat Completions chunk and a whole chat.completion have in common: words, usage, and what an item is in a message."""

from __future__ import annotations

from typing import Final

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
    ResponseItem,
    ServerToolCall,
)
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.chat import CHUNK_KEYS, STOP_REASONS
from streamlib_parsers.wires.chat import usage as read_usage
from streamlib_parsers.wires.chat.reasoning_details import (
    OPAQUE_REASONING_KEY,
    REASONING_DETAIL_KEYS,
    TEXT_OF,
)

FINISH: Final[dict[StopReason, str]] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "pause": "stop",
    "other": "stop",
}
WORDS: Final = frozenset({"stop", "tool_calls", "length", "content_filter", "function_call"})
"""The wire's own words, as its clients know them."""
RESERVED: Final = CHUNK_KEYS | {"error", "type", "data"}
"""Envelope keys that mean something else in a chunk."""
TOTALS: Final = ("prompt_tokens", "completion_tokens", "total_tokens")
SIGNATURE_KEYS: Final = ("extra_content", "google", "thought_signature")


def is_own(item: ResponseItem) -> bool:
    """Whether the item was made on this wire, so that what it carries has a place here."""
    return item.origin is not None and item.origin.wire_api == "chat"


def finish_reason(
    reason: StopReason, native: str | None, losses: Report, *, own: bool, refused: bool = False
) -> str:
    """The wire's word. Words of its own servers stay, however odd; a refusal in words is an ordinary stop."""
    known = STOP_REASONS.get((native or "").lower())
    if native and (own or (native in WORDS and known == reason)):
        return native
    if refused and reason == "refusal":
        return "stop"
    if reason in ("pause", "other", "refusal"):
        losses.dropped("/stop_reason", f"Chat has no word for {native or reason}: {FINISH[reason]}")
    return FINISH[reason]


def envelope_of(values: JsonObject, losses: Report) -> JsonObject:
    """Metadata that has a place beside the typed keys."""
    for key in RESERVED.intersection(values):
        losses.dropped(f"/metadata/{key}", "Chat has another meaning for the key")
    return {key: value for key, value in values.items() if key not in RESERVED}


# --- usage ---


def usage_object(usage: Usage | None, losses: Report, *, own: bool) -> JsonObject | None:
    """The provider's own object where it says the same in this wire's words, else one made of the numbers."""
    if usage is None:
        return None
    if (own or all(key in usage.raw for key in TOTALS[:2])) and read_usage(usage.raw).same_numbers(
        usage
    ):
        return usage.raw
    spent, given = usage.input_tokens or 0, usage.output_tokens or 0
    inner = {
        "cached_tokens": usage.cache_read_input_tokens,
        "cache_write_tokens": usage.cache_write_input_tokens,
    }
    lifetimes = {
        name: getattr(usage, f"cache_write_{name}_input_tokens") for name in ("5m", "1h", "24h")
    }
    details = {
        "prompt_tokens_details": {**inner, **_modalities(usage.input_modalities)},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_output_tokens,
            **_modalities(usage.output_modalities),
        },
        "cache_creation": {
            f"ephemeral_{name}_input_tokens": count for name, count in lifetimes.items()
        },
    }
    known = {
        name: {key: count for key, count in counts.items() if count is not None}
        for name, counts in details.items()
    }
    totals = dict(zip(TOTALS, (spent, given, spent + given), strict=True))
    body: JsonObject = {**totals, **{name: counts for name, counts in known.items() if counts}}
    if not read_usage(body).same_numbers(usage):
        losses.dropped(
            "/usage", "clients want totals: an unknown one is 0; some counts have no name here"
        )
    return body


def _modalities(split: dict[str, int]) -> dict[str, int]:
    return {f"{kind}_tokens": count for kind, count in split.items()}


# --- thoughts ---


def details_of(item: Reasoning, *, textless: bool) -> JsonObject:
    """Keys that carry a thought of this wire beside its text, for replay. textless: the text was told already.

    A signature without a list to stand in is given one, of OpenRouter's form.
    """
    native = item.native or {}
    keys = {
        key: [_without_text(one) if textless else one for one in native[key]]
        for key in REASONING_DETAIL_KEYS
        if native.get(key)
    }
    if item.signature and not any(
        one.get("signature") for elements in keys.values() for one in elements
    ):
        text = "" if textless else item.content
        keys["reasoning_details"] = [
            {"type": "reasoning.text", "text": text, "signature": item.signature, "index": 0}
        ]
    return {
        **keys,
        **(
            {OPAQUE_REASONING_KEY: native[OPAQUE_REASONING_KEY]}
            if native.get(OPAQUE_REASONING_KEY)
            else {}
        ),
    }


def tells_more(keys: JsonObject) -> bool:
    """Whether such keys say anything beside the text: a signature, a sealed thought, an id."""
    dull = {"type", "text", "thinking", "index", "format"}
    lists = [elements for key, elements in keys.items() if key in REASONING_DETAIL_KEYS]
    return OPAQUE_REASONING_KEY in keys or any(
        one.get(key) not in (None, "")
        for elements in lists
        for one in elements
        for key in one.keys() - dull
    )


def _without_text(element: JsonObject) -> JsonObject:
    key = TEXT_OF.get(str(element.get("type")))
    return {**element, key: ""} if key in element else element


def thought_text(item: Reasoning) -> str:
    """Everything readable of a thought."""
    return "\n\n".join([*item.summary, *([item.content] if item.content else [])])


# --- calls and media ---


def call_object(item: FunctionCall | CustomToolCall, *, empty: bool = False) -> JsonObject:
    """An entry of `tool_calls`. empty: without its arguments, which deltas will bring."""
    if isinstance(item, CustomToolCall):
        return {
            "id": item.call_id,
            "type": "custom",
            "custom": {"name": item.name, "input": "" if empty else item.input},
        }
    return {
        "id": item.call_id,
        "type": "function",
        "function": {"name": item.name, "arguments": "" if empty else item.arguments},
    }


def call_extras(item: FunctionCall | CustomToolCall, losses: Report) -> JsonObject:
    """What stands beside a call of this wire: Gemini's signature, keys we do not know."""
    if not is_own(item):
        if item.signature:
            losses.dropped("/signature", "a signature of another wire stays behind")
        return {}
    return {
        **(item.native or {}),
        **(signed(item.signature, item.native) if item.signature else {}),
    }


def signed(signature: str, native: JsonObject | None) -> JsonObject:
    """Gemini's place for a signature."""
    outer, inner, key = SIGNATURE_KEYS
    extra = (native or {}).get(outer) or {}
    return {outer: {**extra, inner: {**(extra.get(inner) or {}), key: signature}}}


def image_object(part: Image) -> JsonObject:
    """An image of an answer, as OpenRouter sends it."""
    return {"type": "image_url", "image_url": {"url": data_url(part)}}


def audio_object(part: Audio, native: JsonObject | None) -> JsonObject:
    """An answer's audio, whole."""
    said = {
        "id": part.name,
        "data": part.data,
        "transcript": part.transcript,
        **((native or {}).get("audio") or {}),
    }
    return {key: value for key, value in said.items() if value is not None}


def annotation_object(annotation: JsonObject, losses: Report, *, own: bool) -> JsonObject | None:
    """A citation in this wire's form, or None where it has none: Responses' citations of URLs are flat, Chat's are not."""
    if own or "url_citation" in annotation:
        return annotation
    keys = ("url", "title", "start_index", "end_index")
    if annotation.get("type") == "url_citation" and annotation.get("url"):
        return {
            "type": "url_citation",
            "url_citation": {key: annotation[key] for key in keys if key in annotation},
        }
    losses.dropped("/annotations", "Chat cites URLs only")
    return None


def executed_object(item: ServerToolCall, number: int) -> JsonObject:
    """A tool that the provider ran, as Groq tells it."""
    return {"index": number, "type": item.name, "arguments": item.arguments}


def is_call_entry(payload: JsonObject) -> bool:
    """Whether an unknown object of this wire was an entry of `tool_calls`, not a part of the content."""
    return bool({"id", "index", "function"} & payload.keys())
