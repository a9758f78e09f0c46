"""Stages over event streams: small machines with `feed` and `close`, run without a loop or over a live stream.

    async with client.stream(prompt, model=…) as stream, pipe(stream, coalesce(1 / 60), only(OutputTextDelta)) as events:
        async for event in events: ...

Composition reads left to right and adds one hop in all. A stage never reorders, and none holds back the first token.
Where a stage holds something back for a time (`coalesce`), one task in a group of the `async with` block reads ahead, so that
what is held goes out when its time is over although nothing more arrives; otherwise no task is started.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Final, Protocol, cast

import anyio
import msgspec

from streamlib_parsers.accumulate import Timing
from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Failed,
    FunctionCallArgumentsDelta,
    ItemProgress,
    MediaDelta,
    OutputItemAdded,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
)

Clock = Callable[[], float]

DELTA_KEYS: Final[dict[type, tuple[str, ...]]] = {
    OutputTextDelta: ("index", "content_index"),
    ReasoningContentDelta: ("index", "content_index"),
    ReasoningSummaryDelta: ("index", "summary_index"),
    FunctionCallArgumentsDelta: ("index",),
    RefusalDelta: ("index", "content_index"),
}
"""Deltas that can be joined, and what says which text they belong to."""

GROWING: Final = (*DELTA_KEYS, MediaDelta, AnnotationAdded, ItemProgress, OutputItemAdded)
"""Events that only matter while an item grows: its `OutputItemDone` says it all again."""

READ_AHEAD: Final = 4096
"""Events read ahead of a consumer that is slow, before the source is made to wait. Some seconds of the fastest models."""


class PipelineStage(Protocol):
    """Events in, events out. `done` ends the pipeline early."""

    done: bool

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """What this event becomes now."""
        ...

    def close(self) -> list[ResponseEvent]:
        """What was held back, at the end."""
        ...

    def due(self) -> float | None:
        """Seconds until something that is held must go out (by `close`); None where nothing is."""
        ...


class Simple:
    """A stage that holds nothing back: one function from an event to events."""

    def __init__(self, become: Callable[[ResponseEvent], list[ResponseEvent]]) -> None:
        self.done = False
        self._become = become

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """What this event becomes."""
        return self._become(event)

    def close(self) -> list[ResponseEvent]:
        """Nothing: nothing is held."""
        return []

    def due(self) -> float | None:
        """Never."""
        return None


def only(*kinds: type[ResponseEvent]) -> PipelineStage:
    """Only events of these kinds."""
    wanted = frozenset(kinds)
    return Simple(lambda event: [event] if type(event) in wanted else [])


def aggregate() -> PipelineStage:
    """Whole items, no deltas: for those who want what was said, not how it came."""
    growing = frozenset(GROWING)
    return Simple(lambda event: [] if type(event) in growing else [event])


class Until(Simple):
    """Ends after the first event that `found` is true of; the event itself is given."""

    def __init__(self, found: Callable[[ResponseEvent], bool]) -> None:
        super().__init__(self._look)
        self._found = found

    def _look(self, event: ResponseEvent) -> list[ResponseEvent]:
        if self.done:
            return []
        self.done = self._found(event)
        return [event]


def until(found: Callable[[ResponseEvent], bool]) -> PipelineStage:
    """Everything up to and with the first event that `found` is true of; then the iteration ends."""
    return Until(found)


class Measure(Simple):
    """Counts and times what passes, and changes nothing. `timing` is in seconds since the stage was made."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        super().__init__(self._note)
        self.events = 0
        self.characters = 0
        self._clock = clock
        self._began = self._last = clock()
        self._first: float | None = None
        self._gap = 0.0

    def _note(self, event: ResponseEvent) -> list[ResponseEvent]:
        now = self._clock()
        self.events += 1
        self._gap = max(self._gap, now - self._last)
        self._last = now
        if type(event) in DELTA_KEYS:
            self.characters += len(cast("Any", event).delta)
            self._first = now if self._first is None else self._first
        return [event]

    @property
    def timing(self) -> Timing:
        """First token, last event and the longest wait between two events."""
        first = None if self._first is None else self._first - self._began
        return Timing(first_token=first, last=self._last - self._began, longest_gap=self._gap)


