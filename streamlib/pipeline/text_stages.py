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
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from streamlib.pipeline.endings import LIMIT_REACHED
from streamlib.pipeline.json_strings import JsonStrings
from streamlib.pipeline.numbers import check_count, check_seconds
from streamlib.pipeline.pacing import Deadline
from streamlib.pipeline.patterns import (
    LONGEST,
    Replacer,
    Search,
    Substitute,
    fixed_text,
    read_pattern,
)
from streamlib.pipeline.stages import Keep, chain
from streamlib.pipeline.text_endings import EndingText, Hits, Limited, UntilFound
from streamlib.pipeline.text_events import TEXT_KINDS, TextEdit, TextEvents, text_edit
from streamlib.pipeline.unit_calls import Guard, GuardMode, MapUnitsAsync
from streamlib.pipeline.units import LONGEST_UNIT, TextMachine, UnitName, text_of, unit_machine
from streamlib_parsers.events import Completed, FunctionCallArgumentsDelta

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
        longest: characters that are looked at to decide about one match. Of a longer one a part
            comes out, or all of it, and only sometimes with ``Notice("match_too_long")``: let it be
            more than a secret can have.

    Raises:
        ValueError: a pattern is malformed, can match the empty text, repeats lazily what can match
            the empty text, or looks at more than 64 characters before it; the template is
            malformed; a name in `of` is unknown; `longest` is not positive.
        ImportError: a pattern needs the `regex` package, and it is not installed.
    """
    searches = _searches(pattern)
    check_count("longest", longest)
    kinds = _kinds(of)
    if isinstance(with_, str):
        for search in searches:
            _check_template(search.pattern, with_)
    elif not callable(with_):
        raise TypeError("with_ is a template, or a function of the match")

    def machine(kind: type, choice: int, note: Callable[[str], None]) -> TextMachine:
        del choice

        def replacer() -> Replacer:
            return Replacer(searches, with_, longest, lambda: note("match_too_long"))

        if kind is FunctionCallArgumentsDelta:
            return JsonStrings(replacer)
        return replacer()

    edit = TextEdit(machine, kinds)
    return Keep(lambda _: TextEvents(edit), "replace()")


def _searches(pattern: Any) -> list[Search]:
    if isinstance(pattern, (str, re.Pattern)):
        return [read_pattern(pattern)]
    searches = [read_pattern(each) for each in pattern]
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


# --- units ---


def _units(by: UnitName, longest: int) -> Callable[[], TextMachine]:
    """What makes the machines that cut texts into units."""
    check_count("longest", longest)
    unit_machine(by, longest)  # raises for an unknown name, or a package that is missing
    return lambda: unit_machine(by, longest)


def _unit_stage(by: UnitName, name: str, longest: int) -> Keep:
    edit = text_edit(_units(by, longest), changes=False, waits=False)
    return Keep(lambda _: TextEvents(edit), name)


def words(longest: int = LONGEST_UNIT) -> Keep:
    """Deltas of whole words, each with the white space behind it.

    Buffers a word. Longer than `longest` characters it is cut.

    Raises:
        ValueError: `longest` is not positive.
    """
    return _unit_stage("word", "words()", longest)


def lines(longest: int = LONGEST_UNIT) -> Keep:
    """Deltas of whole lines, each with its line feed.

    Buffers a line. Longer than `longest` characters it is cut at its last space.

    Raises:
        ValueError: `longest` is not positive.
    """
    return _unit_stage("line", "lines()", longest)


def sentences(longest: int = LONGEST_UNIT) -> Keep:
    """Deltas of whole sentences, for speech: "Dr.", "3.5" and "U.S." end none.

    Buffers a sentence, until the character behind the space that follows it is known. Longer than
    `longest` characters it is cut at its last space.

    Raises:
        ValueError: `longest` is not positive.
    """
    return _unit_stage("sentence", "sentences()", longest)


def blocks(longest: int = LONGEST_UNIT) -> Keep:
    """Deltas of whole Markdown blocks (a paragraph, a list, code …), so that each is drawn once.

    Buffers a block. Longer than `longest` characters it is cut at its last space. It needs
    `pip install 'streamlib[cli]'`.

    Raises:
        ValueError: `longest` is not positive.
        ImportError: the package that reads Markdown is not installed.
    """
    return _unit_stage("block", "blocks()", longest)


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
    units = _units(by, longest)
    if is_async(function):
        return Keep(lambda _: MapUnitsAsync(units, function), "map_text()", is_async=True)
    edit = text_edit(lambda: _MappedUnits(units(), function))
    return Keep(lambda _: TextEvents(edit), "map_text()")


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a function, or the method by which an object is called, is async."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # whether it can be called is known
    )


class _MappedUnits:
    def __init__(self, units: TextMachine, function: Callable[[str], Any]) -> None:
        self._units = units
        self._function = function

    @property
    def buffered(self) -> int:
        return self._units.buffered

    def feed(self, text: str) -> list[str]:
        return [text_of(self._function(unit), "map_text") for unit in self._units.feed(text)]

    def close(self) -> list[str]:
        return [text_of(self._function(unit), "map_text") for unit in self._units.close()]


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
        TypeError: it is neither a text nor a pattern.
        ValueError: it is empty, or a pattern that `replace` would refuse.
        ImportError: the pattern needs the `regex` package, and it is not installed.
    """
    check_count("longest", longest)
    if isinstance(text, str):
        search = fixed_text(text)
        longest = max(longest, len(text))
    elif isinstance(text, re.Pattern):  # pyright: ignore[reportUnnecessaryIsInstance]
        search = read_pattern(text)
    else:
        raise TypeError(f"stop_at takes a text or a compiled pattern, not {text!r:.100}")

    def until_found(hits: Hits, choice: int) -> TextMachine:
        return UntilFound(hits, choice, search, longest)

    detail = "the stop text was found"
    return Keep(lambda _: EndingText("stop", detail, until_found), "stop_at()")


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
    stages: list[Keep] = []
    if seconds is not None:
        check_seconds("seconds", seconds)
        end = Completed(stop_reason="length")
        stages.append(Keep(lambda clock: Deadline(None, seconds, clock, lambda _: end), "limit()"))
    if characters is not None:
        check_count("characters", characters)
        stages.append(Keep(lambda _: _limited(characters), "limit()"))
    limits = chain(*stages)
    limits.name = "limit()"
    return limits


def _limited(characters: int) -> EndingText:
    left: dict[int, int] = defaultdict(lambda: characters)
    return EndingText("length", LIMIT_REACHED, lambda hits, choice: Limited(hits, choice, left))


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
    check_count("ahead", ahead)
    units = _units(by, longest)
    return Keep(lambda _: Guard(units, check, mode, ahead), "guard()", is_async=True)
