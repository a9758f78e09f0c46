"""Stages that end a stream: whole, in its deltas and items, for each choice, on both loops."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import pytest
from msgspec.structs import replace as with_fields

from streamlib import accumulate
from streamlib.pipeline import (
    Keep,
    aggregate,
    guard,
    limit,
    pipe,
    replace,
    stop_at,
    through,
)
from streamlib.testing import MODEL, scripted, sync_loopback
from streamlib.testing.invariants import check
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
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
)
from streamlib_parsers.items import FunctionCall, Message, Text
from streamlib_parsers.response import Choice, Response
from streamlib_parsers.usage import Usage
from tests.support.cases import each_case


def streamed(*deltas: str, then: Sequence[ResponseEvent] = ()) -> list[ResponseEvent]:
    """The events of one message."""
    return interleaved([(0, delta) for delta in deltas], then=then)


def interleaved(
    deltas: Sequence[tuple[int, str]], *, then: Sequence[ResponseEvent] = ()
) -> list[ResponseEvent]:
    """The events of one message a choice, their deltas in this order."""
    choices = sorted({choice for choice, _ in deltas})
    events: list[ResponseEvent] = [Created(response_id="r", model="m")]
    for choice in choices:
        events.append(
            OutputItemAdded(choice, Message("assistant", status="incomplete", choice=choice))
        )
    for choice, delta in deltas:
        events.append(OutputTextDelta(index=choice, content_index=0, delta=delta))
    for choice in choices:
        whole = "".join(delta for each, delta in deltas if each == choice)
        item = Message("assistant", (Text(whole),), choice=choice)
        events.append(OutputItemDone(choice, item))
    ends = tuple([FinishedChoice(choice, "stop") for choice in choices])
    terminal = Completed("r", "m", "stop", choices=ends, usage=Usage())
    events += [*then, terminal]
    return [with_fields(event, seq=seq) for seq, event in enumerate(events)]


@each_case(
    "stages", [[limit(characters=7)], [stop_at(" four")], [limit(characters=1), guard(bool)]]
)
def test_sync_stream_that_a_stage_ends_is_not_cancelled(stages: list[Keep]) -> None:
    """Its loop's thread closes the source first; that counted as leaving before the end."""
    turns = ["one two three four five"]

    async def read() -> Response:
        async with scripted(turns) as client, client.stream("x", MODEL).pipe(*stages) as events:
            async for _ in events:
                pass
        return events.response

    expected = anyio.run(read)
    with sync_loopback(turns=turns) as sync_client:
        with sync_client.stream("x", MODEL).pipe(*stages) as sync_events:
            for _ in sync_events:
                pass
        found = sync_events.response
    assert found.error is None
    assert (found.status, found.text) == (expected.status, expected.text)
    assert (found.stop_reason, found.notices) == (expected.stop_reason, expected.notices)


def deltas(events: Sequence[Any]) -> list[str]:
    return [event.delta for event in events if isinstance(event, OutputTextDelta)]


def texts(choice: Choice) -> str:
    return "".join([item.text for item in choice.items if isinstance(item, Message)])


def codes(events: Sequence[Any]) -> list[str]:
    return [event.code for event in events if isinstance(event, Notice)]


async def arrive(events: Sequence[ResponseEvent]) -> AsyncIterator[ResponseEvent]:
    for event in events:
        await anyio.lowlevel.checkpoint()
        yield event


def piped(events: Sequence[ResponseEvent], stage: Keep, backend: str = "asyncio") -> list[Any]:
    async def read() -> list[Any]:
        with anyio.fail_after(5):
            async with pipe(arrive(events), stage) as stream:
                return [event async for event in stream]

    return anyio.run(read, backend=backend)


@pytest.mark.parametrize("template", [r"\1", r"\g<no>"])
def test_replace_refuses_a_malformed_template(template: str) -> None:
    with pytest.raises(ValueError, match="template"):
        replace("a", template)


# --- stop_at ---


@pytest.mark.parametrize("stop", ["END", re.compile("E[N]D")])
def test_stop_at_ends_a_whole_response(stop: Any) -> None:
    out = through(streamed("one E", "ND two"), stop_at(stop))
    check(out)
    response = accumulate(out)
    assert response.text == "".join(deltas(out)) == "one "
    assert response.status == "completed"
    assert response.items[0].status == "completed"
    assert (response.stop_reason, response.stop_sequence) == ("stop", "END")
    assert response.usage is None
    assert (response.response_id, response.model) == ("r", "m")
    assert codes(out) == ["stopped_by_stage"]


def test_stop_at_cuts_an_item_without_deltas() -> None:
    out = through(streamed("one E", "ND two"), aggregate(), stop_at("END"))
    items = [event.item for event in out if isinstance(event, OutputItemDone)]
    assert [item.text for item in items] == ["one "]  # type: ignore[union-attr]
    assert out[-1].stop_sequence == "END"  # type: ignore[union-attr]


