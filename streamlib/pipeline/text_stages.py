"""Stages that change, cut or end the text of a stream.

    replace(r"\\d{3}-\\d{4}", "[phone]")     # as `re.sub` on the whole text, however it is split
    sentences()                            # deltas of whole sentences
    map_text(translate, by="sentence")
    stop_at("END")
    limit(characters=2000)

What comes out does not depend on how the text was split into deltas. It is the same text in deltas,
in final items, in the response, and in what encoders write. A character is buffered only while a
later one could change what becomes of it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace as with_fields

from streamlib.pipeline.endings import OpenItems
from streamlib.pipeline.json_strings import JsonStrings
from streamlib.pipeline.machine import Clock, PlainMachine
from streamlib.pipeline.patterns import (
    LONGEST,
    Replacer,
    Search,
    Substitute,
    fixed_text,
    read_pattern,
)
from streamlib.pipeline.stages import Keep
from streamlib.pipeline.text_events import TEXT_KINDS, TextEvents
from streamlib.pipeline.unit_calls import Guard, GuardMode, MapUnitsAsync
from streamlib.pipeline.units import (
    LONGEST_UNIT,
    TextMachine,
    UnitName,
    joins_character,
    unit_machine,
)
from streamlib_parsers.events import (
    Completed,
    Created,
    FinishedChoice,
    FunctionCallArgumentsDelta,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ResponseEvent,
    StopReason,
)

TEXT_ALONE: Final[frozenset[type]] = frozenset({OutputTextDelta})

NEAR_LIMIT: Final = 64
"""Characters before a limit from where on graphemes count: hardly one is longer."""


# --- replace ---


def replace(
    pattern: str | re.Pattern[str] | Iterable[str | re.Pattern[str]],
    with_: Substitute,
    *,
    of: Sequence[str] = ("text",),
    longest: int = LONGEST,
) -> Keep:
    """Substitutes matches, as `re.sub` would in the whole text.

        replace(r"\\d{3}-\\d{4}", "[phone]")
        replace([re.escape(key), r"sk-\\w+"], "[key]", of=("text", "arguments"))

    Buffers the characters that may belong to a match, `longest` at most; a text without special
    characters needs no package, any other pattern `pip install 'streamlib[pipeline]'`. Copies of
    the text change with it: strings in metadata, citations and fields of the wire. Log
    probabilities stay with unchanged deltas alone, a citation whose text has moved becomes
    ``Notice("annotation_dropped")``, changed reasoning loses its signature
    (``Notice("signature_dropped")``).

    Args:
        pattern: in the syntax of `re`, or compiled. Several are one pass over the text: where two
            match at one place, the first is taken.
        with_: a template as `re.sub` takes it, or a function of the match.
        of: the texts: "text", "reasoning", "refusal", "arguments". Of arguments each string value
            of the JSON is a text of its own; keys are not changed.
        longest: characters that are looked at to decide about one match. A longer one is
            substituted in pieces, with ``Notice("match_too_long")``.

    Raises:
        ValueError: a pattern is malformed, can match the empty text, repeats lazily what can match
            the empty text, or looks at more than 64 characters before it; the template is
            malformed; a name in `of` is unknown; `longest` is not positive.
        ImportError: a pattern needs the `regex` package, and it is not installed.
    """
    searches = _searches(pattern)
    _check_positive("longest", longest)
    kinds = _kinds(of)
    if isinstance(with_, str):
        for search in searches:
            _check_template(search.pattern, with_)
    elif not callable(with_):
        raise TypeError("with_ is a template, or a function of the match")
    rule = _Replace(searches, with_, kinds, longest)
    return Keep(lambda _: TextEvents(rule), "replace()")


class _Replace:
    """The rule of `replace`."""

    changes = True
    changes_copies = True

    def __init__(
        self, searches: Sequence[Search], with_: Substitute, kinds: frozenset[type], longest: int
    ) -> None:
        self.kinds = kinds
        self._searches = searches
        self._with = with_
        self._longest = longest

    def machine(self, kind: type, choice: int, note: Callable[[str], None]) -> TextMachine:
        del choice

        def make() -> TextMachine:
            return Replacer(
                self._searches, self._with, self._longest, lambda: note("match_too_long")
            )

        if kind is FunctionCallArgumentsDelta:
            return JsonStrings(make)
        return make()


def _searches(pattern: Any) -> list[Search]:
    if isinstance(pattern, (str, re.Pattern)):
        return [read_pattern(pattern)]
    searches = [read_pattern(one) for one in pattern]
    if not searches:
        raise ValueError("replace takes at least one pattern")
    return searches


def _check_template(pattern: re.Pattern[str], template: str) -> None:
    try:
        pattern.sub(template, "")
    except (re.error, IndexError) as error:
        raise ValueError(f"the template {template!r} is malformed: {error}") from None


def _kinds(of: Sequence[str]) -> frozenset[type]:
    kinds: set[type] = set()
    for name in of:  # of a text its letters, which are no names
        if name not in TEXT_KINDS:
            raise ValueError(f"of has {name!r}: one of {', '.join(TEXT_KINDS)} is known")
        kinds.update(TEXT_KINDS[name])
    if not kinds:
        raise ValueError("of names no text")
    return frozenset(kinds)


def _check_positive(name: str, value: float) -> None:
    if not value > 0:
        raise ValueError(f"{name} is positive, not {value}")


# --- units ---


class _Cut:
    """The rule that only cuts."""

    changes = False
    changes_copies = False
    kinds: frozenset[type] = TEXT_ALONE

    def __init__(self, by: UnitName, longest: int) -> None:
        _check_positive("longest", longest)
        unit_machine(by, longest)  # raises for an unknown name, or a package that is missing
        self._by: UnitName = by
        self._longest = longest

    def machine(self, kind: type, choice: int, note: Callable[[str], None]) -> TextMachine:
        del kind, choice, note
        return unit_machine(self._by, self._longest)


def _cut(by: UnitName, name: str, longest: int) -> Keep:
    rule = _Cut(by, longest)
    return Keep(lambda _: TextEvents(rule), name)


def words(longest: int = LONGEST_UNIT) -> Keep:
    """Deltas of whole words, each with the white space behind it.

    Buffers a word. Longer than `longest` characters it is cut.

    Raises:
        ValueError: `longest` is not positive.
    """
    return _cut("word", "words()", longest)


def lines(longest: int = LONGEST_UNIT) -> Keep:
    """Deltas of whole lines, each with its line feed.

    Buffers a line. Longer than `longest` characters it is cut at its last space.

    Raises:
        ValueError: `longest` is not positive.
    """
    return _cut("line", "lines()", longest)


def sentences(longest: int = LONGEST_UNIT) -> Keep:
    """Deltas of whole sentences, for speech: "Dr.", "3.5" and "U.S." end none.

    Buffers a sentence, until the character behind the space that follows it is known. Longer than
    `longest` characters it is cut at its last space.

    Raises:
        ValueError: `longest` is not positive.
    """
    return _cut("sentence", "sentences()", longest)


def blocks(longest: int = LONGEST_UNIT) -> Keep:
    """Deltas of whole Markdown blocks (a paragraph, a list, code …), so that each is drawn once.

    Buffers a block. Longer than `longest` characters it is cut at its last space. It needs
    `pip install 'streamlib[cli]'`.

    Raises:
        ValueError: `longest` is not positive.
        ImportError: the package that reads Markdown is not installed.
    """
    return _cut("block", "blocks()", longest)


# --- map_text ---


def map_text(
    function: Callable[[str], str] | Callable[[str], Awaitable[str]],
    by: UnitName = "sentence",
    *,
    longest: int = LONGEST_UNIT,
) -> Keep:
    """Passes each unit of the text through a function: `map_text(translate, by="sentence")`.

    The function gets whole units, with the white space behind them, each once and in order. An
    async one runs for up to four units at once; the units keep their order. Buffers a unit, and
    with an async function those that it is at work on; then it needs an event loop. Copies of the
    text (citations, metadata, fields of the wire) go through the function too.

    Args:
        function: from a unit to what is shown for it.
        by: "word", "line", "sentence" or "block".
        longest: characters after which a unit is cut at its last space.

    Raises:
        ValueError: `by` is unknown, or `longest` is not positive.
        TypeError: that is no function; or, while the stream is read, it returned something other
            than text.
    """
    if not callable(function):
        raise TypeError("map_text takes a function of a text")
    cut = _Cut(by, longest)
    if is_async(function):
        return Keep(lambda _: MapUnitsAsync(cut, function), "map_text()", is_async=True)
    rule = _MapUnits(cut, function)
    return Keep(lambda _: TextEvents(rule), "map_text()")


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a function, or the method by which an object is called, is async."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # whether it can be called is known
    )


class _MapUnits:
    """The rule of `map_text`."""

    changes = True
    changes_copies = True
    kinds: frozenset[type] = TEXT_ALONE

    def __init__(self, cut: _Cut, function: Callable[[str], Any]) -> None:
        self._cut = cut
        self._function = function

    def machine(self, kind: type, choice: int, note: Callable[[str], None]) -> TextMachine:
        return _MappedUnits(self._cut.machine(kind, choice, note), self._function)


class _MappedUnits:
    def __init__(self, units: TextMachine, function: Callable[[str], Any]) -> None:
        self._units = units
        self._function = function

    @property
    def buffered(self) -> int:
        return self._units.buffered

    def feed(self, text: str) -> list[str]:
        return [self._mapped(unit) for unit in self._units.feed(text)]

    def close(self) -> list[str]:
        return [self._mapped(unit) for unit in self._units.close()]

    def _mapped(self, unit: str) -> str:
        mapped = self._function(unit)
        if not isinstance(mapped, str):
            raise TypeError(
                f"the function of map_text returned a {type(mapped).__name__}, not text"
            )
        return mapped


# --- stages that end the stream ---


def stop_at(text: str | re.Pattern[str], *, longest: int = LONGEST) -> Keep:
    """Ends the stream where a text appears: `stop_at("\\nUser:")`.

    The text is not shown. The response ends with `Completed`: stop reason "stop", the text as
    `stop_sequence`, after ``Notice("stopped_by_stage")``; the message is complete, usage is
    unknown, and the source is closed. Where there are several choices, each ends for itself.
    Buffers the characters that may begin the text.

    Args:
        text: as it is, or a compiled pattern.
        longest: characters that are looked at to decide about one match of a pattern.

    Raises:
        ValueError: it is empty, or a pattern that `replace` would refuse.
        ImportError: the pattern needs the `regex` package, and it is not installed.
    """
    _check_positive("longest", longest)
    if isinstance(text, str):
        search = fixed_text(text)
        longest = max(longest, len(text))
    else:
        search = read_pattern(text)
    return Keep(lambda _: _EndingText(_StopRule(search, longest)), "stop_at()")


def limit(*, characters: int | None = None, seconds: float | None = None) -> Keep:
    """Ends the stream after so many characters of text, or so many seconds.

    It never cuts inside of what a reader takes for one character (an accented letter, a flag). The
    response ends with `Completed`: stop reason "length", after ``Notice("stopped_by_stage")``; the
    open message is incomplete, and the source is closed. A text of exactly `characters` ends as it
    would have. Where there are several choices, each has its own limit. Buffers one grapheme, near
    the limit.

    Args:
        characters: code points of text (not of reasoning, refusals or arguments).
        seconds: from the first moment the stage is used.

    Raises:
        ValueError: neither is given, or one is not positive.
    """
    if characters is None and seconds is None:
        raise ValueError("limit takes characters=, seconds= or both")
    if characters is not None:
        _check_positive("characters", characters)
    if seconds is not None:
        _check_positive("seconds", seconds)
    return Keep(
        lambda clock: _EndingText(_LimitRule(characters), seconds=seconds, clock=clock), "limit()"
    )


class _StopRule:
    """The rule of `stop_at`."""

    changes = True
    changes_copies = False
    kinds: frozenset[type] = TEXT_ALONE
    reason: StopReason = "stop"

    def __init__(self, search: Search, longest: int) -> None:
        self.hits: dict[int, str] = {}
        """Choices that have ended -> what was found."""
        self._search = search
        self._longest = longest

    def machine(self, kind: type, choice: int, note: Callable[[str], None]) -> TextMachine:
        del kind, note
        return _UntilFound(self, choice, self._search, self._longest)


class _UntilFound:
    """The text before the first match."""

    def __init__(self, rule: _StopRule, choice: int, search: Search, longest: int) -> None:
        self._rule = rule
        self._choice = choice
        self._replacer = Replacer([search], self._find, longest)
        self._received = 0
        self._emitted = 0
        self._found: int | None = None
        """Where the match begins."""

    @property
    def buffered(self) -> int:
        if self._choice in self._rule.hits:
            return 0
        return self._replacer.buffered

    def feed(self, text: str) -> list[str]:
        if self._choice in self._rule.hits:
            return []
        self._received += len(text)
        return self._before_match(self._replacer.feed(text))

    def close(self) -> list[str]:
        if self._choice in self._rule.hits:
            return []
        return self._before_match(self._replacer.close())

    def _find(self, match: re.Match[str]) -> str:
        if self._found is None:
            # The searched text ends with what was received last.
            self._found = self._received - (len(match.string) - match.start())
            self._rule.hits.setdefault(self._choice, match[0])
        return ""

    def _before_match(self, fragments: list[str]) -> list[str]:
        text = "".join(fragments)
        if self._found is not None:
            text = text[: self._found - self._emitted]
        self._emitted += len(text)
        return [text] if text else []


class _LimitRule:
    """The rule of `limit`: what is left, for all texts of a choice together."""

    changes = True
    changes_copies = False
    kinds: frozenset[type] = TEXT_ALONE
    reason: StopReason = "length"

    def __init__(self, characters: int | None) -> None:
        self.hits: dict[int, str] = {}
        self.left: dict[int, int] = {}
        """Characters left, by choice."""
        self.characters = characters

    def machine(self, kind: type, choice: int, note: Callable[[str], None]) -> TextMachine:
        del kind, note
        if self.characters is not None:
            self.left.setdefault(choice, self.characters)
        return _Limited(self, choice)


class _Limited:
    """As much of a text as is left, in whole graphemes."""

    def __init__(self, rule: _LimitRule, choice: int) -> None:
        self._rule = rule
        self._choice = choice
        self._held = ""
        """The last grapheme: more characters may belong to it."""

    @property
    def buffered(self) -> int:
        return len(self._held)

    def feed(self, text: str) -> list[str]:
        rule = self._rule
        if rule.characters is None:
            return [text] if text else []
        if self._choice in rule.hits:
            return []
        text = self._held + text
        left = rule.left[self._choice]
        if len(text) + NEAR_LIMIT <= left:
            self._held = ""
            return self._emit(text)
        # Whole graphemes that fit; the last one may go on.
        end = start = 0
        for position in range(1, len(text) + 1):
            if position < len(text) and _is_joined(text, start, position):
                continue
            if position > left:
                rule.hits[self._choice] = ""
                break
            end, start = start, position
        fits = text[:end] if self._choice not in rule.hits else text[:start]
        self._held = "" if self._choice in rule.hits else text[end:]
        return self._emit(fits)

    def close(self) -> list[str]:
        held = self._held
        self._held = ""
        return self._emit(held)

    def _emit(self, text: str) -> list[str]:
        if not text:
            return []
        if self._rule.characters is not None:
            self._rule.left[self._choice] -= len(text)
        return [text]


def _is_joined(text: str, start: int, position: int) -> bool:
    """Whether a character belongs to the grapheme that began at `start`."""
    character = text[position]
    if _is_flag_letter(character) and _is_flag_letter(text[position - 1]):
        # Two letters are a flag.
        return position - start == 1
    return joins_character(text[position - 1], character)


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


class _EndingText(PlainMachine):
    """The machine of a stage that ends choices, and with the last one the response."""

    def __init__(
        self,
        rule: _StopRule | _LimitRule,
        *,
        seconds: float | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__()
        self._rule = rule
        self._texts = TextEvents(rule)
        self._open: dict[int, OpenItems] = {}
        """What was let out, by choice."""
        self._choices: dict[int, int] = {}
        """The choice of each item, by its index."""
        self._ended: set[int] = set()
        """Choices that this stage has ended."""
        self._created = Created()
        self._clock = clock
        self._deadline: float | None = None
        if seconds is not None and clock is not None:
            self._deadline = clock() + seconds

    @property
    def buffered(self) -> int:
        return self._texts.buffered

    def due(self) -> float | None:
        """Seconds until the time is up."""
        if self._deadline is None or self._clock is None or self.done:
            return None
        return max(0.0, self._deadline - self._clock())

    def expire(self) -> list[ResponseEvent]:
        """The time is up."""
        due = self.due()
        if due is None or due > 0:
            return []
        events = self._noted(self._texts.close())
        self.done = True
        return events + self._end(min(self._open, default=0))

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if self.done:
            return []
        if isinstance(event, Created):
            self._created = event
        elif isinstance(event, OutputItemAdded):
            self._choices[event.index] = event.item.choice
        elif isinstance(event, OutputItemDone):
            self._choices.setdefault(event.index, event.item.choice)
        index = getattr(event, "index", None)
        if self._ended and index is not None and self._choices.get(index, 0) in self._ended:
            return []
        if self._ended and isinstance(event, Completed):
            event = self._completed(event)
        events = self._texts.feed(event)
        if len(self._rule.hits) > len(self._ended):
            return self._hit(event, events)
        return self._noted(events)

    def close(self) -> list[ResponseEvent]:
        """What is buffered of items that the source has not closed."""
        return self._noted(self._texts.close())

    def _noted(self, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """The events, noted as let out."""
        for event in events:
            index: int | None = getattr(event, "index", None)
            if index is None:
                continue
            choice = self._choices.get(index, 0)
            if choice not in self._open:
                self._open[choice] = OpenItems()
                self._open[choice].feed(self._created)
            self._open[choice].feed(event)
        return events

    def _hit(self, event: ResponseEvent, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """A choice has ended in the text of this event."""
        [choice] = self._rule.hits.keys() - self._ended
        self._ended.add(choice)
        last = events[-1] if events else event
        index: int | None = getattr(event, "index", None)
        if isinstance(last, OutputItemDone):
            # Also behind `aggregate`: the final item is what there is to end.
            status = "completed" if self._rule.reason == "stop" else "incomplete"
            events[-1] = with_fields(last, item=with_fields(last.item, status=status))
        events = self._noted(events)
        if self._open.keys() <= self._ended:
            self.done = True
            return events + self._end(choice, index)
        # Without the terminal event: the other choices go on.
        return events + self._end_choice(choice, index)[:-1]

    def _end(self, choice: int, index: int | None = None) -> list[ResponseEvent]:
        """Ends the response, with this choice as the last one."""
        endings: list[ResponseEvent] = []
        for other in sorted(self._open.keys() - self._ended - {choice}):
            endings += self._end_choice(other)[:-2]
        self.ending = endings + self._end_choice(choice, index)
        return list(self.ending)

    def _end_choice(self, choice: int, index: int | None = None) -> list[ResponseEvent]:
        """The ends of a choice's items, the notice and the terminal event."""
        items = self._open.get(choice)
        if items is None:
            items = OpenItems()
            items.feed(self._created)
        reason = self._rule.reason
        found = self._rule.hits.get(choice)
        detail = "the limit was reached"
        if reason == "stop":
            detail = "the stop text was found"
        ended = tuple([FinishedChoice(each, reason) for each in sorted(self._open or {0: items})])
        terminal = Completed(stop_reason=reason, stop_sequence=found or None, choices=ended)
        if reason == "stop":
            return items.end(terminal, detail, completed=index)
        return items.end(terminal, detail)

    def _completed(self, event: Completed) -> Completed:
        """The wire's own end of a response of which some choices have ended before."""
        reason = self._rule.reason
        choices = {each.choice: each for each in event.choices}
        for choice in self._ended:
            choices[choice] = FinishedChoice(choice, reason)
        changed = with_fields(event, choices=tuple([choices[each] for each in sorted(choices)]))
        if 0 not in self._ended:
            return changed
        found = self._rule.hits.get(0) or None
        return with_fields(
            changed, stop_reason=reason, native_stop_reason=None, stop_sequence=found
        )


