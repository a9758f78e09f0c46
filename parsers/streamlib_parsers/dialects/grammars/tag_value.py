"""The value of a parameter between tags, which may itself contain tags.

It ends at the last closing tag before the next parameter or the end of its call, so that text with
the closing tag in it survives. A complete call inside a value is part of it: its own tags are
counted. That also tells a value from a call that was never closed and has a complete one after it:
the outer one never ends, is emitted as text, and the inner one is read.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from streamlib_parsers.dialects.cursor import HEAD, NoMatch, Parse, TextCursor
from streamlib_parsers.dialects.literal_search import StringBuffer


class ValueText(Protocol):
    """Receives the text of a value."""

    def add(self, text: str) -> None:
        """A fragment."""
        ...


class ValueTags(Struct, frozen=True):
    """The tags that matter to a value.

    Args:
        closes: of the value.
        nexts: of the next parameter.
        ends: of the call.
        opens: of a call.
        outer: ends of what is around calls; after a closed value they stand for a missing end
            of the call.
        head_end: what ends the head of an opening tag of a call.
        lenient: whether the next parameter or the call's end, at the start of a line, ends a value
            that was not closed.
        private: whether the tags are tokens of the model's vocabulary: the next parameter or the
            call's end ends the value, closed or not. The tag of a call is text of a value that is
            closed after it, as in an argument about such calls; else another call begins there.
    """

    closes: tuple[str, ...]
    nexts: tuple[str, ...]
    ends: tuple[str, ...]
    opens: tuple[str, ...]
    outer: tuple[str, ...] = ()
    head_end: str = ">"
    lenient: bool = False
    private: bool = False

    @property
    def stops(self) -> tuple[str, ...]:
        """Everything to search for."""
        return (*self.closes, *self.nexts, *self.ends, *self.opens, *self.outer)


class _Value:
    """The value so far."""

    __slots__ = ("_behind", "_head", "_last", "_output", "nested")

    def __init__(self, output: ValueText) -> None:
        self.nested = 0
        """Calls that are open inside of it."""
        self._output = output
        """Receives what is certain to be the value's."""
        self._behind: StringBuffer | None = None
        """Text from the last closing tag on: the value's only if another one follows. None before
        the first."""
        self._head: list[str] | None = None
        """Text since the last opening tag of a call; None where another tag followed."""
        self._last = ""
        """The last character."""

    @property
    def is_closed(self) -> bool:
        """Whether a closing tag was read."""
        return self._behind is not None

    def add(self, text: str) -> None:
        """Text."""
        if self._behind is None:
            self._output.add(text)
        else:
            self._behind.add(text)
        self._last = text[-1]
        if self._head is not None:
            self._head.append(text)

    def add_stop(self, stop: str, *, opens: bool) -> None:
        """A tag that turned out to belong to the value; one that opens a call has a head."""
        self.add(stop)
        self._head = [] if opens else None

    def hold(self) -> None:
        """What follows is the value's only if a closing tag comes."""
        if self._behind is None:
            self._behind = StringBuffer()

    def close(self) -> None:
        """A closing tag follows: all text before it is the value's."""
        if self._behind is not None:
            self._output.add(self._behind.text())
        self._behind = StringBuffer()

    def is_after_head(self, end: str) -> bool:
        """Whether nothing but the head of a call stands since the last opening tag."""
        if self._head is None:
            return False
        head = "".join(self._head).strip()
        return bool(head) and len(head) <= HEAD and head.endswith(end) and "\n" not in head

    @property
    def on_new_line(self) -> bool:
        """Whether a line begins here."""
        return self._last == "\n"


def tag_value(text: TextCursor, tags: ValueTags, output: ValueText) -> Parse[str]:
    """Reads a value and the tag after it.

    Args:
        text: the message.
        tags: those that matter.
        output: receives the value.

    Returns:
        One of `nexts`, `ends` or `outer`.

    Raises:
        NoMatch: the value does not end, or its call lost its own end.
    """
    if tags.private:
        return _private_value(text, tags, output)
    return _raw_value(text, tags, output)


def _raw_value(text: TextCursor, tags: ValueTags, output: ValueText) -> Parse[str]:
    """A value that may itself contain tags."""
    value, stops = _Value(output), tags.stops
    while True:
        stop = yield from text.until(stops, value.add)
        if not stop:
            raise NoMatch  # even after a closed value: further parameters may be missing
        if stop in tags.closes:
            # Remembered, not obeyed: what follows decides whether it closed the value.
            if not value.nested:
                value.close()
        elif stop not in tags.opens:
            begins_inner_call = value.is_after_head(tags.head_end)
            if begins_inner_call and value.is_closed:
                # A complete call begins after a closed value: the outer one lost its end.
                raise NoMatch
            if not begins_inner_call and _ends_value(value, stop, tags):
                return stop
            if begins_inner_call and stop in tags.nexts:
                value.nested += 1
            elif stop in tags.ends and value.nested and not begins_inner_call:
                value.nested -= 1
        value.add_stop(stop, opens=stop in tags.opens)


def _private_value(text: TextCursor, tags: ValueTags, output: ValueText) -> Parse[str]:
    """A value that the next parameter or the call's end ends, whether it was closed or not.

    Raises:
        NoMatch: the value does not end, or another call begins in it: this one lost its end.
    """
    value = _Value(output)
    opener_is_last = False
    while True:
        stop = yield from text.until(tags.stops, value.add)
        if not stop:
            raise NoMatch
        if stop in tags.nexts or stop in tags.ends:
            if opener_is_last:
                raise NoMatch
            return stop
        if stop in tags.closes:
            # An opener before it was text of the value.
            value.close()
            opener_is_last = False
        elif stop in tags.opens:
            value.hold()
            opener_is_last = True
        else:
            raise NoMatch
        value.add_stop(stop, opens=False)


def _ends_value(value: _Value, stop: str, tags: ValueTags) -> bool:
    """Whether `stop`, a tag of its call, ends the value."""
    if value.nested:
        return False
    if value.is_closed:
        return True
    return tags.lenient and value.on_new_line and stop not in tags.outer
