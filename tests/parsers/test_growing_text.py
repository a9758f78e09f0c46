"""Views of a growing response after every event (C6): linear, and right whatever is kept."""

from __future__ import annotations

import json
import random
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, Final

import pytest
from msgspec.structs import replace

from streamlib_parsers import Accumulator, parser
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.events import (
    OutputItemAdded,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
)
from streamlib_parsers.growing_text import GrowingText
from streamlib_parsers.items import FunctionCall, Message, Origin, Reasoning, ResponseItem, Text
from streamlib_parsers.json_fragments import IncrementalJson
from streamlib_parsers.limits import Limits
from streamlib_parsers.open_items import OpenItem
from tests.support.cases import each_case
from tests.support.response_bodies import CALL, OPENED, arguments, text
from tests.support.timing import no_collections

DELTAS: Final = 40_000
WORDS: Final = ("some", " words", " more", "é", " 漢字", " 😀", "", " x" * 300)


@each_case("seed", range(20))
def test_joined_text_is_right_whatever_the_caller_keeps(seed: int) -> None:
    draw = random.Random(seed)
    growing, expected = GrowingText(), ""
    kept: list[tuple[str, str]] = []
    for _ in range(500):
        word = draw.choice(WORDS)
        growing.append(word)
        expected += word
        choice = draw.random()
        if choice < 0.4:
            assert growing.joined() == expected
        if choice < 0.2:
            # The plus makes another string: `expected` itself grows in place, too.
            kept.append((growing.joined(), "".join([expected, " "])[:-1]))
        if choice > 0.9 and kept:
            kept.pop(draw.randrange(len(kept)))
        if choice > 0.995:
            growing.clear()
            expected = ""
        assert "".join(growing) == expected
        assert all(text == then for text, then in kept)


@pytest.mark.parametrize("first_look", [True, False])
def test_joining_copies_the_text_once(first_look: bool) -> None:
    """C6: fragments, their joined text and both together were three copies at the first look."""
    growing = GrowingText()
    if not first_look:
        growing.extend(["short", "text"])
        growing.joined()
    growing.extend(str(n) + "x" * 4_000 for n in range(500))
    size = sum(map(len, growing))
    tracemalloc.start(1)
    before = tracemalloc.get_traced_memory()[0]
    growing.joined()
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert peak < 1.1 * size


def test_open_call_without_text_takes_little_memory() -> None:
    """C6: a response of 10,000 short calls took nine times its bytes, mostly for empty dicts."""
    tracemalloc.start(1)
    items = [OpenItem(n, CALL_ITEM) for n in range(1_000)]
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(items) == 1_000
    assert size < 280 * 1_000


CALL_ITEM: Final = FunctionCall("c", "f")


def test_snapshots_that_are_kept_do_not_change() -> None:
    wire = parser("messages")
    accumulator = Accumulator()
    kept: list[str] = []
    for chunk in [OPENED, *[text("ab")] * 50]:
        for event in wire.feed(chunk):
            accumulator.feed(event)
            kept.append(accumulator.response.text)
    assert kept[-1] == "ab" * 50
    assert sorted(set(map(len, kept))) == list(range(0, 101, 2))


OF_PARTS: Final[list[tuple[ResponseItem, Callable[..., ResponseEvent]]]] = [
    (Message("assistant"), OutputTextDelta),
    (Message("assistant"), RefusalDelta),
    (Reasoning(), ReasoningContentDelta),
    (Reasoning(), ReasoningSummaryDelta),
]