class Coalesce:
    """Joins adjacent deltas of one text, so that at most one goes out in `interval` seconds. The first goes out at once."""

    def __init__(self, interval: float = 1 / 60, clock: Clock = time.monotonic) -> None:
        self.done = False
        self._interval = interval
        self._clock = clock
        self._held: list[Any] = []
        self._next = float("-inf")

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """A delta in its time, or held; anything else sends what is held before it."""
        place = _place(event)
        if place is None:
            return [*self.close(), event]
        out = self.close() if self._held and _place(self._held[0]) != place else []
        self._held.append(event)
        return out + (self.close() if self._clock() >= self._next else [])

    def close(self) -> list[ResponseEvent]:
        """What is held, as one delta."""
        if not self._held:
            return []
        held, self._held = self._held, []
        self._next = self._clock() + self._interval
        return [held[0] if len(held) == 1 else _joined(held)]

    def due(self) -> float | None:
        """Seconds until what is held must go out."""
        return max(0.0, self._next - self._clock()) if self._held else None


def coalesce(interval: float = 1 / 60, clock: Clock = time.monotonic) -> PipelineStage:
    """At most one delta of a text in `interval` seconds, for screens: the text stays the same, the first token is never late."""
    return Coalesce(interval, clock)


def _place(event: ResponseEvent) -> tuple[Any, ...] | None:
    fields = DELTA_KEYS.get(type(event))
    return None if fields is None else (type(event), *(getattr(event, field) for field in fields))


def _joined(held: list[Any]) -> ResponseEvent:
    changes: dict[str, Any] = {"delta": "".join(event.delta for event in held)}
    if any(getattr(event, "logprobs", None) for event in held):
        changes["logprobs"] = tuple(one for event in held for one in event.logprobs or ())
    return cast("ResponseEvent", msgspec.structs.replace(held[-1], **changes))


# --- without a loop ---


class Chain:
    """Stages in a row, as one stage."""

    def __init__(self, stages: Sequence[PipelineStage]) -> None:
        self._stages = stages

    @property
    def done(self) -> bool:
        """Whether a stage has ended the pipeline."""
        return any(stage.done for stage in self._stages)

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The event through every stage."""
        return self._from(0, [event])

    def close(self) -> list[ResponseEvent]:
        """What each stage held, through those behind it."""
        return [
            event
            for at, stage in enumerate(self._stages)
            for event in self._from(at + 1, stage.close())
        ]

    def due(self) -> float | None:
        """The soonest of the stages."""
        return min(
            (due for stage in self._stages if (due := stage.due()) is not None), default=None
        )

    def _from(self, at: int, events: list[ResponseEvent]) -> list[ResponseEvent]:
        for stage in self._stages[at:]:
            events = [out for event in events for out in stage.feed(event)]
        return events


def through(events: Iterable[ResponseEvent], *stages: PipelineStage) -> list[ResponseEvent]:
    """A whole list of events through the stages, without a loop."""
    chain = Chain(stages)
    out: list[ResponseEvent] = []
    for event in events:
        out += chain.feed(event)
        if chain.done:
            break
    return out + chain.close()


# --- over a stream ---


class Pipeline:
    """A stream through stages: `async with pipe(…) as events: async for event in events`."""

    def __init__(
        self, source: AsyncIterable[ResponseEvent], stages: Sequence[PipelineStage]
    ) -> None:
        self._chain = Chain(stages)
        self._source = source
        self._timed = any(isinstance(stage, Coalesce) for stage in stages)
        self._out: deque[ResponseEvent] = deque()
        self._ended = False
        self._error: Exception | None = None
        self._reader: TeeReader | None = None
        self._from: Branch | _Batches

    async def __aenter__(self) -> Pipeline:
        if self._timed:
            self._reader = TeeReader(self._source, 1)
            await self._reader.__aenter__()
            self._from = self._reader.branches[0]
        else:
            self._from = _Batches(self._source)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._reader is not None:
            await self._reader.__aexit__(kind, error, traceback)

    def __aiter__(self) -> Pipeline:
        return self

    async def __anext__(self) -> ResponseEvent:
        while not self._out:
            if self._ended:
                raise self._error or StopAsyncIteration
            await self._fill()
        return self._out.popleft()

    async def _fill(self) -> None:
        """The next events of the source, or those whose time has come."""
        due = self._chain.due()
        if (
            due is not None
            and self._reader is not None
            and not await self._reader.branches[0].wait(due)
        ):
            self._out.extend(self._chain.close())
            return
        try:
            batch = await self._from.batch()
        except Exception as error:  # noqa: BLE001  # raised again, once what was held is given
            self._error = None if isinstance(error, StopAsyncIteration) else error
            self._end()
            return
        for event in batch:
            self._out.extend(self._chain.feed(event))
            if self._chain.done:
                self._end()
                return

    def _end(self) -> None:
        self._ended = True
        self._out.extend(self._chain.close())


def pipe(source: AsyncIterable[ResponseEvent], *stages: PipelineStage) -> Pipeline:
    """`source` through the stages, left to right. The source stays its owner's: close it where it was opened."""
    return Pipeline(source, stages)


