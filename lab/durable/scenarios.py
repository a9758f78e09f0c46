"""One log under one fault, read from random places at random times.

A scenario is the same in virtual and in real time; every random choice comes from its seed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
from msgspec import Struct

from streamlib.client.stream import ResponseStream
from streamlib.durable import Engine, Entry, Log, LogError, open_log
from streamlib.durable.log import engine_of
from streamlib.durable.memory import MemoryEngine
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import Completed, Failed, accumulate
from streamlib_parsers.events import Event
from tests.support.client_streams import stream_over
from tests.support.durable_engines import Connection, lose
from tests.support.response_bodies import frames_of

LEASE: Final = 0.3
READERS: Final = 5
OPTIONS: Final[dict[str, Any]] = {"lease": LEASE, "interval": 0.01, "outage": 4 * LEASE}
TERMINAL: Final = (Completed, Failed)


class Outcome(Struct):
    """What the readers of one log saw.

    Attributes:
        fault: Which fault it had.
        ends: Kinds of the terminal events.
        reads: How many reads ended.
        rewound: How many of them had to start anew, since the engine had lost events.
        gone: How often one came back to a log that its writer had not yet sent again.
        wrong: What must not happen, in words.
    """

    fault: str
    ends: list[str]
    reads: int = 0
    rewound: int = 0
    gone: int = 0
    wrong: list[str] = []


class Scenario:
    """A writer in one process, readers in another, one engine.

    Args:
        engine: As the writer's process sees it.
        reading: The log of the readers' process.
        log_id: Of the log.
        seed: Of every random choice.
        options: Of the writer's log.
    """

    def __init__(
        self,
        engine: Engine,
        reading: Log,
        log_id: str,
        seed: int,
        options: dict[str, Any] = OPTIONS,
    ) -> None:
        self.engine = engine
        self.reading = reading
        self.log_id = log_id
        self.random = random.Random(seed)
        self.options = options
        self.created = anyio.Event()
        """The log exists; set by `run`."""
        self.ours = Connection(engine)
        """The writer's."""
        self.fault = self.random.choice(faults_of(engine))
        self.outcome = Outcome(self.fault, [], wrong=[])
        self.writer = anyio.CancelScope()
        """Of the writer's task, which may not have begun when the fault comes."""
        self._readings: list[list[Entry]] = []
        self.read_at: list[float] = []
        """When each of them ended."""

    async def run(self) -> Outcome:
        """Until every reader has the end."""
        async with open_log(self.ours, **self.options) as writing:
            await writing.create(self.log_id)
            self.created.set()
            async with anyio.create_task_group() as group:
                group.start_soon(self._write, writing)
                for _ in range(READERS):
                    group.start_soon(self._read)
                await anyio.sleep(self.random.random() * 0.4)
                await self._make_fault()
        await self._read()
        self._compare()
        return self.outcome

    def _stream(self) -> ResponseStream:
        frames = frames_of(self.random.randint(0, 30))
        steps: list[bytes | float] = []
        for frame in frames:
            steps.append(frame)
            if self.random.random() < 0.4:
                steps.append(self.random.random() * 0.05)
        return stream_over(*steps, errors="event", deadlines=Deadlines(idle=1e9))

    async def _write(self, log: Log) -> None:
        with self.writer:
            try:
                await log.write(self.log_id, self._stream())
            except LogError as error:
                if error.kind not in {"fenced", "unavailable"}:
                    self.outcome.wrong.append(f"write: {error.kind}")

    async def _read(self) -> None:
        """Reads to the end, leaving at random places and going on from the cursor."""
        choose = random.Random(self.random.random())
        entries: list[Entry] = []
        while not (entries and isinstance(entries[-1].event, TERMINAL)):
            await anyio.sleep(choose.random() * 0.2)
            leave_after = choose.randint(1, 12)
            after = None
            if entries:
                after = entries[-1].cursor
            try:
                async for entry in self.reading.read(self.log_id, after):
                    entries.append(entry)
                    leave_after -= 1
                    if leave_after == 0 and not isinstance(entry.event, TERMINAL):
                        break
            except LogError as error:
                if error.kind == "gone" and self.may_come_back():
                    # The writer has not sent it again yet: it may be slower than a lease here.
                    self.outcome.gone += bool(entries)
                    continue
                if error.kind != "rewound":
                    raise
                self.outcome.rewound += 1
                entries = []
        self.outcome.reads += 1
        self._readings.append(entries)
        self.read_at.append(anyio.current_time())

    async def _make_fault(self) -> None:
        await FAULTS[self.fault](self, self.reading)

    def may_come_back(self) -> bool:
        """Whether the engine has lost the log, and its writer will send it again."""
        return self.fault == "engine lost everything"

    def _compare(self) -> None:
        last = self._readings[-1]
        for entries in self._readings:
            if entries != last:
                self.outcome.wrong.append("two readers differ")
            terminals = [entry for entry in entries if isinstance(entry.event, TERMINAL)]
            if len(terminals) != 1:
                self.outcome.wrong.append(f"{len(terminals)} terminal events")
        events = [entry.event for entry in last if isinstance(entry.event, Event)]
        response = accumulate(events)  # raises where events are missing or out of order
        if isinstance(events[-1], Failed):
            self.outcome.ends.append(events[-1].error.code or events[-1].error.kind)
        else:
            self.outcome.ends.append("completed")
            whole = "".join(f"word {n} " for n in range(response.text.count("word")))
            if response.text != whole:
                self.outcome.wrong.append("text differs")


