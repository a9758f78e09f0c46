"""Text that is read while it grows, after every fragment if the caller wants, in linear time."""

from __future__ import annotations

import sys
from typing import Final

OWN_REFERENCES: Final = 2
"""References to a string that only `joined` knows: its variable and the argument of `getrefcount`.
Newer interpreters count fewer."""

SHORT: Final = 1024
"""Characters that are joined again, whatever is new: to count what is new takes as long."""


class GrowingText(list[str]):
    """The fragments of a text.

    It is a list so that parsers append the fragment of each event without a call of a Python
    method. `joined` replaces the fragments by the text; later calls append to that text what came
    since.

    CPython appends to a string in place while nothing else refers to it. A caller who keeps the
    latest text (``snapshot = stream.snapshot`` in a loop keeps it until the next is made) prevents
    that, and each call would copy the text: 74 us at half a megabyte. Therefore two texts take
    turns: by then nothing refers to the other one. Only a caller who keeps every text pays for a
    copy of each.
    """

    _other: str = ""
    """An earlier joined text, to be continued; empty until a caller kept the joined text."""

    def joined(self) -> str:
        """The text so far."""
        count = len(self)
        if count < 2:
            return self[0] if self else ""
        text = self[0]
        if count > 2 and (len(text) < SHORT or 2 * len(text) < sum(map(len, self))):
            # Most of the text is new, as in the first call: all is joined at once. Joining what is
            # new, and then both, would make two more copies.
            text = "".join(self)
            list.clear(self)
            self.append(text)
            return text
        self[0] = ""  # else the list keeps a reference, too
        added = self[1] if count == 2 else "".join(self)
        list.clear(self)  # half the time of `super().clear()`
        if sys.getrefcount(text) > OWN_REFERENCES:
            latest = text
            text = self._other
            self._other = latest
            added = latest[len(text) :] + added
        # In place only as an augmented assignment to a local variable.
        text += added
        self.append(text)
        return text

    def clear(self) -> None:
        """Forgets the text."""
        super().clear()
        self._other = ""
