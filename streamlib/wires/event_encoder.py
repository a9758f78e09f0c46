"""The base of all encoders: a method for each class of event, found by that class.

An encoder overrides the methods of the events that its wire has a form for. All others are reported
as dropped, so that nothing is lost silently; three classes need no bytes on any wire.

What it writes are frames: JSON values, which a `FrameWriter` makes bytes of. A body is the fold of
the frames of its response (`encode_body` collects them): what the wire's clients accumulate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias, TypedDict

import msgspec

from streamlib.request.origins import is_own, without_foreign_state
from streamlib.request.report import Change, Report
from streamlib.wires.generated_ids import new_id
from streamlib.wires.reasoning_text import SummaryGaps
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Event,
    Failed,
    FunctionCallArgumentsDelta,
    ItemProgress,
    MediaDelta,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    RateLimits,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
    ResponseMetadata,
    TokenCount,
)
from streamlib_parsers.items import JsonObject, Message, Reasoning, ResponseItem, WireApi
from streamlib_parsers.usage import Usage

FrameWriter: TypeAlias = Callable[[Any, str], bytes]
"""Makes the bytes of a frame from its JSON value and its name, "" on wires without names."""


class EncodedFrame(NamedTuple):
    """A frame before it is bytes. JSON in the provider's own bytes is `msgspec.Raw` in it."""

    name: str
    value: Any


METHODS: Final[dict[type[Event], str]] = {
    OutputTextDelta: "_on_text",
    ReasoningContentDelta: "_on_reasoning",
    ReasoningSummaryDelta: "_on_summary",
    RefusalDelta: "_on_refusal",
    FunctionCallArgumentsDelta: "_on_arguments",
    MediaDelta: "_on_media",
    AnnotationAdded: "_on_annotation",
    OutputItemAdded: "_on_any_added",
    OutputItemDone: "_on_any_done",
    ItemProgress: "_on_progress",
    Created: "_on_created",
    ResponseMetadata: "_on_metadata",
    TokenCount: "_on_usage",
    RateLimits: "_on_rate_limits",
    Notice: "_on_notice",
    Passthrough: "_on_passthrough",
    Completed: "_on_completed",
    Failed: "_on_failed",
}
"""Class of event -> name of the method that encodes it. Subclasses are not looked up."""


