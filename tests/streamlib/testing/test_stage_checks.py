"""`check_stage` finds stages that are wrong in one way each, and passes those that are right."""

from __future__ import annotations

import pickle
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from streamlib import (
    AnnotationAdded,
    Completed,
    ErrorInfo,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Message,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Reasoning,
    ReasoningContentDelta,
    ResponseEvent,
    ResponseMetadata,
    Text,
)
from streamlib.pipeline import (
    Measure,
    aggregate,
    chain,
    coalesce,
    filter_events,
    from_machine,
    guard,
    limit,
    map_async,
    map_events,
    only,
    smooth,
    stop_at,
    tap,
    timeout,
    until,
    window,
    without,
)
from streamlib.pipeline import replace as replace_text
from streamlib.testing.stage_checks import StageViolation, check_stage
from streamlib.testing.stage_samples import samples
from tests.support.cases import each_case


class Machine:
    """A machine that does nothing, as a user writes one."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.done = False
        self.held: list[ResponseEvent] = []

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        return [event]

    def due(self) -> float | None:
        return None

    def expire(self) -> list[ResponseEvent]:
        return []

    def close(self) -> list[ResponseEvent]:
        held = self.held
        self.held = []
        return held


def shout(event: ResponseEvent) -> ResponseEvent:
    if isinstance(event, OutputTextDelta):
        return replace(event, delta=event.delta.upper())
    return event


def redacted(event: ResponseEvent) -> ResponseEvent:
    if isinstance(event, OutputTextDelta):
        return replace(event, delta=re.sub(r"\d{3,}", "[number]", event.delta))
    return event


def shouted_items(event: ResponseEvent) -> ResponseEvent:
    if not isinstance(event, OutputItemDone) or not isinstance(event.item, Message):
        return event
    content: list[Any] = []
    for part in event.item.content:
        content.append(Text(part.text.upper()) if isinstance(part, Text) else part)
    return replace(event, item=replace(event.item, content=tuple(content)))


class EveryDelta(Machine):
    """Deltas and items agree, and depend on the split: a mark behind every delta."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.texts: dict[int, str] = {}

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if isinstance(event, OutputTextDelta):
            delta = f"{event.delta}|"
            self.texts[event.index] = self.texts.get(event.index, "") + delta
            return [replace(event, delta=delta, logprobs=None)]
        if isinstance(event, OutputItemDone) and event.index in self.texts:
            item: Any = event.item
            others = [part for part in item.content if not isinstance(part, Text)]
            content = (Text(self.texts[event.index]), *others)
            return [replace(event, item=replace(item, content=content))]
        return [event]


def completed_anyway(event: ResponseEvent) -> ResponseEvent:
    if isinstance(event, Failed):
        return Completed(stop_reason="stop")
    return event


def not_a_length(event: ResponseEvent) -> ResponseEvent:
    if isinstance(event, Completed) and event.stop_reason == "length":
        return replace(event, stop_reason="stop")
    return event


def complete_calls(event: ResponseEvent) -> ResponseEvent:
    if isinstance(event, OutputItemDone) and isinstance(event.item, FunctionCall):
        return replace(event, item=replace(event.item, status="completed", arguments="{}"))
    return event


class WithoutCalls(Machine):
    """Leaves out calls, and numbers the other items anew."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.numbers: dict[int, int | None] = {}
        self.count = 0

    def feed(self, event: Any) -> list[ResponseEvent]:
        index = getattr(event, "index", None)
        if index is None:
            return [event]
        if isinstance(event, OutputItemAdded):
            if isinstance(event.item, FunctionCall):
                self.numbers[index] = None
            else:
                self.numbers[index] = self.count
                self.count += 1
        if self.numbers.get(index) is None:
            return []
        return [replace(event, index=self.numbers[index])]


class Growing(Machine):
    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        self.held.append(event)
        return [event]

    def close(self) -> list[ResponseEvent]:
        return []


class ToTheEnd(Machine):
    """Holds everything until the terminal event."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        self.held.append(event)
        if isinstance(event, (Completed, Failed)):
            return self.close()
        return []


