"""An output item of Responses while it is streamed, and the names of the events of its texts."""

from __future__ import annotations

from typing import Final, NamedTuple

from streamlib_parsers.items import JsonObject, ResponseItem


class TextKind(NamedTuple):
    """The wire's names for one kind of streamed text.

    events: prefix of the `.delta` and `.done` events.
    part_type, text_key: type of the part, and its field with the text.
    part_events: prefix of the `.added` and `.done` events of the part.
    index_key: the field that numbers the parts of an item.
    """

    events: str
    part_type: str
    text_key: str
    part_events: str
    index_key: str


OUTPUT_TEXT: Final = TextKind(
    "response.output_text", "output_text", "text", "response.content_part", "content_index"
)
REFUSAL: Final = TextKind(
    "response.refusal", "refusal", "refusal", "response.content_part", "content_index"
)
REASONING: Final = TextKind(
    "response.reasoning_text", "reasoning_text", "text", "response.content_part", "content_index"
)
SUMMARY: Final = TextKind(
    "response.reasoning_summary_text",
    "summary_text",
    "text",
    "response.reasoning_summary_part",
    "summary_index",
)

ARGUMENT_EVENTS: Final[dict[str, tuple[str, str]]] = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
    "code_interpreter_call": ("response.code_interpreter_call_code", "code"),
    "mcp_call": ("response.mcp_call_arguments", "arguments"),
}
"""Event prefix and field of the complete text by type of the call.

Other hosted tools have their arguments in the item that is done.
"""


class OutputItem:
    """One item of `output` while it is encoded."""

    __slots__ = ("annotations", "body", "id", "images", "item", "kind", "output_index", "parts")

    def __init__(self, output_index: int, item: ResponseItem) -> None:
        self.output_index = output_index
        # The skeleton, then the final item.
        self.item = item
        # `id` and `type` on the wire, set when the item is added.
        self.id = ""
        self.kind = ""
        # Fragments of each text, in the order in which the texts started.
        self.parts: dict[tuple[TextKind, int], list[str]] = {}
        # Annotations so far, by content index.
        self.annotations: dict[int, list[JsonObject]] = {}
        # The object of `response.output_item.done`; empty until the item is done.
        self.body: JsonObject = {}
        # Images of a message, which follow it as items of their own.
        self.images: list[JsonObject] = []
