"""Emits what was found in one message of the wire as items, in the order of the text.

The message becomes as many items as it has parts: text before a call, the call, text after it. Its
id and native fields stay with the first of its text. A message in which nothing was found is
emitted as it was received.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from streamlib_parsers.dialects.call_sinks import DuplicateCallCheck, StreamedCall
from streamlib_parsers.dialects.choice_state import ChoiceState
from streamlib_parsers.dialects.scanner import Scanner
from streamlib_parsers.events import (
    AnnotationAdded,
    MediaDelta,
    OutputTextDelta,
    RefusalDelta,
    StopReason,
)
from streamlib_parsers.filter_assembler import FilterAssembler, ItemEvent
from streamlib_parsers.items import (
    ContentPart,
    FunctionCall,
    ItemStatus,
    JsonObject,
    Message,
    Reasoning,
    Text,
)
from streamlib_parsers.open_items import OpenItem


class _CitedText:
    """Where the text of a citation begins, in characters of all text that was emitted."""

    __slots__ = ("item_from", "text_from")

    def __init__(self) -> None:
        self.item_from = 0
        """Where the open message begins."""
        self.text_from: int | None = None
        """Where the cited text begins; None outside of a citation."""


class MessageRewriter:
    """One message of the wire; the `Sink` of its scanner."""

    def __init__(
        self,
        item: Message,
        choice: ChoiceState,
        assembler: FilterAssembler,
        make_scanner: Callable[[MessageRewriter], Scanner],
        find_call: Callable[[str], int | None],
    ) -> None:
        """Begins the message.

        Args:
            item: the skeleton of `OutputItemAdded`.
            choice: the state of its choice.
            assembler: emits the items.
            make_scanner: makes the scanner of a part of the message.
            find_call: where the first complete call of a text begins; None where there is none.
        """
        self.choice = choice
        self.is_undecided = False
        """Set where the text ended in reasoning that nothing closed: `resolve` decides what it
        is."""
        self.reasoning_ended = False
        """Set where the last reasoning of the message is over: what is scanned now holds none."""
        self._skeleton = item
        self._final = item
        """The wire's own final version, once it closed the message."""
        self._assembler = assembler
        self._make_scanner = make_scanner
        self._find_call = find_call
        self._scanner: Scanner | None = make_scanner(self)
        """Reads the current part; None between parts."""
        self._open: OpenItem | None = None
        """The message or reasoning item that is being written."""
        self._call: StreamedCall | None = None
        """The last call whose arguments were streamed."""
        self._message_count = 0
        """Message items opened: the first one has the id and native fields of the wire's."""
        self._changed = False
        """Set where anything but text was found: the wire's final version does not hold any
        more."""
        self._part = 0
        """Content index of the wire's message."""
        self._first_part = 0
        """The content index with which the open message began: there it is 0."""
        self._received = 0
        """Characters of text received."""
        self._emitted = 0
        """Characters of text emitted; equal at the end if no text was left out."""
        self._cited = _CitedText()
        """The citation that is being read."""
        self._pending: list[str] = []
        """Text that was found and not emitted: one delta for all text of one chunk."""
        self._logprobs: list[JsonObject] = []
        """Log probabilities received, for the next text delta."""
        self._unclosed_opener = ""
        """The opening tag of the undecided reasoning."""
        self._unclosed_rest = ""
        """Its end from a call on, not emitted."""

    # --- from the wire ---

    def feed(self, event: OutputTextDelta) -> None:
        """Text of the message."""
        if event.content_index != self._part:
            self._end_text()  # no call goes from one part into another
            self._part = event.content_index
        if event.logprobs:
            self._logprobs.extend(event.logprobs)
        delta = event.delta
        if delta:
            if self._scanner is None:
                self._scanner = self._make_scanner(self)
            self._received += len(delta)
            if self._scanner.is_plain(delta):
                self._pending.append(delta)
            else:
                self._scanner.feed(delta)
            self._emit_pending()

    def forward(self, event: ItemEvent) -> None:
        """Any other event about the message."""
        if isinstance(event, (RefusalDelta, MediaDelta)):
            self._end_text()  # their part follows the text
        message = self._message_item()
        if isinstance(event, (RefusalDelta, MediaDelta, AnnotationAdded)):
            part = max(0, event.content_index - self._first_part)
            if isinstance(event, AnnotationAdded):
                self._assembler.annotation(message, event.annotation, part)
                return
            if part != event.content_index:
                event = replace(event, content_index=part)
        self._assembler.forward_for(message, event)

    def finish(self, item: Message) -> None:
        """The wire closed the message."""
        self._final = item
        self._end_scan()
        if not self.is_undecided:
            self._close_message(item)

    def abandon(self) -> None:
        """The stream failed: what is open ends incomplete."""
        self._scanner = None
        self.is_undecided = False
        self._pending.clear()
        # A call that is read has no item in `_open`: the message before it was closed.
        if self._call is not None and self._call.is_open:
            self._call.discard()
        self._close("incomplete")

    @property
    def open_item(self) -> OpenItem | None:
        """The item that is being written, for a notice about the message."""
        return self._open

    def _end_scan(self) -> None:
        if self._scanner is not None:
            self._scanner.end()
            self._scanner = None
            self._emit_pending()

    def _end_text(self) -> None:
        """A part of another kind follows: the text is over, the message is not."""
        self._end_scan()
        if self.is_undecided:
            self._keep_reasoning()

    def _close_message(self, item: Message) -> None:
        if self._logprobs and self._open is not None:
            # Log probabilities of a last token without text: an empty delta carries them.
            self._pending.append("")
            self._emit_pending()
        is_unchanged = not self._changed and self._received == self._emitted
        if is_unchanged:
            self._assembler.close_as(self._message_item(), item)
            self._open = None
        elif self._open is not None or (self._message_count == 0 and _has_more_than_text(item)):
            message = self._message_item()
            self._assembler.close_as(message, self._last_message(item, message))
            self._open = None

    def _last_message(self, item: Message, message: OpenItem) -> Message:
        """The last text of a message in which something was found, with the wire's other parts."""
        content: list[ContentPart] = []
        snapshot = message.snapshot(item.status)
        if isinstance(snapshot, Message):
            content += [part for part in snapshot.content if isinstance(part, Text)]
        # Other parts go with the last message: text found after them may have become a call.
        content += [part for part in item.content if not isinstance(part, Text)]
        if self._message_count == 1:
            return replace(item, content=tuple(content))
        return replace(item, content=tuple(content), id=None, native=None)

    # --- reasoning that nothing closed ---

    def resolve(self, reason: StopReason | None) -> None:
        """Decides about unclosed reasoning.

        A call in it ended it, or it was the output, or reasoning.

        Args:
            reason: why the choice ended; None where the response goes on, or was truncated.
        """
        is_ordinary_end = reason in ("stop", "tool_calls") and not self.choice.wire_calls
        if is_ordinary_end and self._unclosed_rest and self._ended_by_call():
            pass
        elif is_ordinary_end and reason == "stop":
            # A model that stops in order has written its output: it forgot the closing tag.
            self._reasoning_was_text()
        else:
            self._keep_reasoning()
        self._close_message(self._final)

    def _ended_by_call(self) -> bool:
        """Ends the reasoning before the first call of an offered tool in it; False without one.

        Text that only looks like a call, or is in code, is reasoning about calls.
        """
        emitted = ""
        open_reasoning = self._open_reasoning()
        if open_reasoning is not None:
            emitted = open_reasoning.text()
        reasoning = emitted + self._unclosed_rest
        index = self._find_call(reasoning)
        if index is None or index < len(emitted):
            return False
        self.is_undecided, self.reasoning_ended = False, True
        # The newline before the call belongs to neither.
        before_call = reasoning[len(emitted) : index].removesuffix("\n")
        if before_call:
            self.reasoning(before_call)
        self.end_reasoning()
        scanner = self._make_scanner(self)
        scanner.feed(reasoning[index:])
        scanner.end()
        self._emit_pending()
        return True

    def _keep_reasoning(self) -> None:
        self.is_undecided = False
        if self._unclosed_rest:
            self.reasoning(self._unclosed_rest)
        if self._open_reasoning() is not None:
            self._close("incomplete")

    def _reasoning_was_text(self) -> None:
        self.is_undecided = False
        reasoning = ""
        open_reasoning = self._open_reasoning()
        if open_reasoning is not None:
            reasoning = open_reasoning.text()
            self._empty(open_reasoning, "the reasoning was never closed: it is the output text")
        text = self._unclosed_opener + reasoning + self._unclosed_rest
        if text:
            self.text(text)
            self._emit_pending()

    def _open_reasoning(self) -> OpenItem | None:
        """The open reasoning; None where nothing followed its tag: the text before it is open."""
        if self._open is None or not isinstance(self._open.item, Reasoning):
            return None
        return self._open

    def _empty(self, item: OpenItem, detail: str) -> None:
        """Closes the open item without its text, which is emitted again as another item."""
        self._assembler.notice("text_replaced", detail, item)
        self._assembler.close_as(item, replace(item.item, status="completed"))
        self._open = None

    # --- from the scanner (Sink) ---

    def text(self, text: str) -> None:
        """Output text: emitted together with the text around it."""
        self._pending.append(text)

    def _emit_pending(self) -> None:
        pending = self._pending
        if not pending:
            return
        text = pending[0] if len(pending) == 1 else "".join(pending)
        pending.clear()
        message = self._message_item()
        self._emitted += len(text)
        choice = self.choice
        if not choice.has_text and text and not text.isspace():
            choice.has_text = choice.has_content = True
        logprobs = None
        if self._logprobs:
            logprobs, self._logprobs = self._logprobs, []
        self._assembler.text(message, text, self._part - self._first_part, logprobs)

    def reasoning(self, text: str) -> None:
        """A fragment of reasoning."""
        self._emit_pending()
        if text:
            self._assembler.reasoning(self._reasoning_item(), text)
            self._logprobs.clear()  # they are of tokens that are not output text

    def end_reasoning(self) -> None:
        """The end of the reasoning was read."""
        self._emit_pending()
        self._changed = True
        if self._open is not None and isinstance(self._open.item, Reasoning):
            self._close("completed")

    def unclosed_reasoning(self, opener: str, rest: str) -> None:
        """The text ended inside reasoning."""
        self.is_undecided = True
        self._unclosed_opener, self._unclosed_rest = opener, rest

    def reclassify(self) -> None:
        """All text of the message so far was reasoning."""
        self._emit_pending()
        self._changed = True
        if not self._emitted:
            return  # the tag comes first: the server removed the reasoning, or there was none
        message = self._message_item()
        reasoning = message.text().removesuffix("\n")
        self._empty(message, "a closing tag tells that the text was reasoning")
        self.choice.has_text = False
        self.reasoning(reasoning)
        self.end_reasoning()

    def begin_citation(self) -> None:
        """Cited text begins."""
        self._emit_pending()
        self._cited.text_from = self._emitted

    def end_citation(self, sources: str) -> None:
        """Cited text ends: an annotation tells where it is in its message and what is cited."""
        self._emit_pending()
        cited_from, self._cited.text_from = self._cited.text_from, None
        if cited_from is None or self._open is None or not isinstance(self._open.item, Message):
            return
        message = self._open
        # It may have begun in a message before this one, which a call ended.
        start = max(0, cited_from - self._cited.item_from)
        end = self._emitted - self._cited.item_from
        if start == end:
            return
        annotation = {"type": "citation", "start": start, "end": end, "sources": sources}
        self._assembler.annotation(message, annotation, self._part - self._first_part)

    def call(self, name: str, call_id: str) -> DuplicateCallCheck | StreamedCall:
        """A call begins. Beside calls of the wire itself it is only compared with them."""
        self._emit_pending()
        if self.choice.wire_calls:
            return DuplicateCallCheck(name, self.choice, self._assembler)
        self._call = StreamedCall(
            lambda: self._open_call(name, call_id), self.choice, self._assembler
        )
        return self._call

    def _open_call(self, name: str, call_id: str) -> OpenItem:
        """The item of a call whose first argument was read."""
        self._emit_pending()
        self._changed = self.choice.has_content = True
        self._close("completed")
        self._logprobs.clear()  # they are of the call's tokens
        return self._assembler.open(
            FunctionCall(
                self._assembler.unique_call_id(call_id),
                name,
                choice=self._skeleton.choice,
                origin=self._skeleton.origin,
            )
        )

    def notice(self, code: str, detail: str) -> None:
        """An anomaly. One about a call that is text now names the message."""
        self._emit_pending()
        item = self._open if code == "leaked_tool_call" else None
        self._assembler.notice(code, detail, item)

    # --- items ---

    def _message_item(self) -> OpenItem:
        """The open message, a new one if there is none."""
        if self._open is not None and isinstance(self._open.item, Message):
            return self._open
        self._close("completed")
        self._first_part = self._part
        item = self._skeleton
        if self._message_count:
            item = replace(item, id=None, native=None, signature=None)
        self._message_count += 1
        self._cited.item_from = self._emitted
        self._open = self._assembler.open(item)
        return self._open

    def _reasoning_item(self) -> OpenItem:
        """The open reasoning, a new one if there is none."""
        if self._open is not None and isinstance(self._open.item, Reasoning):
            return self._open
        self._close("completed")
        self._changed = self.choice.has_content = True
        item = Reasoning(choice=self._skeleton.choice, origin=self._skeleton.origin)
        self._open = self._assembler.open(item)
        return self._open

    def _close(self, status: ItemStatus) -> None:
        open_item, self._open = self._open, None
        if open_item is None:
            return
        self._assembler.close(open_item, status)
        if isinstance(open_item.item, Reasoning):
            self.choice.reasoning.append(open_item.item)


def _has_more_than_text(item: Message) -> bool:
    """Whether a message whose text was all calls still says something: a signature, other parts."""
    return item.signature is not None or any(not isinstance(part, Text) for part in item.content)
