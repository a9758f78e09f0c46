"""Compares a client's version of an item with the item: a wire may change its form, and a client
its spelling."""

from __future__ import annotations

from typing import Final

from streamlib.gateway.state.translate import CALLS
from streamlib_parsers.errors import InvalidArguments
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
)

_PART: Final = 64 << 10
"""Characters of a text that are stripped of white space at a time."""


def item_key(item: ResponseItem) -> object:
    """A key that is equal for an item and for the client's version of it (see `is_same`)."""
    if isinstance(item, CALLS):
        return ("call", item.call_id)
    if isinstance(item, (Message, Reasoning)):
        return (type(item), without_blanks(item))
    return type(item)


def is_same(received: ResponseItem, item: ResponseItem) -> bool:
    """Whether an item is the client's unedited version of `item`."""
    if isinstance(received, CALLS) and isinstance(item, CALLS):
        # A free-form call and the function that represents it have the same id.
        if received.call_id != item.call_id:
            return False
        # An envelope before a call was made before the arguments were known.
        return not _arguments(item) or call_value(received) == call_value(item)
    if type(received) is not type(item):
        return False
    if not isinstance(item, (Message, Reasoning)):
        return False
    return without_blanks(received) == without_blanks(item)


def _arguments(call: FunctionCall | CustomToolCall) -> str:
    if isinstance(call, CustomToolCall):
        return call.input
    return call.arguments


def call_value(call: FunctionCall | CustomToolCall) -> object:
    """The arguments as a JSON value; equal for a free-form call and its function."""
    if isinstance(call, CustomToolCall):
        return {"input": call.input}
    try:
        return call.parsed()
    except InvalidArguments:
        return call.arguments


def item_text(item: ResponseItem) -> str:
    """The text of a message or of reasoning; a refusal if the message has no other text."""
    if isinstance(item, Reasoning):
        return item.text
    if not isinstance(item, Message):
        return ""
    if item.text:
        return item.text
    return "".join(part.refusal for part in item.content if isinstance(part, Refusal))


def without_blanks(item: ResponseItem) -> str:
    """The text without white space, because wires separate paragraphs differently."""
    text = item_text(item)
    # On a text of many megabytes, a single `split` would block the interpreter for a second.
    parts: list[str] = []
    for start in range(0, len(text), _PART):
        parts += text[start : start + _PART].split()
    return "".join(parts)
