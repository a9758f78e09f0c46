"""One measurement of a pipeline, in a process of its own: `python -P pipeline_jobs.py`.

Standard input has `{"contestant", "workload", "tokens", "old", "new", "seconds"}`. Standard output
gets the CPU seconds of one run, the seconds until the first text was there, KB of memory (what was
allocated at most at a time) and the text that came out; `node/pipeline.mjs` does the same. Nothing
is imported before it is needed, so that each process has what its contestant needs and no more.

The job, for all: tokens come as an async iterator; a fixed text, which may be split over tokens,
is replaced; what comes within a thirtieth of a second is joined; two readers get it.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import importlib.metadata
import json
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

INTERVAL: Final = 1 / 30
AHEAD: Final = 100
"""Places of a queue, where the contestant has none of its own."""

READ: Final = 20
"""Tokens that arrive together."""

FEW: Final = 200
"""Tokens of the warm-up."""

T = TypeVar("T")

Seen = Callable[[], None]
"""Called by the first reader at each text."""
Job = Callable[[Seen], Awaitable[str]]
"""Runs once; the text that came out."""


class Input(NamedTuple):
    """What a job works on.

    Attributes:
        tokens: the texts.
        old: what is replaced.
        new: by what.
    """

    tokens: list[str]
    old: str
    new: str


async def each(values: list[T]) -> AsyncIterator[T]:
    """Tokens, or events: some with each read of a socket, which other tasks run between."""
    for number, value in enumerate(values, 1):
        yield value
        if number % READ == 0:
            await asyncio.sleep(0)


class Replaced:
    """A fixed text replaced in a stream: what none of the others has, and each needs."""

    def __init__(self, old: str, new: str) -> None:
        self._old = old
        self._new = new
        self._held = ""

    def feed(self, token: str) -> str:
        """The text without what may begin the old one."""
        text = (self._held + token).replace(self._old, self._new)
        for size in range(min(len(self._old) - 1, len(text)), 0, -1):
            if self._old.startswith(text[-size:]):
                self._held = text[-size:]
                return text[:-size]
        self._held = ""
        return text

    def close(self) -> str:
        """What is left."""
        return self._held


class Joined:
    """Texts joined that come within an interval; the first one at once."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._next = 0.0

    def feed(self, text: str) -> str:
        """The joined text, or nothing yet."""
        self._texts.append(text)
        now = time.monotonic()
        if now < self._next:
            return ""
        self._next = now + INTERVAL
        return self.close()

    def close(self) -> str:
        """What is left."""
        text = "".join(self._texts)
        self._texts = []
        return text


async def fed(stage: Any, texts: AsyncIterator[str]) -> AsyncIterator[str]:
    """The texts through one of the two above."""
    async for text in texts:
        done = stage.feed(text)
        if done:
            yield done
    rest = stage.close()
    if rest:
        yield rest


async def read(texts: AsyncIterator[str], seen: Seen) -> str:
    """A reader."""
    joined: list[str] = []
    async for text in texts:
        seen()
        joined.append(text)
    return "".join(joined)


def unseen() -> None:
    """For the second reader."""


def always(_: object) -> bool:
    """Lets everything pass."""
    return True


def same(value: Any) -> Any:
    """A function that does nothing."""
    return value


# --- streamlib ---


def streamlib_jobs(given: Input) -> dict[str, Job]:
    """Its stages; the events are made before anything is timed, as the others' tokens are."""
    import anyio

    from streamlib import OutputTextDelta
    from streamlib import pipeline as p
    from streamlib.testing.stage_samples import message_of

    events = message_of(given.tokens)

    async def job(seen: Seen) -> str:
        texts: list[str] = []

        async def reader(stream: Any, seen: Seen) -> None:
            texts.append(await read(stream.text(), seen))

        stages = (p.replace(given.old, given.new), p.coalesce(INTERVAL))
        async with (
            p.pipe(each(events), *stages) as stream,
            p.tee(stream, 2) as (first, second),
            anyio.create_task_group() as group,
        ):
            group.start_soon(reader, first, seen)
            group.start_soon(reader, second, unseen)
        return same_texts(texts)

    async def through(stages: list[Any], seen: Seen) -> str:
        joined: list[str] = []
        async with p.pipe(each(events), *stages) as stream:
            async for event in stream:
                if type(event) is OutputTextDelta:
                    seen()
                    joined.append(event.delta)
        return "".join(joined)

    return {
        "job": job,
        "one filter": lambda seen: through([p.filter_events(always)], seen),
        "eight maps": lambda seen: through([p.map_events(same)] * 8, seen),
    }


def same_texts(texts: list[str]) -> str:
    """The text of both readers."""
    first, second = texts
    if first != second:
        raise AssertionError("the readers got different texts")
    return first


