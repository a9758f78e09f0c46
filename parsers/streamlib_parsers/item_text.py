"""The streamed text of finished items: read from an item, and compared between two versions of
it."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from streamlib_parsers.items import (
    ContentPart,
    CustomToolCall,
    FunctionCall,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    Text,
)

STREAMED_FIELDS: Final[dict[type, dict[str, Any]]] = {
    Message: {"content": ()},
    Reasoning: {"content": "", "summary": ()},
    FunctionCall: {"arguments": ""},
    ServerToolCall: {"arguments": ""},
    CustomToolCall: {"input": ""},
}
"""The fields that deltas fill, empty."""

_CALL_TEXTS: Final[dict[type, str]] = {
    FunctionCall: "arguments",
    ServerToolCall: "arguments",
    CustomToolCall: "input",
}


def call_text(item: ResponseItem) -> str:
    """Arguments or input of a call; empty for every other kind of item."""
    field = _CALL_TEXTS.get(type(item))
    if field is None:
        return ""
    text: str = getattr(item, field)
    return text


def part_text(part: ContentPart | None, kind: type[Text | Refusal]) -> str:
    """The text of a part if it is of this kind; empty for a part of another kind, and for None."""
    if not isinstance(part, kind):
        return ""
    if isinstance(part, Text):
        return part.text
    return part.refusal


def final_lacks_parts(streamed: ResponseItem, final: ResponseItem) -> bool:
    """Whether text was streamed into a part that `final` lacks, or has as another kind."""
    if isinstance(streamed, Message) and isinstance(final, Message):
        # A final message without any content is a wire that does not repeat it: nothing is lacking.
        return bool(final.content) and _lacks_content(streamed, final)
    if isinstance(streamed, Reasoning) and isinstance(final, Reasoning) and final.summary:
        return any(streamed.summary[len(final.summary) :])
    return False


def _lacks_content(streamed: Message, final: Message) -> bool:
    for index, part in enumerate(streamed.content):
        if not isinstance(part, (Text, Refusal)) or not part_text(part, type(part)):
            continue
        if index >= len(final.content) or type(final.content[index]) is not type(part):
            return True
    return False


def fill_missing(final: ResponseItem, streamed: ResponseItem) -> ResponseItem:
    """`final`, with the streamed text of every field that it leaves empty."""
    if type(final) is not type(streamed):
        return final
    missing: dict[str, Any] = {}
    for name in STREAMED_FIELDS.get(type(final), ()):
        if not getattr(final, name):
            missing[name] = getattr(streamed, name)
    if not missing:
        return final
    return replace(final, **missing)
