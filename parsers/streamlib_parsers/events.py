"""What a stream says, in one vocabulary for every wire.

The order is a promise: `RateLimits` (when headers were given), `Created`, then for each item `OutputItemAdded`, its deltas and
`OutputItemDone` (items may overlap), and exactly one terminal, `Completed` or `Failed`, with every item closed before it.
`index` counts items in the order they begin. `seq` rises by one an event; equality of events ignores it. Events hold no clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import JsonObject, ResponseItem, snake_case
from streamlib_parsers.usage import Usage

StopReason: TypeAlias = Literal[
    "stop", "tool_calls", "length", "content_filter", "refusal", "pause", "other"
]


class Event(
    Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    repr_omit_defaults=True,
    kw_only=True,
    tag_field="type",
    tag=snake_case,
):
    """Base of the events."""

    seq: int = 0

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(
            getattr(self, field) == getattr(other, field)
            for field in self.__struct_fields__
            if field != "seq"
        )

    __hash__ = None  # type: ignore[assignment]  # events carry JSON objects; equality that ignores seq must not be hashed by it


class Window(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """One rate-limit window. `reset_at` is UTC and needs `received_at`; `reset_after` is in seconds. None: the provider did not say."""

    limit: float | None = None
    remaining: float | None = None
    reset_at: datetime | None = None
    reset_after: float | None = None


class RateLimits(Event, frozen=True):
    """What is left, from response headers (first of all events) or from a frame of the stream.

    windows: further windows by the provider's name (`requests-day`, `unified-5h`, `codex-primary` …). `retry_after`: seconds.
    raw: the headers this was read from, lower-case.
    """

    requests: Window | None = None
    tokens: Window | None = None
    input_tokens: Window | None = None
    output_tokens: Window | None = None
    windows: dict[str, Window] = {}
    retry_after: float | None = None
    request_id: str | None = None
    raw: dict[str, str] = {}


class Created(Event, frozen=True):
    """The response has begun: sent with the first non-empty id, or with the first item on wires that have none."""

    response_id: str | None = None
    model: str | None = None


class OutputItemAdded(Event, frozen=True):
    """An item begins. `item` is what is known of it so far (status `incomplete`, text empty); a call's name is always known."""

    index: int
    item: ResponseItem


class OutputTextDelta(Event, frozen=True):
    """Text of a message. `logprobs`: the wire's own objects for the tokens of this delta."""

    index: int
    content_index: int
    delta: str
    logprobs: Sequence[JsonObject] | None = None


class ReasoningContentDelta(Event, frozen=True):
    """A thought as the model wrote it (messages: thinking_delta · chat: reasoning_content · responses: reasoning_text)."""

    index: int
    content_index: int
    delta: str
    logprobs: Sequence[JsonObject] | None = None


class ReasoningSummaryDelta(Event, frozen=True):
    """A summary of a thought (responses: reasoning_summary_text). `summary_index` counts its paragraphs."""

    index: int
    summary_index: int
    delta: str


class FunctionCallArgumentsDelta(Event, frozen=True):
    """Text of whatever has arguments, input or code: function, custom and server calls."""

    index: int
    delta: str


class RefusalDelta(Event, frozen=True):
    """Words with which the model declines (responses: refusal part · chat: delta.refusal)."""

    index: int
    content_index: int
    delta: str


class MediaDelta(Event, frozen=True):
    """Bytes of an image or of audio, as base64 text, and what is said in them."""

    index: int
    content_index: int
    media_type: str | None = None
    data: str | None = None
    transcript: str | None = None


class AnnotationAdded(Event, frozen=True):
    """A citation of a text part, as the wire's own object. It may come before the text it supports."""

    index: int
    content_index: int
    annotation: JsonObject


class ItemProgress(Event, frozen=True):
    """A hosted tool says how far it is (`searching`, `interpreting`, `generating` …)."""

    index: int
    status: str


class OutputItemDone(Event, frozen=True):
    """The whole item, as it belongs into the history. `status` is `incomplete` where it was cut."""

    index: int
    item: ResponseItem


class TokenCount(Event, frozen=True):
    """Usage so far: a running snapshot, sent only when a number changed. It replaces the one before; it is never to be added."""

    usage: Usage


class ResponseMetadata(Event, frozen=True):
    """Envelope keys that are new or changed, under the wire's own names (service_tier, container, safetyRatings …)."""

    values: JsonObject


class Passthrough(Event, frozen=True):
    """An event or delta kind this version does not know, in its place. `data` is its JSON value, or the text where it is none."""

    event: str
    data: Any


class Notice(Event, frozen=True):
    """Something odd that was noticed or repaired; `code` is a stable word, `index` the item it is about."""

    code: str
    detail: str = ""
    index: int | None = None


class FinishedChoice(NamedTuple):
    """How one choice ended (chat: choices[].finish_reason · gemini: candidates[].finishReason)."""

    choice: int
    stop_reason: StopReason
    native_stop_reason: str | None = None


class Completed(Event, frozen=True):
    """The wire said that the answer is whole. `native_stop_reason` is the wire's own word for `stop_reason`."""

    response_id: str | None = None
    model: str | None = None
    stop_reason: StopReason = "other"
    native_stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: Usage | None = None
    choices: tuple[FinishedChoice, ...] = ()


class Failed(Event, frozen=True):
    """The stream ended in any other way; what came before it is the partial response."""

    error: ErrorInfo


ResponseEvent: TypeAlias = (
    OutputTextDelta  # the most frequent kinds first: a `match` tests them in order
    | ReasoningContentDelta
    | FunctionCallArgumentsDelta
    | ReasoningSummaryDelta
    | OutputItemAdded
    | OutputItemDone
    | TokenCount
    | RefusalDelta
    | MediaDelta
    | AnnotationAdded
    | ItemProgress
    | RateLimits
    | Created
    | ResponseMetadata
    | Passthrough
    | Notice
    | Completed
    | Failed
)
