"""Cancels every public awaitable at each of its yields, and counts what stays open.

An operation is run with a client of its own, against a loopback provider in this process, and is
cancelled at the first yield of its tasks, then at the second, until it completes. Then nothing of
it may be left: no slot or connection in use, no task, no file; the operation must end as cancelled,
and with no exception of its own.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import anyio
import anyio.lowlevel
import sniffio
import trio

from lab.storm.run import counted_warnings, tasks
from lab.systems import descriptors
from streamlib import Client, FunctionCall, FunctionCallOutput, Response, agent
from streamlib.client.retry import RetryPolicy
from streamlib.durable import open_log
from streamlib.gateway import Gateway, RouteRule, RouteTable, gateway
from streamlib.pipeline import coalesce, fallback, map_async, merge, pipe, race, share, tee
from streamlib.providers.loopback import loopback_at
from streamlib.testing import running
from streamlib.tools import run_calls
from streamlib.web import StreamResponse
from streamlib_parsers.events import ResponseEvent
from tests.support.asgi_calls import AsgiCall
from tests.support.clients import open_http

MODEL: Final = "loopback:m"
TEXT: Final = "one two three"

Way: TypeAlias = Literal["task.cancel", "scope"]
"""asyncio's own cancellation, or that of anyio's scopes: on trio there is only this."""

RUNS: Final[tuple[tuple[str, str, Way], ...]] = (
    ("httpx", "asyncio", "task.cancel"),
    ("httpx", "asyncio", "scope"),
    ("httpx", "trio", "scope"),
    ("httpx2", "asyncio", "task.cancel"),
    ("httpx2", "asyncio", "scope"),
    ("httpx2", "trio", "scope"),
    ("aiohttp", "asyncio", "task.cancel"),
    ("aiohttp", "asyncio", "scope"),
)
"""Each transport on its loops, by each way."""
SECONDS: Final = 10
"""After which an operation hangs."""
SETTLE_SECONDS: Final = 2
"""After which what is still open is a leak: the server in this process closes its side, too."""
MOST_YIELDS: Final = 2000
OK: Final = 200


@dataclass
class Place:
    """What an operation works with."""

    client: Client
    url: str
    folder: Path
    """For logs of SQLite."""
    kept: list[object] = field(default_factory=list)
    """What has files of its own: dropped, it would be closed by Python, leak or not."""


Operation: TypeAlias = Callable[[Place], Coroutine[Any, Any, object]]


# --- the operations ---


async def drain(stream: Any) -> None:
    """Reads a stream that is entered."""
    async for _ in stream:
        pass


async def read_all(stream: Any) -> None:
    """Enters a stream, and reads it to its end."""
    async with stream:
        await drain(stream)


async def stream_events(place: Place) -> None:
    await read_all(place.client.stream(TEXT, MODEL))


async def stream_batches(place: Place) -> None:
    async with place.client.stream(TEXT, MODEL) as stream:
        async for _ in stream.batches():
            pass


async def stream_text(place: Place) -> None:
    async with place.client.stream(TEXT, MODEL) as stream:
        async for _ in stream.text():
            pass


async def stream_left(place: Place) -> None:
    async with place.client.stream(TEXT, MODEL) as stream:
        async for _ in stream:
            break
        await stream.aclose()


async def respond(place: Place) -> None:
    await place.client.respond(TEXT, MODEL)


async def text(place: Place) -> None:
    await place.client.text(TEXT, MODEL)


async def models(place: Place) -> None:
    await place.client.models("loopback")


def weather(city: str) -> str:
    """The weather."""
    return city


async def slow_weather(city: str) -> str:
    """The weather, after a while."""
    await anyio.lowlevel.checkpoint()
    return city


async def agent_events(place: Place) -> None:
    async with agent(place.client, TEXT, [slow_weather], model=MODEL) as run:
        await drain(run)
    assert any(isinstance(item, FunctionCallOutput) for item in run.history)


async def calls(place: Place) -> None:
    items = [FunctionCall(f"c{n}", name, '{"city": "Rome"}') for n, name in enumerate(TOOLS)]
    response = Response(status="completed", items=tuple(items), stop_reason="tool_calls")
    await run_calls(response, [weather, slow_weather])


TOOLS: Final = ("weather", "slow_weather", "slow_weather")


async def same(event: ResponseEvent) -> ResponseEvent:
    await anyio.lowlevel.checkpoint()
    return event


async def piped(place: Place) -> None:
    await read_all(pipe(place.client.stream(TEXT, MODEL), map_async(same), coalesce(0.001)))


async def merged(place: Place) -> None:
    await read_all(merge({name: place.client.stream(TEXT, MODEL) for name in "ab"}))


async def fallen_back(place: Place) -> None:
    missing = partial(place.client.stream, TEXT, "loopback:m", wire_api="chat", base_url=NOWHERE)
    await read_all(fallback([missing, partial(place.client.stream, TEXT, MODEL)]))


NOWHERE: Final = "http://127.0.0.1:1"
"""An address at which nobody listens."""


async def raced(place: Place) -> None:
    start = partial(place.client.stream, TEXT, MODEL)
    await read_all(race([start, start, start], after=0.001))


async def teed(place: Place) -> None:
    async with (
        place.client.stream(TEXT, MODEL) as stream,
        tee(stream, 2) as (one, two),
        anyio.create_task_group() as group,
    ):
        group.start_soon(read_all, one)
        await read_all(two)


async def shared(place: Place) -> None:
    async with (
        share(place.client.stream(TEXT, MODEL)) as source,
        anyio.create_task_group() as group,
    ):
        group.start_soon(read_all, source.reader())
        await read_all(source.reader())


async def log_written(place: Place, url: str) -> None:
    log = open_log(url.format(place.folder), interval=0.005)
    place.kept.append(log)
    async with log:
        await log.write("a", place.client.stream(TEXT, MODEL))


async def log_followed(place: Place, url: str) -> None:
    log = open_log(url.format(place.folder), interval=0.005)
    place.kept.append(log)
    async with log:
        await log.create("a")
        async with anyio.create_task_group() as group:
            group.start_soon(log.write, "a", place.client.stream(TEXT, MODEL))
            async for _ in log.read("a"):
                pass
        await log.stop("a")
        await log.head("a")
        await log.delete("a")


async def gateway_request(place: Place) -> None:
    route = RouteRule("*", MODEL)
    options = {"http": place.client._transport}  # not ours to close
    table = RouteTable([route], [loopback_at(place.url)])
    async with Gateway(table, client=options) as running_gateway:
        call = AsgiCall(path="/v1/chat/completions", headers={"authorization": "Bearer t"})
        body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"one two"}]}'
        await call(gateway(running_gateway, token="t"), body)
        assert call.status == OK


async def web_response(place: Place) -> None:
    call = await AsgiCall()(StreamResponse(place.client.stream(TEXT, MODEL), "vercel"))
    assert call.status == OK


async def socket_streams(place: Place) -> None:
    async with place.client.connect(MODEL, base_url=f"{place.url}/v1") as connection:
        await read_all(connection.stream(TEXT))
        await read_all(connection.stream(TEXT, lane="b"))


HTTP_OPERATIONS: Final[dict[str, Operation]] = {
    "stream": stream_events,
    "stream.batches": stream_batches,
    "stream.text": stream_text,
    "stream.aclose": stream_left,
    "respond": respond,
    "text": text,
    "models": models,
    "agent": agent_events,
    "gateway": gateway_request,
    "StreamResponse": web_response,
}
"""On every transport."""
OPERATIONS: Final[dict[str, Operation]] = {
    "run_calls": calls,
    "pipe": piped,
    "merge": merged,
    "fallback": fallen_back,
    "race": raced,
    "tee": teed,
    "share": shared,
    "log.write, memory": partial(log_written, url="memory:"),
    "log.read, memory": partial(log_followed, url="memory:"),
    "log.write, SQLite": partial(log_written, url="sqlite:///{}/log.db"),
    "log.read, SQLite": partial(log_followed, url="sqlite:///{}/log.db"),
    "connect": socket_streams,
}
"""On the first transport: they use what those above do."""


# --- the cancellation ---


class Yields:
    """Counts the yields of the tasks of one operation, and cancels it at one of them."""

    def __init__(self, at: int) -> None:
        self._left = at
        self.reached = False
        """Whether there were so many."""
        self.cancel: Callable[[], object] = lambda: None
        """Cancels the operation; set when it begins."""

    def note(self) -> None:
        """One of its tasks has yielded."""
        self._left -= 1
        if self._left == 0:
            self.reached = True
            self.cancel()


RUNNING: Final[ContextVar[Yields]] = ContextVar("RUNNING")
"""Of the operation that a task belongs to: its tasks inherit it, those of the server do not."""


class Counted:
    """Awaits a coroutine, and notes its yields."""

    def __init__(self, work: Coroutine[Any, Any, Any], yields: Yields) -> None:
        self._work = work
        self._yields = yields

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._work.__await__()
        step: Callable[[], Any] = partial(steps.send, None)
        while True:
            try:
                yielded = step()
            except StopIteration as end:
                return end.value
            self._yields.note()
            try:
                step = partial(steps.send, (yield yielded))
            except BaseException as error:  # noqa: BLE001  # the work decides about it
                step = partial(steps.throw, error)


def counted_task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    """A factory of tasks: counts the yields of those that belong to an operation."""
    yields = RUNNING.get(None)
    if yields is None:
        return asyncio.Task(work, loop=loop, **options)

    async def counted() -> Any:
        return await Counted(work, yields)

    task = asyncio.Task(counted(), loop=loop, **options)
    # One that is cancelled before it begins never awaits its work.
    task.add_done_callback(lambda _: work.close())
    return task


class CountedSteps(trio.abc.Instrument):
    """Counts the yields of tasks on trio."""

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """One of any task."""
        yields = task.context.get(RUNNING)
        if yields is not None:
            yields.note()


async def cancel_at(work: Coroutine[Any, Any, object], at: int, way: Way) -> tuple[bool, str]:
    """Runs an operation that is cancelled at the yield of this number, from 1, of its tasks.

    Returns:
        Whether there were so many, and how it ended: "" as it must, else what was wrong.
    """
    yields = Yields(at)
    token = RUNNING.set(yields)
    try:
        if sniffio.current_async_library() == "trio":
            steps = CountedSteps()
            trio.lowlevel.add_instrument(steps)
            try:
                await in_scope(work, yields)
            finally:
                trio.lowlevel.remove_instrument(steps)
            return yields.reached, ""
        loop = asyncio.get_running_loop()
        loop.set_task_factory(counted_task)
        try:
            task = loop.create_task(in_scope(work, yields) if way == "scope" else work)
            if way == "task.cancel":
                yields.cancel = task.cancel
            await asyncio.wait({task})
        finally:
            loop.set_task_factory(None)
    finally:
        RUNNING.reset(token)
    if not task.cancelled():
        task.result()
        if way == "task.cancel" and yields.reached:
            return True, "it went on"
    return yields.reached, ""


async def in_scope(work: Coroutine[Any, Any, object], yields: Yields) -> None:
    """Runs it in a scope, by which it is cancelled."""
    with anyio.CancelScope() as scope:
        yields.cancel = scope.cancel
        await work


@dataclass
class Leaks:
    """What was found."""

    cancellations: Counter[str] = field(default_factory=Counter)
    """How often each operation was cancelled."""
    found: list[str] = field(default_factory=list)
    """What was left, or went wrong."""


@asynccontextmanager
async def placed(url: str, transport: str) -> AsyncGenerator[Place]:
    """A client of its own, and a folder."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_http(transport) as http:
            client = Client(http=http, providers=(loopback_at(url),), retry=RetryPolicy(retries=0))
            async with client:
                yield Place(client, url, Path(folder))