class EventEncoder:
    """Encodes one stream. Subclasses override the methods of `METHODS`.

    A `match` over the eighteen classes would test the rare ones one after another at every delta;
    a table of functions would hide from type checkers what each function takes.
    """

    wire_api: ClassVar[WireApi | None] = None
    """The wire whose items keep their state. None for a UI protocol, which has rules of its own."""
    no_such_event: ClassVar[str]
    """Why an event is dropped that the wire has no form for."""
    names_agents: ClassVar[bool] = False
    """Whether its form names the agent of an item (`Item.agent`)."""
    has_failed_bodies: ClassVar[bool] = False
    """Whether a failed response has a body with its items, and not only an error object."""
    reserved_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys of the wire's own, which the metadata of another wire must not replace."""
    _methods: ClassVar[dict[type[Event], Callable[[Any, Any], bytes]]]
    """The unbound method of each class of event."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._methods = {kind: getattr(cls, name) for kind, name in METHODS.items()}

    def __init__(self, write: FrameWriter) -> None:
        self._write = write
        self._report = Report()
        self._left_out: set[int] = set()
        """Indexes of the items that are not written: what other agents said."""

    @property
    def report(self) -> list[Change]:
        """What the wire could not carry, so far."""
        return self._report.changes

    def feed(self, event: ResponseEvent) -> bytes:
        """The bytes of one event; empty if it is buffered or cannot be encoded."""
        if self._left_out and getattr(event, "index", None) in self._left_out:
            return b""
        method = self._methods.get(type(event))
        if method is None:
            return self._drop(event)
        return method(self, event)

    def _drop(self, event: Event) -> bytes:
        self._report.dropped(f"/{type(event).__name__}", self.no_such_event)
        return b""

    def _own_metadata(self, values: JsonObject) -> JsonObject:
        """Returns the metadata that can stand beside the wire's own keys; the rest is reported."""
        fields: JsonObject = {}
        for key, value in values.items():
            if key in self.reserved_keys:
                reason = "the wire has another meaning for the key"
                self._report.dropped(f"/metadata/{key}", reason)
            else:
                fields[key] = value
        return fields

    def _on_text(self, event: OutputTextDelta) -> bytes:
        return self._drop(event)

    def _on_reasoning(self, event: ReasoningContentDelta) -> bytes:
        return self._drop(event)

    def _on_summary(self, event: ReasoningSummaryDelta) -> bytes:
        return self._drop(event)

    def _on_refusal(self, event: RefusalDelta) -> bytes:
        return self._drop(event)

    def _on_arguments(self, event: FunctionCallArgumentsDelta) -> bytes:
        return self._drop(event)

    def _on_media(self, event: MediaDelta) -> bytes:
        return self._drop(event)

    def _on_annotation(self, event: AnnotationAdded) -> bytes:
        return self._drop(event)

    def _is_own(self, item: ResponseItem) -> bool:
        """Whether the item was made on this wire, so that its state and form are the wire's."""
        return self.wire_api is not None and is_own(item, self.wire_api)

    def _leaves_out(self, event: OutputItemAdded) -> bool:
        """Whether the item of another agent would be read as that of the agent that was asked.

        Its calls are written: somebody must answer them.
        """
        if event.item.agent is None or self.names_agents:
            return False
        if not isinstance(event.item, (Message, Reasoning)):
            self._report.dropped("/agent", "the wire cannot say which agent made a call")
            return False
        self._left_out.add(event.index)
        self._report.dropped("/agent", "the wire has one agent: what others said is left out")
        return True

    def _on_any_added(self, event: OutputItemAdded) -> bytes:
        if self._leaves_out(event):
            return b""
        if self.wire_api is None or is_own(event.item, self.wire_api):
            return self._on_added(event)
        item = without_foreign_state(event.item, self.wire_api, self._report)
        return self._on_added(msgspec.structs.replace(event, item=item))

    def _on_any_done(self, event: OutputItemDone) -> bytes:
        if self.wire_api is None or is_own(event.item, self.wire_api):
            return self._on_done(event)
        item = without_foreign_state(event.item, self.wire_api, self._report)
        return self._on_done(msgspec.structs.replace(event, item=item))

    def _on_added(self, event: OutputItemAdded) -> bytes:
        """Encodes the start of an item: state in it is this wire's own."""
        return self._drop(event)

    def _on_done(self, event: OutputItemDone) -> bytes:
        """Encodes the end of an item: state in it is this wire's own."""
        return self._drop(event)

    def _on_created(self, event: Created) -> bytes:
        return self._drop(event)

    def _on_metadata(self, event: ResponseMetadata) -> bytes:
        return self._drop(event)

    def _on_usage(self, event: TokenCount) -> bytes:
        return self._drop(event)

    def _on_passthrough(self, event: Passthrough) -> bytes:
        return self._drop(event)

    def _on_completed(self, event: Completed) -> bytes:
        return self._drop(event)

    def _on_failed(self, event: Failed) -> bytes:
        return self._drop(event)

    def _on_progress(self, event: ItemProgress) -> bytes:
        return b""  # the item's end follows

    def _on_rate_limits(self, event: RateLimits) -> bytes:
        return b""  # they are headers of the response

    def _on_notice(self, event: Notice) -> bytes:
        return b""  # a parser of the encoded stream makes them itself


class ResponseNames(TypedDict, total=False):
    """What the caller of a wire's encoder may name, used if the events name none.

    Attributes:
        model: the model's name.
        response_id: the id of the response.
    """

    model: str | None
    response_id: str | None


class WireEncoder(EventEncoder):
    """The base of the wires' encoders, with the state that nearly all of them keep."""

    media_type = "text/event-stream"
    end_mark: ClassVar[bytes] = b""
    """What `close` adds to a response that has ended; empty on wires without an end mark."""
    id_prefix: ClassVar[str | None] = None
    """Prefix of the id that a response gets if nobody names one; None: it stays without."""

    def __init__(
        self, write: FrameWriter, *, model: str | None = None, response_id: str | None = None
    ) -> None:
        super().__init__(write)
        self._model = model
        """Used if `Created` has no model."""
        if not response_id and self.id_prefix is not None:
            response_id = new_id(self.id_prefix)
        self._response_id = response_id
        """Used if `Created` has no id."""
        self._started = False
        """Whether the first frame was sent."""
        self._ended = False
        """Whether the event that ends the stream was sent."""
        self._envelope: JsonObject = {}
        """Metadata that was not sent yet."""
        self._usage: Usage | None = None
        """The latest usage."""
        self._gaps = SummaryGaps()

    def close(self) -> bytes:
        """The end mark, if the response has ended."""
        return self.end_mark if self._ended else b""

    def _on_usage(self, event: TokenCount) -> bytes:
        self._usage = event.usage
        return b""