class ToTheItemsEnd(Machine):
    """Holds deltas until their item ends."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if isinstance(event, OutputTextDelta):
            self.held.append(event)
            return []
        return [*self.close(), event]


class HoldingBack(Machine):
    """Holds back the last deltas, 128 characters or more, until the item ends."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if not isinstance(event, OutputTextDelta):
            return [*self.close(), event]
        self.held.append(event)
        if sum(len(held.delta) for held in self.held) < 128:  # type: ignore[union-attr, misc]
            return []
        return [self.held.pop(0)]


class OneBehind(Machine):
    """Holds each delta back until the next event."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        earlier = self.close()
        if isinstance(event, OutputTextDelta):
            self.held.append(event)
            return earlier
        return [*earlier, event]


def marked(event: ResponseEvent) -> ResponseEvent:
    """Changes the event that it was given, which others have too."""
    if isinstance(event, ResponseMetadata):
        event.values["seen"] = True
    return event


class Quadratic(Machine):
    """Looks at the whole text with each delta."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.text = ""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if isinstance(event, OutputTextDelta):
            self.text += event.delta
            re.search("(?:x|y)z", self.text)
        return [event]


class LateStart(Machine):
    """Lets out the first token after a second."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.started: float | None = None

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if self.started is None and isinstance(event, OutputTextDelta):
            self.started = self.clock()
        if self.due() is None and not self.held:
            return [event]
        self.held.append(event)
        if isinstance(event, (Completed, Failed)):
            return self.close()
        return []

    def due(self) -> float | None:
        if self.started is None or self.clock() > self.started + 1:
            return None
        return max(0.0, self.started + 1 - self.clock())

    def expire(self) -> list[ResponseEvent]:
        return self.close()


class Reversing(Machine):
    """Swaps neighbours that are no deltas of text."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if type(event).__name__ in ("Passthrough", "Notice") and not self.held:
            self.held.append(event)
            return []
        if type(event).__name__ in ("Passthrough", "Notice"):
            return [event, *self.close()]
        if isinstance(event, (Completed, Failed)):
            return [*self.close(), event]
        return [event]


class SwappedDeltas(Machine):
    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if isinstance(event, OutputTextDelta) and not self.held:
            self.held.append(event)
            return []
        if isinstance(event, OutputTextDelta):
            return [event, *self.close()]
        return [*self.close(), event]


class Stopping(Machine):
    """Ends at a word, without a word about it."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if isinstance(event, OutputItemDone):
            self.done = True
            return [event, Completed(stop_reason="stop")]
        return [event]


class BeyondTheEnd(Machine):
    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if isinstance(event, (Completed, Failed)):
            return [event, Notice("done")]
        return [event]


class Losing(Machine):
    """Loses what it holds when the source ends."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if isinstance(event, (Completed, Failed)):
            self.held.append(event)
            return []
        return [event]

    def close(self) -> list[ResponseEvent]:
        return []


class Once(Machine):
    """Tells of the first delta that any use of it saw."""

    seen: list[int] = []  # noqa: RUF012  # that is the defect

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if isinstance(event, OutputItemAdded) and not self.seen:
            self.seen.append(1)
            return [Notice("first"), event]
        return [event]


def counting() -> Any:
    """A stage whose value counts, over all uses."""
    count = [0]

    def number(event: ResponseEvent) -> ResponseEvent:
        count[0] += 1
        if isinstance(event, Notice):
            return replace(event, detail=f"event {count[0]}")
        return event

    return map_events(number)


def signed(event: ResponseEvent) -> ResponseEvent:
    """Changes reasoning, and leaves its signature."""
    if isinstance(event, ReasoningContentDelta):
        return replace(event, delta=event.delta.upper())
    if isinstance(event, OutputItemDone) and isinstance(event.item, Reasoning):
        return replace(event, item=replace(event.item, content=event.item.content.upper()))
    return event


def shouted(event: ResponseEvent) -> ResponseEvent:
    """The text in deltas and items; the metadata repeat it as it was."""
    event = shouted_items(shout(event))
    if isinstance(event, OutputTextDelta):
        return replace(event, logprobs=None)
    return event


def with_old_tokens(event: ResponseEvent) -> ResponseEvent:
    """The text in deltas and items, with the log probabilities of what the model wrote."""
    return shouted_items(shout(event))


def dropping(kind: type[ResponseEvent]) -> Callable[[ResponseEvent], ResponseEvent | None]:
    def drop(event: ResponseEvent) -> ResponseEvent | None:
        if isinstance(event, kind):
            return None
        return event

    return drop


