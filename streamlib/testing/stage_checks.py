"""Checks of a pipeline stage, your own too: one call in a test, whatever library runs the test.

    def test_my_stage():
        check_stage(from_machine(Shouting))

Streams of all kinds of items go through the stage: split in several ways, failing, truncated, two
in a run, as a list, over an iterable and in an event loop. What must hold of every stage is in
docs/pipeline.md.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import anyio

from streamlib.pipeline import chain, pipe, through
from streamlib.testing.invariants import InvariantViolation, check, log
from streamlib.testing.stage_samples import (
    TEXTS,
    HandClock,
    ListSource,
    Sample,
    call_of,
    calls_in,
    citations_agree,
    comparable,
    first_difference,
    flattened,
    is_stopped,
    items_moved,
    length_of,
    mark,
    message_of,
    numbers_of,
    parts_in,
    pieces_of,
    samples,
    size_of,
    stands,
    statuses_in,
    texts_in,
    without_deltas,
    without_open_together,
)
from streamlib_parsers.events import (
    Completed,
    Failed,
    OutputItemDone,
    OutputTextDelta,
    ResponseEvent,
    ResponseMetadata,
)
from streamlib_parsers.items import FunctionCallOutput, Reasoning

SHORT_UNITS: Final = "Hi there.\n\nOf course.\n\nGood morning.\n\nWell done.\n\n" * 10
"""Words, sentences, lines and blocks that end soon, and begin nothing."""
BUFFERED: Final = 40
"""Characters of them that a stage may hold: a unit, and the beginning of the next."""
GROWTH: Final = 80
"""Bytes that a machine may grow with each delta of two characters: a string for the final item, and
its place in a list. An event takes more."""
LONG: Final = (2_000, 11_000, 14_000)
"""Numbers of deltas between which growth and times are measured: what is bounded is full then."""
SLOW: Final = 0.1
"""Seconds of CPU time below which time is not looked at."""
SLOWER: Final = 4
"""How much longer late events may take than early ones; quadratic time is 12 times as long."""
IN_VAIN: Final = 100
"""Calls of `expire` at one moment that let out nothing, after which a machine is never content."""
LIMIT_SECONDS: Final = 30.0
"""After which a stage that awaits something counts as hanging."""


class StageViolation(InvariantViolation):
    """A stage breaks what must hold of every stage; `invariant` names it."""


def check_stage(
    stage: Any,
    streams: Iterable[Sequence[ResponseEvent]] = (),
    *,
    texts: Sequence[str] = TEXTS,
    late_start: bool = False,
    generated: int = 0,
) -> None:
    """Checks a stage: whole streams, any split, one text, no lie, no needless wait, bounded memory.

    A selecting stage (`only`, `filter_events` …) is checked for what a selection promises, and a
    stage that awaits something in an event loop alone.

    Args:
        stage: what `replace(…)`, `from_machine(…)` or `chain(…)` returned.
        streams: events of further responses, each from its start to its end.
        texts: what the messages of the samples say: add what your stage looks for.
        late_start: the stage delays the first token, and its documentation says so.
        generated: how many further responses hypothesis makes up; it has to be installed.

    Raises:
        StageViolation: an `AssertionError` that names what does not hold, and where.
        TypeError: that is no stage; a machine has to be wrapped in `from_machine`.
    """
    if not hasattr(stage, "machine"):
        raise TypeError(
            f"check_stage takes a stage, not {stage!r}: from_machine makes one of a machine"
        )
    checks = _Checks(stage, late_start=late_start)
    for sample in samples(texts):
        checks.check_sample(sample)
    for number, events in enumerate(streams):
        checks.check_sample(Sample(f"stream {number}", [list(events)]))
    for text in texts:
        checks.check_without_deltas(text)
    checks.check_two_uses(samples(texts))
    checks.check_run(samples(texts)[0].variants[0])
    checks.check_everywhere(samples(texts)[0].variants[1])
    if not checks.is_async:
        for size in (3, 3 * BUFFERED):
            checks.check_waiting(size, message_of)
            checks.check_waiting(size, call_of)
        for events in samples(texts)[0].variants:
            checks.check_in_time(events)
        checks.check_growth()
    if generated:
        _check_generated(checks, generated)


class _Checks:
    """The checks of one stage."""

    def __init__(self, stage: Any, *, late_start: bool) -> None:
        self.stage = stage
        self.is_async: bool = stage.is_async
        self._late_start = late_start
        front: list[Any] = []
        for part in stage.parts:
            if part.selecting:
                break
            front.append(part)
        self._front = chain(*front)
        """The parts before the first that selects: they let out a whole stream."""
        self._selects = len(front) < len(stage.parts)

    # --- one response ---

    def check_sample(self, sample: Sample) -> None:
        """A response, however it is split."""
        joined: list[list[ResponseEvent]] = []
        for events in sample.variants:
            before = log(events)
            emitted = self._run(self._front, events, sample.name)
            _require(log(events) == before, "no state", f"{sample.name}: it changed its input")
            self._check_whole(emitted, sample.name)
            self._check_truth(events, emitted, sample.name)
            self._check_parts(events, emitted, sample.name)
            self._check_copies(events, emitted, sample.name)
            self._check_order(events, emitted, sample.name)
            joined.append(comparable(without_open_together(emitted)))
            if self._selects:
                self._check_selection(events, emitted, sample.name)
        for number, other in enumerate(joined):
            _require(
                other == joined[0],
                "partition",
                f"{sample.name}, split {number}: other text where the deltas are split otherwise: "
                f"{first_difference(joined[0], other)}",
            )
        self._check_identity(sample)

    def _check_whole(self, emitted: list[ResponseEvent], name: str) -> None:
        try:
            check(emitted)
        except InvariantViolation as violation:
            raise StageViolation("whole stream", f"{name}: {violation}") from None

    def _check_truth(
        self, events: list[ResponseEvent], emitted: list[ResponseEvent], name: str
    ) -> None:
        """The end is that of the source, or that of the stage, and says which."""
        before, after = events[-1], emitted[-1]
        says_so = is_stopped(emitted)
        if says_so and isinstance(before, Failed):
            has_stopped = is_stopped(self._run(self._front, events[:-1], name))
            detail = f"{name}: a response that failed is said to be ended by the stage"
            _require(has_stopped, "no lie", detail)
        if isinstance(after, Completed) and not says_so:
            _require(
                isinstance(before, Completed),
                "no lie",
                f"{name}: a response that failed is completed behind the stage",
            )
            if isinstance(before, Completed):
                _require(
                    (after.stop_reason, after.choices, after.response_id, after.model)
                    == (before.stop_reason, before.choices, before.response_id, before.model),
                    "no lie",
                    f"{name}: Completed says {after!r}, the source {before!r}",
                )
        if isinstance(before, Failed) and isinstance(after, Failed) and not says_so:
            _require(
                after.error.kind == before.error.kind,
                "no lie",
                f"{name}: the failure is {after.error.kind}, the source's was {before.error.kind}",
            )
        if isinstance(before, Completed) and isinstance(after, Failed):
            _require(says_so, "no lie", f"{name}: a stage ended the stream, and does not say so")
        if not says_so and not items_moved(events, emitted):
            statuses = statuses_in(emitted)
            for index, status in statuses_in(events).items():
                is_hidden = status == "incomplete" and statuses.get(index) == "completed"
                detail = f"{name}: item {index} was incomplete, and is completed behind the stage"
                _require(not is_hidden, "no lie", detail)
        calls_before, calls_after = calls_in(events), calls_in(emitted)
        for call_id, status in calls_before.items():
            after_status = calls_after.get(call_id)
            detail = f"the call {call_id} was {status}, and is {after_status} behind the stage"
            if says_so:
                # It may have ended before this call, or within it.
                _require(after_status != "completed" or status == "completed", "no lie", detail)
            else:
                _require(after_status == status, "no lie", f"{name}: {detail}")

    def _check_parts(
        self, events: list[ResponseEvent], emitted: list[ResponseEvent], name: str
    ) -> None:
        """No text of a message gets what belongs to another one."""
        if any(streamed != final for streamed, final in parts_in(events).values()):
            return
        for (index, part), (streamed, final) in parts_in(emitted).items():
            _require(
                streamed == final,
                "one text",
                f"{name}: item {index}, part {part} is {final[-60:]!r}, "
                f"its deltas were {streamed[-60:]!r}",
            )

    def check_without_deltas(self, text: str) -> None:
        """A text that the final item alone has becomes what it becomes where it is streamed."""
        streamed = texts_in(self._run(self._front, message_of([text]), "text"))
        final = texts_in(self._run(self._front, without_deltas(text), "text without deltas"))
        _require(
            final == streamed,
            "one text",
            f"a text without deltas becomes {final!r:.100}, with them it is {streamed!r:.100}",
        )

    def _check_copies(
        self, events: list[ResponseEvent], emitted: list[ResponseEvent], name: str
    ) -> None:
        """What repeats the text does not keep what the stage has changed."""
        for event in emitted:
            tokens = getattr(event, "logprobs", None)
            if tokens:
                token_text = "".join(str(token.get("token", "")) for token in tokens)
                _require(
                    token_text == getattr(event, "delta", ""),
                    "one text",
                    f"{name}: log probabilities of {token_text!r} on another text",
                )
        if is_stopped(emitted):
            return
        _require(
            citations_agree(emitted) or not citations_agree(events),
            "one text",
            f"{name}: the stage has changed citations as events, or in items, alone",
        )
        before, after = texts_in(events), texts_in(emitted)
        has_moved = items_moved(events, emitted)
        for event in emitted:
            if isinstance(event, ResponseMetadata):
                for index, text in before.items():
                    is_there = after.get(index) == text or (has_moved and text in after.values())
                    _require(
                        is_there or text not in event.values.values(),
                        "one text",
                        f"{name}: ResponseMetadata repeats the text that the stage has changed",
                    )
            elif isinstance(event, OutputItemDone) and isinstance(event.item, Reasoning):
                text = after[event.index]
                is_same = before.get(event.index) == text or (has_moved and text in before.values())
                _require(
                    is_same or event.item.signature is None,
                    "one text",
                    f"{name}: reasoning that the stage has changed keeps its signature",
                )

    def _check_order(
        self, events: list[ResponseEvent], emitted: list[ResponseEvent], name: str
    ) -> None:
        """Events that the stage passed on have kept their order."""
        positions = {mark(event): number for number, event in enumerate(events) if mark(event)}
        last = -1
        if items_moved(events, emitted):
            # Notices and what is passed through are not known by an index.
            positions = {key: positions[key] for key in positions if "(" in key}
        for event in emitted:
            position = positions.get(mark(event), last)
            _require(position >= last, "order", f"{name}: {event!r} comes late behind the stage")
            last = position

    def _check_selection(
        self, events: list[ResponseEvent], emitted: list[ResponseEvent], name: str
    ) -> None:
        """What comes out of a selection are events of the stream, with their numbers."""
        selected: list[Any] = []
        for value in self._run(self.stage, events, name):
            if isinstance(value, list):
                selected += value
            else:
                selected.append(value)
        if is_stopped(selected) or any(part is not self.stage for part in self.stage.parts):
            return  # a stage behind the selection may change it
        numbers = [event.seq for event in selected]
        _require(numbers == sorted(set(numbers)), "selection", f"{name}: not in order: {numbers}")
        by_number = {event.seq: event for event in emitted}
        for event in selected:
            _require(
                by_number.get(event.seq) == event,
                "selection",
                f"{name}: {event!r} is no event of the stream",
            )

    def _check_identity(self, sample: Sample) -> None:
        """An empty chain before or behind changes nothing, and each use gives the same."""
        events = sample.variants[0]
        first = self._run(self.stage, events, sample.name)
        others: list[tuple[str, Any]] = [("used again", self.stage)]
        if not any(part.is_last for part in self.stage.parts):
            others.append(("before chain()", chain(self.stage, chain())))
        others.append(("behind chain()", chain(chain(), self.stage)))
        for how, other in others:
            again = self._run(other, events, sample.name)
            same = again == first and numbers_of(again) == numbers_of(first)
            _require(same, "identity", f"{sample.name}: other events when it is {how}")

    # --- several responses ---

    def check_two_uses(self, some: Sequence[Sample]) -> None:
        """Two uses at once do not know of each other."""
        if self.is_async:
            return
        left, right = some[0].variants[0], some[-1].variants[0]
        alone = [self._drive(left), self._drive(right)]
        machines = [self.stage.machine(stands), self.stage.machine(stands)]
        _require(
            machines[0] is not machines[1], "no state", "both uses of the stage have one machine"
        )
        together: list[list[Any]] = [[], []]
        for number in range(max(len(left), len(right))):
            for use, events in enumerate((left, right)):
                if number < len(events) and not machines[use].done:
                    together[use] += machines[use].feed(events[number])
        for use in (0, 1):
            together[use] += machines[use].close()
        _require(together == alone, "no state", "a use changes what another one lets out")

    def check_run(self, events: list[ResponseEvent]) -> None:
        """In a run each response is a whole stream, and what is between them passes unchanged."""
        if self.stage.parts and any(part.is_last for part in self.stage.parts):
            return
        output = FunctionCallOutput("call", "done")
        source: list[Any] = [*events, output, *events]
        responses: list[list[Any]] = [[]]
        for event in self._run(self._front, source, "run"):
            if isinstance(event, FunctionCallOutput):
                _require(event == output, "run", "the output of a call was changed")
                responses.append([])
            else:
                responses[-1].append(event)
        ends_early = is_stopped(responses[0])
        _require(
            ends_early or len(responses) == 2,
            "run",
            "the output of a call is missing, or is there twice",
        )
        for response in responses:
            self._check_whole(response, "run")

    def check_everywhere(self, events: list[ResponseEvent]) -> None:
        """A list, an iterable and an event loop give the same; the source is always closed."""
        expected = flattened(self._run(self.stage, events, "list"))
        looped, is_closed = _in_loop(_read, self.stage, events, None)
        _require(is_closed, "stop anywhere", "the source is open after the end")
        same = comparable(flattened(looped)) == comparable(expected)
        _require(same or self.is_async, "same everywhere", "other events in an event loop")
        if not self.is_async:
            with pipe(iter(events), self.stage) as piped:
                synchronous = flattened(list(piped))
            same = comparable(synchronous) == comparable(expected)
            _require(same, "same everywhere", "other events over an iterable")
        for count in (0, 1, len(events) // 2):
            _, is_closed = _in_loop(_read, self.stage, events, count)
            _require(is_closed, "stop anywhere", f"the source is open when left after {count}")

    # --- waiting and memory ---

    def check_waiting(self, size: int, make: Callable[..., list[ResponseEvent]]) -> None:
        """Text leaves in time: a unit of text at the latest when the next one begins.

        Args:
            size: characters of a delta.
            make: makes a response of deltas.
        """
        if self._selects or self._late_start:
            return
        clock = HandClock()
        machine = self._front.machine(clock)
        is_timed = False
        received = sent = 0
        for event in make(pieces_of(SHORT_UNITS, size)):
            emitted = machine.feed(event)
            received += length_of([event])
            due = machine.due()
            is_timed = is_timed or due is not None
            is_silent = received > 0 and sent + length_of(emitted) == 0
            # In a chain a text stage may wait for the rest of a word that another one lets out.
            is_alone = len(self._front.parts) == 1
            _require(
                not (is_alone and is_silent) or due is None or due <= 0,
                "no needless wait",
                f"the first token waits for {due} seconds",
            )
            if due is not None and due <= 0 and not machine.done:
                emitted = [*emitted, *machine.expire()]
            sent += length_of(emitted)
            if machine.done:
                return
            _require(
                received - sent <= BUFFERED or (is_timed and sent > 0),
                "no needless wait",
                f"{received - sent} characters of short sentences wait for more",
            )
            clock.now += 0.02

    def check_in_time(self, events: list[ResponseEvent]) -> None:
        """What comes out is a whole stream also where time passes between the events."""
        clock = HandClock()
        machine = self._front.machine(clock)
        emitted: list[ResponseEvent] = []
        for event in events:
            if not machine.done:
                emitted += machine.feed(event)
                emitted += expire_until(machine, clock, clock.now + 0.02)
        self._check_whole([*emitted, *machine.close()], "in time")

    def check_growth(self) -> None:
        """Neither memory nor the time for an event grows, but for the text of the final item."""
        clock = HandClock()
        machine = self.stage.machine(clock)
        sizes: list[int] = []
        times = [time.process_time()]
        deltas = 0
        for event in message_of(["a ", "b. "] * (LONG[-1] // 2)):
            machine.feed(event)
            expire_until(machine, clock, clock.now + 0.02)
            if machine.done:
                return
            deltas += isinstance(event, OutputTextDelta)
            if deltas in LONG and len(sizes) <= LONG.index(deltas):
                times.append(time.process_time())
                sizes.append(size_of(machine))
                times.append(time.process_time())
        grown = (sizes[2] - sizes[1]) / (LONG[2] - LONG[1])
        _require(grown <= GROWTH, "bounded", f"a machine grows by {grown:.0f} bytes an event")
        early = (times[1] - times[0]) * (LONG[2] - LONG[1]) / LONG[0]
        late = times[5] - times[4]
        _require(
            late < SLOW or late < SLOWER * early,
            "bounded",
            f"{LONG[2] - LONG[1]} late events took {late:.2f} s, as many early ones {early:.2f} s",
        )

    # --- running a stage ---

    def _run(self, stage: Any, events: Sequence[Any], name: str) -> list[Any]:
        """What the stage makes of a list of events."""
        try:
            if self.is_async:
                return list(_in_loop(_read, stage, events, None)[0])
            return list(through(events, stage))
        except AssertionError:
            raise
        except Exception as error:
            detail = f"{name}: it raised {type(error).__name__}: {error}"
            raise StageViolation("whole stream", detail) from error

    def _drive(self, events: Sequence[Any]) -> list[Any]:
        """What one machine makes of events, alone."""
        machine = self.stage.machine(stands)
        emitted: list[Any] = []
        for event in events:
            if not machine.done:
                emitted += machine.feed(event)
        return emitted + list(machine.close())


# --- in an event loop ---


async def _read(stage: Any, events: Sequence[Any], count: int | None) -> tuple[list[Any], bool]:
    """What comes out, all of it or the first `count`, and whether the source is closed."""
    source = ListSource(events)
    read: list[Any] = []
    with anyio.move_on_after(LIMIT_SECONDS) as scope:
        async with pipe(source, stage) as piped:
            while count is None or len(read) < count:
                try:
                    read.append(await anext(piped))
                except StopAsyncIteration:
                    break
    _require(not scope.cancelled_caught, "no needless wait", f"no end after {LIMIT_SECONDS} s")
    return read, source.is_closed


def _in_loop(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a coroutine function, in a loop of its own: the caller may have one."""
    results: list[Any] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(anyio.run(functools.partial(function, *arguments)))
        except BaseException as error:  # noqa: BLE001  # raised in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def expire_until(machine: Any, clock: HandClock, until: float) -> list[ResponseEvent]:
    """Moves the clock; what the machine lets out in time of what is due before."""
    emitted: list[ResponseEvent] = []
    in_vain = 0
    while not machine.done:
        due = machine.due()
        if due is None or clock.now + due > until:
            break
        has_moved = clock.now + due > clock.now
        clock.now += max(0.0, due)
        events = machine.expire()
        emitted += events
        in_vain = 0 if events or has_moved else in_vain + 1
        _require(in_vain < IN_VAIN, "bounded", "`expire` lets out nothing, and is due again")
    clock.now = until
    return emitted


def _require(condition: bool, invariant: str, detail: str) -> None:  # noqa: FBT001  # an assertion
    if not condition:
        raise StageViolation(invariant, detail)


def _check_generated(checks: _Checks, count: int) -> None:
    """Further responses, made up by hypothesis."""
    from hypothesis import given, settings

    from streamlib.testing.strategies import answers

    @settings(max_examples=count, deadline=None, database=None)
    @given(answers("responses"))
    def check_answer(events: list[ResponseEvent]) -> None:
        checks.check_sample(Sample("generated", [events]))

    check_answer()