def tee(
    source: AsyncIterable[ResponseEvent], count: int = 2, *, ahead: int = READ_AHEAD
) -> TeeReader:
    """`async with tee(stream, 2) as (screen, log):` gives the same events to each branch.

    The source is read by one task of the block. A branch may run `ahead` events before the slowest; then the source waits, so
    memory stays bounded. A branch that is no longer wanted is closed with `aclose`.
    """
    return TeeReader(source, count, ahead)


class _Batches:
    """Events as they came together, where the source can say so. A class, so that leaving it leaves nothing half run."""

    def __init__(self, source: AsyncIterable[ResponseEvent]) -> None:
        batches = getattr(source, "batches", None)
        self._lists: AsyncIterator[list[ResponseEvent]] | None = (
            batches() if batches is not None else None
        )
        self._single = aiter(source)

    async def batch(self) -> list[ResponseEvent]:
        """The next ones; StopAsyncIteration at the end."""
        return [await anext(self._single)] if self._lists is None else await anext(self._lists)


class Branch:
    """One reader of a tee."""

    def __init__(self, reader: TeeReader) -> None:
        self.held: deque[ResponseEvent] = deque()
        self.closed = False
        self._reader = reader

    def __aiter__(self) -> Branch:
        return self

    async def __anext__(self) -> ResponseEvent:
        await self._ready()
        event = self.held.popleft()
        self._reader.taken()
        return event

    async def batch(self) -> list[ResponseEvent]:
        """The same, as many at a time as are there."""
        await self._ready()
        batch = list(self.held)
        self.held.clear()
        self._reader.taken()
        return batch

    async def wait(self, seconds: float) -> bool:
        """Whether something is there to read (or the end) within `seconds`."""
        with anyio.move_on_after(seconds):
            await self._reader.arrival(self)
        return bool(self.held) or self._reader.ended

    async def aclose(self) -> None:
        """This branch is no longer read."""
        self.closed = True
        self.held.clear()
        self._reader.taken()

    async def _ready(self) -> None:
        await self._reader.arrival(self)
        if not self.held:
            if self._reader.error is not None:
                raise self._reader.error
            raise StopAsyncIteration


class TeeReader:
    """Reads a source in one task and gives every event to each branch."""

    def __init__(
        self, source: AsyncIterable[ResponseEvent], count: int, ahead: int = READ_AHEAD
    ) -> None:
        self.branches = tuple(Branch(self) for _ in range(count))
        self.ended = False
        self.error: Exception | None = None
        self._source = source
        self._ahead = ahead
        self._arrived = anyio.Event()
        self._room = anyio.Event()
        self._group = anyio.create_task_group()

    async def __aenter__(self) -> tuple[Branch, ...]:
        await self._group.__aenter__()
        self._group.start_soon(self._read)
        return self.branches

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self._group.cancel_scope.cancel()
        return await self._group.__aexit__(kind, error, traceback)

    async def arrival(self, branch: Branch) -> None:
        """Waits until the branch has something to read, or nothing more comes."""
        while not branch.held and not self.ended:
            await self._arrived.wait()

    def taken(self) -> None:
        """A branch has read: there may be room again."""
        self._room.set()

    async def _read(self) -> None:
        try:
            source = _Batches(self._source)
            while True:
                batch = await source.batch()
                for branch in self.branches:
                    branch.held.extend(batch if not branch.closed else ())
                self._wake()
                await self._until_room()
        except StopAsyncIteration:
            pass
        except Exception as error:  # noqa: BLE001  # given to each branch when it has read what came before
            self.error = error
        finally:
            self.ended = True
            self._wake()

    def _wake(self) -> None:
        self._arrived.set()
        self._arrived = anyio.Event()

    async def _until_room(self) -> None:
        while any(len(branch.held) >= self._ahead for branch in self.branches if not branch.closed):
            self._room = anyio.Event()
            await self._room.wait()


def ended(event: ResponseEvent) -> bool:
    """Whether an event is the terminal of its stream."""
    return isinstance(event, (Completed, Failed))
