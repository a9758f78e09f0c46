"""What the encoders for screens have in common (`vercel.py`, `agui.py`): what may be shown, ids that a front end can rely on, the
gaps between paragraphs of a thought, a call's input as a JSON value, sources and files as addresses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from streamlib_parsers.errors import InvalidArguments
from streamlib_parsers.events import ReasoningContentDelta, ReasoningSummaryDelta
from streamlib_parsers.items import (
    Audio,
    ContentPart,
    CustomToolCall,
    Document,
    FunctionCall,
    Image,
    JsonObject,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
    parse_arguments,
    tag,
)
from streamlib_parsers.usage import Usage

Call: TypeAlias = FunctionCall | CustomToolCall | ServerToolCall

CALLS: Final = (FunctionCall, CustomToolCall, ServerToolCall)
SHOWN: Final = (Message, Reasoning, ServerToolResult, *CALLS)
CUT: Final = "the call was cut off and is not run"
RESULTS: Final = ("outputs", "results", "result", "output", "error")
"""Where a hosted call keeps what it gave, on wires that send call and result as one item (Responses)."""
MEDIA_TYPES: Final = {Image: "image/png", Audio: "audio/wav", Document: "application/octet-stream"}
"""Where the wire did not say."""


def hidden(item: ResponseItem) -> tuple[str, str] | None:
    """Why an item is not shown, as path and reason of a report; None where it is."""
    if item.choice:
        return "/choices", "a screen shows one answer"
    if isinstance(item, Message) and item.role != "assistant":
        return f"/items/{item.role}", "an earlier turn that a compaction gave back"
    if not isinstance(item, SHOWN):
        return f"/items/{tag(type(item))}", "the protocol has no part for it"
    return None


class CallIds:
    """The ids of calls as the front end sees them: never empty, no two the same, whatever the provider sent."""

    def __init__(self) -> None:
        self._by_index: dict[int, str] = {}
        self._latest: dict[str, str] = {}
        self._taken: set[str] = set()

    def begin(self, index: int, call_id: str) -> str:
        """The id of a call that begins."""
        name = call_id or f"call-{index}"
        while name in self._taken:
            name = f"{name}-{index}"
        self._taken.add(name)
        self._by_index[index] = self._latest[call_id] = name
        return name

    def at(self, index: int) -> str | None:
        """The id of the call at `index`; None where no call is shown there."""
        return self._by_index.get(index)

    def answered(self, call_id: str) -> str | None:
        """The id of the call that a result with this `call_id` is for."""
        return self._latest.get(call_id)


class Paragraphs:
    """Summaries come in paragraphs that no character separates: a blank line goes between them, and before the thought itself."""

    def __init__(self) -> None:
        self._last: dict[int, int | None] = {}

    def gap(self, event: ReasoningContentDelta | ReasoningSummaryDelta) -> str:
        """What stands before this delta."""
        place = event.summary_index if isinstance(event, ReasoningSummaryDelta) else None
        new = event.index in self._last and self._last[event.index] != place
        self._last[event.index] = place
        return "\n\n" if new else ""


def thought(item: Reasoning) -> str:
    """A whole thought, with the gaps that `Paragraphs` makes."""
    return "\n\n".join(part for part in (*item.summary, item.content) if part)


def words(item: Message) -> str:
    """Everything a message says: text, refusals, what is spoken in its sounds."""
    return "".join(_words(part) for part in item.content)


def _words(part: ContentPart) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Refusal):
        return part.refusal
    return (part.transcript or "") if isinstance(part, Audio) else ""


def total_tokens(usage: Usage) -> int | None:
    """Input and output together; None where one is unknown."""
    known = usage.input_tokens is not None and usage.output_tokens is not None
    return (usage.input_tokens or 0) + (usage.output_tokens or 0) if known else None


def call_input(item: Call) -> tuple[Any, str | None]:
    """A call's input as a JSON value, and why it cannot be run, if so. Programs that the provider runs itself are text."""
    value, fault = _input(item)
    return value, fault or (CUT if item.status == "incomplete" else None)


def _input(item: Call) -> tuple[Any, str | None]:
    if isinstance(item, CustomToolCall):
        return item.input, None
    try:
        return parse_arguments(item.arguments, item.name), None
    except InvalidArguments as error:
        return item.arguments, None if isinstance(item, ServerToolCall) else str(error)


def own_result(item: Call) -> JsonObject | None:
    """What a hosted call says it gave, where call and result are one item."""
    native = (item.native if isinstance(item, ServerToolCall) else None) or {}
    return {key: native[key] for key in RESULTS if native.get(key) is not None} or None


class File(NamedTuple):
    """A file of an answer. url: an address, or a `data:` one that holds it."""

    url: str
    media_type: str


def files(item: Message) -> Iterator[File | None]:
    """The images, sounds and documents of a message; None for one that only its provider can fetch."""
    for part in item.content:
        if isinstance(part, (Image, Audio, Document)) and (part.data or part.url or part.file_id):
            kind = part.media_type or MEDIA_TYPES[type(part)]
            url = part.url or (f"data:{kind};base64,{part.data}" if part.data else None)
            yield File(url, kind) if url else None


class Source(NamedTuple):
    """What an annotation points at: a page (`url`) or a document."""

    url: str | None
    title: str | None
    filename: str | None


def source(annotation: JsonObject) -> Source | None:
    """The source that a citation names, on any wire; None for an annotation that names none."""
    flat = dict(annotation)
    for key in ("url_citation", "location", "web"):
        inner = flat.get(key)
        flat.update(inner if isinstance(inner, dict) else {})
    page = next((flat[key] for key in ("url", "source", "uri") if _is_page(flat.get(key))), None)
    title = _first(flat, "title", "document_title", "filename", "file_id")
    return Source(page, title, _first(flat, "filename")) if page or title else None


def _is_page(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("https://", "http://"))


def _first(values: JsonObject, *keys: str) -> str | None:
    return next(
        (values[key] for key in keys if isinstance(values.get(key), str) and values[key]), None
    )
