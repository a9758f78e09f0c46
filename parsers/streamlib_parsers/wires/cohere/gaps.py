"""Cohere: deltas that differ from the one before them in their text alone."""

from __future__ import annotations

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.items import Message, Reasoning
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.templates import ENCODED_PROBE, PROBE, Gap, TextGap, around_string
from streamlib_parsers.wires.cohere.events import ContentDelta, ToolCallDelta, decode_frequent


def find_gap(
    data: bytes,
    message: ContentDelta | ToolCallDelta,
    item: OpenItem | None,
    assembler: EventAssembler,
) -> Gap | None:
    """Returns the gap of a delta that was just read; None if it has no text for its item.

    Args:
        data: The delta.
        message: `data`, decoded; it is modified.
        item: The open item at its index.
        assembler: Receives the texts.
    """
    if item is None:
        return None
    if isinstance(message, ToolCallDelta):
        key = "arguments"
        message.delta.message.tool_calls.function.arguments = PROBE
    elif message.delta.message.content.text and type(item.item) is Message:
        key = "text"
        message.delta.message.content.text = PROBE
    elif message.delta.message.content.thinking and type(item.item) is Reasoning:
        key = "thinking"
        message.delta.message.content.thinking = PROBE
    else:
        return None
    around = around_string(data, key)
    if around is None:
        return None
    prefix, suffix = around
    # The key may occur elsewhere too: with the probe as its text, the delta must be as expected.
    if decode_frequent(prefix + ENCODED_PROBE + suffix) != message:
        return None
    return TextGap(prefix, suffix, assembler.appender(item))
