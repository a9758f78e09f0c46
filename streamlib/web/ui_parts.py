"""What the encoders `vercel` and `agui` have in common.

Which items a front end sees, unique call ids, the gaps between paragraphs of reasoning, the input
of a call as a JSON value, and sources and files as addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from streamlib.wires.generated_ids import new_id
from streamlib_parsers.errors import ErrorInfo, InvalidArguments
from streamlib_parsers.events import ReasoningContentDelta, ReasoningSummaryDelta
from streamlib_parsers.items import (
    ApplyPatchCallOutput,
    ApprovalRequest,
    ApprovalResponse,
    Audio,
    CallOutput,
    Compaction,
    ComputerCallOutput,
    ContentPart,
    CustomToolCall,
    CustomToolCallOutput,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    JsonObject,
    Message,
    Output,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    ShellCallOutput,
    Text,
    ToolSearchOutput,
    parse_arguments,
    tag,
)
from streamlib_parsers.json_text import first_text, text_or_json
from streamlib_parsers.usage import Usage

Call: TypeAlias = FunctionCall | CustomToolCall | ServerToolCall | ApprovalRequest
"""Calls that both protocols show. An `ApprovalRequest` is shown as the call it asks for."""

CALLS: Final = (FunctionCall, CustomToolCall, ServerToolCall, ApprovalRequest)
"""The classes of `Call`, for `isinstance`."""
SHOWN: Final = (Message, Reasoning, ServerToolResult, *CALLS)
"""Item classes that both protocols can show."""
TRUNCATED_CALL: Final = "the call was truncated and is not run"
ABANDONED: Final = ErrorInfo("truncated", "the stream was closed before its end")
"""The failure of a stream whose encoder was closed without a terminal event."""
RESULT_KEYS: Final = ("outputs", "results", "result", "output", "error")
"""Keys under which a hosted call has its result, on wires where both are one item (Responses)."""
MEDIA_TYPES: Final[dict[type[ContentPart], str]] = {
    Image: "image/png",
    Audio: "audio/wav",
    Document: "application/octet-stream",
}
"""Used if the wire does not name the media type."""


class Hidden(NamedTuple):
    """Why an item is not shown: path and reason of a reported change."""

    path: str
    reason: str


def why_hidden(item: ResponseItem) -> Hidden | None:
    """Why the front end does not see an item; None if it does."""
    if item.choice:
        return Hidden("/choices", "a front end shows one choice")
    if isinstance(item, Message) and item.role != "assistant":
        return Hidden(f"/items/{item.role}", "an earlier turn that a compaction returned")
    if not isinstance(item, SHOWN):
        return Hidden(f"/items/{tag(type(item))}", "the protocol has no part for it")
    return None


def without_state(item: ResponseItem) -> ResponseItem:
    """The item without its signature and encrypted content."""
    if isinstance(item, (Reasoning, Compaction)):
        return msgspec.structs.replace(item, signature=None, encrypted_content=None)
    return msgspec.structs.replace(item, signature=None)


class CallIds:
    """The ids of calls as the front end sees them: never empty, always unique."""

    def __init__(self, message_id: str | None, used: Iterable[str] = ()) -> None:
        # Ids of calls that have none begin with it, so that those of two messages differ.
        self._prefix = message_id or new_id("call-")
        self._by_index: dict[int, str] = {}
        # The newest id for each `call_id` of the provider, which may repeat it.
        self._newest: dict[str, str] = {}
        # All ids so far, with those that the page's message had before.
        self._used = set(used)

    def add(self, index: int, call_id: str) -> str:
        """The id of a call that starts; `call_id` is the provider's."""
        unique_id = call_id or f"{self._prefix}-{index}"
        while unique_id in self._used:
            unique_id = f"{unique_id}-{index}"
        self._used.add(unique_id)
        self._by_index[index] = unique_id
        self._newest[call_id] = unique_id
        return unique_id

    def next_response(self) -> None:
        """Starts the next response of a run: indexes begin again, ids stay unique."""
        self._by_index.clear()

    def get(self, index: int) -> str | None:
        """The id of the call with this item index; None if none is shown."""
        return self._by_index.get(index)

    def of_result(self, call_id: str) -> str | None:
        """The id of the call that a result with this `call_id` belongs to."""
        return self._newest.get(call_id)


# --- texts ---


