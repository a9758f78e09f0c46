"""`agent` with a `SyncClient`: the same run, with `with` and `for`."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import anyio
import pytest

import streamlib
from streamlib import (
    AgentRun,
    Completed,
    Failed,
    FunctionCall,
    FunctionCallOutput,
    OutputTextDelta,
    RunEvent,
    StreamError,
    SyncClient,
    agent,
)
from streamlib.pipeline import coalesce
from streamlib.pipeline.flow import CALL_OUTPUTS
from streamlib.testing import MODEL, TurnLike, loopback, sync_loopback
from streamlib.tools.sync_run import SyncAgentRun
from tests.support.clients import MemoryTransport
from tests.support.messages_frames import block, delta, end, frame, start, text_deltas
from tests.support.sync_clients import make_sync_client

URL: Final = "http://memory.example"
ADD: Final = FunctionCall("", "add", '{"a": 1, "b": 2}')
TURNS: Final[list[TurnLike]] = [[ADD, FunctionCall("", "later", "{}")], "It is 3."]
HANGS: Final[list[TurnLike]] = [[ADD, FunctionCall("", "hang", "{}")], "Never."]
SPOKEN: Final = [
    start(),
    frame("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    delta(0, "text_delta", text="one "),
]
"""A response that has not ended."""


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


async def later() -> str:
    """A coroutine function: it runs in the client's loop."""
    await anyio.sleep(0.01)
    return "later"


def kinds(events: list[RunEvent]) -> list[str]:
    return [type(event).__name__ for event in events]


class Hanging:
    """A tool that lasts until it is cancelled."""

    def __init__(self) -> None:
        self.running = threading.Event()
        self.ended = threading.Event()

    async def hang(self) -> None:
        """Lasts."""
        self.running.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.ended.set()


class Connecting(MemoryTransport):
    """A transport whose requests get no response."""

    def __init__(self) -> None:
        super().__init__()
        self.running = threading.Event()
        self.ended = threading.Event()

    async def send(self, *arguments: Any) -> Any:
        self.running.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.ended.set()


def interrupt_when(running: threading.Event) -> None:
    """Ctrl-C in the main thread, once something runs."""

    def interrupt() -> None:
        running.wait(5)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()


INTERRUPTED: Final = pytest.mark.skipif(
    not hasattr(signal, "pthread_kill"), reason="this system interrupts no single thread"
)


@pytest.fixture
def interrupt_handler() -> Iterator[None]:
    """Python's own: a test run in the background of a shell begins with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_run_is_that_of_the_client() -> None:
    """The same events, history and sum, without an event loop of the caller's."""

    async def asynchronous() -> tuple[list[str], list[str], Any]:
        async with (
            loopback(turns=TURNS) as client,
            agent(client, "Add.", [add, later], MODEL) as run,
        ):
            events = [event async for event in run]
        return kinds(events), [type(item).__name__ for item in run.history], run.usage

    with (
        sync_loopback(turns=TURNS) as client,
        agent(client, "Add.", [add, later], MODEL) as run,
    ):
        events = list(run)
    assert isinstance(run, SyncAgentRun)
    here = (kinds(events), [type(item).__name__ for item in run.history], run.usage)
    there = anyio.run(asynchronous)
    assert here[:2] == there[:2]
    assert here[2] is not None
    assert here[2].same_numbers(there[2])
    assert run.response.text == run.snapshot.text == "It is 3."
    assert run.pending == []


def test_names_are_those_of_the_asynchronous_run() -> None:
    own = {name for name in dir(AgentRun) if not name.startswith("_")}
    assert own - {name for name in dir(SyncAgentRun) if not name.startswith("_")} == {
        "aclose",
        "is_run",  # an attribute of each
    }


def test_entering_raises_what_the_provider_refuses() -> None:
    with (
        sync_loopback(status=401) as client,
        pytest.raises(StreamError) as raised,
        agent(client, "Hi.", model=MODEL),
    ):
        pytest.fail("entered")
    assert raised.value.kind == "authentication"


def test_error_of_a_later_request_comes_after_its_events() -> None:
    turns: list[TurnLike] = [[ADD], streamlib.ErrorInfo("invalid_request", "no")]
    events: list[RunEvent] = []
    with (
        sync_loopback(turns=turns) as client,
        agent(client, "Add.", [add], MODEL) as run,
        pytest.raises(StreamError) as raised,
    ):
        events.extend(run)
    assert raised.value.kind == "invalid_request"
    assert "FunctionCallOutput" in kinds(events)


def test_leaving_cancels_the_calls() -> None:
    tool = Hanging()
    with sync_loopback(turns=HANGS) as client:
        with agent(client, "Go.", [add, tool.hang], MODEL) as run:
            for event in run:
                if isinstance(event, FunctionCallOutput):
                    break
        assert tool.ended.is_set()


def test_leaving_in_mid_response_closes_the_connection() -> None:
    transport = MemoryTransport([*SPOKEN, 5.0])
    with make_sync_client(URL, transport) as client:
        with agent(client, "Hi.", model="faulty:m") as run:
            for event in run:
                if isinstance(event, OutputTextDelta):
                    break
        assert transport.responses[0].closed
    assert run.response.status == "cancelled"


@INTERRUPTED
@pytest.mark.usefixtures("interrupt_handler")
def test_interrupt_in_calls_cancels_them_and_begins_no_other() -> None:
    tool = Hanging()
    begun: list[str] = []

    def late() -> None:
        begun.append("late")

    turns: list[TurnLike] = [[FunctionCall("", "hang", "{}"), FunctionCall("", "late", "{}")]]
    interrupt_when(tool.running)
    with sync_loopback(turns=turns) as client:
        with (
            pytest.raises(KeyboardInterrupt),
            agent(client, "Go.", [tool.hang, late], MODEL, limit=1) as run,
        ):
            list(run)
        assert tool.ended.is_set()
        assert begun == []


