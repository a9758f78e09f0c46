"""Reasoning as one text, for wires without summary paragraphs: all but Responses."""

from __future__ import annotations

from streamlib_parsers.events import ReasoningSummaryDelta
from streamlib_parsers.items import Reasoning


def reasoning_text(item: Reasoning) -> str:
    """The summary paragraphs, then the content, with a blank line between them."""
    paragraphs = list(item.summary)
    if item.content:
        paragraphs.append(item.content)
    return "\n\n".join(paragraphs)


class SummaryGaps:
    """Puts the blank line of `reasoning_text` between the paragraphs of a streamed summary."""

    def __init__(self) -> None:
        # Item index and summary index of each paragraph that had a delta.
        self._started: set[tuple[int, int]] = set()

    def with_gap(self, event: ReasoningSummaryDelta) -> str:
        """The text of the delta, after a blank line if it starts a further paragraph."""
        paragraph = (event.index, event.summary_index)
        if paragraph in self._started:
            return event.delta
        self._started.add(paragraph)
        if event.summary_index == 0:
            return event.delta
        return "\n\n" + event.delta
