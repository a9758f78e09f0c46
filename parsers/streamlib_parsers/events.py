"""The events of a stream, the same for every wire.

Their order is an invariant: `RateLimits` (where headers were given), `Created`, then for each item
`OutputItemAdded`, its deltas and `OutputItemDone` (items may overlap), and exactly one terminal
event, `Completed` or `Failed`, with every item closed before it.

`index` counts items in the order in which they start. `seq` increases by one with each event;
equality of events ignores it. Events hold no timestamps.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import CallOutput, JsonObject, ResponseItem, snake_case
from streamlib_parsers.upward import upward
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
    """Base of the events.

    Attributes:
        seq: number of the event.
        agent: the agent whose item the event is about; None for the one that was asked, and for
            events about no item. See `Item.agent`.
    """

    seq: int = 0
    agent: str | None = None

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        for name in self.__struct_fields__:
            if name != "seq" and getattr(self, name) != getattr(other, name):
                return False
        return True

    # Events hold JSON objects, and an equality that ignores `seq` must not be hashed by it.
    __hash__ = None  # type: ignore[assignment]


class Window(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """One rate-limit window; None where the provider did not report a value.

    Attributes:
        limit: requests or tokens that the window allows.
        remaining: how many of them are left.
        reset_at: UTC; from a relative value only where `received_at` was given to the parser.
        reset_after: seconds until the window resets.
    """

    limit: float | None = None
    remaining: float | None = None
    reset_at: datetime | None = None
    reset_after: float | None = None

    def shown(self) -> tuple[str, str, str]:
        """Limit, remaining and reset as texts; empty where they are unknown."""
        limit = "" if self.limit is None else f"{self.limit:,g}"
        remaining = "" if self.remaining is None else f"{self.remaining:,g}"
        if self.reset_after is not None:
            return limit, remaining, f"in {self.reset_after:g} s"
        if self.reset_at is not None:
            return limit, remaining, f"{self.reset_at:%Y-%m-%d %H:%M:%S} UTC"
        return limit, remaining, ""


RATE_LIMIT_COLUMNS: Final = ("window", "limit", "remaining", "resets")
"""Columns of rate limits in a notebook."""


class RateLimits(Event, frozen=True):
    """Rate limits, from response headers (the first event) or from a frame of the stream.

    Attributes:
        requests: requests of the provider's main window.
        tokens: tokens, input and output together.
        input_tokens: input tokens.
        output_tokens: output tokens.
        windows: further windows by the provider's name (``requests-day``, ``unified-5h``,
            ``codex-primary`` …).
        retry_after: seconds to wait before another request.
        request_id: the provider's id of the request.
        raw: the headers these values were read from, in lower case.
    """

    requests: Window | None = None
    tokens: Window | None = None
    input_tokens: Window | None = None
    output_tokens: Window | None = None
    windows: dict[str, Window] = {}
    retry_after: float | None = None
    request_id: str | None = None
    raw: dict[str, str] = {}

    def _repr_html_(self) -> str:
        shown: str = upward("display.notebook_text", "table_html")(RATE_LIMIT_COLUMNS, self._rows())
        return shown

    def _repr_markdown_(self) -> str:
        shown: str = upward("display.notebook_text", "table_markdown")(
            RATE_LIMIT_COLUMNS, self._rows()
        )
        return shown

    def _rows(self) -> list[tuple[str, str, str, str]]:
        """The known windows; the headers in `raw` are not shown."""
        windows: dict[str, Window | None] = {
            "requests": self.requests,
            "tokens": self.tokens,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            **self.windows,
        }
        rows: list[tuple[str, str, str, str]] = []
        for name, window in windows.items():
            if window is not None:
                rows.append((name, *window.shown()))
        if self.retry_after is not None:
            rows.append(("retry_after", "", "", f"{self.retry_after:g} s"))
        return rows


class Created(Event, frozen=True):
    """The response started: sent with its first non-empty id, or before the first item."""

    response_id: str | None = None
    model: str | None = None


class OutputItemAdded(Event, frozen=True):
    """An item starts.

    Attributes:
        index: number of the item.
        item: what is known of it (status `incomplete`, no text); a call's name is always known.
    """

    index: int
    item: ResponseItem


class OutputTextDelta(Event, frozen=True):
    """Text of a message. `logprobs` are the wire's own objects for the tokens of this delta."""

    index: int
    content_index: int
    delta: str
    logprobs: Sequence[JsonObject] | None = None


