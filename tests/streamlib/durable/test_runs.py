"""A run of several responses in one log: its cursors, its ends, and how pages resume it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from streamlib import FunctionCall, agent
from streamlib.durable import Engine, Log, LogError, open_log
from streamlib.durable.http import LogSource, log_app, log_encoder
from streamlib.durable.records import decode_events, encode_event
from streamlib.durable.sqlite import SqliteEngine
from streamlib.testing import MODEL, scripted
from streamlib.web import Seal, parse_ui_request
from streamlib_parsers import Failed, FunctionCallOutput, Reasoning, RunEvent
from tests.support.asgi_calls import AsgiCall
from tests.support.durable_engines import Connection, memory_engine
from tests.support.durable_http import app_of, everybody, get, sse
from tests.support.runs import SCENARIOS, call, response, said, three_steps
from tests.support.ui_pages import agui_page, vercel_page
from tests.support.ui_requests import agui_body, vercel_body
from tests.support.ui_streams import payloads
from tests.support.web_runs import Run

LEASE = 0.4
KEY = "a secret of the servers, 32 bytes"


@pytest.fixture(params=["memory", "sqlite"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Engine]:
    made: Engine = memory_engine()
    if request.param == "sqlite":
        made = SqliteEngine(str(tmp_path / "logs.db"))
    yield made
    await made.aclose()


async def read(log: Log, after: str | None = None) -> list[tuple[str, RunEvent]]:
    return [(entry.cursor, entry.event) async for entry in log.read("a", after)]


def names(events: list[tuple[str, RunEvent]]) -> list[str]:
    return [type(event).__name__ for _, event in events]


# --- writing and reading ---


async def test_run_of_an_agent_is_one_log(engine: Engine) -> None:
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    turns: Any = [[FunctionCall("", "add", '{"a": 1, "b": 2}')], "It is 3."]
    async with scripted(turns) as client, open_log(engine) as log:
        head = await log.write("a", agent(client, "Add.", [add], MODEL))
        assert head.state == "closed"
        assert len(client.requests) == 2
        found = await read(log)
        kinds = [name for name in names(found) if name in ("Completed", "FunctionCallOutput")]
        assert kinds == ["Completed", "FunctionCallOutput", "Completed"]
        for position, (cursor, _) in enumerate(found):
            assert await read(log, cursor) == found[position + 1 :]
        source = LogSource(log, "a")
        async with source as events:
            assert [event async for event in events] == [event for _, event in found]
        assert source.response.text == "It is 3."


@pytest.mark.parametrize("name", SCENARIOS)
async def test_run_comes_back_as_it_was_written(engine: Engine, name: str) -> None:
    async with open_log(engine) as log:
        await log.write("a", Run(*SCENARIOS[name]))  # type: ignore[arg-type]
        with anyio.fail_after(5):
            assert [event for _, event in await read(log)] == SCENARIOS[name]


async def test_readers_wait_while_tools_run(engine: Engine) -> None:
    events = three_steps()
    middle = names([("", event) for event in events]).index("FunctionCallOutput")
    go = anyio.Event()
    run: Any = Run(*events[:middle], go.is_set, *events[middle:])
    async with open_log(engine) as log, anyio.create_task_group() as group:
        await log.create("a")
        log.start(group, "a", run)
        found: list[RunEvent] = []
        with anyio.fail_after(10):
            async for entry in log.read("a"):
                found.append(entry.event)
                if len(found) == middle:
                    assert (await log.head("a")).state == "open"
                    go.set()
    assert found == events
    assert run.closed


async def test_stop_while_a_tool_runs_is_the_end(engine: Engine) -> None:
    run: Any = Run(*response(call("a"), stop="tool_calls"), lambda: False)
    async with open_log(engine) as log, anyio.create_task_group() as group:
        await log.create("a")
        log.start(group, "a", run)
        await anyio.sleep(0.2)
        await log.stop("a")
        with anyio.fail_after(5):
            _, last = (await read(log))[-1]
    assert isinstance(last, Failed)
    assert (last.error.kind, last.error.code) == ("cancelled", "user")
    assert run.closed


@pytest.mark.parametrize("position", ["in a response", "between two responses", "at its end"])
async def test_dead_writer_of_a_run_leaves_one_end(engine: Engine, position: str) -> None:
    events = three_steps()
    written = [*events]
    if position == "in a response":
        written = events[: len(events) - 3]
    elif position == "between two responses":
        written = events[: names([("", event) for event in events]).index("FunctionCallOutput") + 1]
    dying = Connection(engine)

    async def write() -> None:
        async with open_log(dying, lease=LEASE, outage=0.1) as log:
            await log.write("a", Run(*written, 0.2, cut, lambda: False))  # type: ignore[arg-type]

    def cut() -> bool:
        dying.cut = True
        return True

    async with open_log(engine, lease=LEASE) as reading, anyio.create_task_group() as group:
        await reading.create("a")

        async def die() -> None:
            with pytest.raises(LogError):
                await write()

        group.start_soon(die)
        with anyio.fail_after(10):
            found = [event for _, event in await read(reading)]
        assert (await reading.head("a")).state == "closed"
    if position == "at its end":
        assert found == events  # the last response waits for nothing, so the run was over
    else:
        assert found[: len(written)] == written
        assert isinstance(found[-1], Failed)
        assert found[-1].error.code == "writer_lost"
        assert sum(isinstance(event, Failed) for event in found) == 1


# --- pages ---


@asynccontextmanager
async def in_the_middle(meta: dict[str, Any]) -> AsyncGenerator[tuple[Log, anyio.Event]]:
    """A run whose tool waits: the page that reloads comes now."""
    events = three_steps()
    middle = names([("", event) for event in events]).index("FunctionCallOutput")
    go = anyio.Event()
    run: Any = Run(*events[:middle], go.is_set, *events[middle:])
    async with open_log(memory_engine()) as log, anyio.create_task_group() as group:
        await log.create("log-1", meta)
        log.start(group, "log-1", run)
        await anyio.sleep(0.2)
        yield log, go


@pytest.mark.parametrize("wire", ["vercel", "agui"])
async def test_page_resumes_a_run_from_its_start(wire: str) -> None:
    meta = {"wire": wire, "run": True, "message_id": "m1", "run_id": "r1"}
    encode = log_encoder(meta)
    # As stored: numbers that the wire had as integers may be floats.
    events = decode_events(b"".join([encode_event(event) for event in three_steps()]))
    whole = b"".join([encode.feed(event) for event in events]) + encode.close()
    async with in_the_middle(meta) as (log, go):
        app = log_app(log, allow=everybody, chat_log={"chat": "log-1"}.get, replay_ended=True)
        bodies: list[bytes] = []

        async def resume() -> None:
            response = await AsgiCall(method="GET", path="/api/chat/chat/stream")(app)
            bodies.append(response.body)

        async with anyio.create_task_group() as group:
            group.start_soon(resume)
            await anyio.sleep(0.2)
            go.set()
        await resume()
    assert bodies == [whole, whole]


@pytest.mark.parametrize("wire", ["vercel", "agui"])
@pytest.mark.parametrize("user", ["alice", "bob"])
async def test_resumed_page_gets_signatures_of_its_user(wire: str, user: str) -> None:
    """A page that keeps the conversation has no other copy of it."""
    meta = {"wire": wire, "run": True, "message_id": "m1", "thread_id": "t", "user": "alice"}
    signed = Reasoning("I think.", signature="sig-think")
    async with open_log(memory_engine()) as log:
        run: Any = Run(*response(signed, said("Hello")))
        await log.write("log-1", run, meta)
        app = log_app(
            log,
            allow=everybody,
            chat_log={"chat": "log-1"}.get,
            replay_ended=True,
            seal=lambda meta: Seal(KEY, meta["user"]),
        )
        body = (await AsgiCall(method="GET", path="/api/chat/chat/stream")(app)).body
        encode = log_encoder(meta)
        unsealed = b"".join([encode.feed(entry.event) async for entry in log.read("log-1")])
    assert b"sig-think" not in body + unsealed
    assert b"streamlib-sealed" not in unsealed
    page: Any = vercel_body(vercel_page(body)) if wire == "vercel" else agui_body(*agui_page(body))
    asked = parse_ui_request(wire, page, seal=Seal(KEY, user))  # type: ignore[arg-type]
    signatures = [item.signature for item in asked.history if isinstance(item, Reasoning)]
    assert signatures == (["sig-think"] if user == "alice" else [])


async def test_run_waits_for_an_approval_after_its_end() -> None:
    meta = {"run": True, "message_id": "m1", "approval_tools": ["weather"]}
    async with open_log(memory_engine()) as log:
        run: Any = Run(*response(said("May I?"), call("a"), stop="tool_calls"))
        await log.write("log-1", run, meta)
        app = log_app(log, allow=everybody, chat_log={"chat": "log-1"}.get, replay_ended=True)
        response_ = await AsgiCall(method="GET", path="/api/chat/chat/stream")(app)
    assert b'"tool-approval-request"' in response_.body
    assert b'"tool-output-error"' not in response_.body


async def test_event_source_reads_a_run() -> None:
    async with open_log(memory_engine()) as log:
        await log.write("a", Run(*three_steps()))  # type: ignore[arg-type]
        app = app_of(log)
        events = sse((await get(app, "/log/a/events")).body)
        assert sum('"function_call_output"' in event["data"] for event in events) == 3
        for event in events[:-1]:
            rest = await get(app, "/log/a/events", last_event_id=event["id"])
            assert [each["id"] for each in sse(rest.body)] == [
                each["id"] for each in events[events.index(event) + 1 :]
            ]
        assert (await get(app, "/log/a/events", last_event_id=events[-1]["id"])).status == 204


async def test_output_in_the_log_of_a_run_is_its_item() -> None:
    async with open_log(memory_engine()) as log:
        await log.write("a", Run(*three_steps()))  # type: ignore[arg-type]
        outputs = [e for _, e in await read(log) if isinstance(e, FunctionCallOutput)]
    assert [output.is_error for output in outputs] == [True, False, False]


async def test_resumed_message_has_the_ids_of_its_start() -> None:
    """Some servers number the calls of each response from the start."""
    meta = {"run": True, "message_id": "m1", "approval_tools": ["weather"]}
    asking = response(call("a"), stop="tool_calls")
    rest = [FunctionCallOutput("a", "sunny"), *asking]
    later = {**meta, "continues": "log-1", "call_ids": ["a"]}
    async with open_log(memory_engine()) as log:
        await log.write("log-1", Run(*asking), meta)  # type: ignore[arg-type]
        await log.write("log-2", Run(*rest), later)  # type: ignore[arg-type]
        app = log_app(log, allow=everybody, chat_log={"chat": "log-2"}.get, replay_ended=True)
        body = (await AsgiCall(method="GET", path="/api/chat/chat/stream")(app)).body
    encode = log_encoder(later)
    shown = b"".join([encode.feed(event) for event in rest])
    first, second = started_calls(body)
    assert [second] == started_calls(shown)
    assert (first, second == first) == ("a", False)


async def test_log_for_agui_gives_no_call_an_id_of_the_thread() -> None:
    assert "call_ids" in parse_ui_request("agui", agui_body()).encoder_options
    encode = log_encoder({"wire": "agui", "run": True, "run_id": "r", "call_ids": ["a"]})
    shown = payloads(b"".join([encode.feed(event) for event in response(call("a"))]))
    [started] = [each for each in shown if each.get("type") == "TOOL_CALL_START"]
    assert started["toolCallId"] != "a"


def started_calls(shown: bytes) -> list[str]:
    """The ids of the calls that begin in a stream of a page."""
    parts = [part for part in payloads(shown) if isinstance(part, dict)]
    return [part["toolCallId"] for part in parts if part["type"] == "tool-input-start"]


async def test_page_resumes_a_message_of_two_logs() -> None:
    """After an approval a message goes on in a log of its own: a reloaded page gets all of it."""
    meta = {"run": True, "message_id": "m1", "approval_tools": ["weather"]}
    rest = [FunctionCallOutput("a", "sunny"), *response(said("It is sunny."))]
    async with open_log(memory_engine()) as log:
        asking: Any = Run(*response(said("May I?"), call("a"), stop="tool_calls"))
        await log.write("log-1", asking, meta)
        await log.write("log-2", Run(*rest), {**meta, "continues": "log-1"})  # type: ignore[arg-type]
        app = log_app(log, allow=everybody, chat_log={"chat": "log-2"}.get, replay_ended=True)
        body = (await AsgiCall(method="GET", path="/api/chat/chat/stream")(app)).body
    assert body.count(b'"type":"start"') == body.count(b'"type":"finish"') == 1
    assert body.index(b"tool-input-available") < body.index(b"tool-output-available")
    assert body.index(b"May") < body.index(b"sunny")