def other_failure(event: ResponseEvent) -> ResponseEvent:
    if isinstance(event, Failed):
        return Failed(ErrorInfo("content_filter", "filtered"))
    return event


def nothing(event: ResponseEvent) -> Any:
    return event.seq


class ByWord(Machine):
    """Cuts text behind spaces; what it holds is kept for each item or part."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.rests: dict[Any, str] = {}

    def key(self, event: OutputTextDelta) -> Any:
        return event.index, event.content_index

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if isinstance(event, OutputTextDelta):
            text = self.rests.pop(self.key(event), "") + event.delta
            end = text.rfind(" ") + 1
            self.rests[self.key(event)] = text[end:]
            return [replace(event, delta=text[:end], logprobs=None)]
        if isinstance(event, OutputItemDone):
            return [*self.rest_of(event), event]
        return [event]

    def rest_of(self, event: OutputItemDone) -> list[ResponseEvent]:
        keys = [key for key in self.rests if key[0] == event.index]
        rests: list[ResponseEvent] = []
        for index, part in keys:
            rests.append(OutputTextDelta(index, part, self.rests.pop((index, part))))
        return rests


class MixingParts(ByWord):
    """What is held of one part begins the next one."""

    def key(self, event: OutputTextDelta) -> Any:
        return event.index, 0

    def rest_of(self, event: OutputItemDone) -> list[ResponseEvent]:
        part = len(getattr(event.item, "content", ())) - 1
        rest = self.rests.pop((event.index, 0), "")
        return [OutputTextDelta(event.index, part, rest)] if rest else []


class LosingAtFailures(ByWord):
    """What is held of an item that is cut off never leaves."""

    def rest_of(self, event: OutputItemDone) -> list[ResponseEvent]:
        return super().rest_of(event) if event.item.status == "completed" else []


class LosingInTime(Machine):
    """What it holds when its time has come never leaves."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.next: float | None = None

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if isinstance(event, OutputTextDelta) and self.next is not None:
            self.held.append(event)
            return []
        if isinstance(event, OutputTextDelta):
            self.next = self.clock() + 0.1
        return [*self.close(), event]

    def due(self) -> float | None:
        if self.next is None:
            return None
        return max(0.0, self.next - self.clock())

    def expire(self) -> list[ResponseEvent]:
        self.next = None
        self.held = []
        return []


class AlwaysDue(Machine):
    """Its time has always come."""

    def due(self) -> float | None:
        return 0.0


class OfDeltasAlone(Machine):
    """A final item has what its deltas had, and nothing of a text that came without."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.texts: dict[tuple[int, int], str] = {}

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if isinstance(event, OutputTextDelta):
            key = (event.index, event.content_index)
            self.texts[key] = self.texts.get(key, "") + event.delta
        if not isinstance(event, OutputItemDone) or not isinstance(event.item, Message):
            return [event]
        content: list[Any] = []
        for number, part in enumerate(event.item.content):
            is_text = isinstance(part, Text)
            content.append(Text(self.texts.get((event.index, number), "")) if is_text else part)
        return [replace(event, item=replace(event.item, content=tuple(content)))]


def complete_items(event: ResponseEvent) -> ResponseEvent:
    if isinstance(event, OutputItemDone) and isinstance(event.item, Message):
        return replace(event, item=replace(event.item, status="completed"))
    return event


def without_choices(event: ResponseEvent) -> ResponseEvent:
    return replace(event, choices=()) if isinstance(event, Completed) else event


def stopped_anyway(event: ResponseEvent) -> ResponseEvent | list[ResponseEvent]:
    """Says of a failure that the stage has ended the stream."""
    if not isinstance(event, Failed):
        return event
    return [Notice("stopped_by_stage"), Completed(stop_reason="stop")]


def cancelled_anyway(event: ResponseEvent) -> ResponseEvent:
    if isinstance(event, Failed):
        return replace(event, error=ErrorInfo("cancelled", "a stage ended the stream"))
    return event


def marked_native(event: ResponseEvent) -> ResponseEvent:
    if isinstance(event, OutputItemDone) and event.item.native:
        event.item.native["seen"] = True
    return event


class LateCalls(Machine):
    """Lets out a call when it is complete."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        is_call = isinstance(event, OutputItemAdded) and isinstance(event.item, FunctionCall)
        if is_call or self.held:
            self.held.append(event)
            if not isinstance(event, OutputItemDone):
                return []
        events = self.held or [event]
        self.held = []
        return events


