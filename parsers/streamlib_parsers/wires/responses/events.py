"""OpenAI Responses: the names and shapes of the stream's events, as data.

The frequent kinds are structs, decoded from bytes by their `type`; every other kind is looked up by
name. Together they are the 59 types of OpenAI's Python SDK 3.54, the 24 of Open Responses and what
other servers send besides (docs/wires/responses.md lists all). `machine.py` handles them.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from streamlib_parsers.errors import malformed

HIGHEST_INDEX: Final = 1_000_000
Index: TypeAlias = Annotated[int, Meta(ge=0, le=HIGHEST_INDEX)]


class ItemEvent(Struct, gc=False, tag_field="type"):
    """An event about one item.

    Any field may be missing: llama.cpp sends no index, a shell's events have no id, and `agent`
    (``{"agent_name": "/root/a"}``) is in the streams of several agents only.
    """

    output_index: Index | None = None
    item_id: str | None = None
    agent: Any = None


class Delta(ItemEvent, kw_only=True):
    """An event that appends to a text."""

    delta: str
    content_index: Index = 0


class TextDelta(Delta, tag="response.output_text.delta"):
    """Text of a message."""

    logprobs: Any = None


class ReasoningTextDelta(Delta, tag="response.reasoning_text.delta"):
    """Reasoning as the model wrote it."""


class OpenReasoningDelta(Delta, tag="response.reasoning.delta"):
    """Reasoning as the model wrote it, under its name in Open Responses.

    Perplexity's ``response.reasoning.started`` and the like are other events.
    """


class SummaryDelta(Delta, tag="response.reasoning_summary_text.delta"):
    """A summary of reasoning."""

    summary_index: Index = 0


class RefusalDelta(Delta, tag="response.refusal.delta"):
    """The text with which the model declines."""


class ArgumentsDelta(Delta, tag="response.function_call_arguments.delta"):
    """Arguments of a function call."""


class CustomInputDelta(Delta, tag="response.custom_tool_call_input.delta"):
    """Input of a custom tool."""


class CodeDelta(Delta, tag="response.code_interpreter_call_code.delta"):
    """Code of the code interpreter."""


class McpArgumentsDelta(Delta, tag="response.mcp_call_arguments.delta"):
    """Arguments of a tool that the provider calls over MCP."""


class ItemAdded(ItemEvent, tag="response.output_item.added", kw_only=True):
    """An item starts."""

    item: Raw = Raw(b"null")


class ItemDone(ItemEvent, tag="response.output_item.done", kw_only=True):
    """An item is complete."""

    item: Raw = Raw(b"null")


CallDelta: TypeAlias = ArgumentsDelta | CustomInputDelta | CodeDelta | McpArgumentsDelta

AnyReasoningDelta: TypeAlias = ReasoningTextDelta | OpenReasoningDelta

Frequent: TypeAlias = (
    TextDelta | AnyReasoningDelta | SummaryDelta | RefusalDelta | CallDelta | ItemAdded | ItemDone
)
decode: Final = msgspec.json.Decoder(Frequent).decode


def name_of(event: ItemEvent | type[ItemEvent]) -> str:
    """The wire's name of a frequent kind."""
    return str(event.__struct_config__.tag)


# --- the response in the last event ---


class ResponseBody(Struct, gc=False):
    """The items of a complete response."""

    output: list[Raw] | None = None


class EndEvent(Struct, gc=False):
    """The event that ends a stream."""

    response: ResponseBody


_DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeError)


def items_in_end_event(data: bytes) -> list[Raw]:
    """The bytes of each item in the last event (`response.output[]`)."""
    try:
        return msgspec.json.decode(data, type=EndEvent).response.output or []
    except _DECODE_ERRORS:
        return []


def items_in_body(data: bytes) -> list[Raw]:
    """The bytes of each item in a body (`output[]`)."""
    try:
        return msgspec.json.decode(data, type=ResponseBody).output or []
    except _DECODE_ERRORS:
        return []


# --- the position of an event ---


