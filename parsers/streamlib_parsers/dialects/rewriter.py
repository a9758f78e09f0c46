"""Writes what was found in one message of the wire as items: text, thoughts and calls in the order they stood.

The message of the wire becomes as many items as it has parts: text before a call is one, the call is one, text after it another.
Its id and native fields go with the first of its text. A message in which nothing was found comes out as it came in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from streamlib_parsers.dialects.call_sinks import DuplicateCallCheck, StreamedCall
from streamlib_parsers.dialects.choice_state import ChoiceState, EventRenumberer
from streamlib_parsers.dialects.scanner import Scanner
from streamlib_parsers.events import (
    AnnotationAdded,
    Notice,
    OutputTextDelta,
    ReasoningContentDelta,
    StopReason,
)
from streamlib_parsers.items import FunctionCall, ItemStatus, JsonObject, Message, Reasoning, Text
from streamlib_parsers.open_items import OpenItem


class MessageRewriter:
    """One message of the wire.

    scan: makes the scanner of its next text. waits: it ended in a thought that nothing closed, and `resolve` must be told why.
    thoughts_over: what is scanned now follows its last thought.
    """

    def __init__(
        self,
        item: Message,
        answer: ChoiceState,
        outlet: EventRenumberer,
        scan: Callable[[MessageRewriter], Scanner],
    ) -> None:
        self.answer = answer
        self.waits = False
        self.thoughts_over = False
        self._skeleton = item
        self._outlet = outlet
        self._scan = scan
        self._open: OpenItem | None = None
        self._call: StreamedCall | None = None
        self._messages = 0  # begun
        self._changed = False
        self._part = 0  # of the wire's message
        self._base = 0  # the part with which the open message began
        self._fed = self._said = 0  # characters
        self._words: list[str] = []
        self._logprobs: list[JsonObject] = []
        self._opener = self._held = ""
        self._last = item
        self._scanner: Scanner | None = scan(self)

    # --- what the wire says ---

    def feed(self, event: OutputTextDelta) -> None:
        """Text of the message."""
        if event.content_index != self._part:
            self._flush()
            self._part = event.content_index
        if event.logprobs:
            self._logprobs.extend(event.logprobs)
        if event.delta:
            if self._scanner is None:
                self._scanner = self._scan(self)
            self._fed += len(event.delta)
            if self._scanner.plain(event.delta):
                self._words.append(event.delta)
            else:
                self._scanner.feed(event.delta)
            self._speak()

    def other(self, event: Any, *, ends_text: bool) -> None:
        """Anything else the wire says of the message."""
        if ends_text:
            self._flush()
        mine = self._message()
        changes: dict[str, Any] = {"index": mine.index}
        if hasattr(event, "content_index"):
            changes["content_index"] = max(0, event.content_index - self._base)
        if isinstance(event, AnnotationAdded):
            mine.part(changes["content_index"]).annotations.append(event.annotation)
        self._outlet.emit(
            event,
            **{name: value for name, value in changes.items() if getattr(event, name) != value},
        )

    def finish(self, item: Message) -> None:
        """The wire closed the message."""
        self._last = item
        if self._scanner is not None:
            self._scanner.end()
            self._scanner = None
            self._speak()
        if not self.waits:
            self._finish(item)

    def abandon(self) -> None:
        """The stream failed here: what is open ends as it stands."""
        self._scanner = None
        self.waits = False
        self._words.clear()
        if self._call is not None and self._call.open:
            self._call.discard()
        self._close("incomplete")

    @property
    def index(self) -> int | None:
        """Where the message stands now, for a notice about it."""
        return self._open.index if self._open is not None else None

    def _flush(self) -> None:
        """The text is over, the message is not."""
        if self._scanner is not None:
            self._scanner.end()
            self._scanner = None
            self._speak()
        if self.waits:
            self._keep_thought()

    def _finish(self, item: Message) -> None:
        if self._logprobs and self._open is not None:
            self.text("")
            self._speak()
        as_it_came = not self._changed and self._fed == self._said
        more = self._messages == 0 and (
            item.signature is not None or any(not isinstance(part, Text) for part in item.content)
        )
        if as_it_came or more or self._open is not None:
            mine = self._message()
            self._outlet.close(mine.index, item if as_it_came else self._rest(item, mine))
            self._open = None

    def _rest(self, item: Message, mine: OpenItem) -> Message:
        """The last text of a message in which something was found: own text, and everything else the wire said."""
        snapshot = mine.snapshot(item.status)
        own = (
            [part for part in snapshot.content if isinstance(part, Text)]
            if isinstance(snapshot, Message)
            else []
        )
        others = [part for part in item.content if not isinstance(part, Text)]
        fields: dict[str, Any] = {} if self._messages == 1 else {"id": None, "native": None}
        return replace(item, content=(*own, *others), **fields)

    # --- why the answer ended ---

    def resolve(self, reason: StopReason | None) -> None:
        """A thought that nothing closed: the wire says why the answer ended, or (None) that it goes on or was cut.

        A call behind it ended it. Without one an ordinary stop means that it was the answer: it comes again as text. Else it is a thought.
        """
        ends = reason in ("stop", "tool_calls") and not self.answer.natives
        if ends and self._held:
            self.waits, self.thoughts_over = False, True
            self.end_thought()
            scanner = self._scan(self)
            scanner.feed(self._held.removeprefix("\n"))
            scanner.end()
            self._speak()
        elif ends and reason == "stop":
            self.waits = False
            self._thought_was_text()
        else:
            self._keep_thought()
        self._finish(self._last)

    def _keep_thought(self) -> None:
        self.waits = False
        if self._held:
            self.thought(self._held)
        self._close("incomplete")

    def _thought_was_text(self) -> None:
        thought = ""
        if self._open is not None:
            thought = self._open.text()
            self._replaced(self._open, "the thought was never closed: it is the answer")
        self.text(self._opener + thought)
        self._speak()

    def _replaced(self, mine: OpenItem, detail: str) -> None:
        """The open item loses its text, which comes again elsewhere."""
        self._outlet.emit(Notice("text_replaced", detail, mine.index))
        self._outlet.close(mine.index, replace(mine.item, status="completed"))
        self._open = None

    # --- what the scanner finds (Writer) ---

    def text(self, text: str) -> None:
        """Words for the user: given out with the words around them."""
        self._words.append(text)

    def _speak(self) -> None:
        """Gives out the words that wait."""
        if not self._words:
            return
        text = self._words[0] if len(self._words) == 1 else "".join(self._words)
        self._words.clear()
        open_item = self._message()
        part = self._part - self._base
        open_item.part(part).fragments.append(text)
        self._said += len(text)
        if not self.answer.said and text and not text.isspace():
            self.answer.said = self.answer.begun = True
        logprobs = None
        if self._logprobs:
            logprobs, self._logprobs = self._logprobs, []
        self._outlet.add(
            OutputTextDelta(open_item.index, part, text, logprobs, seq=self._outlet.next())
        )

    def thought(self, text: str) -> None:
        """Words of a thought."""
        self._speak()
        if not text:
            return
        mine = self._reasoning()
        mine.part(0).fragments.append(text)
        self._logprobs.clear()
        self._outlet.add(ReasoningContentDelta(mine.index, 0, text, seq=self._outlet.next()))

    def end_thought(self) -> None:
        """The thought was closed."""
        self._speak()
        self._changed = True
        if self._open is not None and isinstance(self._open.item, Reasoning):
            self._close("completed")

    def unclosed_thought(self, opener: str, held: str) -> None:
        """The text ended in a thought."""
        self.waits = True
        self._opener, self._held = opener, held

    def reclassify(self) -> None:
        """Everything so far was a thought."""
        self._speak()
        self._changed = True
        mine = self._message()
        thought = mine.text().removesuffix("\n")
        self._replaced(mine, "a closing tag made a thought of it")
        self.answer.said = False
        self.thought(thought)
        self.end_thought()

    def call(self, name: str, call_id: str) -> DuplicateCallCheck | StreamedCall:
        """A call begins. Beside calls of the wire itself it is only compared with them."""
        self._speak()
        self._changed = self.answer.begun = True
        if self.answer.natives:
            return DuplicateCallCheck(name, self.answer, self._outlet)
        self._close("completed")
        self._logprobs.clear()
        item = FunctionCall(
            self._outlet.call_id(call_id),
            name,
            choice=self._skeleton.choice,
            origin=self._skeleton.origin,
        )
        self._call = StreamedCall(item, self.answer, self._outlet)
        return self._call

    def notice(self, code: str, detail: str) -> None:
        """Something odd."""
        self._speak()
        self._outlet.emit(Notice(code, detail))

    # --- items ---

    def _message(self) -> OpenItem:
        """The open text, a new one if there is none."""
        if self._open is not None and isinstance(self._open.item, Message):
            return self._open
        self._close("completed")
        self._base = self._part
        first = self._messages == 0
        return self._open_item(
            self._skeleton
            if first
            else replace(self._skeleton, id=None, native=None, signature=None)
        )

    def _reasoning(self) -> OpenItem:
        """The open thought, a new one if there is none."""
        if self._open is not None and isinstance(self._open.item, Reasoning):
            return self._open
        self._close("completed")
        self._changed = self.answer.begun = True
        return self._open_item(
            Reasoning(choice=self._skeleton.choice, origin=self._skeleton.origin)
        )

    def _open_item(self, item: Any) -> OpenItem:
        self._messages += isinstance(item, Message)
        self._open = self._outlet.begin(item)
        return self._open

    def _close(self, status: ItemStatus) -> None:
        if self._open is None:
            return
        item = self._open.snapshot(status)
        if isinstance(item, Reasoning):
            self.answer.thoughts.append(item)
        self._outlet.close(self._open.index, item)
        self._open = None