# --- faults ---


async def nothing(scenario: Scenario, reading: Log) -> None:
    """The response completes."""


async def stop(scenario: Scenario, reading: Log) -> None:
    """Somebody stops it from another process."""
    await reading.stop(scenario.log_id, "user")


async def kill(scenario: Scenario, reading: Log) -> None:
    """The writer's process ends: nothing of it reaches the engine any more."""
    scenario.ours.cut = True
    scenario.writer.cancel()


async def freeze(scenario: Scenario, reading: Log) -> None:
    """The writer's process stands still, for shorter or longer than its lease."""
    seconds = scenario.random.uniform(0.1, 4) * LEASE
    scenario.ours.frozen_until = anyio.current_time() + seconds


async def partition(scenario: Scenario, reading: Log) -> None:
    """The writer does not reach the engine, for shorter or longer than its lease."""
    scenario.ours.cut = True
    await anyio.sleep(scenario.random.uniform(0.1, 3) * LEASE)
    scenario.ours.cut = False


async def lost_answers(scenario: Scenario, reading: Log) -> None:
    """Appends land, and their answers are lost."""
    scenario.ours.answers_lost = scenario.random.randint(1, 4)


async def cut_tail(scenario: Scenario, reading: Log) -> None:
    """The engine restarts and has lost the last records, while the writer lives."""
    assert isinstance(scenario.engine, MemoryEngine)
    state = scenario.engine._states[scenario.log_id]
    if not state.closed:  # behind the terminal event nobody repairs it: DURABLE's one bad row
        lose(scenario.engine, scenario.log_id, scenario.random.randint(0, 2))


async def lose_all(scenario: Scenario, reading: Log) -> None:
    """The engine restarts empty, while the writer lives."""
    assert isinstance(scenario.engine, MemoryEngine)
    if not scenario.engine._states[scenario.log_id].closed:
        lose(scenario.engine, scenario.log_id, None)


FAULTS: Final[dict[str, Callable[[Scenario, Log], Awaitable[None]]]] = {
    "nothing": nothing,
    "stop": stop,
    "kill": kill,
    "freeze": freeze,
    "partition": partition,
    "lost answers": lost_answers,
    "engine lost its tail": cut_tail,
    "engine lost everything": lose_all,
}


def faults_of(engine: Engine) -> list[str]:
    """The faults that can be made on an engine."""
    if isinstance(engine, MemoryEngine):
        return list(FAULTS)
    return [name for name in FAULTS if not name.startswith("engine")]


async def run_many(
    engine: Engine, first: int, count: int, at_once: int, url: str | None = None
) -> list[Outcome]:
    """Scenarios with seeds from `first` on.

    Args:
        engine: Connected; the readers' process has it, and the writers' where there is no `url`.
        first: The first seed.
        count: How many.
        at_once: How many at the same time.
        url: Of a server to which each writer's process connects itself.
    """
    outcomes: list[Outcome] = []
    slots = anyio.CapacityLimiter(at_once)

    async def run_one(seed: int, reading: Log) -> None:
        async with slots:
            writers = engine
            if url is not None:
                writers = engine_of(url)
                await writers.connect()
            try:
                scenario = Scenario(writers, reading, f"log-{seed}", seed)
                outcomes.append(await scenario.run())
            finally:
                if url is not None:
                    await writers.aclose()

    readers = open_log(Connection(engine), **OPTIONS)
    async with readers as reading, anyio.create_task_group() as group:
        for seed in range(first, first + count):
            group.start_soon(run_one, seed, reading)
    return outcomes


def counts(outcomes: list[Outcome]) -> dict[str, Any]:
    """What they amount to."""
    return {
        "logs": len(outcomes),
        "reads": sum(outcome.reads for outcome in outcomes),
        "faults": dict(Counter(outcome.fault for outcome in outcomes)),
        "ends": dict(Counter(end for outcome in outcomes for end in outcome.ends)),
        "rewound": sum(outcome.rewound for outcome in outcomes),
        "gone": sum(outcome.gone for outcome in outcomes),
        "wrong": [(outcome.fault, wrong) for outcome in outcomes for wrong in outcome.wrong],
    }