@pytest.mark.parametrize(("item", "delta"), OF_PARTS)
def test_snapshot_joins_only_the_parts_that_changed(
    item: ResponseItem, delta: Callable[..., ResponseEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snapshots of an item of 4,000 parts, each with one delta, took 2.8 s: the square of them."""
    calls: list[int] = []
    joined = GrowingText.joined

    def counted(self: GrowingText) -> str:
        calls.append(len(self))
        return joined(self)

    monkeypatch.setattr(GrowingText, "joined", counted)
    accumulator = Accumulator()
    accumulator.feed(OutputItemAdded(0, item))
    for part in range(200):
        accumulator.feed(delta(0, part, "word "))
        assert accumulator.response is not None
    assert len(calls) < 5 * 200


def test_part_that_grows_after_a_snapshot_is_in_the_next() -> None:
    """The assembler appends without a call of `OpenItem.part`."""
    assembler = EventAssembler(Limits(), Origin("chat"))
    item = assembler.open(Message("assistant"))
    for part in (0, 1):
        assembler.text(item, "a", part)
    first = item.snapshot("incomplete")
    assembler.text(item, "b", 0)
    assembler.text(item, "b", 0)
    assert item.snapshot("incomplete") == replace(first, content=(Text("abb"), Text("a")))


def test_summary_stays_where_parts_are_forgotten() -> None:
    item = OpenItem(0, Reasoning())
    item.paragraph(0).append("why")
    before = item.snapshot("incomplete")
    item.clear_parts()
    assert item.snapshot("incomplete") == before
    item.clear()
    assert item.snapshot("incomplete") == Reasoning(status="incomplete")


def fed(count: int, look: Callable[[Accumulator], Any] | None) -> float:
    """CPU time to parse and accumulate so many deltas, looking after each event."""
    wire, accumulator, frame = parser("messages"), Accumulator(), text("word ")
    for event in wire.feed(OPENED):
        accumulator.feed(event)
    snapshot = None
    began = time.process_time()
    for _ in range(count):
        for event in wire.feed(frame):
            accumulator.feed(event)
            if look is not None:
                # Kept until the next one is there, as `snapshot = stream.snapshot` does in a loop.
                snapshot = look(accumulator)
    took = time.process_time() - began
    assert snapshot is None or accumulator.response.text == "word " * count
    return took


def partials(count: int, *, look: bool) -> float:
    """CPU time to parse arguments of so many deltas, with a view after each."""
    wire, growing, frame = parser("messages"), IncrementalJson(), arguments("word ")
    wire.feed(CALL)
    growing.feed('{"text": "')
    kept = None
    began = time.process_time()
    for _ in range(count):
        wire.feed(frame)
        growing.feed("word ")
        if look:
            kept = growing.partial()["text"], growing.text
    took = time.process_time() - began
    if look:
        assert kept == ("word " * count, json.dumps({"text": "word " * count})[:-2])
    return took


def of_turns(first: Callable[[], float], second: Callable[[], float], most: float) -> float:
    """How many times longer the second takes; a busy machine spoils one try, quadratic code all."""
    tries: list[float] = []
    with no_collections():
        while len(tries) < 4 and (not tries or min(tries) > most):
            ratios = [second() / first() for _ in range(3)]
            tries.append(statistics.median(ratios))
    return min(tries)


def response(accumulator: Accumulator) -> Any:
    return accumulator.response


def text_only(accumulator: Accumulator) -> Any:
    return len(accumulator.response.text)


@pytest.mark.timing
@pytest.mark.parametrize("look", [response, text_only])
def test_snapshot_after_every_event_triples_the_cost_at_most(
    look: Callable[[Accumulator], Any],
) -> None:
    """C6: the response is looked at after each of 40,000 deltas; feeding alone is 1 of the 3."""
    ratio = of_turns(lambda: fed(DELTAS, None), lambda: fed(DELTAS, look), 3)
    assert ratio <= 3


@pytest.mark.timing
@pytest.mark.parametrize("look", [response, text_only])
def test_snapshots_after_every_event_grow_linearly(look: Callable[[Accumulator], Any]) -> None:
    """C6."""
    doubling = of_turns(lambda: fed(DELTAS // 2, look), lambda: fed(DELTAS, look), 2.3)
    assert doubling <= 2.3


def reasoned(count: int) -> float:
    """CPU time to accumulate so many deltas of the second part, with a snapshot after each."""
    accumulator = Accumulator()
    accumulator.feed(OutputItemAdded(0, Reasoning()))
    accumulator.feed(ReasoningContentDelta(0, 0, "First."))
    delta = ReasoningContentDelta(0, 1, "some words more ")
    kept = None
    began = time.process_time()
    for _ in range(count):
        accumulator.feed(delta)
        kept = accumulator.response
    took = time.process_time() - began
    assert kept is not None
    assert kept.reasoning == "First." + "some words more " * count
    return took


@pytest.mark.timing
def test_snapshots_of_reasoning_in_parts_grow_linearly() -> None:
    """Its parts are one text, which each snapshot joined anew."""
    doubling = of_turns(lambda: reasoned(DELTAS // 2), lambda: reasoned(DELTAS), 2.3)
    assert doubling <= 2.3


@pytest.mark.timing
def test_partial_arguments_after_every_event_are_linear() -> None:
    """C6: `IncrementalJson.partial` and `text`, both kept until the next ones are there."""
    ratio = of_turns(lambda: partials(DELTAS, look=False), lambda: partials(DELTAS, look=True), 3)
    doubling = of_turns(
        lambda: partials(DELTAS // 2, look=True), lambda: partials(DELTAS, look=True), 2.3
    )
    assert (ratio <= 3, doubling <= 2.3) == (True, True), (ratio, doubling)