class NumberedEvent(Struct, gc=False):
    """An event of which only the number is read."""

    sequence_number: int | None = None


_decode_number: Final = msgspec.json.Decoder(NumberedEvent).decode


def read_position(data: bytes) -> int | None:
    """The number of an event, after which a background response can be resumed.

    None if it has none, as for servers that do not store the stream.
    """
    try:
        return _decode_number(data).sequence_number
    except _DECODE_ERRORS:
        return None


# --- events by name ---

RESPONSE_EVENTS: Final = ("response.created", "response.queued", "response.in_progress")
END_EVENTS: Final = (
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.cancelled",
    # xAI and some Codex back ends end with it; the response's own status shows how
    # (can1357/oh-my-pi#4692, decolua/9router#2142).
    "response.done",
)
KEEPALIVES: Final = ("keepalive", "ping")
AUDIO_EVENTS: Final = (
    "response.audio.delta",
    "response.audio.done",
    "response.audio.transcript.delta",
    "response.audio.transcript.done",
)
PART_EVENTS: Final = (
    "response.content_part.added",
    "response.content_part.done",
    "response.reasoning_part.added",  # vLLM
    "response.reasoning_part.done",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_part.done",
)

PROGRESS: Final = (
    "response.web_search_call.in_progress",
    "response.web_search_call.searching",
    "response.web_search_call.completed",
    "response.file_search_call.in_progress",
    "response.file_search_call.searching",
    "response.file_search_call.completed",
    "response.code_interpreter_call.in_progress",
    "response.code_interpreter_call.interpreting",
    "response.code_interpreter_call.completed",
    "response.image_generation_call.in_progress",
    "response.image_generation_call.generating",
    "response.image_generation_call.completed",
    "response.mcp_list_tools.in_progress",
    "response.mcp_list_tools.completed",
    "response.mcp_list_tools.failed",
    "response.mcp_call.in_progress",
    "response.mcp_call.completed",
    "response.mcp_call.failed",
    "response.compaction.compacting",
)
"""Progress of a hosted tool; the part after the last dot is its status."""

PASSED_THROUGH: Final = (
    "response.shell_call_command.added",
    "response.shell_call_command.delta",
    "response.shell_call_command.done",
    "response.shell_call_output_content.delta",
    "response.shell_call_output_content.done",
    "response.apply_patch_call_operation_diff.delta",
    "response.apply_patch_call_operation_diff.done",
)
"""Fragments of items that are Opaque, passed through for callers that show them.

The item's own `.done` has them complete."""

TYPED_KEYS: Final = frozenset({"output", "usage", "id", "object", "model", "status", "error"})
"""Keys of the response that typed fields hold; every other one is metadata."""

STATUS_RANK: Final = ("completed", "incomplete", "failed")
"""Final statuses, each worse than the one before."""

UNFINISHED: Final = ("queued", "in_progress", "cancelled")
"""Statuses of a response that is not complete, now or ever."""


# --- fields of events that have no struct ---


def nonempty_string(values: dict[str, Any], key: str) -> str | None:
    """The text at `key`; None for an empty one and for anything else."""
    value = values.get(key)
    if isinstance(value, str) and value:
        return value
    return None


def index_of(values: dict[str, Any], key: str) -> int | None:
    """The index at `key`; None where it is missing or null.

    An integral float is an index too.

    Raises:
        ParseFailure: `malformed` for a negative or huge number and any other value.
    """
    index = values.get(key)
    if index is None:
        return None
    if isinstance(index, float) and index.is_integer():
        index = int(index)
    is_integer = isinstance(index, int) and not isinstance(index, bool)
    if is_integer and 0 <= index <= HIGHEST_INDEX:
        return int(index)
    raise malformed(f"{key} is {index!r:.80}")


def list_of_objects(value: Any) -> list[dict[str, Any]] | None:
    """A list of one object per token; None for anything else."""
    if not isinstance(value, list):
        return None
    for element in value:
        if not isinstance(element, dict):
            return None
    return value
