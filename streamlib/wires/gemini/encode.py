"""Events as a Gemini stream (`alt=sse`) or body: each chunk is a whole `GenerateContentResponse`.

Text goes out as it comes. Held back: a call, until its arguments are whole (a part holds a whole call); an item that is signed or holds
more than text, until it is done; metadata and counts, until it is known whether they belong to the last chunk. That one has the
`finishReason`: the wire has no other end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from streamlib.request.report import Change, Report
from streamlib.wires.encoders import sse
from streamlib.wires.gemini.encode_objects import (
    Place,
    block_reason,
    candidate,
    error_body,
    finish_reason,
    is_own,
    parts_of,
    place_of,
    usage_object,
)
from streamlib_parsers.accumulate import Choice, Response
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FinishedChoice,
    FunctionCallArgumentsDelta,
    ItemProgress,
    MediaDelta,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    RateLimits,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
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
from streamlib_parsers.json_text import is_json
from streamlib_parsers.usage import Usage

__all__ = ["Encoder", "encode_body", "error_body"]

STREAMED: Final = (Message, Reasoning)
"""Kinds whose text goes out as it comes, unless something must stand beside it."""
NOTHING_SAID: Final[JsonObject] = {"text": ""}
"""The part of a chunk that brings no part: readers ask every chunk for its text."""


class Pending:
    """The arguments of a call so far. Whether they are whole is asked again only once they have doubled: asking reads them all."""

    __slots__ = ("pieces", "size", "worth")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.size = 0
        self.worth = 1

    def add(self, piece: str) -> None:
        """One more piece."""
        self.pieces.append(piece)
        self.size += len(piece)

    def is_whole(self, *, settled: bool) -> bool:
        """Whether the arguments are one JSON value. settled: ask though they came in several pieces."""
        if self.size < self.worth or (len(self.pieces) > 1 and not settled):
            return False
        self.worth = 2 * self.size
        return is_json("".join(self.pieces))


class Encoder:
    """Writes one stream."""

    media_type = "text/event-stream"

    def __init__(self, *, model: str | None = None, response_id: str | None = None) -> None:
        self._envelope = {"modelVersion": model, "responseId": response_id}
        self._losses = Report()
        self._items: dict[int, ResponseItem] = {}
        self._calls: dict[int, Pending] = {}
        self._running: dict[int, int] = {}
        self._paragraphs: set[tuple[int, int]] = set()
        self._held: list[tuple[Place, Any]] = []
        self._usage: Usage | None = None
        self._counted: Usage | None = None
        self._blocked: str | None = None
        self._unsaid = False

    @property
    def report(self) -> list[Change]:
        """What Gemini could not say."""
        return self._losses.changes

    def feed(self, event: ResponseEvent) -> bytes:
        """The bytes of one event."""
        handler = _HANDLERS.get(type(event))
        if handler is None:
            self._losses.dropped(f"/{type(event).__name__}", "Gemini has no such event")
            return b""
        return handler(self, event)

    def close(self) -> bytes:
        """The end of the stream is its end."""
        return b""

    # --- chunks ---

    def _chunk(self, candidates: Sequence[JsonObject] = (), **values: Any) -> bytes:
        self._unsaid = False
        body = {"candidates": candidates or None, **values, **self._envelope}
        return sse({key: value for key, value in body.items() if value is not None})

    def _say(self, index: int, *parts: JsonObject) -> bytes:
        """Parts of one item, behind what was held."""
        if not parts:
            return b""
        self._running.pop(self._items[index].choice, None)
        return self._flush() + self._chunk([candidate(parts, self._items[index].choice)])

    def _flush(self) -> bytes:
        """What was held, in a chunk of its own."""
        return self._last(()) if self._held or self._usage is not None else b""

    def _last(self, ends: Sequence[FinishedChoice]) -> bytes:
        """A chunk without parts: metadata, counts, and the reasons for which the candidates ended."""
        left = [
            end for end in ends if not (self._blocked and end.native_stop_reason == self._blocked)
        ]
        finish = {end.choice: finish_reason(end, self._losses) for end in left}
        choices = sorted(
            {*finish, *(place.choice for place, _ in self._held if place.choice is not None)}
        ) or [0]
        made = [
            candidate(
                [NOTHING_SAID],
                choice,
                [(place, value) for place, value in self._held if place.choice == choice],
                finish.get(choice),
            )
            for choice in choices
        ]
        around = {place.key: value for place, value in self._held if place.choice is None}
        counts = usage_object(self._usage, self._losses)
        self._held, self._usage = [], None
        return self._chunk(
            made if self._items or not self._blocked else (), **around, usageMetadata=counts
        )

    # --- the envelope ---

    def _on_created(self, event: Created) -> bytes:
        self._identify(event.response_id, event.model)
        self._unsaid = True
        return b""

    def _identify(self, response_id: str | None, model: str | None) -> None:
        said = {"modelVersion": model, "responseId": response_id}
        self._envelope = {key: said[key] or self._envelope[key] for key in said}

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        """A chunk says candidates first, then itself, then counts: what would stand before what is held goes into the next."""
        out = self._whole_calls()
        fresh = [(place_of(key), value) for key, value in event.values.items()]
        if self._usage is not None or (self._held and _order(fresh) <= _order(self._held)):
            out += self._flush()
        self._held += fresh
        self._blocked = block_reason(event.values) or self._blocked
        return out

    def _on_usage(self, event: TokenCount) -> bytes:
        out = self._whole_calls()
        if self._usage is not None:
            out += self._flush()
        self._usage = self._counted = event.usage
        return out

    # --- items ---

    def _on_added(self, event: OutputItemAdded) -> bytes:
        out = self._whole_calls(settled=True)
        item = self._items[event.index] = event.item
        if isinstance(item, FunctionCall) and is_own(item):
            self._calls[event.index] = Pending()
        return out

    def _alone(self, item: ResponseItem) -> bool:
        return not isinstance(item, STREAMED) or bool(
            is_own(item) and (item.signature or item.native)
        )

    def _text(self, index: int, text: str, *, thought: bool = False) -> bytes:
        item = self._items[index]
        if self._alone(item) or not text:
            return b""
        out = self._whole_calls()
        earlier = self._running.get(item.choice, index)
        if earlier != index and type(self._items[earlier]) is type(item):
            self._losses.dropped("/items", "texts that stand beside each other run together")
        out += self._say(index, {"text": text, "thought": True} if thought else {"text": text})
        self._running[item.choice] = index
        return out

    def _on_text(self, event: OutputTextDelta) -> bytes:
        self._note_logprobs(event)
        return self._text(event.index, event.delta)

    def _on_reasoning(self, event: ReasoningContentDelta) -> bytes:
        self._note_logprobs(event)
        return self._text(event.index, event.delta, thought=True)

    def _note_logprobs(self, event: OutputTextDelta | ReasoningContentDelta) -> None:
        if event.logprobs:
            self._losses.dropped("/logprobs", "Gemini gives the logprobs of a whole answer")

    def _on_refusal(self, event: RefusalDelta) -> bytes:
        self._losses.dropped("/refusal", "a refusal is plain text in Gemini")
        return self._text(event.index, event.delta)

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        self._losses.dropped("/summary", "a summary is a plain thought in Gemini")
        paragraph = (event.index, event.summary_index)
        gap = "\n\n" if event.summary_index and paragraph not in self._paragraphs else ""
        self._paragraphs.add(paragraph)
        return self._text(event.index, gap + event.delta, thought=True)

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        out = self._whole_calls(but=event.index)
        pending = self._calls.get(event.index)
        if pending is not None:
            if pending.pieces:
                self._losses.dropped(
                    "/arguments", "a part holds a whole call: its arguments are not streamed"
                )
            pending.add(event.delta)
        return out

    def _whole_calls(self, *, but: int | None = None, settled: bool = False) -> bytes:
        """Gemini's own calls keep their place: they go out once they are whole, in their order, though they are open to the end.

        A call mostly comes in one piece. settled: ask also for those that came in several.
        """
        out = b""
        while self._calls:
            index, pending = next(iter(self._calls.items()))
            if index == but or not pending.is_whole(settled=settled):
                break
            del self._calls[index]
            whole = msgspec.structs.replace(
                self._items[index], arguments="".join(pending.pieces), status="completed"
            )
            out += self._say(index, *parts_of(whole, self._losses))
        return out

    def _on_done(self, event: OutputItemDone) -> bytes:
        item, begun = event.item, self._items[event.index]
        if isinstance(item, FunctionCall) and is_own(item) and event.index not in self._calls:
            return b""
        waiting = self._calls.pop(event.index, None)
        if waiting is None and not self._alone(begun):
            return self._rest(event.index, item)
        return self._whole_calls() + self._say(event.index, *parts_of(item, self._losses))

    def _rest(self, index: int, item: ResponseItem) -> bytes:
        """What an item whose text has gone out says beside it: media, a signature that came last."""
        content = (
            [part for part in item.content if not isinstance(part, (Text, Refusal))]
            if isinstance(item, Message)
            else []
        )
        bare: JsonObject = (
            {"content": tuple(content)}
            if isinstance(item, Message)
            else {"content": "", "summary": ()}
        )
        return self._say(index, *parts_of(msgspec.structs.replace(item, **bare), self._losses))

    # --- the end ---

    def _on_completed(self, event: Completed) -> bytes:
        self._identify(event.response_id, event.model)
        if event.usage is not None and not event.usage.same_numbers(self._counted):
            self._usage = event.usage
        if event.stop_sequence is not None:
            self._losses.dropped("/stop_sequence", "Gemini does not say which sequence stopped it")
        return self._last(
            event.choices or (FinishedChoice(0, event.stop_reason, event.native_stop_reason),)
        )

    def _on_failed(self, event: Failed) -> bytes:
        out = self._flush() or (self._chunk() if self._unsaid else b"")
        return out + sse(error_body(event.error))

    def _nothing(self, event: Any) -> bytes:
        """Known, and rightly without bytes: headers carry rate limits, notices are made again by whoever parses, media come whole."""
        return b""

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        self._losses.dropped("/annotations", "Gemini cites by byte spans of the whole answer")
        return b""


def _order(values: list[tuple[Place, Any]]) -> int:
    """Where in a chunk the last of these values stands."""
    return max(1 << 20 if place.choice is None else place.choice for place, _ in values)


_HANDLERS: Final[dict[type, Callable[[Encoder, Any], bytes]]] = {
    OutputTextDelta: Encoder._on_text,
    ReasoningContentDelta: Encoder._on_reasoning,
    FunctionCallArgumentsDelta: Encoder._on_arguments,
    ReasoningSummaryDelta: Encoder._on_summary,
    OutputItemAdded: Encoder._on_added,
    OutputItemDone: Encoder._on_done,
    TokenCount: Encoder._on_usage,
    RefusalDelta: Encoder._on_refusal,
    AnnotationAdded: Encoder._on_annotation,
    Created: Encoder._on_created,
    ResponseMetadata: Encoder._on_metadata,
    Completed: Encoder._on_completed,
    Failed: Encoder._on_failed,
    MediaDelta: Encoder._nothing,
    RateLimits: Encoder._nothing,
    Notice: Encoder._nothing,
    ItemProgress: Encoder._nothing,
}
"""`Passthrough` is missing: what no parser knows, no reader of this wire does."""


def encode_body(response: Response, model: str | None, losses: Report) -> bytes:
    """A whole GenerateContentResponse, or the error body of a response that failed."""
    if response.error is not None:
        return msgspec.json.encode(error_body(response.error))
    values = [(place_of(key), value) for key, value in response.metadata.items()]
    choices = response.choices or (
        Choice(0, response.items, response.stop_reason, response.native_stop_reason),
    )
    blocked = block_reason(response.metadata)
    body = {
        "candidates": None
        if blocked and not response.items
        else [_whole_candidate(one, values, blocked, losses) for one in choices],
        **{place.key: value for place, value in values if place.choice is None},
        "usageMetadata": usage_object(response.usage, losses),
        "modelVersion": response.model or model,
        "responseId": response.response_id,
    }
    return msgspec.json.encode({key: value for key, value in body.items() if value is not None})


def _whole_candidate(
    choice: Choice, values: list[tuple[Place, Any]], blocked: str | None, losses: Report
) -> JsonObject:
    """A candidate without a reason is whole all the same, where none was given."""
    parts = [part for item in choice.items for part in parts_of(item, losses)]
    end = FinishedChoice(choice.index, choice.stop_reason or "other", choice.native_stop_reason)
    blocked_here = blocked is not None and end.native_stop_reason == blocked
    finish = (
        None
        if blocked_here or (end.native_stop_reason is None and end.stop_reason == "other")
        else finish_reason(end, losses)
    )
    return candidate(
        parts,
        choice.index,
        [(place, value) for place, value in values if place.choice == choice.index],
        finish,
    )
