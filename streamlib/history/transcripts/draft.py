"""A transcript while it is read, and what every reader needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from streamlib.history.transcripts.source import JsonSource, mistake
from streamlib.request.history import ALL_CALLS, OUTPUTS
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.wires.decoders import parse_request
from streamlib_parsers.items import (
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Origin,
    ResponseItem,
    Text,
    WireApi,
)
from streamlib_parsers.stream_error import StreamError

PROVIDERS: Final[dict[WireApi, str]] = {
    "messages": "anthropic",
    "responses": "openai",
    "gemini": "google",
}
"""Wire -> the provider that signed what a transcript in it holds, where nothing else is known."""

LIST_KEYS: Final[dict[WireApi, str]] = {
    "chat": "messages",
    "messages": "messages",
    "responses": "input",
    "gemini": "contents",
}
"""Wire -> key of the list in a body."""

NOTHING: Final[Mapping[str, Raw]] = {}


class TranscriptDraft:
    """The items read so far, and what was left out."""

    def __init__(self, origin: Origin | None) -> None:
        self.items: list[ResponseItem] = []
        self.instructions: str | None = None
        self.report = Report()
        self._origin = origin
        """Where signed state was made, by the caller's account; None: at the usual provider."""

    def add(self, items: Iterable[ResponseItem]) -> None:
        """Appends items, with the origin of this transcript.

        Args:
            items: as a wire's decoder gives them: their origin is the wire.
        """
        for item in items:
            self.items.append(self._with_origin(item))

    def _with_origin(self, item: ResponseItem) -> ResponseItem:
        made = item.origin
        if made is None or made.provider is not None or made.wire_api is None:
            return item
        if self._origin is not None and self._origin.wire_api == made.wire_api:
            return replace(item, origin=self._origin)
        name = PROVIDERS.get(made.wire_api) or _chat_provider(item)
        return replace(item, origin=Origin(made.wire_api, name))

    def take_prompt(self, prompt: Prompt) -> None:
        """Appends the items of a decoded body, and takes its instructions."""
        if prompt.instructions is not None and self.instructions is None:
            self.instructions = prompt.instructions
        self.add(prompt.items)


def _chat_provider(item: ResponseItem) -> str | None:
    """The provider of signed state in Chat: signatures are Google's, these lists OpenRouter's."""
    if "reasoning_details" in (item.native or {}):
        return "openrouter"
    return "google" if item.signature else None


def decoded(
    wire_api: WireApi, elements: Sequence[tuple[str, bytes]], beside: Mapping[str, Raw] = NOTHING
) -> Prompt:
    """The prompt of a list of a wire's messages.

    Args:
        wire_api: the wire.
        elements: place and JSON of each message.
        beside: other keys of the body, with their JSON.

    Raises:
        ValueError: an element is no message of the wire; the error names its place.
    """
    try:
        return _decoded(wire_api, [raw for _, raw in elements], beside)
    except StreamError as error:
        wrong = error
    for path, raw in elements:
        try:
            _decoded(wire_api, [raw], NOTHING)
        except StreamError as error:
            raise mistake(path, error.message) from None
    raise ValueError(wrong.message)


def _decoded(wire_api: WireApi, elements: Sequence[bytes], beside: Mapping[str, Raw]) -> Prompt:
    listed = Raw(b"[%s]" % b",".join(elements))
    return parse_request(wire_api, msgspec.json.encode({**beside, LIST_KEYS[wire_api]: listed}))


def turn_of(message: bytes, role: str = "assistant") -> dict[str, Raw]:
    """The turn of a message of Messages that was kept whole: without id, model and usage.

    Args:
        message: its JSON.
        role: where it names none.
    """
    fields = msgspec.json.decode(message, type=dict[str, Raw])
    turn = {"role": Raw(msgspec.json.encode(role)), **fields}
    return {name: turn[name] for name in ("role", "content") if name in turn}


# --- the end ---


def finish(draft: TranscriptDraft) -> None:
    """Gives the items their final form: instructions apart, outputs of one text as a text.

    Raises:
        ValueError: a call has the id of another call that waits for its output.
    """
    if draft.instructions is None:
        draft.instructions = leading_instructions(draft.items)
        if draft.instructions is not None:
            draft.items.pop(0)
    free_form = {item.call_id for item in draft.items if isinstance(item, CustomToolCall)}
    for item in draft.items:
        if isinstance(item, FunctionCall):
            free_form.discard(item.call_id)
    draft.items = [_final_output(item, free_form) for item in draft.items]
    _check_ids(draft.items)


def leading_instructions(items: Sequence[ResponseItem]) -> str | None:
    """The text of the first item, if it is a plain system message."""
    first = items[0] if items else None
    if not isinstance(first, Message) or first.role != "system" or first.native:
        return None
    if len(first.content) != 1 or first.content[0] != Text(first.text):
        return None
    return first.text or None


def _final_output(item: ResponseItem, free_form: set[str]) -> ResponseItem:
    """An output of one plain text as that text, and of the kind of its call.

    Some formats cannot tell these apart.
    """
    if not isinstance(item, OUTPUTS):
        return item
    if not isinstance(item.output, str) and len(item.output) == 1:
        part = item.output[0]
        if isinstance(part, Text) and part == Text(part.text):
            item = replace(item, output=part.text)
    if isinstance(item, FunctionCallOutput) and item.call_id in free_form:
        return CustomToolCallOutput(
            item.call_id, item.output, item.is_error, origin=item.origin, native=item.native
        )
    return item


def _check_ids(items: Sequence[ResponseItem]) -> None:
    """Refuses a call with the id of one that waits for its output: whose would the output be?

    Some providers use an id again once it is answered.
    """
    waiting: dict[tuple[type, str], int] = {}
    """Kind and id of a call without an output -> its index."""
    for index, item in enumerate(items):
        if isinstance(item, ALL_CALLS):
            key = (type(item), item.call_id)
            if key in waiting:
                raise ValueError(
                    f"items[{index}]: the call has the id {item.call_id!r:.80} of "
                    f"items[{waiting[key]}], which has no output yet"
                )
            waiting[key] = index
        elif isinstance(item, OUTPUTS):
            waiting.pop((FunctionCall, item.call_id), None)
            waiting.pop((CustomToolCall, item.call_id), None)


Reader = Callable[[JsonSource, TranscriptDraft], None]
"""Reads a source into a draft."""