class ReasoningContentDelta(Event, frozen=True):
    """Reasoning as the model wrote it.

    messages: thinking_delta · chat: reasoning_content · responses: reasoning_text.
    """

    index: int
    content_index: int
    delta: str
    logprobs: Sequence[JsonObject] | None = None


class ReasoningSummaryDelta(Event, frozen=True):
    """Summary of reasoning (responses: reasoning_summary_text). `summary_index` counts
    paragraphs."""

    index: int
    summary_index: int
    delta: str


class FunctionCallArgumentsDelta(Event, frozen=True):
    """Arguments, input or code of a function, custom or server tool call."""

    index: int
    delta: str


class RefusalDelta(Event, frozen=True):
    """Text with which the model declines (responses: refusal part · chat: delta.refusal).

    `logprobs` are the wire's own objects for its tokens (chat: ``logprobs.refusal``).
    """

    index: int
    content_index: int
    delta: str
    logprobs: Sequence[JsonObject] | None = None


class MediaDelta(Event, frozen=True):
    """A fragment of an image or of audio, as base64 text, and its transcript."""

    index: int
    content_index: int
    media_type: str | None = None
    data: str | None = None
    transcript: str | None = None


class AnnotationAdded(Event, frozen=True):
    """A citation of a text part, as the wire's own object. It may precede the text it supports."""

    index: int
    content_index: int
    annotation: JsonObject


class ItemProgress(Event, frozen=True):
    """Progress of a provider-run tool (``searching``, ``interpreting``, ``generating`` …)."""

    index: int
    status: str


class OutputItemDone(Event, frozen=True):
    """The final item, as it goes into the history. `status` is `incomplete` where it was
    truncated."""

    index: int
    item: ResponseItem


class TokenCount(Event, frozen=True):
    """A snapshot of the usage, sent when a number changed. It replaces the one before, it never
    adds."""

    usage: Usage


class ResponseMetadata(Event, frozen=True):
    """New or changed envelope keys, under the wire's own names (service_tier, safetyRatings …)."""

    values: JsonObject


class Passthrough(Event, frozen=True):
    """An event or delta of a kind that this version does not know, in its place among the others.

    Nothing of a stream is lost when a provider adds a kind: handle it by its name, or ignore it. It
    changes no item; an unknown *item* is `Opaque`.

    Attributes:
        event: the wire's name of the kind.
        data: its JSON value; text that is not JSON is a str.
    """

    event: str
    data: Any


class Notice(Event, frozen=True):
    """An anomaly or a repair; `code` is stable, `index` is the item it is about."""

    code: str
    detail: str = ""
    index: int | None = None


class FinishedChoice(NamedTuple):
    """How one choice ended (chat: choices[].finish_reason · gemini: candidates[].finishReason)."""

    choice: int
    stop_reason: StopReason
    native_stop_reason: str | None = None


class Completed(Event, frozen=True):
    """The wire completed the response. `native_stop_reason` is the wire's own `stop_reason`."""

    response_id: str | None = None
    model: str | None = None
    stop_reason: StopReason = "other"
    native_stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: Usage | None = None
    choices: tuple[FinishedChoice, ...] = ()


class Failed(Event, frozen=True):
    """The stream ended in any other way; the events before it are the partial response."""

    error: ErrorInfo


# The most frequent kinds first: a `match` tests them in order.
ResponseEvent: TypeAlias = (
    OutputTextDelta
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

RunEvent: TypeAlias = ResponseEvent | CallOutput
"""What a run of several responses consists of: after the terminal event of a response that asked
for calls come their outputs, then the events of the next response."""

TEXT_DELTAS: Final = (
    OutputTextDelta,
    ReasoningContentDelta,
    FunctionCallArgumentsDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
)
"""Events that append to a text of an item; calls have their arguments as text."""

TextDelta: TypeAlias = (
    OutputTextDelta
    | ReasoningContentDelta
    | FunctionCallArgumentsDelta
    | ReasoningSummaryDelta
    | RefusalDelta
)
"""One of them."""

TOKEN_EVENTS: Final = frozenset({*TEXT_DELTAS, MediaDelta})
"""Events that hold output of a model."""

DELTA_KEYS: Final[dict[type, tuple[str, ...]]] = {
    OutputTextDelta: ("index", "content_index"),
    ReasoningContentDelta: ("index", "content_index"),
    ReasoningSummaryDelta: ("index", "summary_index"),
    FunctionCallArgumentsDelta: ("index",),
    RefusalDelta: ("index", "content_index"),
}
"""Kinds of deltas that append a text -> the fields that identify the text they belong to."""
