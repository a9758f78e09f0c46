"""OpenAI Responses: the texts of an item, their content parts, and what deltas left out of them.

A text arrives in deltas, and then in full: in its own `.done`, in its part's `.done`, in the item's
`.done` and in the last event. What a delta has brought is never emitted again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from streamlib_parsers.assembler import Emit, EventAssembler
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    Message,
    Reasoning,
    ServerToolCall,
)
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.wires.responses.events import index_of

CALLS: Final = (FunctionCall, CustomToolCall, ServerToolCall)

TextKind: TypeAlias = Literal["text", "refusal", "reasoning", "summary", "arguments"]


def _text_fragments(item: OpenItem, part: int) -> list[str]:
    return item.part(part).fragments


def _refusal_fragments(item: OpenItem, part: int) -> list[str]:
    return item.part(part).other("refusal")


def _summary_fragments(item: OpenItem, part: int) -> list[str]:
    return item.paragraph(part)


def _argument_fragments(item: OpenItem, part: int) -> list[str]:
    return item.arguments


def _emit_arguments(assembler: EventAssembler, item: OpenItem, delta: str, part: int) -> None:
    assembler.arguments(item, delta)


class TextField(NamedTuple):
    """One kind of text.

    Attributes:
        item_types: the items that have it.
        emit: emits a delta of it.
        fragments: returns what deltas have brought of one part.
    """

    item_types: tuple[type, ...]
    emit: Emit
    fragments: Callable[[OpenItem, int], list[str]]


TEXT_FIELDS: Final[dict[TextKind, TextField]] = {
    "text": TextField((Message,), EventAssembler.text, _text_fragments),
    "refusal": TextField((Message,), EventAssembler.refusal, _refusal_fragments),
    "reasoning": TextField((Reasoning,), EventAssembler.reasoning, _text_fragments),
    "summary": TextField((Reasoning,), EventAssembler.summary, _summary_fragments),
    "arguments": TextField(CALLS, _emit_arguments, _argument_fragments),
}


class FullText(NamedTuple):
    """The field in which an event has a text in full, and the kind of the text."""

    kind: TextKind
    field: str


PART_TEXTS: Final[dict[str, FullText]] = {
    "output_text": FullText("text", "text"),
    "refusal": FullText("refusal", "refusal"),
    "reasoning_text": FullText("reasoning", "text"),
    "summary_text": FullText("summary", "text"),
}
"""Type of a content part -> its text."""

TEXT_DONE_FIELDS: Final[dict[str, FullText]] = {
    "response.output_text.done": FullText("text", "text"),
    "response.refusal.done": FullText("refusal", "refusal"),
    "response.reasoning_text.done": FullText("reasoning", "text"),
    "response.reasoning.done": FullText("reasoning", "text"),  # Open Responses
    "response.reasoning_summary_text.done": FullText("summary", "text"),
    "response.function_call_arguments.done": FullText("arguments", "arguments"),
    "response.custom_tool_call_input.done": FullText("arguments", "input"),
    "response.code_interpreter_call_code.done": FullText("arguments", "code"),
    "response.mcp_call_arguments.done": FullText("arguments", "arguments"),
}
"""Event with a text in full -> that text."""


class Texts:
    """The texts of all items of one response."""

    def __init__(self, assembler: EventAssembler) -> None:
        self._assembler = assembler
        # The reasoning part that was announced last, by item.
        self.announced: dict[int, int] = {}
        # Positions in `item.content` by the wire's content_index, by item; only for the items whose
        # numbers differ.
        self.positions: dict[int, dict[int, int]] = {}

    def position(self, item: OpenItem, content_index: int) -> int:
        """The part's position in `item.content`, counted in order of arrival.

        vLLM numbers the parts of a message from 1.
        """
        positions = self.positions.get(item.index)
        if positions is None:
            if content_index in item.parts or content_index == len(item.parts):
                return content_index
            positions = {part: part for part in item.parts}
            self.positions[item.index] = positions
        return positions.setdefault(content_index, len(positions))

    def position_in(self, item: OpenItem, event: dict[str, Any]) -> int:
        """The position of the part that an event names; without a number, the first."""
        return self.position(item, index_of(event, "content_index") or 0)

    def announce(self, item: OpenItem, event: dict[str, Any]) -> None:
        """Records the reasoning part to which the next deltas belong."""
        self.announced[item.index] = self.position_in(item, event)

    def complete(self, item: OpenItem, kind: TextKind, event: dict[str, Any], text: Any) -> None:
        """Emits what no delta brought of a text.

        Where `text` does not continue the deltas, the item's own `.done` decides.
        """
        # With half surrogate pairs, the joined deltas may differ from the full text: then, too,
        # the item's `.done` decides.
        if not isinstance(text, str) or self._assembler.surrogates is not None:
            return
        part = self._part_of(item, kind, event)
        fragments = TEXT_FIELDS[kind].fragments(item, part)
        streamed = "".join(fragments)
        # Joined only once, however many events have the text in full.
        fragments.clear()
        if streamed:
            fragments.append(streamed)
        if len(text) > len(streamed) and text.startswith(streamed):
            TEXT_FIELDS[kind].emit(self._assembler, item, text[len(streamed) :], part)

    def _part_of(self, item: OpenItem, kind: TextKind, event: dict[str, Any]) -> int:
        if kind == "reasoning":
            return self.announced.get(item.index, 0)
        if kind == "summary":
            return index_of(event, "summary_index") or 0
        if kind == "arguments":
            return 0
        return self.position_in(item, event)
