"""The texts of an open item while they grow, and the citations that support them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from streamlib.pipeline.units import TextMachine
from streamlib_parsers.events import DELTA_KEYS, AnnotationAdded, Notice
from streamlib_parsers.items import CustomToolCall, JsonObject, ResponseItem

_OFFSETS: Final = (("start_index", "end_index"), ("startIndex", "endIndex"), ("start", "end"))
"""Keys under which citations name the text that they support."""


class StreamedText:
    """One text of an open item."""

    def __init__(self, machine: TextMachine, event: Any) -> None:
        self.machine = machine
        self.feed = machine.feed
        self.kind = type(event)
        self.key = DELTA_KEYS[self.kind][-1]
        """The field of its deltas that names it."""
        self.position = delta_position(event)
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
        self.parts: dict[tuple[type, int], StreamedText] = {}
        self.current: StreamedText | None = None
        """The part whose text grows."""
        self.waiting: OrderedDict[tuple[type, int], list[Any]] = OrderedDict()
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


def delta_position(event: Any) -> int:
    """Which text of its kind a delta belongs to, in its item."""
    position: int = getattr(event, DELTA_KEYS[type(event)][-1])
    return position
