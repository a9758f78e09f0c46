"""`run_calls`: which function answers which call, with what, and what happens when it cannot."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from typing import Any, TypedDict

import anyio
import anyio.lowlevel
import msgspec
import pytest

from streamlib import (
    ApprovalRequest,
    CallOutput,
    ComputerCall,
    ContentPart,
    CustomToolCall,
    FunctionCall,
    FunctionCallOutput,
    Image,
    PendingCall,
    Response,
    ShellCall,
    Text,
    ToolSpec,
)
from streamlib.tools import Tool, needs_approval, run_calls
from tests.support.cases import each_case
from tests.support.clients import KEY
from tests.support.loops import asyncio_alone

PERSON: ContextVar[str] = ContextVar("PERSON", default="nobody")


def asked(*calls: PendingCall) -> Response:
    """A response that consists of calls."""
    return Response(status="completed", items=calls, stop_reason="tool_calls")


def call(name: str, arguments: str = "{}", call_id: str = "call_1") -> FunctionCall:
    return FunctionCall(call_id, name, arguments)


async def answer(function: Tool, arguments: str = "{}", **options: Any) -> FunctionCallOutput:
    """The output of one call of a function."""
    name = getattr(function, "__name__", "tool")
    outputs = await run_calls(asked(call(name, arguments)), [function], **options)
    output = outputs[0]
    assert isinstance(output, FunctionCallOutput)
    return output


async def wait(seconds: float) -> float:
    await anyio.sleep(seconds)
    return seconds


async def add(a: int, b: int = 10) -> int:
    return a + b


def add_in_thread(a: int, b: int = 10) -> int:
    return a + b


async def test_outputs_are_in_the_order_of_the_calls() -> None:
    response = asked(
        call("wait", '{"seconds": 0.03}', "slow"),
        call("add", '{"a": 1}', "quick"),
        call("add_in_thread", '{"a": 1, "b": 1}', "thread"),
    )
    outputs = await run_calls(response, [wait, add, add_in_thread])
    shown = [(output.call_id, getattr(output, "output", None)) for output in outputs]
    assert shown == [("slow", "0.03"), ("quick", "11"), ("thread", "2")]


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_no_more_calls_run_than_the_limit(limit: int) -> None:
    running: list[int] = []
    most = 0
    started: list[int] = []

    async def work(number: int) -> None:
        nonlocal most
        started.append(number)
        running.append(number)
        most = max(most, len(running))
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        running.remove(number)

    calls = [call("work", f'{{"number": {number}}}', f"call_{number}") for number in range(6)]
    outputs = await run_calls(asked(*calls), [work], limit=limit)
    assert most == min(limit, 6)
    assert [output.call_id for output in outputs] == [item.call_id for item in calls]
    if limit == 1:
        assert started == list(range(6))


async def test_limit_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="limit is a whole number from 1, not 0"):
        await run_calls(asked(), [], limit=0)


@each_case(
    "options, message",
    [
        ({"limit": "3"}, "limit is a whole number from 1, not '3'"),
        ({"limit": 1.5}, "limit is a whole number from 1, not 1.5"),
        ({"timeout": "5"}, "timeout is more than 0 seconds, not '5'"),
        ({"timeout": 0}, "timeout is more than 0 seconds, not 0"),
        ({"timeout": float("nan")}, "timeout is more than 0 seconds that a float can hold"),
        ({"approve": True}, "approve is a function that decides about a call, not True"),
        ({"handlers": [add]}, "handlers is a dict of a kind of call and its function"),
        ({"handlers": {"FunctionCall": add}}, "handlers has 'FunctionCall', which is none of Fun"),
        ({"handlers": {FunctionCall: 3}}, "handlers[FunctionCall] is a function that gets the"),
        ({"tools": None}, "tools is a list of functions and `ToolSpec`, not None"),
        ({"tools": add}, "tools is a list of functions and `ToolSpec`, not <function add"),
        ({"tools": [(add, ToolSpec("add"))]}, "a pair among tools is (ToolSpec, function), not"),
        ({"tools": [(ToolSpec("add"),)]}, "a pair among tools is (ToolSpec, function), not"),
    ],
)
async def test_wrong_argument_is_refused_before_any_call(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        await run_calls(asked(), **options)
    assert str(raised.value).startswith(message)


async def test_no_calls_give_no_outputs() -> None:
    assert await run_calls(asked(), [add]) == []


# --- errors that the model reads ---


async def test_exception_becomes_an_error_output() -> None:
    async def find(city: str) -> str:
        raise KeyError(city)

    output = await answer(find, '{"city": "Rome"}')
    assert (output.is_error, output.output) == (True, "KeyError: 'Rome'")


def raise_stop_iteration() -> None:
    raise StopIteration


async def test_stop_iteration_in_a_thread_is_an_error_output() -> None:
    output = await answer(raise_stop_iteration)
    assert output.is_error


class Unreadable(Exception):
    """An exception without a message, as one that formats an attribute nobody set."""

    def __str__(self) -> str:
        raise AttributeError("detail")


def raise_unreadable() -> None:
    raise Unreadable


async def test_exception_without_a_message_is_an_error_output() -> None:
    output = await answer(raise_unreadable)
    assert output == FunctionCallOutput(
        "call_1", "Unreadable: its message cannot be read", is_error=True
    )


async def test_key_in_an_exception_is_neither_sent_nor_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fetch() -> str:
        raise ConnectionError(f"no route: GET https://api.example/v1?key={KEY}")

    caplog.set_level("INFO", "streamlib")
    output = await answer(fetch)
    assert "ConnectionError: no route" in str(output.output)
    [record] = caplog.records
    assert "ConnectionError: no route" in record.getMessage()
    assert "in fetch" in record.getMessage()
    assert KEY not in f"{output.output}{record.getMessage()}{record.exc_text}"
    assert record.exc_info is None


async def test_unknown_name_is_answered_with_the_names() -> None:
    outputs = await run_calls(asked(call("sub")), [add, wait])
    (output,) = outputs
    assert output == call("sub").output(
        "there is no tool 'sub'; the tools are: add, wait", is_error=True
    )


def uses(*calls: tuple[str, object]) -> str:
    listed = [{"recipient_name": name, "parameters": arguments} for name, arguments in calls]
    return json.dumps({"tool_uses": listed})


@pytest.mark.parametrize("name", ["multi_tool_use.parallel", "parallel"])
async def test_wrapped_calls_run_and_share_an_output(name: str) -> None:
    """GPT-5 writes them, though nobody offers such a tool."""

    def shot() -> list[ContentPart]:
        return [Text("seen"), Image(b"\x89PNG\r\n\x1a\n0000")]

    @needs_approval
    def delete() -> str:
        raise AssertionError

    together = uses(("functions.add", {"a": 1, "b": 2}), ("sub", {}), ("delete", {}))
    wrapper = FunctionCall("c1", name, together)
    (output,) = await run_calls(asked(wrapper), [add, delete], approve=lambda _: True)
    assert output.call_id == "c1"
    assert isinstance(output, FunctionCallOutput)
    lines = str(output.output).split("\n")
    assert lines[0] == "add: 3"
    assert lines[1].startswith("sub: there is no tool")
    assert lines[2] == "delete: it was not run; call it by itself"
    (output,) = await run_calls(asked(FunctionCall("c2", name, uses(("shot", {})))), [shot])
    assert isinstance(output, FunctionCallOutput)
    assert [type(part).__name__ for part in output.output] == ["Text", "Text", "Image"]


async def test_wrapped_calls_have_a_timeout_each() -> None:
    async def slow(seconds: float) -> str:
        await anyio.sleep(seconds)
        return "done"

    together = uses(
        ("slow", {"seconds": 0.15}), ("slow", {"seconds": 0.15}), ("slow", {"seconds": 9})
    )
    (output,) = await run_calls(
        asked(FunctionCall("c", "parallel", together)), [slow], timeout=0.25
    )
    assert isinstance(output, FunctionCallOutput)
    lines = str(output.output).split("\n")
    assert lines[:2] == ["slow: done"] * 2
    assert "no result within 0.25 seconds" in lines[2]


@pytest.mark.parametrize("arguments", ["", "{}", uses(), uses(("add", 5)), '{"tool_uses": [5]}'])
async def test_wrapper_without_calls_is_an_unknown_tool(arguments: str) -> None:
    (output,) = await run_calls(asked(FunctionCall("c", "parallel", arguments)), [add])
    assert isinstance(output, FunctionCallOutput)
    assert "there is no tool" in str(output.output)


async def test_own_tool_named_parallel_runs_as_it_is() -> None:
    def parallel(tool_uses: list[Any]) -> str:
        return f"{len(tool_uses)} uses"

    wrapper = FunctionCall("c", "parallel", uses(("add", {"a": 1})))
    (output,) = await run_calls(asked(wrapper), [parallel, add])
    assert isinstance(output, FunctionCallOutput)
    assert output.output == "1 uses"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ('{"a": 1', "arguments of 'add' are"),
        ("[1]", "arguments of 'add' are list, not an object"),
        ('{"a": "1"}', "arguments of 'add': /a: Expected `int`, got `str`"),
        ("{}", "arguments of 'add': /a: Object missing required field `a`"),
        ("", "arguments of 'add': /a: Object missing required field `a`"),
        ('{"a": 1, "c/d": 2}', "arguments of 'add': /c~1d: the function has no such parameter"),
    ],
)
async def test_invalid_arguments_name_the_path(arguments: str, message: str) -> None:
    output = await answer(add, arguments)
    assert isinstance(output.output, str)
    assert output.is_error
    assert output.output.startswith(message)


async def test_call_that_takes_too_long_is_an_error() -> None:
    outputs = await run_calls(
        asked(call("wait", '{"seconds": 60}', "slow"), call("add", '{"a": 1}', "quick")),
        [wait, add],
        timeout=0.02,
    )
    slow, quick = outputs
    assert slow == call("wait", "", "slow").output(
        "the call gave no result within 0.02 seconds", is_error=True
    )
    assert quick == call("add", "", "quick").output("11")


async def test_a_thread_that_takes_too_long_is_left() -> None:
    release = threading.Event()

    def block() -> None:
        release.wait(10)

    began = time.monotonic()
    output = await answer(block, timeout=0.02)
    assert output.is_error
    assert time.monotonic() - began < 5
    release.set()


async def test_timeout_error_of_the_function_is_its_own() -> None:
    async def fetch() -> None:
        raise TimeoutError("no route")

    output = await answer(fetch, timeout=60)
    assert output.output == "TimeoutError: no route"


@asyncio_alone
@pytest.mark.parametrize("limit", [1, 8])
async def test_cancelled_task_of_a_function_is_an_error(limit: int) -> None:
    """Unnoticed it would cancel the other calls, and their outputs would be missing."""

    async def forever() -> None:
        await asyncio.sleep(60)

    async def join() -> None:
        task = asyncio.create_task(forever())
        await asyncio.sleep(0)
        task.cancel()
        await task

    calls = asked(call("join"), call("wait", '{"seconds": 0.01}', "call_2"))
    outputs = await run_calls(calls, [join, wait], limit=limit)
    assert [output.output for output in outputs if isinstance(output, FunctionCallOutput)] == [
        "the call was cancelled",
        "0.01",
    ]


# --- cancellation, threads, context ---


async def test_cancellation_ends_running_calls() -> None:
    ended: list[str] = []

    async def hang(name: str) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(name)

    release = threading.Event()

    def block() -> None:
        release.wait(10)

    calls = [call("hang", '{"name": "a"}'), call("hang", '{"name": "b"}', "b"), call("block")]
    with anyio.move_on_after(0.03) as scope:
        await run_calls(asked(*calls), [hang, block])
    release.set()
    assert scope.cancelled_caught
    assert sorted(ended) == ["a", "b"]


async def test_sync_functions_run_in_worker_threads() -> None:
    here = threading.get_ident()

    def thread() -> bool:
        return threading.get_ident() != here

    assert (await answer(thread)).output == "true"


async def test_functions_see_the_context_of_the_caller() -> None:
    def in_thread() -> str:
        return PERSON.get()

    async def in_task() -> str:
        return PERSON.get()

    token = PERSON.set("Ada")
    try:
        outputs = await run_calls(
            asked(call("in_thread"), call("in_task", call_id="call_2")), [in_thread, in_task]
        )
    finally:
        PERSON.reset(token)
    assert [getattr(output, "output", None) for output in outputs] == ["Ada", "Ada"]


async def test_a_sync_function_may_return_an_awaitable() -> None:
    def delegate(a: int) -> Any:
        return add(a)

    assert (await answer(delegate, '{"a": 1}')).output == "11"


# --- results ---


@dataclass
class Place:
    city: str
    days: tuple[int, ...]


class Weather(TypedDict):
    text: str


class Point(msgspec.Struct):
    x: int


@each_case(
    "result, output",
    [
        ("18C", "18C"),
        ("", ""),
        (None, "null"),
        (1.5, "1.5"),
        ({"a": [1]}, '{"a":[1]}'),
        ([], "[]"),
        (Place("Rome", (1, 2)), '{"city":"Rome","days":[1,2]}'),
        (Point(1), '{"x":1}'),
        (Text("hi"), (Text("hi"),)),
        ([Text("a"), Image(url="https://x/y.png")], (Text("a"), Image(url="https://x/y.png"))),
    ],
)
async def test_result_becomes_text_parts_or_json(result: Any, output: Any) -> None:
    async def give() -> Any:
        return result

    given = await answer(give)
    assert (given.output, given.is_error) == (output, False)


@pytest.mark.parametrize(
    ("result", "output"),
    [
        ("caf\udce9", "caf\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ([Text("caf\udce9")], (Text("caf\ufffd"),)),
        (Text("caf\udce9"), (Text("caf\ufffd"),)),
        (["caf\udce9", 1], '["caf\ufffd", 1]'),
        # JSON has no keys but texts.
        ({date(2026, 1, 2): {7: "caf\udce9"}}, '{"2026-01-02": {"7": "caf\ufffd"}}'),
        (OSError("caf\udce9"), "OSError: caf\ufffd"),
    ],
)
async def test_output_is_valid_text(result: Any, output: Any) -> None:
    """Names of files may be no Unicode; no later request could be built with such an output."""

    def give() -> Any:
        if isinstance(result, OSError):
            raise result
        return result

    assert (await answer(give)).output == output


async def test_result_that_is_not_json_is_an_error() -> None:
    async def give() -> Any:
        return object()

    output = await answer(give)
    assert output.output == "TypeError: a object cannot be written as JSON"
    assert output.is_error


async def test_result_may_be_a_pydantic_model() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("City", name=(str, ...))

    async def give() -> Any:
        return [model(name="Rome")]

    assert (await answer(give)).output == '[{"name":"Rome"}]'


# --- who answers what ---


async def test_arguments_are_values_of_the_parameter_types() -> None:
    seen: list[Any] = []

    async def visit(place: Place, weather: Weather, point: Point, /, *, days: list[int]) -> None:
        seen.extend([place, weather, point, days])

    await answer(
        visit,
        '{"days": [1], "point": {"x": 3}, "weather": {"text": "sunny"},'
        ' "place": {"city": "Rome", "days": [4]}}',
    )
    assert seen == [Place("Rome", (4,)), {"text": "sunny"}, Point(3), [1]]


async def test_a_pair_gives_a_function_another_name() -> None:
    outputs = await run_calls(asked(call("plus", '{"a": 1}')), [(ToolSpec("plus"), add)])
    assert outputs == [call("plus").output("11")]


async def test_free_form_tool_gets_its_text() -> None:
    def run_sql(text: str) -> str:
        return text.upper()

    spec = ToolSpec("run_sql", format={"type": "text"})
    custom = CustomToolCall("call_1", "run_sql", "select 1")
    assert await run_calls(asked(custom), [(spec, run_sql)]) == [custom.output("SELECT 1")]


async def test_handlers_answer_by_the_kind_of_call() -> None:
    async def approve(request: ApprovalRequest) -> CallOutput:
        return request.respond(request.name == "search")

    def mcp(item: FunctionCall) -> str:
        return f"{item.name} elsewhere"

    approval = ApprovalRequest("mcpr_1", "fs", "search", "{}")
    response = asked(call("add", '{"a": 1}'), approval, call("read", call_id="call_2"))
    outputs = await run_calls(
        response, [add], handlers={ApprovalRequest: approve, FunctionCall: mcp}
    )
    assert outputs == [
        call("add").output("11"),
        approval.respond(approve=True),
        call("read", call_id="call_2").output("read elsewhere"),
    ]


async def test_what_nothing_here_answers_is_left() -> None:
    response = asked(
        call("ask_browser"),
        FunctionCall("call_2", "lookup", namespace="crm"),
        ApprovalRequest("mcpr_1"),
        ShellCall("call_3", {"commands": ["ls"]}),
        call("add", '{"a": 1}', "call_4"),
    )
    tools: list[Tool] = [
        ToolSpec("ask_browser"),
        ToolSpec("crm", tools=[ToolSpec("lookup")]),
        add,
    ]
    outputs = await run_calls(response, tools)
    assert [output.call_id for output in outputs] == ["call_4"]


async def test_failing_handler_gives_an_error_of_the_kind() -> None:
    async def fail(_: Any) -> CallOutput:
        raise OSError("no shell")

    shell = ShellCall("call_1", {"commands": ["ls"]})
    approval = ApprovalRequest("mcpr_1")
    screen = ComputerCall("call_2")
    handlers = dict.fromkeys((ShellCall, ApprovalRequest, ComputerCall), fail)
    ran, refused = await run_calls(asked(shell, approval, screen), handlers=handlers)
    assert getattr(ran, "text", "") == "OSError: no shell\n[exit code 1]"
    assert refused == approval.respond(approve=False, reason="OSError: no shell")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("done", "a ShellCall is answered by its own output, not 'done'"),
        (call("add").output(""), "a ShellCall is answered by its own output, not Function"),
        (ShellCall("call_2", {}).output([]), "the output is that of another call, 'call_2'"),
    ],
)
async def test_handler_must_return_an_output_of_the_call(result: Any, message: str) -> None:
    shell = ShellCall("call_1", {"commands": ["ls"]})

    async def answered(_: ShellCall) -> Any:
        return result

    (output,) = await run_calls(asked(shell), handlers={ShellCall: answered})
    assert f"TypeError: {message}" in getattr(output, "text", "")


async def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two tools have the name 'add'"):
        await run_calls(asked(), [add, ToolSpec("add")])


async def test_incomplete_calls_are_not_run() -> None:
    broken = FunctionCall("call_1", "add", '{"a": 1', status="incomplete")
    assert await run_calls(asked(broken), [add]) == []
