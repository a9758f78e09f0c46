"""The value of a parameter between tags, which may itself hold tags.

It ends at the last closing tag before the next parameter or the end of its call, so that text with the closing tag in it survives.
A whole call inside a value is part of it: its own tags are counted. That also tells a value from a call that was never closed and
has a whole one behind it: the outer one never ends, comes back as text, and the inner one is found.
"""

from __future__ import annotations

from msgspec import Struct

from streamlib_parsers.dialects.cursor import HEAD, Cursor, NoMatch, Parse
from streamlib_parsers.dialects.literal_search import StringBuffer


class ValueTags(Struct, frozen=True):
    """closes: of the value. nexts: of the next parameter. ends, opens: of a call. outer: ends of what stands around calls, which stand
    for a missing end of the call behind a closed value. head_end: what ends the head of an opened call.

    lenient: the next parameter or the call's end at the start of a line ends a value that was not closed.
    """

    closes: tuple[str, ...]
    nexts: tuple[str, ...]
    ends: tuple[str, ...]
    opens: tuple[str, ...]
    outer: tuple[str, ...] = ()
    head_end: str = ">"
    lenient: bool = False

    @property
    def stops(self) -> tuple[str, ...]:
        """Everything to look for."""
        return (*self.closes, *self.nexts, *self.ends, *self.opens, *self.outer)


class _Value:
    """A value so far. closed: its size at the last closing tag, -1 before. nested: calls that are open inside of it."""

    __slots__ = ("_head", "_last", "closed", "nested", "pieces")

    def __init__(self) -> None:
        self.pieces = StringBuffer()
        self.closed = -1
        self.nested = 0
        self._head: list[str] | None = None
        self._last = ""

    def add(self, piece: str) -> None:
        """Text."""
        self.pieces.add(piece)
        self._last = piece[-1]
        if self._head is not None:
            self._head.append(piece)

    def stop(self, stop: str, *, opens: bool) -> None:
        """A tag that turned out to belong to the value; the head of a call may follow it."""
        self.add(stop)
        self._head = [] if opens else None

    def after_head(self, end: str) -> bool:
        """Whether nothing but the head of a call stands between the last opening tag and here."""
        if self._head is None:
            return False
        head = "".join(self._head).strip()
        return bool(head) and len(head) <= HEAD and head.endswith(end) and "\n" not in head

    @property
    def on_new_line(self) -> bool:
        """Whether a line begins here."""
        return self._last == "\n"

    def text(self) -> str:
        """The value, up to its last closing tag if there was one."""
        text = self.pieces.text()
        return text if self.closed < 0 else text[: self.closed]


def tag_value(text: Cursor, tags: ValueTags) -> Parse[tuple[str, str]]:
    """The value and the tag after it, read: one of `nexts`, `ends` or `outer`, "" at the end of the message behind a closed value."""
    value, stops = _Value(), tags.stops
    while True:
        stop = yield from text.until(stops, value.add)
        if not stop:
            return _at_end(value, tags), ""
        if stop in tags.closes:
            if not value.nested:
                value.closed = value.pieces.size
        elif stop not in tags.opens:
            inner = value.after_head(tags.head_end)
            if inner and value.closed >= 0:
                raise NoMatch  # a whole call begins behind a closed value: the outer one lost its end
            lenient = tags.lenient and value.on_new_line and stop not in tags.outer
            if not (inner or value.nested) and (value.closed >= 0 or lenient):
                return value.text(), stop
            if stop in tags.nexts:
                value.nested += inner
            elif stop in tags.ends and value.nested and not inner:
                value.nested -= 1
        value.stop(stop, opens=stop in tags.opens)


def _at_end(value: _Value, tags: ValueTags) -> str:
    """The message is over: a closed value stands if nothing but white space follows it."""
    whole, closed = value.pieces.text(), value.closed
    behind = whole[closed:] if closed >= 0 else ""
    close = next((close for close in tags.closes if behind.startswith(close)), None)
    if close is None or behind[len(close) :].strip():
        raise NoMatch
    return whole[:closed]