# --- aiostream ---


def aiostream_jobs(given: Input) -> dict[str, Job]:
    """Its operators, and two queues for the readers, since it has no tee."""
    library = importlib.import_module("aiostream")
    pipe, stream = library.pipe, library.stream

    async def through_stage(source: Any, stage: Any) -> AsyncIterator[str]:
        async with library.streamcontext(source) as streamer:
            async for text in fed(stage, streamer):
                yield text

    through = library.pipable_operator(through_stage)

    async def job(seen: Seen) -> str:
        replaced = Replaced(given.old, given.new)
        source = stream.iterate(each(given.tokens)) | through.pipe(replaced)
        source |= through.pipe(Joined())
        async with source.stream() as streamer:
            return await by_queues(streamer, seen)

    async def streamed(source: Any, seen: Seen) -> str:
        async with source.stream() as streamer:
            return await read(streamer, seen)

    def one(seen: Seen) -> Awaitable[str]:
        return streamed(stream.iterate(each(given.tokens)) | pipe.filter(always), seen)

    def eight(seen: Seen) -> Awaitable[str]:
        source = stream.iterate(each(given.tokens))
        for _ in range(8):
            source |= pipe.map(same)
        return streamed(source, seen)

    return {"job": job, "one filter": one, "eight maps": eight}


async def by_queues(texts: AsyncIterator[str], seen: Seen) -> str:
    """Two readers with a queue each."""
    queues: list[asyncio.Queue[str | None]] = [asyncio.Queue(AHEAD), asyncio.Queue(AHEAD)]

    async def pump() -> None:
        async for text in texts:
            for queue in queues:
                await queue.put(text)
        for queue in queues:
            await queue.put(None)

    async def taken(queue: asyncio.Queue[str | None]) -> AsyncIterator[str]:
        while (text := await queue.get()) is not None:
            yield text

    _, *read_texts = await asyncio.gather(
        pump(), read(taken(queues[0]), seen), read(taken(queues[1]), unseen)
    )
    return same_texts([str(text) for text in read_texts])


# --- anyio's memory streams ---


def anyio_jobs(given: Input) -> dict[str, Job]:
    """A task for each stage, and a stream between two of them."""
    import anyio

    async def work(texts: AsyncIterator[str], *sends: Any) -> None:
        async for text in texts:
            for send in sends:
                await send.send(text)
        for send in sends:
            await send.aclose()

    async def job(seen: Seen) -> str:
        texts: list[str] = []

        async def reader(receive: Any, seen: Seen) -> None:
            texts.append(await read(receive, seen))

        async with anyio.create_task_group() as group:
            replaced, replaces = anyio.create_memory_object_stream[str](AHEAD)
            joined, joins = anyio.create_memory_object_stream[str](AHEAD)
            first, reads_first = anyio.create_memory_object_stream[str](AHEAD)
            second, reads_second = anyio.create_memory_object_stream[str](AHEAD)
            stage = Replaced(given.old, given.new)
            group.start_soon(work, each(given.tokens), replaced)
            group.start_soon(work, fed(stage, replaces), joined)
            group.start_soon(work, fed(Joined(), joins), first, second)
            group.start_soon(reader, reads_first, seen)
            group.start_soon(reader, reads_second, unseen)
        return same_texts(texts)

    async def through(count: int, seen: Seen) -> str:
        read_texts: list[str] = []
        async with anyio.create_task_group() as group:
            texts: AsyncIterator[str] = each(given.tokens)
            for _ in range(count):
                send, texts_of_next = anyio.create_memory_object_stream[str](AHEAD)
                group.start_soon(work, texts, send)
                texts = texts_of_next
            read_texts.append(await read(texts, seen))
        return read_texts[0]

    return {
        "job": job,
        "one filter": lambda seen: through(1, seen),
        "eight maps": lambda seen: through(8, seen),
    }


# --- reactivex ---


def reactivex_jobs(given: Input) -> dict[str, Job]:
    """A subject that the loop feeds; its operators are calls."""
    reactivex = importlib.import_module("reactivex")
    ops = importlib.import_module("reactivex.operators")
    new_subject = importlib.import_module("reactivex.subject").Subject

    def through(stage: Any) -> Any:
        def rest(_: object) -> Any:
            return reactivex.just(stage.close())

        def operator(source: Any) -> Any:
            return source.pipe(
                ops.map(stage.feed), ops.concat(reactivex.defer(rest)), ops.filter(bool)
            )

        return operator

    async def run(operators: list[Any], seen: Seen, readers: int) -> str:
        subject = new_subject()
        shared = subject.pipe(*operators, ops.share())
        texts: list[list[str]] = []
        for number in range(readers):
            joined: list[str] = []
            texts.append(joined)
            shared.subscribe(noted(joined, unseen if number else seen))
        async for token in each(given.tokens):
            subject.on_next(token)
        subject.on_completed()
        made = ["".join(joined) for joined in texts]
        return same_texts([made[0], made[-1]])

    def noted(joined: list[str], seen: Seen) -> Callable[[str], None]:
        def on_next(text: str) -> None:
            seen()
            joined.append(text)

        return on_next

    def job(seen: Seen) -> Awaitable[str]:
        replaced = Replaced(given.old, given.new)
        return run([through(replaced), through(Joined())], seen, 2)

    return {
        "job": job,
        "one filter": lambda seen: run([ops.filter(always)], seen, 1),
        "eight maps": lambda seen: run([ops.map(same)] * 8, seen, 1),
    }


