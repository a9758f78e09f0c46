"""Encodes events as a Chat Completions stream, as official clients read it.

    data: {…"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]} Created
    data: {…"choices":[{"index":0,"delta":{"content":"Hi"}}]}                  OutputTextDelta
    data: {…"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}         Completed
    data: {…"choices":[],"usage":{…}}                                          Completed, with usage
    data: [DONE]                                                               close

The wire has no blocks: an item starts and ends with its content. Buffered: metadata, until the next
chunk; usage, until the end, since clients add up usage that is sent more than once. A failed stream
ends with an error, without `finish_reason` and without `[DONE]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Unpack

from streamlib.wires.chat.encode_objects import (
    ID_PREFIX,
    NOT_IN_CHAT,
    RESERVED_KEYS,
    annotation_object,
    audio_object,
    call_extras,
    call_object,
    chat_usage,
    executed_object,
    finish_reason,
    has_details,
    image_object,
    is_call_entry,
    reasoning_keys,
    signed,
    with_reasoning,
)
from streamlib.wires.encoders import sse
from streamlib.wires.event_encoder import EncodedFrame, FrameWriter, ResponseNames, WireEncoder
from streamlib.wires.openai_errors import error_body
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FinishedChoice,
    FunctionCallArgumentsDelta,
    MediaDelta,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseMetadata,
)
from streamlib_parsers.items import (
    Audio,
    CustomToolCall,
    FunctionCall,
    Image,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)

__all__ = ["Encoder", "body_of", "error_body"]


class Encoder(WireEncoder):
    """Encodes one stream.

    created_at: unix seconds. An encoder has no clock; without it, `created` is 0.
    names_in_deltas: write a name in each delta of a call, empty after the first. Mistral's SDK
    requires it.
    """

    wire_api = "chat"
    no_such_event = "Chat has no such event"
    reserved_keys = RESERVED_KEYS
    id_prefix = ID_PREFIX
    end_mark = b"data: [DONE]\n\n"

    def __init__(
        self,
        *,
        created_at: int | None = None,
        names_in_deltas: bool = False,
        write: FrameWriter = sse,
        **names: Unpack[ResponseNames],
    ) -> None:
        super().__init__(write, **names)
        self._names_in_deltas = names_in_deltas
        # Fields that every chunk repeats. Id and model are set by `Created`.
        self._common: JsonObject = {
            "id": "",
            "object": "chat.completion.chunk",
            "created": created_at or 0,
            "model": "",
        }
        # Each item by index, as `OutputItemAdded` had it.
        self._items: dict[int, ResponseItem] = {}
        # Choices that had a chunk: the first one names the role.
        self._choices_with_role: set[int] = set()
        # The `index` of a call in its choice's `tool_calls`, by item index.
        self._call_indexes: dict[int, int] = {}
        # Number of calls so far, by choice.
        self._call_counts: dict[int, int] = {}
        # The `index` of a provider-run tool in `executed_tools`, by call id.
        self._executed: dict[str, int] = {}
        # By choice, the item whose text was sent last, until something else is sent.
        self._last_text: dict[int, int] = {}
        # Choices that had refusal text.
        self._refused: set[int] = set()
        # Whether an item was made on this wire: then the wire's own finish reason is kept.
        self._has_own_items = False

    # --- chunks ---

    def _chunk(self, choices: list[JsonObject], **fields: Any) -> bytes:
        envelope, self._envelope = self._envelope, {}
        return self._write({**self._common, "choices": choices, **envelope, **fields}, "")

    def _choice_chunk(
        self, choice: int, delta: JsonObject, finish: str | None = None, **fields: Any
    ) -> bytes:
        """A chunk of one choice; the first chunk of each choice names the role."""
        start = b""
        if not self._started:
            start = self._on_created(Created())
        if choice not in self._choices_with_role:
            self._choices_with_role.add(choice)
            delta = {"role": "assistant", **delta}
        body = {"index": choice, "delta": delta, **fields, "finish_reason": finish}
        return start + self._chunk([body])

    def _item_chunk(self, index: int, **delta: Any) -> bytes:
        return self._choice_chunk(self._items[index].choice, delta)

    # --- the envelope ---

    def _on_created(self, event: Created) -> bytes:
        self._started = True
        self._common["id"] = event.response_id or self._response_id
        self._common["model"] = event.model or self._model or ""
        return self._choice_chunk(0, {"content": ""})

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        values = dict(event.values)
        if isinstance(values.get("created"), (int, float)):
            # The response's own time, unless the caller gave `created_at`.
            self._common["created"] = self._common["created"] or values.pop("created")
        self._envelope.update(self._own_metadata(values))
        if self._started or not self._envelope:
            return b""
        return self._chunk([])

    # --- items ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        item = event.item
        self._items[event.index] = item
        if self._is_own(item):
            self._has_own_items = True
        if not isinstance(item, (FunctionCall, CustomToolCall)):
            return b""
        call_index = self._call_counts.get(item.choice, 0)
        self._call_counts[item.choice] = call_index + 1
        self._call_indexes[event.index] = call_index
        self._last_text.pop(item.choice, None)
        # The arguments follow in deltas.
        entry = {"index": call_index, **call_object(item, empty=True)}
        return self._item_chunk(event.index, tool_calls=[entry])

    def _note_adjacent(self, index: int) -> None:
        """Reports two adjacent items of one kind: the wire has no border between them."""
        item = self._items[index]
        last = self._last_text.get(item.choice)
        if last is not None and last != index and type(self._items[last]) is type(item):
            self._report.dropped(
                "/items", "Chat has no blocks: adjacent items of a kind are joined"
            )
        self._last_text[item.choice] = index

    def _on_text(self, event: OutputTextDelta) -> bytes:
        self._note_adjacent(event.index)
        if not event.logprobs:
            return self._item_chunk(event.index, content=event.delta)
        choice = self._items[event.index].choice
        logprobs = {"content": list(event.logprobs), "refusal": None}
        return self._choice_chunk(choice, {"content": event.delta}, logprobs=logprobs)

    def _on_reasoning(self, event: ReasoningContentDelta) -> bytes:
        self._note_adjacent(event.index)
        if event.logprobs:
            self._report.dropped("/logprobs", "Chat has no logprobs of reasoning")
        return self._item_chunk(event.index, reasoning_content=event.delta)

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        self._report.dropped("/summary", "a summary is plain reasoning in Chat")
        self._note_adjacent(event.index)
        return self._item_chunk(event.index, reasoning_content=self._gaps.with_gap(event))

    def _on_refusal(self, event: RefusalDelta) -> bytes:
        choice = self._items[event.index].choice
        self._refused.add(choice)
        if not event.logprobs:
            return self._item_chunk(event.index, refusal=event.delta)
        logprobs = {"content": None, "refusal": list(event.logprobs)}
        return self._choice_chunk(choice, {"refusal": event.delta}, logprobs=logprobs)

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        call_index = self._call_indexes.get(event.index)
        if call_index is None:
            return b""
        entry: JsonObject = {"index": call_index}
        if isinstance(self._items[event.index], CustomToolCall):
            entry["type"] = "custom"
            entry["custom"] = {"input": event.delta}
        else:
            entry["function"] = {"arguments": event.delta}
            if self._names_in_deltas:
                entry["function"]["name"] = ""
        return self._item_chunk(event.index, tool_calls=[entry])

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        own = self._is_own(self._items[event.index])
        annotation = annotation_object(event.annotation, self._report, own=own)
        if annotation is None:
            return b""
        self._note_adjacent(event.index)
        if own and annotation.get("type") == "reference":
            # Mistral sends a reference as a part between two parts of text.
            return self._item_chunk(event.index, content=[annotation])
        return self._item_chunk(event.index, annotations=[annotation])

    def _on_media(self, event: MediaDelta) -> bytes:
        """Audio is streamed; an image is sent once it is complete, by `_end_message`."""
        # Chat's own audio has no type.
        media_type = event.media_type or "audio/"
        if media_type.startswith("image/"):
            return b""
        if not media_type.startswith("audio/"):
            self._report.dropped("/media", f"a Chat response has no place for {media_type}")
            return b""
        if event.media_type:
            reason = "Chat does not name the format of audio: the request does"
            self._report.dropped("/media_type", reason)
        audio: JsonObject = {}
        if event.data:
            audio["data"] = event.data
        if event.transcript:
            audio["transcript"] = event.transcript
        return self._item_chunk(event.index, audio=audio)

    # --- ends of items ---

    def _on_done(self, event: OutputItemDone) -> bytes:
        item = event.item
        match item:
            case Message():
                return self._end_message(event.index, item)
            case Reasoning():
                return self._end_reasoning(event.index, item)
            case FunctionCall() | CustomToolCall():
                return self._end_call(event.index, item)
            case ServerToolCall():
                return self._end_server_call(event.index, item)
            case ServerToolResult():
                return self._end_server_result(event.index, item)
            case Opaque():
                return self._end_opaque(event.index, item)
            case _:
                self._report.dropped(f"/{type(item).__name__}", NOT_IN_CHAT)
                return b""

    def _end_reasoning(self, index: int, item: Reasoning) -> bytes:
        if not self._is_own(item):
            return b""
        keys = reasoning_keys(item)
        if not keys:
            return b""
        return self._item_chunk(index, **keys)

    def _end_message(self, index: int, item: Message) -> bytes:
        out = b""
        for part in item.content:
            if isinstance(part, Image):
                self._last_text.pop(item.choice, None)
                out += self._item_chunk(index, images=[image_object(part)])
            elif isinstance(part, Audio):
                audio = audio_object(part, item.native)
                # Both were streamed.
                audio.pop("data", None)
                audio.pop("transcript", None)
                if audio:
                    out += self._item_chunk(index, audio=audio)
        if not item.signature:
            return out
        if item.text:
            reason = "the signature follows its text, as a separate empty text"
            self._report.add("changed", "/signature", reason)
        return out + self._item_chunk(index, content="", **signed(item.signature, item.native))

    def _end_call(self, index: int, item: FunctionCall | CustomToolCall) -> bytes:
        skeleton = self._items[index]
        if isinstance(skeleton, (FunctionCall, CustomToolCall)) and item.name != skeleton.name:
            self._report.dropped("/name", "a name that changed later stays as it was first sent")
        extras = call_extras(item)
        if not extras:
            return b""
        entry = {"index": self._call_indexes[index], **extras}
        return self._item_chunk(index, tool_calls=[entry])

    def _end_server_call(self, index: int, item: ServerToolCall) -> bytes:
        if not self._is_own(item):
            self._report.dropped("/server_tools", NOT_IN_CHAT)
            return b""
        self._last_text.pop(item.choice, None)
        tool_index = len(self._executed)
        self._executed[item.call_id] = tool_index
        return self._item_chunk(index, executed_tools=[executed_object(item, tool_index)])

    def _end_server_result(self, index: int, item: ServerToolResult) -> bytes:
        tool_index = self._executed.get(item.call_id)
        if not self._is_own(item) or tool_index is None:
            self._report.dropped("/server_tools", NOT_IN_CHAT)
            return b""
        self._last_text.pop(item.choice, None)
        entry = {"index": tool_index, "type": item.name, "output": item.output}
        if item.native:
            entry.update(item.native)
        return self._item_chunk(index, executed_tools=[entry])

    def _end_opaque(self, index: int, item: Opaque) -> bytes:
        if not self._is_own(item):
            self._report.dropped(f"/{item.kind}", NOT_IN_CHAT)
            return b""
        self._last_text.pop(item.choice, None)
        if is_call_entry(item.payload):
            return self._item_chunk(index, tool_calls=[item.payload])
        return self._item_chunk(index, content=[item.payload])

    # --- the end ---

    def _on_completed(self, event: Completed) -> bytes:
        out = b""
        if not self._started:
            out = self._on_created(Created(event.response_id, event.model))
        self._common["model"] = event.model or self._common["model"]
        self._usage = event.usage or self._usage
        if event.stop_sequence is not None:
            self._report.dropped("/stop_sequence", NOT_IN_CHAT)
        ends = event.choices
        if not ends:
            ends = (FinishedChoice(0, event.stop_reason, event.native_stop_reason),)
        for end in ends:
            finish = finish_reason(
                end.stop_reason,
                end.native_stop_reason,
                self._report,
                own=self._has_own_items,
                refused=end.choice in self._refused,
            )
            out += self._choice_chunk(end.choice, {}, finish)
        self._ended = True
        return out + self._usage_chunk()

    def _usage_chunk(self) -> bytes:
        usage = chat_usage(self._usage, self._report, own=self._has_own_items)
        if not usage:
            return b""
        return self._chunk([], usage=usage)

    def _on_failed(self, event: Failed) -> bytes:
        return self._usage_chunk() + self._write(error_body(event.error), "")

    def _on_passthrough(self, event: Passthrough) -> bytes:
        # Clients take every event for a chunk, and fail on one without choices.
        reason = "an event of unknown kind would be read as a chunk"
        self._report.dropped(f"/{event.event}", reason)
        return b""


# --- bodies ---

INDEXED_LISTS: Final = ("tool_calls", "executed_tools")
"""Lists of a delta whose elements are fragments, to be joined by their `index`."""


def body_of(frames: Iterable[EncodedFrame]) -> JsonObject:
    """The `chat.completion` that clients accumulate from the chunks of a response."""
    body: JsonObject = {}
    choices: dict[int, JsonObject] = {}
    # Characters of a choice's reasoning that its lists of details have.
    described: dict[int, int] = {}
    for _, chunk in frames:
        body |= chunk
        for chunk_choice in chunk["choices"]:
            index = chunk_choice["index"]
            choice = choices.setdefault(index, {"index": index, "message": {}})
            message, delta = choice["message"], chunk_choice["delta"]
            if has_details(delta):
                reasoning = message.get("reasoning_content", "")
                delta = with_reasoning(delta, reasoning[described.get(index, 0) :])
                described[index] = len(reasoning)
            _add_delta(message, delta)
            choice["finish_reason"] = chunk_choice["finish_reason"]
    for choice in choices.values():
        choice["message"] = _complete_message(choice["message"])
    body |= {"object": "chat.completion", "choices": [choices[key] for key in sorted(choices)]}
    return body


def _add_delta(fields: JsonObject, delta: JsonObject) -> None:
    """Adds a delta as the official client does: texts and lists grow, objects too."""
    for key, value in delta.items():
        known = fields.get(key)
        if key in INDEXED_LISTS:
            elements = fields.setdefault(key, [])
            for element in value:
                _add_element(elements, element)
        elif isinstance(known, list) or isinstance(value, list):
            fields[key] = [*_as_list(known), *_as_list(value)]
        elif isinstance(known, dict) and isinstance(value, dict):
            fields[key] = dict(known)
            _add_delta(fields[key], value)
        elif isinstance(known, str) and isinstance(value, str) and key != "type":
            fields[key] = known + value
        else:
            fields[key] = value


def _add_element(elements: list[JsonObject], element: JsonObject) -> None:
    for known in elements:
        if known.get("index") == element.get("index"):
            _add_delta(known, element)
            return
    elements.append(dict(element))


def _as_list(content: str | list[JsonObject] | None) -> list[JsonObject]:
    """Content as its parts: Mistral's has references between texts."""
    if isinstance(content, list):
        return content
    if not content:
        return []
    return [{"type": "text", "text": content}]


def _complete_message(message: JsonObject) -> JsonObject:
    """A message without what only deltas need."""
    for call in message.get("tool_calls", ()):
        call.pop("index", None)
    # Content is null only beside something else.
    has_more = message.keys() & {"refusal", "tool_calls", "audio"}
    if not message.setdefault("content", "") and has_more:
        message["content"] = None
    return {"refusal": None, **message}
