"""OpenAI Responses: the names and shapes of the stream's events, as data. What they do is in `wires.responses`.

The frequent kinds are structs, decoded from bytes by their `type`; every other kind is looked up by name. Together they are the
59 types of OpenAI's Python SDK 3.54 and what was seen beside them (docs/wires/responses.md lists all).
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from streamlib_parsers.errors import malformed

HIGHEST_INDEX: Final = 1_000_000
Index: TypeAlias = Annotated[int, Meta(ge=0, le=HIGHEST_INDEX)]


class ItemEvent(Struct, gc=False, tag_field="type"):
    """An event about one item. Either may be missing: llama.cpp sends no index, a shell's events no id."""

    output_index: Index | None = None
    item_id: str | None = None


class Delta(ItemEvent, kw_only=True):
    """More of a text."""

    delta: str
    content_index: Index = 0


class TextDelta(Delta, tag="response.output_text.delta"):
    """Text of a message."""

    logprobs: Any = None


class ReasoningTextDelta(Delta, tag="response.reasoning_text.delta"):
    """A thought as the model wrote it."""


class SummaryDelta(Delta, tag="response.reasoning_summary_text.delta"):
    """A summary of a thought."""

    summary_index: Index = 0


class RefusalDelta(Delta, tag="response.refusal.delta"):
    """Words with which the model declines."""


class ArgumentsDelta(Delta, tag="response.function_call_arguments.delta"):
    """Arguments of a function call."""


class CustomInputDelta(Delta, tag="response.custom_tool_call_input.delta"):
    """Input of a custom tool."""


class CodeDelta(Delta, tag="response.code_interpreter_call_code.delta"):
    """Code of the code interpreter."""


class McpArgumentsDelta(Delta, tag="response.mcp_call_arguments.delta"):
    """Arguments of a tool that the provider calls over MCP."""


class ItemAdded(ItemEvent, tag="response.output_item.added", kw_only=True):
    """An item begins."""

    item: Raw = Raw(b"null")


class ItemDone(ItemEvent, tag="response.output_item.done", kw_only=True):
    """An item is whole."""

    item: Raw = Raw(b"null")


Frequent: TypeAlias = (
    TextDelta
    | ReasoningTextDelta
    | SummaryDelta
    | RefusalDelta
    | ArgumentsDelta
    | CustomInputDelta
    | CodeDelta
    | McpArgumentsDelta
    | ItemAdded
    | ItemDone
)
decode: Final = msgspec.json.Decoder(Frequent).decode


def name_of(message: ItemEvent | type[ItemEvent]) -> str:
    """The wire's name of a frequent kind."""
    return str(message.__struct_config__.tag)


class OutputOf(Struct, gc=False):
    """The items of a whole response."""

    output: list[Raw] | None = None


class End(Struct, gc=False):
    """The event that ends a stream."""

    response: OutputOf


class Typed(Struct, gc=False):
    """An item, as far as its type."""

    type: str = ""


# --- tables ---

RESPONSE: Final = ("response.created", "response.queued", "response.in_progress")
END: Final = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
KEEPALIVES: Final = ("keepalive", "ping")
AUDIO: Final = (
    "response.audio.delta",
    "response.audio.done",
    "response.audio.transcript.delta",
    "response.audio.transcript.done",
)
PART: Final = (
    "response.content_part.added",
    "response.content_part.done",
    "response.reasoning_part.added",  # vLLM
    "response.reasoning_part.done",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_part.done",
)

PARTS: Final[dict[str, tuple[str, str]]] = {
    "output_text": ("text", "text"),
    "refusal": ("refusal", "refusal"),
    "reasoning_text": ("reasoning", "text"),
    "summary_text": ("summary", "text"),
}
"""Parts by type: (which text grows, field of the part that holds it)."""

TEXT_DONE_FIELDS: Final[dict[str, tuple[str, str]]] = {
    "response.output_text.done": ("text", "text"),
    "response.refusal.done": ("refusal", "refusal"),
    "response.reasoning_text.done": ("reasoning", "text"),
    "response.reasoning_summary_text.done": ("summary", "text"),
    "response.function_call_arguments.done": ("arguments", "arguments"),
    "response.custom_tool_call_input.done": ("arguments", "input"),
    "response.code_interpreter_call_code.done": ("arguments", "code"),
    "response.mcp_call_arguments.done": ("arguments", "arguments"),
}
"""Events that tell a text whole: (which text, field of the event that holds it)."""

PROGRESS: Final = tuple(
    f"response.{item}.{status}"
    for item, statuses in {
        "web_search_call": ("in_progress", "searching", "completed"),
        "file_search_call": ("in_progress", "searching", "completed"),
        "code_interpreter_call": ("in_progress", "interpreting", "completed"),
        "image_generation_call": ("in_progress", "generating", "completed"),
        "mcp_list_tools": ("in_progress", "completed", "failed"),
        "mcp_call": ("in_progress", "completed", "failed"),
        "compaction": ("compacting",),
    }.items()
    for status in statuses
)
"""A hosted tool says how far it is, in the last word."""

PASSED_THROUGH: Final = (
    "response.shell_call_command.added",
    "response.shell_call_command.delta",
    "response.shell_call_command.done",
    "response.shell_call_output_content.delta",
    "response.shell_call_output_content.done",
    "response.apply_patch_call_operation_diff.delta",
    "response.apply_patch_call_operation_diff.done",
)
"""Pieces of items that are Opaque: passed through for whoever shows them; the item's own `.done` has them whole."""

TYPED_KEYS: Final = frozenset({"output", "usage", "id", "object", "model", "status", "error"})
"""Keys of the response that typed fields hold; every other one is metadata."""

STATUS_RANK: Final = ("completed", "incomplete", "failed")
"""Ends, each worse than the one before."""
UNANSWERED: Final = ("queued", "in_progress", "cancelled")
"""Status of a response that is no answer (yet)."""


# --- fields of events that are no struct ---


def word(value: Any) -> str | None:
    """A non-empty string, or None."""
    return value if isinstance(value, str) and value else None


def index_of(value: dict[str, Any], key: str) -> int | None:
    """A place; an integral float is one too. Negative, huge and every other value is malformed."""
    index = value.get(key)
    if isinstance(index, float) and index.is_integer():
        index = int(index)
    if index is None or (
        isinstance(index, int) and not isinstance(index, bool) and 0 <= index <= HIGHEST_INDEX
    ):
        return index
    raise malformed(f"{key} is {index!r:.80}")


def type_of(item: Raw) -> str:
    """The type of an item, "" where it has none."""
    try:
        return msgspec.json.decode(item, type=Typed).type
    except (msgspec.DecodeError, UnicodeError):
        return ""


def response_items(data: bytes, shape: type[End | OutputOf]) -> list[Raw]:
    """The bytes of each item that the last event, or a body, tells."""
    try:
        end = msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, UnicodeError):
        return []
    return (end.response if isinstance(end, End) else end).output or []
