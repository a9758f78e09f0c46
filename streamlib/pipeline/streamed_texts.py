"""The texts of an open item while they grow, and the citations that support them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, TypeAlias, TypeVar

from msgspec.structs import replace

from streamlib.pipeline.units import TextMachine
from streamlib_parsers.events import DELTA_KEYS, AnnotationAdded, Notice, TextDelta
from streamlib_parsers.items import CustomToolCall, JsonObject, ResponseItem

_OFFSETS: Final = (("start_index", "end_index"), ("startIndex", "endIndex"), ("start", "end"))
"""Keys under which citations name the text that they support."""


DeltaT = TypeVar("DeltaT", bound=TextDelta)

TextKey: TypeAlias = tuple[type, int, int]
"""The text that a delta belongs to: its kind, the item's index, the part's or paragraph's index."""


class StreamedText:
    """One text of an open item."""

    def __init__(self, machine: TextMachine, event: Any) -> None:
        self.machine = machine
        self.feed = machine.feed
        self.kind = type(event)
        self.key = DELTA_KEYS[self.kind][-1]
        """The field of its deltas that names it."""
        self.position = text_key(event)[-1]
        self.last = event
        """The delta that was fed last."""
        self.received: list[str] = []
        self.emitted: list[str] = []
        """Both only where the text may change: for the final item."""

    @property
    def buffered(self) -> int:
        """Characters whose fate is not known yet."""
        return self.machine.buffered

    def texts(self) -> tuple[str, str]:
        """What was received, and what was emitted."""
        # Kept joined: an item may have many citations.
        self.received = ["".join(self.received)]
        self.emitted = ["".join(self.emitted)]
        return self.received[0], self.emitted[0]


class StreamedItem:
    """The texts of an open item."""

    def __init__(self, index: int, item: ResponseItem | None = None) -> None:
        self.index = index
        self.choice = item.choice if item is not None else 0
        self.is_free_text = isinstance(item, CustomToolCall)
        self.parts: dict[TextKey, StreamedText] = {}
        self.current: StreamedText | None = None
        """The part whose text grows."""
        self.waiting: OrderedDict[TextKey, list[Any]] = OrderedDict()
        """Deltas of further parts. They wait until the text of the current one is known: readers
        that join all parts must get them in their order."""
        self.annotations: list[AnnotationAdded] = []
        """Citations of a text that is not known yet."""
        self.dropped = 0
        """Citations whose event was dropped; the final item has them too."""


def dropped_annotation(index: int) -> Notice:
    """What is reported of a citation that supports its text no longer."""
    return Notice("annotation_dropped", "the text that it supports has changed", index)


def supports_same(annotation: JsonObject, before: str, after: str) -> bool:
    """Whether a citation still supports the text that it was made for."""
    offsets = citation_offsets(annotation)
    if offsets is None:
        return True
    start, end = offsets
    if before[:end] == after[:end]:
        return True
    if before[start:end] != after[start:end]:
        return False
    # Some wires count bytes of UTF-8.
    before_bytes = before.encode("utf-8", "surrogatepass")
    return before_bytes[start:end] == after.encode("utf-8", "surrogatepass")[start:end]


def citation_offsets(annotation: JsonObject) -> tuple[int, int] | None:
    """The characters that a citation supports, where it names them."""
    # Chat has them in an object of the citation's own.
    objects = [annotation, *[value for value in annotation.values() if isinstance(value, dict)]]
    for first, last in _OFFSETS:
        for named in objects:
            start, end = named.get(first, 0), named.get(last)
            if type(start) is int and type(end) is int:
                return start, end
    return None


def text_key(event: Any) -> TextKey:
    """The text that a delta belongs to."""
    kind = type(event)
    return kind, event.index, getattr(event, DELTA_KEYS[kind][-1])


def bare_delta(event: DeltaT, text: str) -> DeltaT:
    """The delta with another text: without log probabilities, which are those of its own."""
    if getattr(event, "logprobs", None) is None:
        return replace(event, delta=text)
    return replace(event, delta=text, logprobs=None)


def joined(deltas: Sequence[TextDelta]) -> TextDelta:
    """Deltas of one text as one, with the number of the last."""
    last = deltas[-1]
    if len(deltas) == 1:
        return last
    text = "".join([event.delta for event in deltas])
    logprobs: list[Any] = []
    for event in deltas:
        known: Any = getattr(event, "logprobs", None)
        if known:
            logprobs += known
        elif event.delta:
            # A stage has changed this one, or the wire sent it so. Those of a part would seem to
            # be those of the whole.
            return bare_delta(last, text)
    if not logprobs:
        return bare_delta(last, text)
    return replace(last, delta=text, logprobs=tuple(logprobs))