BROKEN: dict[str, Callable[[], Any]] = {
    "rewrites deltas alone": lambda: map_events(shout),
    "redacts each delta": lambda: map_events(redacted),
    "rewrites items alone": lambda: map_events(shouted_items),
    "depends on the split": lambda: from_machine(EveryDelta),
    "drops the terminal event": lambda: map_events(dropping(Completed)),
    "drops failures": lambda: map_events(dropping(Failed)),
    "drops beginnings": lambda: map_events(dropping(OutputItemAdded)),
    "drops ends": lambda: map_events(dropping(OutputItemDone)),
    "drops arguments": lambda: map_events(dropping(FunctionCallArgumentsDelta)),
    "completes failures": lambda: map_events(completed_anyway),
    "hides a limit": lambda: map_events(not_a_length),
    "completes calls": lambda: map_events(complete_calls),
    "hides calls": lambda: from_machine(WithoutCalls),
    "changes the failure": lambda: map_events(other_failure),
    "grows": lambda: from_machine(Growing),
    "waits for the end": lambda: from_machine(ToTheEnd),
    "waits for the item's end": lambda: from_machine(ToTheItemsEnd),
    "holds 128 characters back": lambda: from_machine(HoldingBack),
    "is one delta behind": lambda: from_machine(OneBehind),
    "changes its input": lambda: map_events(marked),
    "takes quadratic time": lambda: from_machine(Quadratic),
    "delays the first token": lambda: from_machine(LateStart),
    "reorders events": lambda: from_machine(Reversing),
    "reorders deltas": lambda: from_machine(SwappedDeltas),
    "ends with open items": lambda: from_machine(Stopping),
    "goes on after the end": lambda: from_machine(BeyondTheEnd),
    "loses what it holds": lambda: from_machine(Losing),
    "has state in its class": lambda: from_machine(Once),
    "has state in its value": counting,
    "keeps a signature": lambda: map_events(signed),
    "keeps copies": lambda: map_events(shouted),
    "keeps log probabilities": lambda: map_events(with_old_tokens),
    "returns no event": lambda: map_events(nothing),
    "mixes parts": lambda: from_machine(MixingParts),
    "loses text at failures": lambda: from_machine(LosingAtFailures),
    "loses text in time": lambda: from_machine(LosingInTime),
    "is always due": lambda: from_machine(AlwaysDue),
    "reads deltas alone": lambda: from_machine(OfDeltasAlone),
    "completes items": lambda: map_events(complete_items),
    "drops choices": lambda: map_events(without_choices),
    "stops at failures": lambda: map_events(stopped_anyway),
    "cancels failures": lambda: map_events(cancelled_anyway),
    "drops citations": lambda: map_events(dropping(AnnotationAdded)),
    "marks native fields": lambda: map_events(marked_native),
    "delays calls": lambda: from_machine(LateCalls),
}


FOUND_AS = {
    "depends on the split": "partition",
    "completes failures": "no lie",
    "hides a limit": "no lie",
    "hides calls": "no lie",
    "changes the failure": "no lie",
    "grows": "bounded",
    "waits for the end": "no needless wait",
    "waits for the item's end": "no needless wait",
    "holds 128 characters back": "no needless wait",
    "is one delta behind": "no needless wait",
    "changes its input": "no state",
    "takes quadratic time": "bounded",
    "delays the first token": "no needless wait",
    "reorders events": "order",
    "ends with open items": "no lie",
    "has state in its class": "partition",
    "has state in its value": "partition",
    "keeps a signature": "one text",
    "keeps copies": "one text",
    "keeps log probabilities": "one text",
    "mixes parts": "one text",
    "is always due": "bounded",
    "reads deltas alone": "one text",
    "completes items": "no lie",
    "drops choices": "no lie",
    "stops at failures": "no lie",
    "cancels failures": "no lie",
    "drops citations": "one text",
    "marks native fields": "no state",
    "delays calls": "no needless wait",
}
"""The invariant that is named, where it is not that of the whole stream."""


@pytest.mark.parametrize("name", BROKEN)
def test_check_stage_finds_a_stage_that_is_broken(name: str) -> None:
    Once.seen.clear()
    with pytest.raises(StageViolation) as raised:
        check_stage(BROKEN[name]())
    assert raised.value.invariant == FOUND_AS.get(name, "whole stream")


