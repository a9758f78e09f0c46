"""JSON in a Markdown fence, as models write it that were not asked for JSON by the wire."""

from __future__ import annotations

from typing import Final

from streamlib.structured.values import FENCE

LONGEST_LABEL: Final = 40
"""Characters after the opening fence (`json`) before a text counts as no fenced one."""


class OpeningFence:
    """Takes the opening fence off a growing text. JSON never begins with a backtick.

    The closing fence needs nothing: it is after the end of the JSON.
    """

    def __init__(self) -> None:
        self._head = ""
        """The beginning of the text, as long as it may be a fence."""
        self._is_open = True
        """Whether the beginning is still undecided."""

    def feed(self, text: str) -> str:
        """The next text of the JSON: without the fence, and nothing as long as it is undecided."""
        if not self._is_open:
            return text
        head = (self._head + text).lstrip()
        label = head.removeprefix(FENCE)
        is_fenced = label is not head and len(label) != len(head)
        if is_fenced and "\n" in label:
            self._is_open = False
            return label.partition("\n")[2]
        if (is_fenced and len(label) <= LONGEST_LABEL) or FENCE.startswith(head):
            self._head = head
            return ""
        self._is_open = False
        return head
