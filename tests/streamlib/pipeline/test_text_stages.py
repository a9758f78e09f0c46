"""Stages that change, cut or end a text: what they let out, and how the stream ends."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace as replace_fields

from streamlib.pipeline import (
    Keep,
    aggregate,
    blocks,
    guard,
    limit,
    lines,
    map_text,
    pipe,
    replace,
    sentences,
    stop_at,
    through,
    words,
)
from streamlib_parsers.accumulate import Response, accumulate
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FinishedChoice,
    FunctionCallArgumentsDelta,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ResponseEvent,
    ResponseMetadata,
)
from streamlib_parsers.items import FunctionCall, Message, Text
from tests.support.cases import each_case
from tests.support.events_source import EventsSource


def response(*deltas: str, call: str = "", choice: int = 0) -> list[ResponseEvent]:
    """A response with one message, and maybe a call."""
    text = "".join(deltas)
    events: list[ResponseEvent] = [
        Created(response_id="resp_1", model="m"),
        *message(0, deltas, text, choice),
    ]
    if call:
        item = FunctionCall("call_1", "f", call)
        events.append(OutputItemAdded(1, FunctionCall("call_1", "f", status="incomplete")))
        events += [FunctionCallArgumentsDelta(1, letter) for letter in call]
        events.append(OutputItemDone(1, item))
    events.append(
        Completed("resp_1", "m", "stop", "end_turn", choices=(FinishedChoice(choice, "stop"),))
    )
    return numbered(events)


def message(index: int, deltas: Sequence[str], text: str, choice: int = 0) -> list[ResponseEvent]:
    return [
        OutputItemAdded(index, Message("assistant", status="incomplete", choice=choice)),
        *[OutputTextDelta(index, 0, delta) for delta in deltas],
        OutputItemDone(index, Message("assistant", (Text(text),), choice=choice)),
    ]


def numbered(events: Sequence[ResponseEvent]) -> list[ResponseEvent]:
    return [replace_fields(event, seq=seq) for seq, event in enumerate(events)]


def shown(events: Sequence[ResponseEvent]) -> list[str]:
    return [event.delta for event in events if isinstance(event, OutputTextDelta)]


def check(events: Sequence[ResponseEvent]) -> Response:
    """A whole stream, whose deltas are the text of its items."""
    assert [event.seq for event in events] == list(range(len(events)))
    assert [type(event) for event in events if isinstance(event, (Completed, Failed))]
    assert isinstance(events[-1], (Completed, Failed))
    added = {event.index for event in events if isinstance(event, OutputItemAdded)}
    done = [event.index for event in events if isinstance(event, OutputItemDone)]
    assert sorted(done) == sorted(added)
    made = accumulate(events)
    texts: list[str] = []
    for choice in made.choices:
        texts += [item.text for item in choice.items if isinstance(item, Message)]
    assert sorted("".join(texts)) == sorted("".join(shown(events)))
    return made


async def piped(events: Sequence[ResponseEvent], stage: Keep) -> list[ResponseEvent]:
    source = EventsSource(events)
    async with pipe(source, stage) as stream:
        let_out = [event async for event in stream]
    assert source.closed == 1
    return let_out


# --- units ---


@pytest.mark.parametrize(
    ("stage", "deltas"),
    [
        (words(), ["Dr. ", "No ", "ran. ", "He\n\n", "fell."]),
        (lines(), ["Dr. No ran. He\n", "\n", "fell."]),
        (sentences(), ["Dr. No ran. ", "He\n\n", "fell."]),
        (blocks(), ["Dr. No ran. He\n\n", "fell."]),
    ],
    ids=str,
)
def test_units_are_deltas_of_their_own(stage: Keep, deltas: list[str]) -> None:
    events = through(response(*"Dr. No ran. He\n\nfell."), stage)
    assert shown(events) == deltas
    assert check(events).text == "Dr. No ran. He\n\nfell."


def test_units_are_refused_when_longest_is_no_number() -> None:
    with pytest.raises(ValueError, match="longest is a whole number from 1"):
        sentences(longest=0)


# --- replace ---


@each_case(
    "arguments, fault",
    [
        ({"pattern": "a*", "with_": ""}, "empty text"),
        ({"pattern": "(?<=" + "a" * 65 + ")b", "with_": ""}, "64 characters"),
        ({"pattern": [], "with_": ""}, "at least one"),
        ({"pattern": "a", "with_": r"\1"}, "template"),
        ({"pattern": "a", "with_": "", "of": "text"}, "one of text"),
        ({"pattern": "a", "with_": "", "of": ("words",)}, "text, reasoning, refusal, arguments"),
        ({"pattern": "a", "with_": "", "of": ()}, "no text"),
        ({"pattern": "a", "with_": "", "longest": 0}, "longest is a whole number from 1"),
    ],
)
def test_replace_refuses_what_cannot_be(arguments: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        replace(**arguments)


def test_replace_takes_a_function_and_a_list() -> None:
    stage = replace(["b+", r"\d"], lambda match: f"<{len(match[0])}>")
    events = through(response("a", "b", "bc1", "2"), stage)
    assert check(events).text == "a<2>c<1><1>"


def test_replace_reports_a_match_that_is_too_long() -> None:
    events = through(response(*"xaaaaaaaax"), replace("a+", "-", longest=4))
    assert check(events).text == "x--x"
    assert [event.code for event in events if isinstance(event, Notice)] == ["match_too_long"]


def test_replace_changes_values_of_arguments_alone() -> None:
    call = '{"key": "a \\u006bey", "deep": ["key\\n", 1, {"key": "k"}]}'
    stage = replace("key", "[k]", of=("arguments",))
    made = check(through(response("the key", call=call), stage))
    assert made.text == "the key"
    assert made.calls[0].parsed() == {  # type: ignore[union-attr]
        "key": "a [k]",
        "deep": ["[k]\n", 1, {"key": "k"}],
    }


def test_replace_changes_items_that_came_without_deltas() -> None:
    events = through(response("the ", "key"), aggregate(), replace("key", "[k]"))
    (done,) = [event for event in events if isinstance(event, OutputItemDone)]
    assert done.item.text == "the [k]"  # type: ignore[union-attr]


def test_replace_reports_a_dropped_citation_once() -> None:
    citation = {"start_index": 8, "end_index": 12}
    events = response("my key, ", "here")
    (done,) = [event for event in events if isinstance(event, OutputItemDone)]
    item = Message("assistant", (Text("my key, here", (citation,)),))
    cited = [
        *events[:4],
        AnnotationAdded(0, 0, citation),
        replace_fields(done, item=item),
        events[-1],
    ]
    for source in (numbered(cited), through(numbered(cited), aggregate())):
        stage = replace("key", "[secret]")
        made = accumulate(through(source, stage))
        assert made.items[0].content == (Text("my [secret], here"),)  # type: ignore[union-attr]
        assert [notice.code for notice in made.notices] == ["annotation_dropped"]
        made = accumulate(through(source, replace("here", "there")))
        assert [notice.code for notice in made.notices] == ["annotation_dropped"]
        made = accumulate(through(source, replace("key", "yes")))
        assert made.notices == ()


# --- map_text ---


def test_map_text_gets_whole_units_once() -> None:
    seen: list[str] = []

    def shout(unit: str) -> str:
        seen.append(unit)
        return unit.upper()

    events = through(response(*"One. Two three. F"), map_text(shout))
    assert check(events).text == "ONE. TWO THREE. F"
    assert seen == ["One. ", "Two three. ", "F"]


def test_map_text_refuses_what_is_no_text() -> None:
    with pytest.raises(TypeError, match="returned a int, not text"):
        through(response("One. ", "Two."), map_text(len))  # type: ignore[arg-type]


async def test_map_text_keeps_the_order_of_async_calls() -> None:
    running = most = 0

    async def shout(unit: str) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(0.01 * (3 - len(unit) % 3))
        running -= 1
        return unit.upper()

    text = "One. Two is it. Three at last. Four. Five then. Six."
    events = await piped(response(*text), map_text(shout))
    assert check(events).text == text.upper()
    assert 2 <= most <= 4


async def test_map_text_runs_more_calls_of_an_event_than_fit() -> None:
    async def shout(unit: str) -> str:
        await anyio.lowlevel.checkpoint()
        return unit.upper()

    copies = ResponseMetadata({"copies": list("abcdefghi")})
    events = response("One. ", "Two.")
    with anyio.fail_after(5):
        let_out = await piped(numbered([*events[:-1], copies, events[-1]]), map_text(shout))
    assert check(let_out).metadata == {"copies": list("ABCDEFGHI")}


def test_map_text_needs_a_loop_when_async() -> None:
    async def same(unit: str) -> str:
        return unit

    with pytest.raises(TypeError, match="no event loop"):
        through(response("a"), map_text(same))


# --- stop_at ---


@pytest.mark.parametrize(
    "deltas", [["abc END def"], list("abc END def"), ["abc E", "ND d", "ef"]], ids=len
)
def test_stop_at_ends_as_a_whole_stream(deltas: list[str]) -> None:
    events = through(response(*deltas), stop_at("END"))
    made = check(events)
    assert made.text == "abc "
    assert (made.stop_reason, made.stop_sequence, made.usage) == ("stop", "END", None)
    assert (made.response_id, made.model, made.status) == ("resp_1", "m", "completed")
    assert made.items[0].status == "completed"
    assert [notice.code for notice in made.notices] == ["stopped_by_stage"]


def test_stop_at_takes_a_str_as_it_is() -> None:
    assert check(through(response(*"a.b+c"), stop_at("b+"))).text == "a."
    made = check(through(response(*"a1b22c"), stop_at(re.compile(r"\d{2}"))))
    assert (made.text, made.stop_sequence) == ("a1b", "22")


def test_stop_at_changes_nothing_when_the_text_is_missing() -> None:
    events = response("abc EN", "d")
    assert check(through(events, stop_at("END"))).text == "abc ENd"
    assert through(events, stop_at("END"))[-1] == events[-1]


def test_stop_at_leaves_an_open_call_incomplete() -> None:
    events = response("a END", call="{}")
    # The call begins before the text.
    opened = [events[0], OutputItemAdded(1, FunctionCall("c", "f", status="incomplete"))]
    made = check(through([*opened, *events[1:4]], stop_at("END")))
    assert made.calls == []


@pytest.mark.parametrize("text", ["", re.compile("a*")])
def test_stop_at_refuses_the_empty_text(text: str | re.Pattern[str]) -> None:
    with pytest.raises(ValueError, match="empty text"):
        stop_at(text)


# --- limit ---


@pytest.mark.parametrize("size", [1, 3, 11, 100])
def test_limit_counts_characters(size: int) -> None:
    words = ["one two three "] * 20
    for deltas in (words, list("".join(words)), ["".join(words)]):
        made = check(through(response(*deltas), limit(characters=size)))
        assert made.text == "".join(words)[:size]
        assert (made.stop_reason, made.items[0].status) == ("length", "incomplete")


def test_limit_adds_nothing_when_exactly_reached() -> None:
    events = response(*"exact")
    assert through(events, limit(characters=5))[-1] == events[-1]


@pytest.mark.parametrize(
    ("text", "characters", "kept"),
    [
        ("abe\u0301\u0302cd", 3, "ab"),
        ("abe\u0301cd", 4, "abe\u0301"),
        ("a\U0001f468\U0001f3fb\u200d\U0001f469b", 3, "a"),
        ("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", 3, "\U0001f1e9\U0001f1ea"),
        ("a\r\nb", 2, "a"),
    ],
)
def test_limit_keeps_graphemes_whole(text: str, characters: int, kept: str) -> None:
    for deltas in ([text], list(text)):
        assert check(through(response(*deltas), limit(characters=characters))).text == kept


def test_limit_is_one_for_each_choice() -> None:
    events: list[ResponseEvent] = [
        Created(response_id="resp_1", model="m"),
        OutputItemAdded(0, Message("assistant", status="incomplete")),
        OutputItemAdded(1, Message("assistant", status="incomplete", choice=1)),
        OutputTextDelta(0, 0, "abcdef"),
        OutputTextDelta(1, 0, "uv"),
        OutputTextDelta(1, 0, "w"),
        OutputItemDone(0, Message("assistant", (Text("abcdef"),))),
        OutputItemDone(1, Message("assistant", (Text("uvw"),), choice=1)),
        Completed(
            "resp_1",
            "m",
            "stop",
            choices=(FinishedChoice(0, "stop"), FinishedChoice(1, "stop")),
        ),
    ]
    made = check(through(numbered(events), limit(characters=4)))
    assert [choice.items[0].text for choice in made.choices] == ["abcd", "uvw"]  # type: ignore[union-attr]
    assert [choice.stop_reason for choice in made.choices] == ["length", "stop"]


async def test_limit_ends_after_its_seconds() -> None:
    source = EventsSource(response(*"one two three"), pause=0.02)
    async with pipe(source, limit(seconds=0.1)) as stream:
        events = [event async for event in stream]
    made = check(events)
    assert made.stop_reason == "length"
    assert source.closed == 1
    assert len(made.text) < 13


@pytest.mark.parametrize("numbers", [{}, {"characters": 0}, {"seconds": -1}])
def test_limit_refuses_what_is_no_limit(numbers: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"limit takes|from 1|more than 0"):
        limit(**numbers)


# --- guard ---


def _is_harmless(unit: str) -> bool:
    return "bad" not in unit


async def _is_harmless_later(unit: str) -> bool:
    await anyio.sleep(0.002 * (len(unit) % 3))
    return _is_harmless(unit)


Check = Callable[[str], bool] | Callable[[str], Awaitable[bool]]


@pytest.mark.parametrize("check_unit", [_is_harmless, _is_harmless_later])
async def test_guard_shows_nothing_that_is_not_checked(check_unit: Check) -> None:
    events = await piped(response(*"One. Two is bad. Three."), guard(check_unit))
    made = check(events)
    assert made.text == "One. "
    assert (made.stop_reason, made.items[0].status) == ("content_filter", "incomplete")
    assert [notice.code for notice in made.notices] == ["stopped_by_stage"]


@pytest.mark.parametrize("mode", ["hold", "watch"])
async def test_guard_changes_nothing_when_all_is_allowed(mode: Literal["hold", "watch"]) -> None:
    events = response(*"One. Two. Three.")
    let_out = await piped(events, guard(_is_harmless_later, mode=mode))
    assert check(let_out).text == "One. Two. Three."
    assert let_out[-1] == events[-1]


async def test_guard_that_watches_keeps_what_was_shown() -> None:
    events = await piped(response(*"One. Two is bad."), guard(_is_harmless_later, mode="watch"))
    made = check(events)
    assert made.text == "One. Two is bad."
    assert (made.stop_reason, made.items[0].status) == ("content_filter", "incomplete")


@pytest.mark.parametrize("mode", ["hold", "watch"])
async def test_guard_ends_with_the_exception_of_a_check(mode: Literal["hold", "watch"]) -> None:
    async def fails(unit: str) -> bool:
        if "Two" in unit:
            raise LookupError("no verdict")
        return True

    source = EventsSource(response(*"One. Two. Three."))
    seen: list[ResponseEvent] = []

    async def read() -> None:
        async with pipe(source, guard(fails, mode=mode)) as stream:
            async for event in stream:
                seen.append(event)

    with pytest.raises(LookupError, match="no verdict"):
        await read()
    assert source.closed == 1
    if mode == "hold":
        assert shown(seen) == ["One. "]
    assert not any(isinstance(event, Completed) for event in seen)


async def test_guard_runs_as_many_checks_as_it_may() -> None:
    running = most = 0

    async def count(unit: str) -> bool:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(0.01)
        running -= 1
        return bool(unit)

    await piped(response(*"A b. C d. E f. G h. I j. K l."), guard(count, ahead=2))
    assert most == 2


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [({"by": "page"}, "page"), ({"mode": "wait"}, "mode"), ({"ahead": 0}, "ahead")],
)
def test_guard_refuses_unknown_names(arguments: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        guard(_is_harmless, **arguments)


# --- values ---


@pytest.mark.parametrize(
    "stage",
    [
        replace("o", "0"),
        words(),
        sentences(),
        map_text(str.upper),
        stop_at("two"),
        limit(characters=5),
    ],
    ids=repr,
)
def test_text_stages_hold_no_state_between_uses(stage: Keep) -> None:
    events = response(*"one two three")
    first = through(events, stage)
    assert through(events, stage) == first
    check(first)


def test_stop_at_refuses_a_list_where_it_is_written() -> None:
    with pytest.raises(TypeError, match="a text or a compiled pattern, not \\['a'\\]"):
        stop_at(["a"])  # type: ignore[arg-type]
