"""No call begins once a run is stopped: by asyncio's own way, a scope, the end, or Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final

import anyio
import pytest

from streamlib import FunctionCall, Response, ToolSpec
from streamlib.testing import MODEL, scripted
from streamlib.tools import agent, needs_approval, run_calls


@pytest.fixture(autouse=True)
def interrupt_handler() -> Iterator[None]:
    """Python's own: a test run in the background of a shell begins with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Tools:
    """A tool that lasts until it is stopped, and one that must then not begin."""

    def __init__(self, stop: Callable[[], object] = lambda: None, *, obeys: bool = True) -> None:
        self.stop = stop
        """Called when the first tool runs."""
        self.obeys = obeys
        """Whether that tool ends by its cancellation, or returns a result as if there were none."""
        self.begun: list[str] = []
        self.running = anyio.Event()

    async def hang(self) -> str:
        """Lasts."""
        self.begun.append("hang")
        self.running.set()
        self.stop()
        try:
            await anyio.sleep_forever()
        except BaseException:
            if self.obeys:
                raise
        return "ignored its cancellation"

    async def late(self) -> None:
        """Must not begin."""
        self.begun.append("late")

    def late_in_a_thread(self) -> None:
        """Must not begin either."""
        self.begun.append("late_in_a_thread")


NAMES: Final = ("hang", "late", "late_in_a_thread", "late")

Run = Callable[[Tools], Awaitable[object]]


async def calls(tools: Tools) -> object:
    """`run_calls`, one at a time."""
    items = [FunctionCall(f"call_{number}", name, "{}") for number, name in enumerate(NAMES)]
    response = Response(status="completed", items=tuple(items), stop_reason="tool_calls")
    return await run_calls(response, functions(tools), limit=1)


async def agent_run(tools: Tools) -> object:
    """`agent`, one call at a time."""
    items = [FunctionCall("", name, "{}") for name in NAMES]
    async with (
        scripted([items, items]) as client,
        agent(client, "Go.", functions(tools), model=MODEL, limit=1) as run,
    ):
        return [event async for event in run]


def functions(tools: Tools) -> list[Any]:
    return [tools.hang, tools.late, tools.late_in_a_thread]


RUNS: Final = pytest.mark.parametrize("run", [calls, agent_run])
OBEYS: Final = pytest.mark.parametrize("obeys", [True, False])


@RUNS
@OBEYS
def test_end_of_asyncio_run_begins_no_call(run: Run, obeys: bool) -> None:
    """It cancels every task: the next tool was begun while the program shut down."""
    tools = Tools(obeys=obeys)

    async def main() -> None:
        keep = asyncio.create_task(endless(run(tools)))
        await tools.running.wait()
        assert not keep.done()

    asyncio.run(main())
    assert tools.begun == ["hang"]


async def endless(running: Awaitable[object]) -> None:
    await running


@RUNS
@OBEYS
def test_asyncios_cancellation_begins_no_call(run: Run, obeys: bool) -> None:
    tools = Tools(obeys=obeys)

    async def main() -> None:
        task = asyncio.create_task(endless(run(tools)))
        await tools.running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert tools.begun == ["hang"]


@RUNS
@OBEYS
def test_tool_that_cancels_its_caller_is_the_last(run: Run, obeys: bool) -> None:
    """A tool named "stop", for example."""
    tools = Tools(obeys=obeys)

    async def main() -> None:
        task = asyncio.create_task(endless(run(tools)))
        tools.stop = task.cancel
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert tools.begun == ["hang"]


@RUNS
@OBEYS
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_cancelled_scope_begins_no_call(run: Run, obeys: bool, loop: str) -> None:
    tools = Tools(obeys=obeys)

    async def main() -> None:
        with anyio.CancelScope() as scope:
            tools.stop = scope.cancel
            await run(tools)
        assert scope.cancelled_caught

    anyio.run(main, backend=loop)
    assert tools.begun == ["hang"]


@RUNS
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_scope_that_was_cancelled_before_begins_no_call(run: Run, loop: str) -> None:
    """A task of a group begins in a scope that is cancelled, and runs to where it first waits."""
    tools = Tools()

    async def main() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await run(tools)

    anyio.run(main, backend=loop)
    assert tools.begun == []


@RUNS
@OBEYS
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_interrupted_program_begins_no_call(run: Run, obeys: bool, loop: str) -> None:
    tools = Tools(obeys=obeys)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(run, tools)
            await tools.running.wait()
            signal.raise_signal(signal.SIGINT)
            await anyio.sleep_forever()

    with pytest.raises(BaseException) as caught:  # noqa: PT011  # a group on trio
        anyio.run(main, backend=loop)
    assert "KeyboardInterrupt" in repr(caught.value)
    assert tools.begun == ["hang"]


@RUNS
@OBEYS
def test_second_interrupt_begins_no_call(run: Run, obeys: bool) -> None:
    """The first cancels the main task alone; here the run is another one, and goes on till then."""
    tools = Tools(obeys=obeys)

    async def main() -> None:
        keep = asyncio.create_task(endless(run(tools)))
        await tools.running.wait()
        signal.raise_signal(signal.SIGINT)
        await asyncio.wait([keep])

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert tools.begun == ["hang"]


# --- a decision about a call that comes after the cancellation ---


class Decisions(Tools):
    """Lasts until it is stopped, and then allows the call, as if nothing had happened."""

    async def approve(self, call: Any) -> bool:
        """Decides too late."""
        self.begun.append("approve")
        self.running.set()
        self.stop()
        with suppress(BaseException):
            await anyio.sleep(0.5)
        return True


async def approved_calls(tools: Decisions) -> object:
    """Calls that somebody approves, by `run_calls`."""
    items = [FunctionCall(f"call_{number}", "late", "{}") for number in range(2)]
    response = Response(status="completed", items=tuple(items), stop_reason="tool_calls")
    late = (ToolSpec("late"), needs_approval(partial(tools.late)))
    return await run_calls(response, [late], limit=1, approve=tools.approve)


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_call_that_is_approved_too_late_does_not_begin(loop: str) -> None:
    tools = Decisions()

    async def main() -> None:
        with anyio.CancelScope() as scope:
            tools.stop = scope.cancel
            await approved_calls(tools)

    anyio.run(main, backend=loop)
    assert tools.begun == ["approve"]


def test_approval_after_asyncios_cancellation_begins_no_call() -> None:
    tools = Decisions()

    async def main() -> None:
        task = asyncio.create_task(endless(approved_calls(tools)))
        tools.stop = task.cancel
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert tools.begun == ["approve"]


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_run_that_is_stopped_by_its_approver_begins_no_call(loop: str) -> None:
    tools = Decisions()

    async def main() -> None:
        late = (ToolSpec("late"), needs_approval(partial(tools.late)))
        calls = [FunctionCall("", "late", "{}")]
        async with (
            scripted([calls, calls]) as client,
            agent(client, "Go.", [late], model=MODEL, approve=tools.approve) as run,
        ):
            tools.stop = run.stop
            _ = [event async for event in run]

    anyio.run(main, backend=loop)
    assert tools.begun == ["approve"]
