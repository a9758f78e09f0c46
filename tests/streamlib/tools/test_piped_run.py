"""What a run has beside its loop: the sum of its usage, and `stop`."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import anyio
import anyio.from_thread
import pytest

from streamlib import (
    AgentRun,
    Completed,
    Failed,
    FunctionCall,
    FunctionCallOutput,
    OutputTextDelta,
    RunEvent,
    StreamError,
    Usage,
    agent,
    encoder,
    user,
)
from streamlib.pipeline import coalesce
from streamlib.testing import MODEL, ScriptedClient, scripted
from streamlib.testing.provider.turns import Turn
from streamlib_parsers import OutputItemDone
from tests.support.clients import MemoryTransport, make_client
from tests.support.loops import asyncio_alone
from tests.support.messages_frames import block, delta, end, frame, start, text_deltas

CALL: Final = FunctionCall("", "tool", "{}")
SPOKEN: Final = [
    start(),
    frame("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    delta(0, "text_delta", text="one "),
    delta(0, "text_delta", text="two"),
]
"""A response that has not ended."""


def ended(events: list[Any]) -> list[str]:
    """The ends of responses, and the outputs between them."""
    names: list[str] = []
    for event in events:
        if isinstance(event, (Completed, Failed, FunctionCallOutput)):
            names.append(type(event).__name__)
    return names


async def tool() -> str:
    return "done"


# --- usage ---


async def test_usage_is_the_sum_of_the_responses() -> None:
    turns = [
        Turn([CALL], usage=Usage(input_tokens=10, output_tokens=0, cache_read_input_tokens=4)),
        Turn([CALL], usage=Usage(input_tokens=0, output_tokens=3)),
        Turn("Done.", usage=Usage(input_tokens=30, output_tokens=5)),
    ]
    seen: list[int | None] = []
    async with scripted(turns) as client, agent(client, "Go.", [tool], MODEL) as run:
        async for event in run:
            if isinstance(event, Completed) and run.usage is not None:
                seen.append(run.usage.input_tokens)
    assert seen == [10, 10, 40]
    usage = run.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.raw) == (40, 8, {})
    assert usage.cache_read_input_tokens == 4


async def test_usage_is_none_while_nothing_is_known() -> None:
    async with make_client("http://faulty", MemoryTransport(status=503), retry=None) as client:
        run = agent(client, "Hi.", model="faulty:m", errors="event")
        assert run.usage is None
        async with run:
            assert [type(event) async for event in run] == [Failed]
    assert run.usage is None


# --- stop ---


async def test_stopped_response_ends_as_an_event() -> None:
    """In mid-response: its items are closed, its connection too, and nothing is raised."""
    transport = MemoryTransport([*SPOKEN, 5.0])
    events: list[RunEvent] = []
    async with make_client("http://faulty", transport) as client:
        async with agent(client, "Hi.", [tool], "faulty:m") as run:
            async for event in run:
                events.append(event)
                if isinstance(event, OutputTextDelta):
                    run.stop()
        assert transport.responses[0].closed
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert failed.error.kind == "cancelled"
    deltas = "".join(event.delta for event in events if isinstance(event, OutputTextDelta))
    done = [event.item for event in events if isinstance(event, OutputItemDone)]
    assert [item.status for item in done] == ["incomplete"]
    assert run.response.text == deltas
    assert run.response.status == "cancelled"
    assert len(transport.sent) == 1


@pytest.mark.parametrize("errors", ["raise", "event"])
async def test_stop_wakes_a_reader_that_waits(errors: Any) -> None:
    transport = MemoryTransport([*SPOKEN, 5.0])
    events: list[RunEvent] = []
    spoken = anyio.Event()

    async def stop() -> None:
        await spoken.wait()
        await anyio.sleep(0.02)
        run.stop()

    async with (
        make_client("http://faulty", transport) as client,
        anyio.create_task_group() as all_,
        agent(client, "Hi.", model="faulty:m", errors=errors) as run,
    ):
        all_.start_soon(stop)
        with anyio.fail_after(2):
            async for event in run:
                events.append(event)
                if isinstance(event, OutputTextDelta):
                    spoken.set()
    assert ended(events) == ["Failed"]


async def test_stop_cancels_the_calls_and_begins_no_other() -> None:
    begun: list[str] = []

    async def hang() -> None:
        begun.append("hang")
        hangs.set()
        await anyio.sleep_forever()

    async def late() -> None:
        begun.append("late")

    async def stop() -> None:
        await hangs.wait()
        run.stop()

    hangs = anyio.Event()
    calls = [CALL, FunctionCall("", "hang", "{}"), FunctionCall("", "late", "{}")]
    async with scripted([calls, "Done."]) as client:
        async with (
            anyio.create_task_group() as group,
            agent(client, "Go.", [tool, hang, late], MODEL, limit=1) as run,
        ):
            group.start_soon(stop)
            with anyio.fail_after(2):
                events = [event async for event in run]
        assert ended(events) == ["Completed", "FunctionCallOutput"]
        assert begun == ["hang"]
        await history_is_valid(client, run)


async def history_is_valid(client: ScriptedClient, run: AgentRun) -> None:
    """The next request is taken, and each call has an output in it."""
    assert len(client.requests) == 1
    response = await client.respond([*run.history, user("Go on.")], MODEL)
    assert response.text == "Done."
    items = client.requests[1].prompt.items
    calls = [item.call_id for item in items if isinstance(item, FunctionCall)]
    outputs = [item.call_id for item in items if isinstance(item, FunctionCallOutput)]
    assert calls == outputs


async def test_tool_that_stops_its_run_keeps_its_output() -> None:
    async def stop() -> str:
        run.stop()
        return "stopped"

    async with scripted([[FunctionCall("", "stop", "{}")], "Done."]) as client:
        async with agent(client, "Go.", [stop], MODEL) as run:
            events = [event async for event in run]
        assert ended(events) == ["Completed", "FunctionCallOutput"]
        await history_is_valid(client, run)
    outputs = [item.output for item in run.history if isinstance(item, FunctionCallOutput)]
    assert outputs == ["stopped"]


async def test_tool_in_a_thread_can_stop_its_run() -> None:
    def stop() -> str:
        anyio.from_thread.run_sync(run.stop)
        return "stopped"

    async with scripted([[FunctionCall("", "stop", "{}")], "Done."]) as client:
        async with agent(client, "Go.", [stop], MODEL) as run:
            events = [event async for event in run]
        assert ended(events)[0] == "Completed"
        await history_is_valid(client, run)


@pytest.mark.parametrize("errors", ["raise", "event"])
async def test_stop_in_a_response_that_is_there_runs_no_call(errors: Any) -> None:
    begun: list[str] = []

    async def late() -> None:
        begun.append("late")

    used = {"type": "tool_use", "id": "t1", "name": "late", "input": {}}
    said = block(0, {"type": "text", "text": ""}, *text_deltas("one ", "two"))
    call = block(1, used, {"kind": "input_json_delta", "partial_json": "{}"})
    transport = MemoryTransport([b"".join([start(), said, call, end("tool_use")])])
    async with (
        make_client("http://faulty", transport) as client,
        agent(client, "Hi.", [late], "faulty:m", errors=errors) as run,
    ):
        events: list[RunEvent] = []
        async for event in run:
            events.append(event)
            if isinstance(event, OutputTextDelta):
                run.stop()
    assert len(ended(events)) == 1
    assert begun == []
    assert [type(item).__name__ for item in run.history][:2] == ["Message", "Message"]


async def test_run_that_was_stopped_before_sends_nothing() -> None:
    transport = MemoryTransport(SPOKEN)
    async with make_client("http://faulty", transport) as client:
        run = agent(client, "Hi.", model="faulty:m")
        run.stop()
        async with run:
            assert ended([event async for event in run]) == ["Failed"]
    assert transport.sent == []


async def test_stop_while_the_run_connects_ends_it() -> None:
    class Waiting(MemoryTransport):
        async def send(self, *arguments: Any) -> Any:
            run.stop()
            await anyio.sleep_forever()

    async with make_client("http://faulty", Waiting()) as client:
        run = agent(client, "Hi.", model="faulty:m")
        with anyio.fail_after(2):
            async with run:
                assert ended([event async for event in run]) == ["Failed"]


@pytest.mark.parametrize("when", ["between", "after", "left"])
async def test_stop_between_responses_sends_no_further_one(when: str) -> None:
    async with scripted([[CALL], "Done."]) as client:
        async with agent(client, "Go.", [tool], MODEL) as run:
            events: list[RunEvent] = []
            async for event in run:
                events.append(event)
                if when == "between" and isinstance(event, FunctionCallOutput):
                    run.stop()
            if when == "after":
                run.stop()
            assert [event async for event in run] == []
        run.stop()  # does nothing
        assert len(client.requests) == (1 if when == "between" else 2)


async def test_stopped_run_ends_its_pipeline_and_encoder() -> None:
    transport = MemoryTransport([*SPOKEN, 5.0])
    sent = encoder("vercel", run=True)
    wire = b""
    async with make_client("http://faulty", transport) as client:
        run = agent(client, "Hi.", model="faulty:m")
        async with run.pipe(coalesce(0.01)) as events:
            async for event in events:
                wire += sent.feed(event)
                if isinstance(event, OutputTextDelta):
                    run.stop()
    wire += sent.close()
    assert b'"type":"text-end"' in wire
    assert wire.endswith(b"data: [DONE]\n\n")


async def test_close_by_another_task_wakes_a_run_in_calls() -> None:
    """It waited for outputs that no call would deliver any more."""
    hangs = anyio.Event()

    async def hang() -> None:
        hangs.set()
        await anyio.sleep_forever()

    async def close() -> None:
        await hangs.wait()
        await run.aclose()

    async with (
        scripted([[FunctionCall("", "hang", "{}")], "Done."]) as client,
        anyio.create_task_group() as group,
        agent(client, "Go.", [hang], MODEL) as run,
    ):
        group.start_soon(close)
        with anyio.fail_after(2):
            assert ended([event async for event in run]) == ["Completed"]


async def test_failure_of_the_network_is_raised_as_ever() -> None:
    transport = MemoryTransport([*SPOKEN, OSError("gone")])
    async with (
        make_client("http://faulty", transport, retry=None) as client,
        agent(client, "Hi.", model="faulty:m") as run,
    ):
        with pytest.raises(StreamError):
            _ = [event async for event in run]


@asyncio_alone
async def test_stop_in_a_callback_of_the_loop_ends_the_run() -> None:
    """A signal handler, a timer, a button."""
    transport = MemoryTransport([*SPOKEN, 5.0])
    async with (
        make_client("http://faulty", transport) as client,
        agent(client, "Hi.", model="faulty:m") as run,
    ):
        asyncio.get_running_loop().call_later(0.05, run.stop)
        with anyio.fail_after(2):
            assert ended([event async for event in run]) == ["Failed"]