# --- LangChain ---


def langchain_jobs(given: Input) -> dict[str, Job]:
    """Generators as runnables, and its own tee."""
    generator = importlib.import_module("langchain_core.runnables").RunnableGenerator
    atee = importlib.import_module("langchain_core.utils.aiter").atee

    def stage(make: Callable[[], Any]) -> Any:
        async def transform(texts: AsyncIterator[str]) -> AsyncIterator[str]:
            async for text in fed(make(), texts):
                yield text

        return generator(transform)

    async def unchanged(texts: AsyncIterator[str]) -> AsyncIterator[str]:
        async for text in texts:
            yield same(text)

    def chained(stages: list[Any]) -> Any:
        chain = stages[0]
        for each_stage in stages[1:]:
            chain = chain | each_stage
        return chain

    replaced = stage(lambda: Replaced(given.old, given.new))
    both = replaced | stage(Joined)
    one = generator(unchanged)
    eight = chained([generator(unchanged) for _ in range(8)])

    async def job(seen: Seen) -> str:
        first, second = atee(both.atransform(each(given.tokens)), 2, lock=asyncio.Lock())
        texts = await asyncio.gather(read(first, seen), read(second, unseen))
        return same_texts(list(texts))

    return {
        "job": job,
        "one filter": lambda seen: read(one.atransform(each(given.tokens)), seen),
        "eight maps": lambda seen: read(eight.atransform(each(given.tokens)), seen),
    }


# --- nothing ---


def bare_jobs(given: Input) -> dict[str, Job]:
    """A loop over the tokens: what the source and the reader cost."""

    def loop(seen: Seen) -> Awaitable[str]:
        return read(each(given.tokens), seen)

    return {"one filter": loop, "eight maps": loop}


class Contestant(NamedTuple):
    """One library.

    Attributes:
        distribution: on the package index; empty if none is needed.
        make: makes its jobs, by workload.
    """

    distribution: str
    make: Callable[[Input], dict[str, Job]]


CONTESTANTS: Final = {
    "a bare loop": Contestant("", bare_jobs),
    "streamlib": Contestant("", streamlib_jobs),
    "aiostream": Contestant("aiostream", aiostream_jobs),
    "reactivex": Contestant("reactivex", reactivex_jobs),
    "anyio memory streams": Contestant("anyio", anyio_jobs),
    "LangChain RunnableGenerator": Contestant("langchain-core", langchain_jobs),
}
"""By name."""


# --- one measurement ---


async def measured(warm: Job, job: Job, least: float) -> dict[str, Any]:
    """CPU, first text and memory of a job; the memory is that of a run that is not timed.

    Args:
        warm: the same job on few tokens, which loads what is loaded at the first use.
        job: the job.
        least: CPU seconds of all runs.
    """
    first: list[float] = []
    start = 0.0

    def seen() -> None:
        if start:
            first.append(time.perf_counter() - start)

    await warm(unseen)
    gc.collect()
    gc.freeze()
    tracemalloc.start()
    text = await job(unseen)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    firsts: list[float] = []
    runs = 0
    began = time.process_time()
    while True:
        first.clear()
        start = time.perf_counter()
        await job(seen)
        firsts.append(first[0])
        runs += 1
        spent = time.process_time() - began
        if spent >= least:
            break
    firsts.sort()
    return {
        "cpu": spent / runs,
        "first": firsts[len(firsts) // 2],
        "memory": most / 1e3,
        "text": text,
    }


def main() -> None:
    """Measures what standard input says."""
    asked = json.load(sys.stdin)
    distribution, make = CONTESTANTS[asked["contestant"]]
    texts = (asked["old"], asked["new"])
    warm = make(Input(asked["tokens"][:FEW], *texts))[asked["workload"]]
    job = make(Input(asked["tokens"], *texts))[asked["workload"]]
    result = asyncio.run(measured(warm, job, asked["seconds"]))
    result["versions"] = {}
    if distribution:
        result["versions"] = {distribution: importlib.metadata.version(distribution)}
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main()
