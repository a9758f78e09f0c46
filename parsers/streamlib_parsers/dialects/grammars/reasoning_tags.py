"""Reasoning between tags.

    <think>⏎I look it up.⏎</think>⏎⏎Paris.

One newline inside each tag and two after the closing one belong to the tags; what follows is text.

Emitted as it arrives. Buffered: what may be the closing tag, and text from the opener of a call on.
If no closing tag follows, the call ends the reasoning; if one does, the call is a part of it. A
closing tag without an opening tag turns all text before it into reasoning. Reasoning that never
ends stays undecided until the stop reason is known.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from streamlib_parsers.dialects.cursor import BufferFull, Parse, TextCursor
from streamlib_parsers.dialects.literal_search import StringBuffer
from streamlib_parsers.dialects.sink import GrammarSink, Opener, Position


class ReasoningTags(Struct, frozen=True):
    """Tags of reasoning.

    Args:
        tags: (opening, closing).
        unopened: the closing tags that also come without their opening tag.
        where: the position in which opening tags count.
    """

    tags: Sequence[tuple[str, str]]
    unopened: Sequence[str] = ()
    where: Position = "line"
    first: str = ""

    @property
    def openers(self) -> Sequence[Opener]:
        """Opening tags, and closing tags that lost theirs."""
        # Some tags have several closing ones.
        openings = dict.fromkeys(opening for opening, _ in self.tags)
        openers = [Opener(opening, self.where) for opening in openings]
        openers += [Opener(closing, "orphan") for closing in self.unopened]
        return openers

    def read(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """Reads on after a tag or, without an opener, from the first character of the response."""
        closing = self._closing(text.opener)
        if closing:
            yield from self._reasoning(text, sink, closing)
        elif text.opener:
            sink.reclassify()
            yield from _newlines(text, 2)
        else:
            yield from self._begun_reasoning(text, sink)

    def _closing(self, opening: str) -> tuple[str, ...]:
        """The closing tags of an opening one; none where it is not an opening tag."""
        return tuple(closing for tag, closing in self.tags if tag == opening)

    def _begun_reasoning(self, text: TextCursor, sink: GrammarSink) -> Parse[None]:
        """The chat template wrote the opening tag, but the model may repeat it."""
        yield from text.spaces()
        opening = yield from text.literal(*(opening for opening, _ in self.tags))
        if opening:
            yield from self._reasoning(text, sink, self._closing(opening))
            return
        if not sink.is_reasoning:
            # The server removed the reasoning, if the text begins with a call or a token that
            # is around output text.
            begin = yield from text.ahead(*sink.markers, *sink.marks)
            if begin in sink.markers:
                sink.expect_call()
                return
            if begin:
                sink.emit_as_text()
                return
        if text.size:
            sink.reasoning(text.uncommitted().removeprefix("\n"))
        yield from self._reasoning(text, sink, tuple(self.unopened))

    def _reasoning(
        self, text: TextCursor, sink: GrammarSink, closing: tuple[str, ...]
    ) -> Parse[None]:
        opener = text.uncommitted()
        ends = closing + tuple("\n" + tag for tag in closing)
        # With the newline before it, if there is one: that belongs to neither.
        calls = sink.markers + tuple("\n" + marker for marker in sink.markers)
        if (yield from text.ahead("\n", *ends, *calls)) == "\n":
            text.take(text.index + 1)
            opener += "\n"
        text.commit()
        while True:
            stop = yield from text.until((*ends, *calls), sink.reasoning)
            if not stop:
                sink.unclosed_reasoning(opener)
                return
            if stop in ends:
                break
            # A call, also after other text on its line: buffered, until the closing tag or the end
            # decides.
            buffer = StringBuffer()
            buffer.add(stop)
            try:
                stop = yield from text.until(ends, buffer.add)
            except BufferFull:
                # Too long for a call: it is reasoning, and so may be what follows.
                sink.reasoning(buffer.text())
                continue
            if not stop:
                sink.unclosed_reasoning(opener, buffer.text())
                return
            sink.reasoning(buffer.text())
            break
        sink.end_reasoning()
        yield from _newlines(text, 2)


def _newlines(text: TextCursor, most: int) -> Parse[None]:
    for _ in range(most):
        if not (yield from text.literal("\n")):
            break
    text.commit()