async def try_once(
    operation: Operation, url: str, transport: str, at: int, way: Way
) -> tuple[bool, list[str]]:
    """Cancels an operation once: whether it had so many yields, and what was wrong."""
    wrong: list[str] = []
    reached = True
    before = (descriptors(), tasks())
    async with placed(url, transport) as place:
        try:
            with anyio.fail_after(SECONDS):
                reached, how = await cancel_at(operation(place), at, way)
                wrong += [how] if how else []
        except TimeoutError:
            wrong.append("it hangs")
        except Exception as error:  # noqa: BLE001  # whatever comes out is counted
            wrong.append(f"it raised {error!r}"[:300])
        slots: Any = place.client._transport.slots  # type: ignore[attr-defined]
        if not await settled(lambda: slots.borrowed_tokens == 0):
            wrong.append("a slot is taken")
    if not await settled(lambda: descriptors() <= before[0]):
        wrong.append("a file or socket is open")
    if not await settled(lambda: tasks() <= before[1]):
        wrong.append("a task is left")
    return reached, wrong


async def settled(is_well: Callable[[], bool]) -> bool:
    """Whether something comes true in time."""
    with anyio.move_on_after(SETTLE_SECONDS):
        while not is_well():  # noqa: ASYNC110  # nothing tells when a descriptor is closed
            await anyio.sleep(0.002)
        return True
    return False


async def cancel_everywhere(
    operations: dict[str, Operation], transport: str, way: Way, *, every: int = 1, first: int = 1
) -> Leaks:
    """Cancels each operation at each of its yields.

    Args:
        operations: by name.
        transport: name of the HTTP library.
        way: how it is cancelled.
        every: 3 takes every third yield.
        first: the yield, counted from 1, to begin with.
    """
    leaks = Leaks()
    async with running() as url:
        for name, operation in operations.items():
            _, wrong = await try_once(operation, url, transport, 0, way)  # what is opened once
            examples: list[str] = []
            counts: Counter[str] = Counter()
            with counted_warnings(counts, examples):
                at = first
                reached = not wrong
                while reached and at < MOST_YIELDS:
                    reached, found = await try_once(operation, url, transport, at, way)
                    leaks.cancellations[name] += reached
                    wrong += [f"at yield {at}: {each}" for each in found]
                    at += every
            wrong += examples
            leaks.found += [f"{name}: {each}" for each in wrong]
    return leaks


def operations_on(transport: str) -> dict[str, Operation]:
    """What is cancelled over a transport."""
    if transport == RUNS[0][0]:
        return HTTP_OPERATIONS | OPERATIONS
    return HTTP_OPERATIONS