# --- limit ---


def test_limit_ends_a_whole_response() -> None:
    out = through(streamed("one t", "wo three"), limit(characters=7))
    check(out)
    response = accumulate(out)
    assert response.text == "".join(deltas(out)) == "one two"
    assert response.status == "incomplete"
    assert response.items[0].status == "incomplete"
    assert response.stop_reason == "length"
    assert codes(out) == ["stopped_by_stage"]


@each_case("size", [1, 2, 50])
@each_case(
    "text, characters, kept",
    [
        ("abe\u0301x", 3, "ab"),
        ("abe\u0301x", 4, "abe\u0301"),
        ("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", 3, "\U0001f1e9\U0001f1ea"),
        ("a\U0001f468\u200d\U0001f469\u200d\U0001f467b", 4, "a"),
        (
            "a\U0001f468\u200d\U0001f469\u200d\U0001f467b",
            6,
            "a\U0001f468\u200d\U0001f469\u200d\U0001f467",
        ),
        ("a\r\nb", 2, "a"),
        ("\ud55c\ud55c", 1, "\ud55c"),
    ],
)
def test_limit_never_cuts_a_grapheme(text: str, characters: int, kept: str, size: int) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    out = through(streamed(*pieces), limit(characters=characters))
    assert accumulate(out).text == kept


def test_limit_counts_each_choice_by_itself() -> None:
    turns = [(0, "aaa"), (1, "b"), (0, "aaa"), (1, "bb"), (0, "a"), (1, "b")]
    out = through(interleaved(turns), limit(characters=4))
    check(out)
    choices = accumulate(out).choices
    assert [texts(choice) for choice in choices] == ["aaaa", "bbbb"]
    assert [choice.stop_reason for choice in choices] == ["length", "stop"]


def test_limit_ends_when_every_choice_has_reached_it() -> None:
    turns = [(0, "aaa"), (1, "bbbbb"), (0, "aaa"), (1, "never")]
    out = through(interleaved(turns), limit(characters=4))
    check(out)
    response = accumulate(out)
    assert [texts(choice) for choice in response.choices] == ["aaaa", "bbbb"]
    assert [choice.stop_reason for choice in response.choices] == ["length", "length"]


def two_items_of_one_choice(first: str, second: str) -> list[ResponseEvent]:
    """Two open messages of choice 0; another choice goes on to the end."""
    choices = {0: 0, 1: 0, 2: 1}
    events: list[ResponseEvent] = [Created("r", "m")]
    for index, choice in choices.items():
        added = Message("assistant", status="incomplete", choice=choice)
        events.append(OutputItemAdded(index, added))
    whole = {0: first, 1: second, 2: "xyz"}
    events += [OutputTextDelta(index, 0, whole[index]) for index in (0, 1)]
    for index, choice in choices.items():
        if index == 2:
            events.append(OutputTextDelta(index, 0, whole[index]))
        done = Message("assistant", (Text(whole[index]),), choice=choice)
        events.append(OutputItemDone(index, done))
    ends = (FinishedChoice(0, "stop"), FinishedChoice(1, "stop"))
    events.append(Completed("r", "m", "stop", choices=ends))
    return [with_fields(event, seq=seq) for seq, event in enumerate(events)]


@pytest.mark.parametrize(
    ("stage", "first", "second", "shown"),
    [
        (limit(characters=4), "a", "bcdefg", ["a", "bcd", "xyz"]),
        (limit(characters=4), "abcd", "e", ["abcd", "", "xyz"]),
        (stop_at("STOP"), "a ST", "b STOP c", ["a ST", "b ", "xyz"]),
    ],
)
def test_choice_ends_in_each_of_its_open_items(
    stage: Keep, first: str, second: str, shown: list[str]
) -> None:
    out = through(two_items_of_one_choice(first, second), stage)
    check(out)
    ends = {event.index: event.item for event in out if isinstance(event, OutputItemDone)}
    for index, text in enumerate(shown):
        end = ends[index]
        assert isinstance(end, Message)
        assert end.text == text
        streamed = [e.delta for e in out if isinstance(e, OutputTextDelta) and e.index == index]
        assert "".join(streamed) == text


def test_limit_counts_what_other_items_hold() -> None:
    out = through(two_items_of_one_choice("ab", "cd"), limit(characters=3))
    assert sorted("".join(deltas(out))) == ["a", "b", "c", "x", "y", "z"]


