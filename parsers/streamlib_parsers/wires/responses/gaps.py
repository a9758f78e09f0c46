"""OpenAI Responses: deltas of a text whose item is known.

Each event has its own `sequence_number` and often padding (`obfuscation`), so only the lines around
its payload are the same in the next one. Payloads are therefore decoded, but into the one kind of
event that is expected, and their item is not looked up again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.items import Message, Reasoning
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.templates import Gap, ReadGap
from streamlib_parsers.wires.responses.events import (
    ArgumentsDelta,
    ItemEvent,
    KnownArgumentsDelta,
    KnownDelta,
    KnownSummaryDelta,
    KnownTextDelta,
    SummaryDelta,
    TextDelta,
)
from streamlib_parsers.wires.responses.texts import CALLS

_decode_text: Final = msgspec.json.Decoder(KnownTextDelta).decode
_decode_summary: Final = msgspec.json.Decoder(KnownSummaryDelta).decode
_decode_arguments: Final = msgspec.json.Decoder(KnownArgumentsDelta).decode


def find_gap(message: ItemEvent, item: OpenItem, assembler: EventAssembler) -> Gap | None:
    """Returns the gap of an event that was just read; None unless it is a usual delta.

    Args:
        message: The event.
        item: The open item at its output_index.
        assembler: Receives the texts.
    """
    match message:
        case TextDelta() if type(item.item) is Message and message.content_index in item.parts:
            part = message.content_index
            return _gap(message, _decode_text, part, assembler.appender(item, part))
        case SummaryDelta() if type(item.item) is Reasoning:
            part = message.summary_index
            return _gap(message, _decode_summary, part, assembler.summary_appender(item, part))
        case ArgumentsDelta() if type(item.item) in CALLS:
            return _gap(message, _decode_arguments, 0, assembler.appender(item))
        case _:
            return None


def _gap(
    first: ItemEvent,
    decode: Callable[[bytes], KnownDelta],
    part: int,
    append: Callable[[str], bool],
) -> Gap:
    output_index = first.output_index

    def read(payload: bytes) -> bool:
        event = decode(payload)
        if event.output_index != output_index or event.part != part or event.logprobs:
            return False
        return append(event.delta)

    return ReadGap(b"", b"", read)