@INTERRUPTED
@pytest.mark.usefixtures("interrupt_handler")
def test_interrupt_while_it_connects_ends_the_request() -> None:
    transport = Connecting()
    interrupt_when(transport.running)
    with make_sync_client(URL, transport) as client:
        with pytest.raises(KeyboardInterrupt), agent(client, "Hi.", model="faulty:m"):
            pytest.fail("entered")
        assert transport.ended.is_set()


# --- stop ---


def in_a_thread(run: SyncAgentRun, ready: threading.Event) -> Callable[[], None]:
    def stop() -> None:
        ready.wait(5)
        run.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    return thread.join


def test_stop_of_another_thread_ends_calls() -> None:
    tool = Hanging()
    with (
        sync_loopback(turns=HANGS) as client,
        agent(client, "Go.", [add, tool.hang], MODEL, limit=1) as run,
    ):
        join = in_a_thread(run, tool.running)
        events = list(run)
        join()
    assert kinds(events)[-2:] == ["Completed", "FunctionCallOutput"]
    assert tool.ended.is_set()


def test_stop_in_the_loop_ends_the_response() -> None:
    transport = MemoryTransport([*SPOKEN, 5.0])
    with (
        make_sync_client(URL, transport) as client,
        agent(client, "Hi.", model="faulty:m") as run,
    ):
        events: list[RunEvent] = []
        for event in run:
            events.append(event)
            if isinstance(event, OutputTextDelta):
                run.stop()
    assert isinstance(events[-1], Failed)
    assert events[-1].error.kind == "cancelled"
    assert run.response.status == "cancelled"
    assert transport.responses[0].closed


@pytest.mark.parametrize("kind", ["function", "coroutine"])
def test_tool_can_stop_its_run(kind: str) -> None:
    def stop() -> str:
        run.stop()
        return "stopped"

    async def stop_in_the_loop() -> str:
        return stop()

    tool: Any = (streamlib.ToolSpec("stop"), stop if kind == "function" else stop_in_the_loop)
    with (
        sync_loopback(turns=[[FunctionCall("", "stop", "{}")], "Never."]) as client,
        agent(client, "Go.", [tool], MODEL) as run,
    ):
        list(run)
    assert run.response.text == ""
    assert [type(event) for event in run.history if isinstance(event, FunctionCallOutput)] == (
        [] if kind == "function" else [FunctionCallOutput]
    )


def test_run_that_was_stopped_before_sends_nothing() -> None:
    transport = MemoryTransport(SPOKEN)
    with make_sync_client(URL, transport) as client:
        run = agent(client, "Hi.", model="faulty:m")
        run.stop()
        with run:
            assert kinds(list(run)) == ["Failed"]
        run.stop()  # does nothing
    run.stop()
    assert transport.sent == []


# --- what belongs to its client ---


def test_hook_sees_the_events_of_responses_alone() -> None:
    seen: list[Any] = []
    with (
        sync_loopback(turns=TURNS, client={"on_event": seen.append}) as client,
        agent(client, "Add.", [add, later], MODEL) as run,
    ):
        events = list(run)
    assert [type(event) for event in events if isinstance(event, FunctionCallOutput)] != []
    assert seen == [event for event in events if type(event) not in CALL_OUTPUTS]


def test_run_goes_through_stages() -> None:
    with sync_loopback(turns=TURNS) as client:
        run = agent(client, "Add.", [add, later], MODEL)
        with run.pipe(coalesce(0.01)) as events:
            read = list(events)
    outputs = [event.output for event in read if isinstance(event, FunctionCallOutput)]
    assert sorted(map(str, outputs)) == ["3", "later"]
    assert [type(event) for event in read].count(Completed) == 2
    assert run.response.text == "It is 3."


def test_tool_may_use_the_client() -> None:
    def ask() -> str:
        return client.text("Hello", MODEL)

    turns: list[TurnLike] = [[FunctionCall("", "ask", "{}")], "inner", "outer"]
    with sync_loopback(turns=turns) as client, agent(client, "Go.", [ask], MODEL) as run:
        outputs = [event.output for event in run if isinstance(event, FunctionCallOutput)]
    assert outputs == ["inner"]
    assert run.response.text == "outer"


@pytest.mark.usefixtures("frozen_heap")
@pytest.mark.parametrize("kind", ["run", "models"])
def test_client_lives_as_long_as_its_run(kind: str) -> None:
    """A client that is collected closes its connections."""
    words = block(0, {"type": "text", "text": ""}, *text_deltas("one ", "two"))
    transport = MemoryTransport([start(), 0.05, words, 0.05, end()])

    def opened() -> Any:
        client = make_sync_client(URL, transport)
        if kind == "run":
            return agent(client, "Hi.", model="faulty:m")
        return client.stream("Hi.", ["faulty:a", "faulty:b"])

    texts: list[str] = []
    with opened() as events:
        for event in events:
            gc.collect()
            if isinstance(event, OutputTextDelta):
                texts.append(event.delta)
    assert texts == ["one ", "two"]


def test_closed_client_makes_no_run() -> None:
    client = SyncClient()
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        agent(client, "Hi.", model="openai:gpt-5")


def test_wrong_client_is_refused() -> None:
    make: Any = partial(agent, object(), "Hi.")
    with pytest.raises(TypeError, match="needs a `Client`"):
        make(model="openai:gpt-5")
