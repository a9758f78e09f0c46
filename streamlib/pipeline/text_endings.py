"""How `stop_at` and `limit` end a text, its choice, and with the last choice the response."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec.structs import replace as with_fields

from streamlib.pipeline.endings import STOPPED, OpenItems
from streamlib.pipeline.machine import PlainMachine
from streamlib.pipeline.patterns import Replacer, Search
from streamlib.pipeline.text_events import TextEdit, TextEvents
from streamlib.pipeline.units import TextMachine, joins_character
from streamlib_parsers.events import (
    Completed,
    Failed,
    FinishedChoice,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    ResponseEvent,
    StopReason,
)

NEAR_LIMIT: Final = 64
"""Characters before a limit from where on graphemes count: hardly one is longer."""


Hits: TypeAlias = dict[int, str]
"""Choices that have ended -> what was found."""


class UntilFound:
    """The text before the first match."""

    def __init__(self, hits: Hits, choice: int, search: Search, longest: int) -> None:
        self._hits = hits
        self._choice = choice
        self._replacer = Replacer([search], self._find, longest)
        self._received = 0
        self._emitted = 0
        self._match_start: int | None = None
        """Where the match begins."""

    @property
    def buffered(self) -> int:
        """Characters whose fate is not known yet."""
        if self._choice in self._hits:
            return 0
        return self._replacer.buffered

    def feed(self, text: str) -> list[str]:
        """What is shown of it now; nothing once the choice has ended."""
        if self._choice in self._hits:
            return []
        self._received += len(text)
        return self._before_match(self._replacer.feed(text))

    def close(self) -> list[str]:
        """The rest, unless the choice has ended here."""
        if self._match_start is not None:
            return []
        # Where another text has ended the choice, what came before that stays.
        return self._before_match(self._replacer.close())

    def _find(self, match: re.Match[str]) -> str:
        if self._match_start is None:
            # The searched text ends with what was received last.
            self._match_start = self._received - (len(match.string) - match.start())
            self._hits.setdefault(self._choice, match[0])
        return ""

    def _before_match(self, fragments: list[str]) -> list[str]:
        text = "".join(fragments)
        if self._match_start is not None:
            text = text[: self._match_start - self._emitted]
        self._emitted += len(text)
        return [text] if text else []


class Limited:
    """As much of a text as is left, in whole graphemes."""

    def __init__(self, hits: Hits, choice: int, left: dict[int, int]) -> None:
        self._hits = hits
        self._choice = choice
        self._left = left
        """Characters left, by choice: without those that texts hold."""
        self._last = ""
        """The last grapheme: more characters may belong to it."""

    @property
    def buffered(self) -> int:
        """Characters whose fate is not known yet."""
        return len(self._last)

    def feed(self, text: str) -> list[str]:
        """What is shown of it now; nothing once the choice has ended."""
        if self._choice in self._hits:
            return []
        text = self._last + text
        left = self._left[self._choice] + len(self._last)
        if len(text) + NEAR_LIMIT <= left:
            self._last = ""
            self._left[self._choice] = left - len(text)
            return [text] if text else []
        # Whole graphemes that fit; the last one may go on.
        end = start = 0
        for position in range(1, len(text) + 1):
            if position < len(text) and _is_joined(text, start, position):
                continue
            if position > left:
                self._hits[self._choice] = ""
                break
            end, start = start, position
        fits = text[:end] if self._choice not in self._hits else text[:start]
        self._last = "" if self._choice in self._hits else text[end:]
        self._left[self._choice] = left - len(fits) - len(self._last)
        return [fits] if fits else []

    def close(self) -> list[str]:
        """The last grapheme."""
        last = self._last
        self._last = ""
        return [last] if last else []


def _is_joined(text: str, start: int, position: int) -> bool:
    """Whether a character belongs to the grapheme that began at `start`."""
    character = text[position]
    if _is_flag_letter(character) and _is_flag_letter(text[position - 1]):
        # Two letters are a flag.
        return position - start == 1
    return joins_character(text[position - 1], character)


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


class EndingText(PlainMachine):
    """The machine of a stage that ends choices, and with the last one the response.

    Args:
        reason: why a choice ends.
        detail: the same, for the notice.
        make: makes the machine of one text of a choice. It notes there that the choice has ended.
    """

    def __init__(
        self, reason: StopReason, detail: str, make: Callable[[Hits, int], TextMachine]
    ) -> None:
        super().__init__()
        self._reason: StopReason = reason
        self._detail = detail
        self._hits: Hits = {}

        def machine(kind: type, choice: int, note: Callable[[str], None]) -> TextMachine:
            del kind, note
            return make(self._hits, choice)

        self._texts = TextEvents(TextEdit(machine, changes_copies=False))
        self._items = OpenItems()
        """What was let out."""
        self._choices: dict[int, int] = {}
        """The choice of each item, by its index."""
        self._ended: set[int] = set()
        """Choices that this stage has ended."""
        self._left_out: list[int] = []
        """Indexes of items that have begun after their choice had ended, in order."""

    @property
    def buffered(self) -> int:
        """Characters of deltas that are not let out yet."""
        return self._texts.buffered

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The events to let out now; those of a choice that has ended are dropped."""
        if self.done:
            return []
        index: int | None = getattr(event, "index", None)
        if isinstance(event, (OutputItemAdded, OutputItemDone)):
            self._choices[event.index] = event.item.choice
        if index is not None and self._choices.get(index, 0) in self._ended:
            if isinstance(event, OutputItemAdded):
                self._left_out.append(index)
            return []
        if isinstance(event, (Completed, Failed)):
            return self._end_of_source(event)
        events = self._texts.feed(event)
        if len(self._hits) > len(self._ended):
            return self._hit(events, index)
        return self._noted(events)

    def close(self) -> list[ResponseEvent]:
        """What is buffered of items that the source has not closed."""
        return self._noted(self._texts.close())

    def _noted(self, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """The events, noted as let out."""
        for event in events:
            self._items.feed(event)
        return self._moved(events)

    def _moved(self, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """The events, with no gap in their indexes where items were left out."""
        if not self._left_out:
            return events
        moved: list[ResponseEvent] = []
        for event in events:
            index: int | None = getattr(event, "index", None)
            if index is None:
                moved.append(event)
                continue
            count = bisect_left(self._left_out, index)
            moved.append(with_fields(event, index=index - count))
        return moved

    def _end_of_source(self, event: Completed | Failed) -> list[ResponseEvent]:
        """The wire's own end, behind what is buffered of items that it has not closed."""
        events: list[ResponseEvent] = []
        for choice in sorted({0, *self._choices.values()} - self._ended):
            rest = self._texts.close(choice)
            if choice in self._hits:  # the end of the text was all that was missing
                events += self._hit(rest, None)
            else:
                events += self._noted(rest)
        if self.done:
            return events
        if self._ended and isinstance(event, Completed):
            event = self._completed(event)
        return events + self._noted(self._texts.feed(event))

    def _hit(self, events: list[ResponseEvent], index: int | None) -> list[ResponseEvent]:
        """A choice has ended in the text of the item with this index."""
        [choice] = self._hits.keys() - self._ended
        self._ended.add(choice)
        is_stop = self._reason == "stop"
        last = events[-1] if events else None
        if isinstance(last, OutputItemDone):
            # Also behind `aggregate`: the final item is what there is to end.
            status = "completed" if is_stop else "incomplete"
            events[-1] = with_fields(last, item=with_fields(last.item, status=status))
        # Its other open texts are over, too: nothing of them may follow.
        events = self._noted(events + self._texts.close(choice))
        completed = index if is_stop else None
        if self._ended.issuperset(self._choices.values()):
            return events + self._end(choice, completed)
        # The other choices go on.
        ends = self._items.close_items(choice, completed=completed)
        return events + self._moved([*ends, Notice(STOPPED, self._detail)])

    def _end(self, choice: int, completed: int | None = None) -> list[ResponseEvent]:
        """Ends the response, with this choice as the last one."""
        self.done = True
        reason = self._reason
        choices = sorted({*self._choices.values()} or {0})
        terminal = Completed(
            stop_reason=reason,
            stop_sequence=self._hits.get(choice) or None,
            choices=tuple([FinishedChoice(each, reason) for each in choices]),
        )
        ending = self._items.end(terminal, self._detail, completed=completed)
        self.ending = self._moved(ending)
        return list(self.ending)

    def _completed(self, event: Completed) -> Completed:
        """The wire's own end of a response of which some choices have ended before."""
        reason = self._reason
        choices = {each.choice: each for each in event.choices}
        for choice in self._ended:
            choices[choice] = FinishedChoice(choice, reason)
        changed = with_fields(event, choices=tuple([choices[each] for each in sorted(choices)]))
        if 0 not in self._ended:
            return changed
        stop_text = self._hits.get(0) or None
        return with_fields(
            changed, stop_reason=reason, native_stop_reason=None, stop_sequence=stop_text
        )