@pytest.mark.parametrize("is_failed", [False, True])
def test_stop_text_is_found_at_the_end_of_every_choice(is_failed: bool) -> None:
    """Only the end of the text shows that the match is no longer one."""
    events = [e for e in interleaved([(0, "xa"), (1, "ya")]) if not isinstance(e, OutputItemDone)]
    if is_failed:
        events[-1] = Failed(ErrorInfo("malformed", "x"), seq=events[-1].seq)
    out = through(events, stop_at(re.compile("a+")))
    check(out)
    response = accumulate(out)
    assert [texts(choice) for choice in response.choices] == ["x", "y"]
    assert [choice.stop_reason for choice in response.choices] == ["stop", "stop"]


def test_item_without_a_beginning_is_of_the_choice_it_ends_with() -> None:
    """Its first delta does not say whose it is, and the choice that it is taken for ends."""
    out = through(
        [
            Created("r", "m"),
            OutputItemAdded(0, Message("assistant", status="incomplete")),
            OutputItemAdded(1, Message("assistant", status="incomplete", choice=1)),
            OutputTextDelta(2, 0, "x"),
            OutputTextDelta(0, 0, "abcdefg"),
            OutputItemDone(0, Message("assistant", (Text("abcdefg"),))),
            OutputItemDone(1, Message("assistant", (Text("y"),), choice=1)),
            OutputItemDone(2, Message("assistant", (Text("xz"),), choice=1)),
            Completed("r", "m", "stop"),
        ],
        limit(characters=4),
    )
    ends = [event.item for event in out if isinstance(event, OutputItemDone)]
    assert [end.text for end in ends if isinstance(end, Message)] == ["abc", "y", "xz"]


# --- guard ---


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("is_async", [False, True])
def test_guard_shows_nothing_that_is_refused(backend: str, is_async: bool) -> None:
    seen: list[str] = []

    def is_good(unit: str) -> bool:
        seen.append(unit)
        return "bad" not in unit

    async def is_good_later(unit: str) -> bool:
        await anyio.sleep(0.001 * (3 - len(seen)))
        return is_good(unit)

    stage = guard(is_good_later if is_async else is_good)
    out = piped(streamed("Good one. Go", "od two. Bad: bad. Goo", "d three."), stage, backend)
    check(out)
    response = accumulate(out)
    assert response.text == "Good one. Good two. "
    assert response.stop_reason == "content_filter"
    assert response.items[0].status == "incomplete"
    assert codes(out) == ["stopped_by_stage"]


def test_guard_checks_a_text_without_deltas() -> None:
    stage = aggregate() | guard(lambda unit: "bad" not in unit)
    out = piped(streamed("All is bad."), stage)
    assert not [event for event in out if isinstance(event, OutputItemDone)]


def test_guard_keeps_what_it_allows_without_deltas() -> None:
    stage = aggregate() | guard(lambda unit: "bad" not in unit)
    out = piped(streamed("All is well. All is bad. Bye."), stage)
    [done] = [event.item for event in out if isinstance(event, OutputItemDone)]
    assert isinstance(done, Message)
    assert (done.text, done.status) == ("All is well. ", "incomplete")


def test_guard_of_an_item_with_many_units_is_linear() -> None:
    def work(count: int) -> int:
        """Python frames that are entered while an item without deltas is checked."""
        frames = 0

        def note(_frame: object, event: str, _argument: object) -> None:
            nonlocal frames
            frames += event == "call"

        events = streamed("word " * count)
        sys.setprofile(note)
        try:
            piped(events, aggregate() | guard(bool, by="word"))
        finally:
            sys.setprofile(None)
        return frames

    assert work(1_200) < 2.3 * work(600)


@pytest.mark.parametrize("stage", [stop_at("STOP"), limit(characters=4)])
def test_item_of_an_ended_choice_leaves_no_gap(stage: Keep) -> None:
    calls: list[ResponseEvent] = []
    for index, choice in ((2, 0), (3, 1)):
        call = FunctionCall(f"call_{choice}", "f", "{}", choice=choice)
        added = with_fields(call, arguments="", status="incomplete")
        calls += [
            OutputItemAdded(index, added),
            FunctionCallArgumentsDelta(index, "{}"),
            OutputItemDone(index, call),
        ]
    out = through(interleaved([(0, "one STOP"), (1, "two")], then=calls), stage)
    check(out)
    ends = [event.item for event in out if isinstance(event, OutputItemDone)]
    assert [type(end) for end in ends] == [Message, Message, FunctionCall]


def test_stop_at_needs_no_task() -> None:
    """A task would read what nobody wants, before the stage can end the stream."""
    read: list[int] = []

    async def source() -> AsyncIterator[ResponseEvent]:
        for event in streamed("a", "STOP", "b", "c"):
            read.append(event.seq)
            yield event

    async def use() -> None:
        async with pipe(source(), stop_at("STOP")) as piped:
            assert isinstance([event async for event in piped][-1], Completed)

    anyio.run(use)
    assert read == [0, 1, 2, 3]