class ReasoningGaps:
    """Puts a blank line between paragraphs of a summary, and between summary and content.

    The wire has no character between them.
    """

    def __init__(self) -> None:
        # By item index, the paragraph of the latest delta; None for content.
        self._latest: dict[int, int | None] = {}

    def with_gap(self, event: ReasoningContentDelta | ReasoningSummaryDelta) -> str:
        """The text of a delta, after a blank line if it starts a further paragraph."""
        paragraph: int | None = None
        if isinstance(event, ReasoningSummaryDelta):
            paragraph = event.summary_index
        is_further = event.index in self._latest and self._latest[event.index] != paragraph
        self._latest[event.index] = paragraph
        if is_further:
            return "\n\n" + event.delta
        return event.delta


# --- calls ---


def call_input(item: Call) -> tuple[Any, str | None]:
    """The input of a call as a JSON value, and why the call cannot be run, if so."""
    value, fault = _parsed_input(item)
    # First, since a truncated call has invalid arguments most of the time.
    if item.status == "incomplete":
        fault = TRUNCATED_CALL
    return value, fault


def _parsed_input(item: Call) -> tuple[Any, str | None]:
    if isinstance(item, CustomToolCall):
        return item.input, None
    try:
        return parse_arguments(item.arguments, item.name), None
    except InvalidArguments as error:
        # A program that the provider runs itself is text, which is not an error.
        if isinstance(item, ServerToolCall):
            return item.arguments, None
        return item.arguments, str(error)


def inline_result(item: Call) -> JsonObject | None:
    """The result of a hosted call that has it in the same item, if there is one."""
    if not isinstance(item, ServerToolCall) or item.native is None:
        return None
    result: JsonObject = {}
    for key in RESULT_KEYS:
        if item.native.get(key) is not None:
            result[key] = item.native[key]
    return result or None


def shown_output(item: CallOutput) -> tuple[Any, str | None]:
    """The output of a call as a JSON value, and what went wrong, if something did."""
    match item:
        case FunctionCallOutput() | CustomToolCallOutput():
            value = _parts_value(item.output)
            if item.is_error:
                return value, text_or_json(value) or "the tool failed"
            return value, None
        case ApprovalResponse():
            return {"approved": item.approve}, None
        case ShellCallOutput():
            return item.text, None
        case ApplyPatchCallOutput():
            if item.failed:
                return item.output, item.output or "the patch was not applied"
            return item.output, None
        case ComputerCallOutput():
            return _parts_value((item.image,)), None
        case ToolSearchOutput():
            return [tool.name for tool in item.tools], None


def output_parts(item: CallOutput) -> Sequence[ContentPart]:
    """The content parts of an output; none if it is a text, or of another kind."""
    match item:
        case FunctionCallOutput() | CustomToolCallOutput():
            if isinstance(item.output, str):
                return ()
            return item.output
        case ComputerCallOutput():
            return (item.image,)
        case _:
            return ()


def _parts_value(output: Output) -> Any:
    """A text as it is, several parts as a list of them."""
    if isinstance(output, str):
        return output
    if len(output) == 1 and isinstance(output[0], Text):
        return output[0].text
    return [msgspec.to_builtins(msgspec.structs.replace(part, native=None)) for part in output]


# --- usage ---


def total_tokens(usage: Usage) -> int | None:
    """Input and output tokens together; None if either is not known."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return usage.input_tokens + usage.output_tokens


# --- files and sources ---


class File(NamedTuple):
    """A file of a response. url: an address, or a `data:` URL with the content."""

    url: str
    media_type: str


def files(item: Message) -> Iterator[File | None]:
    """Yields images, audio and documents of a message; None if only the provider can fetch one."""
    for part in item.content:
        if isinstance(part, (Image, Audio, Document)):
            media_type = part.media_type or MEDIA_TYPES[type(part)]
            if part.url:
                yield File(part.url, media_type)
            elif part.data:
                yield File(f"data:{media_type};base64,{part.data}", media_type)
            elif part.file_id:
                yield None


class CitedSource(NamedTuple):
    """The target of an annotation: a page, if it has a `url`, else a document."""

    url: str | None
    title: str | None
    filename: str | None


def source(annotation: JsonObject) -> CitedSource | None:
    """The source that a citation of any wire names, if it names one."""
    fields = dict(annotation)
    for key in ("url_citation", "location", "web"):
        inner = fields.get(key)
        if isinstance(inner, dict):
            fields.update(inner)
    url = _first_url(fields, "url", "source", "uri")
    title = first_text(fields, "title", "document_title", "filename", "file_id")
    if url is None and title is None:
        return None
    return CitedSource(url, title, first_text(fields, "filename"))


def _first_url(fields: JsonObject, *keys: str) -> str | None:
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str) and value.startswith(("https://", "http://")):
            return value
    return None
