"""Whether a client's version of an item is still that item: a client's wire may change its form,
and the client its spelling."""

from __future__ import annotations

from typing import Final

from streamlib.gateway.translate import CALLS
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
"""Characters of a text from which white space is removed at a time."""


def item_key(item: ResponseItem) -> object:
    """What is equal for an item and the client's version of it (see `is_same`)."""
    if isinstance(item, CALLS):
        return ("call", item.call_id)
    if isinstance(item, (Message, Reasoning)):
        return (type(item), without_blanks(item))
    return type(item)


def is_same(received: ResponseItem, item: ResponseItem) -> bool:
    """Whether an item is what the client got in place of `item`, unedited."""
    if isinstance(received, CALLS) and isinstance(item, CALLS):
        # A free-form call and the function it stands for have one id.
        if received.call_id != item.call_id:
            return False
        # The envelope before a call was made when its arguments were not known.
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
    """The arguments as a JSON value; equal for a free-form call and the function it stands for."""
    if isinstance(call, CustomToolCall):
        return {"input": call.input}
    try:
        return call.parsed()
    except InvalidArguments:
        return call.arguments


def item_text(item: ResponseItem) -> str:
    """The text of a message or of reasoning; a refusal's, if a message has no other."""
    if isinstance(item, Reasoning):
        return item.text
    if not isinstance(item, Message):
        return ""
    if item.text:
        return item.text
    return "".join(part.refusal for part in item.content if isinstance(part, Refusal))


def without_blanks(item: ResponseItem) -> str:
    """The text without white space, for comparison: wires differ in what separates paragraphs."""
    text = item_text(item)
    # Of a text of many megabytes, `split` alone would hold the interpreter for a second.
    parts: list[str] = []
    for start in range(0, len(text), _PART):
        parts += text[start : start + _PART].split()
    return "".join(parts)