# --- guard ---


def guard(
    check: Callable[[str], bool] | Callable[[str], Awaitable[bool]],
    by: UnitName = "sentence",
    mode: GuardMode = "hold",
    ahead: int = 4,
    *,
    longest: int = LONGEST_UNIT,
) -> Keep:
    """Ends the stream where a check refuses a unit of the text: `guard(is_harmless)`.

    The response ends with `Completed`: stop reason "content_filter", after
    ``Notice("stopped_by_stage")``; the open message is incomplete and keeps what was shown, and the
    source is closed. A check that raises ends the stream with its exception. It needs an event
    loop. Reasoning, refusals and arguments are not checked.

    Args:
        check: whether a unit, with the white space behind it, may be shown; sync or async.
        by: "word", "line", "sentence" or "block".
        mode: "hold": nothing leaves before it is checked; buffers a unit and those that are
            checked. "watch": text is shown at once; the ends of items and the terminal event
            wait for the checks.
        ahead: checks that run at once; their verdicts count in the order of the text.
        longest: characters after which a unit is cut at its last space.

    Raises:
        ValueError: `by` or `mode` is unknown, or a number is not positive.
        TypeError: `check` is no function.
    """
    if not callable(check):
        raise TypeError("guard takes a function of a text")
    if mode not in ("hold", "watch"):
        raise ValueError(f'mode is "hold" or "watch", not {mode!r}')
    if ahead < 1:
        raise ValueError(f"ahead is at least 1, not {ahead}")
    cut = _Cut(by, longest)
    return Keep(lambda _: Guard(cut, check, mode, ahead), "guard()", is_async=True)
