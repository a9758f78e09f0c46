"""`agent`: several responses as one iterator, from the first request to the last output."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import pytest

import streamlib.tools.loop
from streamlib import (
    AgentRun,
    ApprovalRequest,
    Completed,
    ErrorInfo,
    Failed,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Origin,
    OutputTextDelta,
    Prompt,
    Reasoning,
    RunEvent,
    StreamError,
    Text,
    ToolSpec,
    agent,
    user,
)
from streamlib.client import AttemptRequest
from streamlib.testing import MODEL, scripted
from streamlib.testing.provider.turns import Turn
from tests.support.clients import KEY, MemoryTransport, make_client
from tests.support.gateways import Upstream, error_response, stream_response
from tests.support.loops import asyncio_alone
from tests.support.messages_frames import block, end, start, text_deltas
from tests.support.telemetry import Recorded

PERSON: ContextVar[str] = ContextVar("PERSON", default="nobody")


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


ADD = FunctionCall("", "add", '{"a": 1, "b": 2}')
SPOKEN = [start(), block(0, {"type": "text", "text": ""}, *text_deltas("one ", "two")), end()]
TWICE = [FunctionCall("", "add", '{"a": 1, "b": 2}'), FunctionCall("", "add", '{"a": 3, "b": 4}')]


def kinds(events: list[RunEvent]) -> list[str]:
    """The events that end something, by their kind."""
    names: list[str] = []
    for event in events:
        if isinstance(event, (Completed, Failed, FunctionCallOutput)):
            names.append(type(event).__name__)
    return names


async def finish(run: AgentRun) -> list[RunEvent]:
    """Reads a run to its end."""
    async with run:
        return [event async for event in run]


async def test_outputs_come_between_the_responses() -> None:
    async with scripted([TWICE, "It is 3 and 7."]) as client:
        run = agent(client, "Add.", [add], model=MODEL)
        events = await finish(run)
        assert [tool.name for tool in client.requests[0].prompt.tools] == ["add"]
    assert kinds(events) == ["Completed", "FunctionCallOutput", "FunctionCallOutput", "Completed"]
    assert run.response.text == "It is 3 and 7."
    assert [type(item).__name__ for item in run.history] == [
        "Message",
        "FunctionCall",
        "FunctionCall",
        "FunctionCallOutput",
        "FunctionCallOutput",
        "Message",
    ]
    assert run.pending == []


async def test_tool_of_a_pair_is_described_by_its_spec() -> None:
    spec = ToolSpec("plus", "Adds.", {"type": "object"})
    async with scripted([[FunctionCall("", "plus", '{"a": 1, "b": 2}')], "Done."]) as client:
        events = await finish(agent(client, "Add.", [(spec, add)], model=MODEL))
        (offered,) = client.requests[0].prompt.tools
    assert (offered.name, offered.description) == ("plus", "Adds.")
    assert [event.output for event in events if isinstance(event, FunctionCallOutput)] == ["3"]


async def test_outputs_are_delivered_as_they_finish() -> None:
    """The second is there while the first still runs; the history has them in their order."""
    go = anyio.Event()

    async def slow() -> str:
        await go.wait()
        return "slow"

    async def quick() -> str:
        return "quick"

    calls = [FunctionCall("", "slow", "{}"), FunctionCall("", "quick", "{}")]
    outputs: list[str] = []
    async with (
        scripted([calls, "Done."]) as client,
        agent(client, "Go.", [slow, quick], model=MODEL) as run,
    ):
        async for event in run:
            if isinstance(event, FunctionCallOutput):
                outputs.append(str(event.output))
                go.set()
    assert outputs == ["quick", "slow"]
    kept = [item.output for item in run.history if isinstance(item, FunctionCallOutput)]
    assert kept == ["slow", "quick"]


# --- entering ---


@pytest.mark.parametrize("kind", ["authentication", "rate_limited"])
async def test_entering_raises_what_the_provider_refuses(kind: Any) -> None:
    async with scripted([ErrorInfo(kind, "no")]) as client:
        with pytest.raises(StreamError) as raised:
            async with agent(client, "Hi.", model=MODEL):
                pytest.fail("entered")
    assert raised.value.kind == kind


async def test_entering_raises_where_nothing_listens() -> None:
    transport = MemoryTransport(status=503)
    async with make_client("http://faulty", transport, retry=None) as client:
        with pytest.raises(StreamError):
            async with agent(client, "Hi.", model="faulty:m", errors="raise"):
                pytest.fail("entered")


async def test_refusal_is_an_event_where_errors_are() -> None:
    async with scripted([ErrorInfo("rate_limited", "no")]) as client:
        run = agent(client, "Hi.", model=MODEL, errors="event")
        events = await finish(run)
    assert kinds(events) == ["Failed"]
    assert run.history == [user("Hi.")]


def test_prompt_that_cannot_be_built_raises_before() -> None:
    client = make_client("http://faulty", MemoryTransport())
    with pytest.raises(StreamError):
        agent(client, "Hi.", model="no such model")


# --- leaving ---


async def test_leaving_cancels_calls_and_keeps_finished_outputs() -> None:
    ended: list[str] = []

    async def hang() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("hang")

    async with scripted([[ADD, FunctionCall("", "hang", "{}")], "Done."]) as client:
        async with agent(client, "Go.", [add, hang], model=MODEL) as run:
            async for event in run:
                if isinstance(event, FunctionCallOutput):
                    break
        assert ended == ["hang"]
        assert len(client.requests) == 1
        response = await client.respond([*run.history, user("Go on.")], model=MODEL)
    assert response.text == "Done."
    sent = client.requests[1].prompt.items
    outputs = [item for item in sent if isinstance(item, FunctionCallOutput)]
    assert [output.is_error for output in outputs] == [False, True]


async def test_leaving_in_mid_response_closes_the_connection() -> None:
    transport = MemoryTransport(SPOKEN)
    async with make_client("http://faulty", transport) as client:
        async with agent(client, "Hi.", model="faulty:m") as run:
            async for event in run:
                if isinstance(event, OutputTextDelta):
                    break
        assert transport.responses[0].closed
    assert run.response.status == "cancelled"


@pytest.mark.parametrize("where", ["response", "calls"])
async def test_exception_of_the_block_is_raised_as_it_is(where: str) -> None:
    async def hang() -> None:
        await anyio.sleep_forever()

    async def use(run: AgentRun) -> None:
        async with run:
            async for event in run:
                if where == "response" or isinstance(event, FunctionCallOutput):
                    raise ValueError("mine")

    async with scripted([[ADD, FunctionCall("", "hang", "{}")], "Done."]) as client:
        with pytest.raises(ValueError, match="mine"):
            await use(agent(client, "Go.", [add, hang], model=MODEL))


async def test_cancellation_in_a_call_ends_the_run() -> None:
    async def hang() -> None:
        scope.cancel()
        await anyio.sleep_forever()

    async with scripted([[FunctionCall("", "hang", "{}")], "Done."]) as client:
        with anyio.CancelScope() as scope:
            run = agent(client, "Go.", [hang], model=MODEL)
            await finish(run)
        assert scope.cancelled_caught
        assert len(client.requests) == 1
    assert run.response.function_calls[0].name == "hang"


@asyncio_alone
async def test_asyncios_own_cancellation_ends_the_run() -> None:
    """`Task.cancel` and `asyncio.timeout` know nothing of scopes."""
    ended: list[str] = []
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        if limit.when() is None:
            limit.reschedule(0)  # now
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("hang")

    calls = [FunctionCall("", "hang", "{}")]
    async with scripted([calls, calls]) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as limit:
                await finish(agent(client, "Go.", [hang], model=MODEL))
        begun.clear()
        task = asyncio.create_task(finish(agent(client, "Go on.", [hang], model=MODEL)))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert ended == ["hang", "hang"]


async def test_scope_around_one_step_does_not_end_the_run() -> None:
    """A user interface waits for the next event for a moment, draws, and waits again."""
    go = anyio.Event()

    async def wait() -> str:
        await go.wait()
        return "waited"

    async with (
        scripted([[FunctionCall("", "wait", "{}")], "Done."]) as client,
        agent(client, "Go.", [wait], model=MODEL) as run,
    ):
        async for event in run:
            if isinstance(event, Completed):
                break
        with anyio.move_on_after(0.02) as scope:
            await anext(run)
        go.set()
        rest = [event async for event in run]
    assert scope.cancelled_caught
    assert kinds(rest) == ["FunctionCallOutput", "Completed"]


# --- how a run ends ---


async def test_used_up_turns_are_a_named_error() -> None:
    async with scripted([[ADD], [ADD], [ADD]]) as client:
        run = agent(client, "Add.", [add], model=MODEL, max_turns=2)
        with pytest.raises(StreamError) as raised:
            await finish(run)
        assert (raised.value.kind, raised.value.code) == ("limit_exceeded", "max_turns")
        assert len(client.requests) == 2
        # The last calls have run: another run goes on from here.
        assert isinstance(run.history[-1], FunctionCallOutput)
        assert [event async for event in run] == []


async def test_run_has_twenty_turns_by_default() -> None:
    async with scripted([[ADD]] * 21) as client:
        with pytest.raises(StreamError, match="max_turns"):
            await finish(agent(client, "Add.", [add], model=MODEL))
        assert len(client.requests) == 20


async def test_run_without_a_turn_is_refused() -> None:
    async with scripted(["Done."]) as client:
        with pytest.raises(ValueError, match="max_turns"):
            agent(client, "Add.", [add], model=MODEL, max_turns=0)
    assert not client.requests


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_turns": "3"}, "max_turns is a whole number from 1, not '3'"),
        ({"recover": "no"}, "recover is True or False, not 'no'"),
        ({"name": 3}, "name is a text, not 3"),
        ({"max_turn": 3}, "agent() has no option 'max_turn': write max_turns=…"),
        ({"temperature": 1}, "agent() has no option 'temperature': write Prompt(temperature=…)"),
    ],
)
async def test_wrong_option_of_a_run_is_refused(options: Any, message: str) -> None:
    async with scripted(["Done."]) as client:
        with pytest.raises(TypeError) as raised:
            agent(client, "Add.", [add], MODEL, **options)
    assert str(raised.value) == message


async def test_calls_of_one_id_keep_their_outputs() -> None:
    async def wait(seconds: float) -> str:
        await anyio.sleep(seconds)
        return f"waited {seconds}"

    slow, quick = (FunctionCall("c", "wait", f'{{"seconds": {each}}}') for each in (0.05, 0.0))
    async with scripted([[slow, quick], "Done."], wire_api="chat") as client:
        run = agent(client, "Wait.", [wait], model=MODEL)
        await finish(run)
        sent = client.requests[1].prompt.items
    expected = ["waited 0.05", "waited 0.0"]  # in the order of the calls, not of their ends
    for items in (run.history, sent):
        outputs = [item.output for item in items if isinstance(item, FunctionCallOutput)]
        assert outputs == expected
    assert not run.pending


async def test_call_without_function_ends_the_run() -> None:
    tools = [add, ToolSpec("ask_browser")]
    turns = [[ADD, FunctionCall("", "ask_browser", "{}")], "Thanks."]
    async with scripted(turns) as client:
        run = agent(client, "Go.", tools, model=MODEL)
        await finish(run)
        (waiting,) = run.pending
        assert isinstance(waiting, FunctionCall)
        history = [*run.history, waiting.output("clicked")]
        resumed = agent(client, history, tools, model=MODEL)
        await finish(resumed)
    assert resumed.response.text == "Thanks."
    sent = client.requests[1].prompt.items
    outputs = [item.output for item in sent if isinstance(item, FunctionCallOutput)]
    assert outputs == [(Text("3"),), (Text("clicked"),)]


async def test_approval_without_a_handler_waits_for_a_person() -> None:
    turns = [[ApprovalRequest("mcpr_1", "fs", "delete", "{}")], "Deleted."]
    async with scripted(turns, wire_api="responses") as client:
        run = agent(client, "Delete.", model=MODEL)
        await finish(run)
        (request,) = run.pending
        assert isinstance(request, ApprovalRequest)
        history = [*run.history, request.respond(approve=True)]
        resumed = agent(client, history, model=MODEL)
        await finish(resumed)
    assert resumed.response.text == "Deleted."


async def test_structured_output_by_tool_ends_the_run() -> None:
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}}
    turns = [[ADD], [FunctionCall("", "structured_output", '{"sum": 3}')]]
    prompt = Prompt("Add.", output_schema=schema, structured="tool")
    async with scripted(turns) as client, agent(client, prompt, [add], model=MODEL) as run:
        async for _ in run:
            pass
    assert run.response.parsed(dict[str, int]) == {"sum": 3}


async def test_request_is_never_repeated_unchanged() -> None:
    """What is paused may be nothing that can be sent back."""
    turns = [Turn([Reasoning("", status="incomplete")], stop_reason="pause"), "Done."]
    async with scripted(turns) as client:
        with pytest.raises(StreamError) as raised:
            await finish(agent(client, "Go.", model=MODEL))
        assert len(client.requests) == 1
    assert raised.value.code == "repeated_request"


@pytest.mark.parametrize(
    ("choice", "later"),
    [("add", None), ("required", None), ("auto", "auto"), ("none", "none"), (None, None)],
)
async def test_forced_choice_is_for_the_first_response(choice: Any, later: Any) -> None:
    """Forced in each turn, a model calls until the turns are used up."""
    prompt = Prompt("Add.", tool_choice=choice)
    async with scripted([[ADD], [ADD], "3"]) as client:
        run = agent(client, prompt, [add], model=MODEL)
        await finish(run)
        choices = [request.prompt.tool_choice for request in client.requests]
    assert choices == [choice, later, later]


async def test_calls_see_the_context_of_the_reader() -> None:
    async def person() -> str:
        return PERSON.get()

    async with scripted([[FunctionCall("", "person", "{}")], "Done."]) as client:
        token = PERSON.set("Ada")
        try:
            events = await finish(agent(client, "Who?", [person], model=MODEL))
        finally:
            PERSON.reset(token)
    outputs = [event.output for event in events if isinstance(event, FunctionCallOutput)]
    assert outputs == ["Ada"]


async def test_timeout_and_limit_reach_the_calls() -> None:
    async def hang() -> None:
        await anyio.sleep_forever()

    async with scripted([[FunctionCall("", "hang", "{}")], "Done."]) as client:
        events = await finish(agent(client, "Go.", [hang], MODEL, timeout=0.02, limit=1))
    outputs = [event.is_error for event in events if isinstance(event, FunctionCallOutput)]
    assert outputs == [True]
    with pytest.raises(ValueError, match="limit"):
        agent(client, "Go.", [hang], MODEL, limit=0)


async def test_key_of_a_run_is_not_shown() -> None:
    transport = MemoryTransport(SPOKEN)
    async with make_client("http://faulty", transport) as client:
        run = agent(client, "Hi.", model="faulty:m", api_key=KEY)
        assert KEY not in repr(vars(run))


# --- a history that the provider refuses ---

REFUSED = error_response(
    "messages",
    400,
    ErrorInfo("invalid_history", "messages.1.content.0: Invalid `signature` in `thinking` block"),
)
SIGNED = [
    user("a"),
    Reasoning("Hm.", signature="sig", origin=Origin("messages"), response_id="r"),
    Message("assistant", (Text("so"),), response_id="r"),
    user("b"),
]


@pytest.mark.parametrize("errors", ["raise", "event"])
async def test_refused_history_is_sent_once_more(errors: Any) -> None:
    upstream = Upstream(REFUSED, stream_response("messages", *SPOKEN))
    async with make_client("http://faulty", upstream) as client:
        run = agent(client, SIGNED, model="faulty:m", errors=errors, recover=True)
        events = await finish(run)
    assert kinds(events) == ["Completed"]
    assert [(change.action, change.path) for change in run.recovered] == [
        ("downgraded", "/input/1")
    ]
    assert [b"sig" in request.body for request in upstream.requests] == [True, False]
    assert not any(item.signature for item in run.history)


@pytest.mark.parametrize("errors", ["raise", "event"])
async def test_run_that_is_stopped_while_it_recovers_ends(errors: Any) -> None:
    """The second request was refused by the stop, and its exception left the loop."""
    recorded = Recorded()
    upstream = Upstream(REFUSED, stream_response("messages", *SPOKEN))

    async def stop_at_the_second(request: AttemptRequest) -> None:
        if upstream.requests:
            run.stop()
            await anyio.sleep(0.01)  # another task closes the stream

    options: dict[str, Any] = {
        "telemetry": recorded.telemetry,
        "on_request": stop_at_the_second,
    }
    async with make_client("http://faulty", upstream, **options) as client:
        run = agent(client, SIGNED, model="faulty:m", errors=errors, recover=True)
        events = await finish(run)
    assert kinds(events) == ["Failed"]
    assert run.response.error is not None
    assert run.response.error.kind == "cancelled"
    names = sorted(span.name for span in recorded.spans)
    assert names == ["chat m", "chat m", "invoke_agent"]


@pytest.mark.parametrize("history", [SIGNED, [user("a")]])
async def test_history_that_stays_refused_is_an_error(history: Any) -> None:
    upstream = Upstream(REFUSED)
    async with make_client("http://faulty", upstream) as client:
        with pytest.raises(StreamError, match="invalid_history"):
            await finish(agent(client, history, model="faulty:m", recover=True))
        assert len(upstream.requests) == (2 if history is SIGNED else 1)
        with pytest.raises(StreamError, match="invalid_history"):
            await finish(agent(client, SIGNED, model="faulty:m"))


def test_loop_is_short_enough_to_copy() -> None:
    path = Path(streamlib.tools.loop.__file__)
    assert len(path.read_text(encoding="utf-8").splitlines()) < 150


# --- calls that leaked into the text ---


def spoken(text: str, stop_reason: str = "end_turn") -> list[bytes]:
    """A response of one text."""
    return [start(), block(0, {"type": "text", "text": ""}, *text_deltas(text)), end(stop_reason)]


LEAKED = spoken('to=functions.add {"a": 1, "b"')
CALLED = [
    start(),
    block(
        0,
        {"type": "tool_use", "id": "t1", "name": "add", "input": {}},
        {"kind": "input_json_delta", "partial_json": '{"a": 1, "b": 2}'},
    ),
    end("tool_use"),
]


BROKEN = spoken('I add. <tool_call>\n{"name": "add", "arguments": {"a": 1, "b"\n</tool_call>')
"""Its notice is about the text behind the call, which has it again."""


@pytest.mark.parametrize("leaked", [LEAKED, BROKEN], ids=["open", "closed"])
async def test_leaked_call_is_asked_for_again(leaked: list[bytes]) -> None:
    transport = MemoryTransport(leaked, CALLED, spoken("It is 3."))
    dialects = [("", ("hermes",))]
    if leaked is LEAKED:
        dialects = []
    async with make_client("http://faulty", transport, dialects=dialects) as client:
        run = agent(client, "Add.", [add], model="faulty:m")
        events = await finish(run)
    assert kinds(events) == ["Completed", "Completed", "FunctionCallOutput", "Completed"]
    assert run.response.text == "It is 3."
    assert b"Write the call again" in transport.sent[1][3]
    assert len(transport.sent) == 3


@pytest.mark.parametrize(
    ("scripts", "requests"),
    [
        ([LEAKED], 2),  # once in a run
        ([LEAKED, CALLED, LEAKED], 3),
        ([spoken('to=functions.add {"a": 1', "max_tokens")], 1),
        ([spoken("Write <tool_call>, then the name.")], 1),
    ],
    ids=["always", "after a call", "cut off", "text about calls"],
)
async def test_leaked_call_is_asked_for_once_only(
    scripts: list[list[bytes]], requests: int
) -> None:
    transport = MemoryTransport(*scripts)
    async with make_client("http://faulty", transport) as client:
        await finish(agent(client, "Add.", [add], model="faulty:m"))
    assert len(transport.sent) == requests


async def test_leaked_call_of_the_last_turn_is_max_turns() -> None:
    async with make_client("http://faulty", MemoryTransport(LEAKED)) as client:
        with pytest.raises(StreamError) as raised:
            await finish(agent(client, "Add.", [add], model="faulty:m", max_turns=1))
    assert raised.value.info.code == "max_turns"
