"""Encodes events as a Gemini stream (`alt=sse`): each chunk is a `GenerateContentResponse`.

Text is sent as it comes. Buffered: a call, until its arguments are complete, since a part has a
complete call; an item that is signed or has more than text, until it is done; metadata and counts,
until it is known whether they belong to the last chunk. That chunk has the `finishReason`: the wire
has no other end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Unpack

import msgspec

from streamlib.request.json_objects import without_keys, without_none
from streamlib.request.origins import is_own
from streamlib.wires.encoders import sse
from streamlib.wires.event_encoder import EncodedFrame, FrameWriter, ResponseNames, WireEncoder
from streamlib.wires.gemini.encode_objects import (
    FEEDBACK,
    RESERVED_KEYS,
    ArgumentBuffer,
    MetadataField,
    block_reason,
    candidate,
    error_body,
    fields_of_candidate,
    fields_of_response,
    finish_reason,
    gemini_usage,
    locate,
    parts_of,
)
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
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseMetadata,
    TokenCount,
)
from streamlib_parsers.items import (
    FunctionCall,
    JsonObject,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
    Text,
)
from streamlib_parsers.usage import Usage

__all__ = ["Encoder", "body_of", "error_body"]

EMPTY_PART: Final[JsonObject] = {"text": ""}
"""The part of a chunk without content: clients read the text of every chunk."""


class Encoder(WireEncoder):
    """Encodes one stream."""

    wire_api = "gemini"
    reserved_keys = RESERVED_KEYS
    no_such_event = "Gemini has no such event"

    def __init__(self, *, write: FrameWriter = sse, **names: Unpack[ResponseNames]) -> None:
        super().__init__(write, **names)
        # Fields that every chunk repeats, known or not.
        self._common = {"modelVersion": self._model, "responseId": self._response_id}
        # Each item by index, as `OutputItemAdded` had it.
        self._items: dict[int, ResponseItem] = {}
        # Arguments of Gemini's own calls that were not sent yet, by item index, in their order.
        self._calls: dict[int, ArgumentBuffer] = {}
        # By choice, the item whose text was sent last, until something else is sent.
        self._last_text: dict[int, int] = {}
        # Metadata for the next chunk without content.
        self._fields: list[MetadataField] = []
        # Usage for that chunk.
        self._usage: Usage | None = None
        # The latest usage, sent or not.
        self._latest_usage: Usage | None = None
        # Why the prompt was blocked, from the metadata.
        self._blocked: str | None = None
        # That metadata, until it is known whether the response ended for it.
        self._feedback: JsonObject = {}
        # Whether `Created` came and no chunk has carried id and model yet.
        self._created_pending = False

    # --- chunks ---

    def _chunk(
        self, candidates: Sequence[JsonObject] = (), fields: JsonObject | None = None
    ) -> bytes:
        self._created_pending = False
        body = {"candidates": candidates or None, **(fields or {}), **self._common}
        return self._write(without_none(body), "")

    def _parts_chunk(self, index: int, *parts: JsonObject) -> bytes:
        """Parts of one item, after what was buffered before them."""
        if not parts:
            return b""
        choice = self._items[index].choice
        self._last_text.pop(choice, None)
        return self._flush() + self._chunk([candidate(parts, choice)])

    def _flush(self) -> bytes:
        """Buffered metadata and counts in a chunk of their own."""
        if not self._fields and self._usage is None:
            return b""
        return self._chunk_without_content(())

    def _chunk_without_content(self, ends: Sequence[FinishedChoice]) -> bytes:
        """Metadata, counts, and the reasons for which candidates ended."""
        feedback: JsonObject = {}
        if ends:
            feedback = self._take_feedback(ends)
        finish_reasons: dict[int, str] = {}
        for end in ends:
            # A blocked prompt has its reason in `promptFeedback`, and no candidate.
            if not self._blocked or end.native_stop_reason != self._blocked:
                finish_reasons[end.choice] = finish_reason(end, self._report)
        choices = set(finish_reasons)
        for field in self._fields:
            if field.choice is not None:
                choices.add(field.choice)
        if not choices:
            choices.add(0)
        candidates: list[JsonObject] = []
        if self._items or not self._blocked:
            for choice in sorted(choices):
                fields = fields_of_candidate(self._fields, choice)
                finish = finish_reasons.get(choice)
                candidates.append(candidate([EMPTY_PART], choice, fields, finish))
        response_fields = {**feedback, **fields_of_response(self._fields)}
        response_fields["usageMetadata"] = gemini_usage(self._usage, self._report)
        self._fields = []
        self._usage = None
        return self._chunk(candidates, response_fields)

    # --- the envelope ---

    def _on_created(self, event: Created) -> bytes:
        self._identify(event.response_id, event.model)
        self._created_pending = True
        return b""

    def _identify(self, response_id: str | None, model: str | None) -> None:
        self._common["modelVersion"] = model or self._common["modelVersion"]
        self._common["responseId"] = response_id or self._common["responseId"]

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        out = self._send_complete_calls()
        values = self._own_metadata(event.values)
        fields = [locate(key, value) for key, value in values.items()]
        # A parser reads the candidates of a chunk, then the response, then the counts. Fields that
        # it would read before those of the buffer belong into the next chunk.
        is_read_earlier = False
        if self._fields:
            is_read_earlier = _last_position(fields) <= _last_position(self._fields)
        if self._usage is not None or is_read_earlier:
            out += self._flush()
        self._fields += fields
        return out

    def _own_metadata(self, values: JsonObject) -> JsonObject:
        is_object = isinstance(values.get(FEEDBACK, {}), dict)
        if is_object and block_reason(values) is None:
            return super()._own_metadata(values)
        self._blocked = block_reason(values)
        self._feedback = {FEEDBACK: values[FEEDBACK]}
        return super()._own_metadata(without_keys(values, FEEDBACK))

    def _take_feedback(self, ends: Sequence[FinishedChoice]) -> JsonObject:
        """Why the prompt was blocked: a client takes a response that has it for a failed one."""
        feedback, self._feedback = self._feedback, {}
        reasons = {end.native_stop_reason for end in ends} - {None}
        if feedback and self._blocked not in reasons:
            self._report.dropped(f"/metadata/{FEEDBACK}", "the response did not end for it")
            self._blocked = None
            return {}
        return feedback

    def _on_usage(self, event: TokenCount) -> bytes:
        out = self._send_complete_calls()
        if self._usage is not None:
            out += self._flush()
        self._usage = event.usage
        self._latest_usage = event.usage
        return out

    # --- items ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        out = self._send_complete_calls(settled=True)
        item = event.item
        self._items[event.index] = item
        if isinstance(item, FunctionCall) and self._is_own(item):
            self._calls[event.index] = ArgumentBuffer()
        return out

    def _text_delta(self, index: int, text: str, *, reasoning: bool = False) -> bytes:
        item = self._items[index]
        if not text or not _is_streamed(item):
            return b""
        out = self._send_complete_calls()
        last = self._last_text.get(item.choice, index)
        if last != index and type(self._items[last]) is type(item):
            self._report.dropped("/items", "adjacent texts of a kind are joined")
        part: JsonObject = {"text": text}
        if reasoning:
            part["thought"] = True
        out += self._parts_chunk(index, part)
        self._last_text[item.choice] = index
        return out

    def _on_text(self, event: OutputTextDelta) -> bytes:
        self._report_logprobs(event)
        return self._text_delta(event.index, event.delta)

    def _on_reasoning(self, event: ReasoningContentDelta) -> bytes:
        self._report_logprobs(event)
        return self._text_delta(event.index, event.delta, reasoning=True)

    def _report_logprobs(self, event: OutputTextDelta | ReasoningContentDelta) -> None:
        if event.logprobs:
            self._report.dropped("/logprobs", "Gemini has logprobs of a complete response only")

    def _on_refusal(self, event: RefusalDelta) -> bytes:
        self._report.dropped("/refusal", "a refusal is plain text in Gemini")
        return self._text_delta(event.index, event.delta)

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        self._report.dropped("/summary", "a summary is plain reasoning in Gemini")
        return self._text_delta(event.index, self._gaps.with_gap(event), reasoning=True)

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        self._report.dropped("/annotations", "Gemini cites by byte ranges of the complete response")
        return b""

    def _on_media(self, event: MediaDelta) -> bytes:
        return b""  # sent complete, when its item is done

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        out = self._send_complete_calls(but=event.index)
        arguments = self._calls.get(event.index)
        if arguments is not None:
            arguments.add(event.delta)
        return out

    def _send_complete_calls(self, *, but: int | None = None, settled: bool = False) -> bytes:
        """Gemini's own calls that are complete, in their order.

        They keep their position in the stream although their items stay open to its end.

        Args:
            but: item index of a call whose next arguments are about to be added.
            settled: test also calls whose arguments came in several fragments; mostly they come
                in one.
        """
        out = b""
        while self._calls:
            index, arguments = next(iter(self._calls.items()))
            if index == but or not arguments.is_complete(settled=settled):
                break
            del self._calls[index]
            call = self._items[index]
            if isinstance(call, FunctionCall):
                call = msgspec.structs.replace(
                    call, arguments="".join(arguments.fragments), status="completed"
                )
            out += self._parts_chunk(index, *parts_of(call, self._report))
        return out

    def _on_done(self, event: OutputItemDone) -> bytes:
        index, item = event.index, event.item
        arguments = self._calls.pop(index, None)
        if arguments is None:
            if isinstance(item, FunctionCall) and self._is_own(item):
                # It was sent when its arguments were complete.
                return b""
            if _is_streamed(self._items[index]):
                item = _without_text(item)
                return self._parts_chunk(index, *parts_of(item, self._report))
        return self._send_complete_calls() + self._parts_chunk(index, *parts_of(item, self._report))

    # --- the end ---

    def _on_completed(self, event: Completed) -> bytes:
        self._identify(event.response_id, event.model)
        if event.usage is not None and not event.usage.same_numbers(self._latest_usage):
            self._usage = event.usage
        if event.stop_sequence is not None:
            reason = "Gemini does not report which sequence stopped it"
            self._report.dropped("/stop_sequence", reason)
        ends = event.choices
        if not ends:
            ends = (FinishedChoice(0, event.stop_reason, event.native_stop_reason),)
        return self._chunk_without_content(ends)

    def _on_failed(self, event: Failed) -> bytes:
        self._take_feedback(())
        out = self._flush()
        if not out and self._created_pending:
            out = self._chunk()
        return out + self._write(error_body(event.error), "")


def body_of(frames: Iterable[EncodedFrame]) -> JsonObject:
    """The response that clients accumulate from its chunks."""
    body: JsonObject = {}
    candidates: dict[int, JsonObject] = {}
    for _, chunk in frames:
        body |= chunk
        for part in chunk.get("candidates", ()):
            known = candidates.setdefault(part["index"], {"content": {"parts": []}})
            parts = known["content"]["parts"]
            parts += [entry for entry in part["content"]["parts"] if entry != EMPTY_PART]
            content = {**known["content"], **part["content"], "parts": parts}
            candidates[part["index"]] = {**known, **part, "content": content}
    if candidates:
        body["candidates"] = [candidates[index] for index in sorted(candidates)]
    return body


def _is_streamed(item: ResponseItem) -> bool:
    """Whether the item's text is sent as it comes: only if it has no state of this wire."""
    if not isinstance(item, (Message, Reasoning)):
        return False
    has_state = item.signature or item.native
    return not has_state or not is_own(item, "gemini")


def _without_text(item: ResponseItem) -> ResponseItem:
    """What an item has beside its streamed text: media, a signature that came last."""
    if isinstance(item, Message):
        rest = [part for part in item.content if not isinstance(part, (Text, Refusal))]
        return msgspec.structs.replace(item, content=tuple(rest))
    if isinstance(item, Reasoning):
        return msgspec.structs.replace(item, content="", summary=())
    return item


def _last_position(fields: Iterable[MetadataField]) -> int:
    """The position in a chunk at which a parser reads the last of these fields."""
    return max(field.position for field in fields)