def ignored(event: ResponseEvent) -> None:
    del event


async def same(event: ResponseEvent) -> ResponseEvent:
    return event


def noticed(event: ResponseEvent) -> list[ResponseEvent]:
    if isinstance(event, OutputItemAdded):
        return [Notice("begins"), event]
    return [event]


def is_item(event: ResponseEvent) -> bool:
    return isinstance(event, OutputItemDone)


class WithoutReasoning(Machine):
    """Leaves out items of reasoning; those behind them have other indexes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.dropped: set[int] = set()

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if isinstance(event, OutputItemAdded) and isinstance(event.item, Reasoning):
            self.dropped.add(event.index)
        index: int | None = getattr(event, "index", None)
        if index is None:
            return [event]
        if index in self.dropped:
            return []
        left_out = len([number for number in self.dropped if number < index])
        return [replace(event, index=index - left_out)]


RIGHT: dict[str, Callable[[], Any]] = {
    "chain": chain,
    "tap": lambda: tap(ignored),
    "map_events": lambda: map_events(noticed),
    "map_async": lambda: map_async(same),
    "filter_events": lambda: filter_events(is_item),
    "only": lambda: only(OutputTextDelta, Completed),
    "without": lambda: without(OutputTextDelta),
    "aggregate": aggregate,
    "until": lambda: until(is_item),
    "window": lambda: window(events=3),
    "coalesce": lambda: coalesce(1 / 30),
    "smooth": lambda: smooth(lag=0.01),
    "timeout": lambda: timeout(gap=10, total=100),
    "Measure": Measure,
    "items left out": lambda: from_machine(WithoutReasoning),
    "a user's machine": lambda: from_machine(Machine),
    "a user's words": lambda: from_machine(ByWord),
    "guard": lambda: guard(lambda unit: "secret" not in unit),
    "stop_at": lambda: stop_at("END"),
    "limit": lambda: limit(characters=60),
    "text, then time": lambda: chain(replace_text(r"\d{3}", "#"), coalesce(0.05)),
    "several": lambda: chain(Measure(), tap(ignored), coalesce(0.01), only(OutputTextDelta)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_check_stage_passes_a_stage_that_is_right(name: str) -> None:
    check_stage(RIGHT[name]())


async def test_check_stage_works_in_an_event_loop() -> None:
    check_stage(map_async(same))


def test_check_stage_takes_no_machine() -> None:
    with pytest.raises(TypeError, match="from_machine"):
        check_stage(Machine(time.monotonic))


def test_check_stage_checks_the_texts_it_is_given() -> None:
    def found(event: ResponseEvent) -> ResponseEvent:
        if isinstance(event, OutputTextDelta) and "xyzzy" in event.delta:
            return replace(event, delta="magic")
        return event

    check_stage(map_events(found))
    with pytest.raises(StageViolation):
        check_stage(map_events(found), texts=["say xyzzy again"])


@each_case(
    "text, said", [("ab 12", "a"), ("one two", "one tw"), ("12 34 5", "1"), ("a b c d", "a")]
)
def test_sample_breaks_off_within_a_word(text: str, said: str) -> None:
    [sample] = [sample for sample in samples([text]) if sample.name == "cut off"]
    for events in sample.variants:
        deltas = [event.delta for event in events if isinstance(event, OutputTextDelta)]
        assert "".join(deltas) == said


def test_check_stage_makes_up_responses() -> None:
    pytest.importorskip("hypothesis")

    def no_reasoning(event: ResponseEvent) -> ResponseEvent:
        return event

    check_stage(map_events(no_reasoning), generated=5)


def test_check_stage_finds_a_check_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    import anyio

    monkeypatch.setattr("streamlib.testing.stage_checks.LIMIT_SECONDS", 0.05)

    async def hang(event: ResponseEvent) -> ResponseEvent:
        await anyio.sleep_forever()
        return event

    waiting: Callable[[ResponseEvent], Awaitable[Any]] = hang
    with pytest.raises(StageViolation, match="no end"):
        check_stage(map_async(waiting))


def test_violation_survives_pickle() -> None:
    violation = pickle.loads(pickle.dumps(StageViolation("split", "it depends on it")))
    assert (violation.invariant, str(violation)) == ("split", "split: it depends on it")
