"""Calls that somebody approves first, and calls whose arguments the model broke."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import anyio.lowlevel
import pytest
from msgspec.structs import replace

from streamlib import (
    AgentRun,
    ApprovalRequest,
    FunctionCall,
    FunctionCallOutput,
    RunEvent,
    StreamError,
    ToolSpec,
    agent,
    run_calls,
    user,
)
from streamlib.testing import MODEL, scripted
from streamlib.tools import needs_approval
from streamlib.tools.rounds import MAX_BROKEN
from streamlib.web import StreamResponse, ToolApproval, parse_ui_request
from streamlib_parsers import ApprovalResponse, Response
from tests.support.asgi_calls import AsgiCall
from tests.support.ui_pages import vercel_page
from tests.support.ui_requests import model_message, page_message, text, vercel_body

paid: list[int] = []


@pytest.fixture(autouse=True)
def nothing_is_paid() -> None:
    paid.clear()


@needs_approval
def pay(amount: int) -> str:
    """Pays an amount."""
    paid.append(amount)
    return f"paid {amount}"


def look(place: str) -> str:
    """Looks at a place."""
    return f"{place} is fine"


PAY = FunctionCall("", "pay", '{"amount": 3}')
LOOK = FunctionCall("", "look", '{"place": "Paris"}')
BROKEN = FunctionCall("", "look", '{"place": "Par')


async def finish(run: AgentRun) -> list[RunEvent]:
    async with run:
        return [event async for event in run]


def outputs(events: list[RunEvent]) -> list[tuple[object, bool]]:
    return [(e.output, e.is_error) for e in events if isinstance(e, FunctionCallOutput)]


# --- approvals ---


async def later(call: Any) -> bool:
    await anyio.lowlevel.checkpoint()
    return bool(call.name == "pay")


def raises(call: Any) -> bool:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("approve", "expected"),
    [
        (lambda call: True, ("paid 3", False)),
        (later, ("paid 3", False)),
        (lambda call: False, ("the user did not allow this call", True)),
        (lambda call: "too much", ("too much", True)),
        (raises, ("ZeroDivisionError: ", True)),
    ],
)
async def test_approval_decides_whether_a_call_runs(approve: Any, expected: Any) -> None:
    async with scripted([[PAY, LOOK], "Done."]) as client:
        run = agent(client, "Go.", [pay, look], MODEL, approve=approve)
        events = await finish(run)
    assert sorted(map(str, outputs(events))) == sorted(
        map(str, [expected, ("Paris is fine", False)])
    )
    assert bool(paid) is (not expected[1])
    assert run.response.text == "Done."


@pytest.mark.parametrize("approve", [None, lambda call: None])
async def test_undecided_call_waits(approve: Any) -> None:
    async with scripted([[PAY, LOOK], "Done."]) as client:
        run = agent(client, "Go.", [pay, look], MODEL, approve=approve)
        events = await finish(run)
        assert len(client.requests) == 1
    assert outputs(events) == [("Paris is fine", False)]
    assert [call.name for call in run.pending] == ["pay"]  # type: ignore[union-attr]
    assert paid == []


async def test_call_of_the_prompt_runs_before_its_request() -> None:
    history: Any = [user("Pay."), FunctionCall("c1", "pay", '{"amount": 3}')]
    async with scripted(["Done."]) as client:
        run = agent(client, history, [pay], MODEL, max_turns=1, approve=lambda call: True)
        events = await finish(run)
        sent = client.requests[0].prompt.items
    assert isinstance(events[0], FunctionCallOutput)
    assert "paid 3" in str(sent[-1])
    assert paid == [3]
    assert [type(item).__name__ for item in run.history] == [
        "Message",
        "FunctionCall",
        "FunctionCallOutput",
        "Message",
    ]


async def test_call_of_the_prompt_takes_no_turn() -> None:
    history: Any = [user("Pay."), FunctionCall("c1", "pay", '{"amount": 3}')]
    async with scripted([[LOOK], "Done."]) as client:
        run = agent(client, history, [pay, look], MODEL, max_turns=1, approve=lambda call: True)
        with pytest.raises(StreamError, match="max_turns"):
            await finish(run)
        assert len(client.requests) == 1


async def test_call_that_the_user_passed_over_does_not_run() -> None:
    history: Any = [user("Pay."), FunctionCall("c1", "pay", '{"amount": 3}'), user("No.")]
    async with scripted(["Fine."]) as client:
        await finish(agent(client, history, [pay], MODEL, approve=lambda call: True))
    assert paid == []


async def test_call_of_the_prompt_runs_though_its_id_was_used() -> None:
    """Some servers number the calls of each response from the start."""
    look = FunctionCall("c1", "look", '{"place": "Paris"}')
    pay_it = FunctionCall("c1", "pay", '{"amount": 3}')
    history: Any = [user("Look and pay."), look, look.output("fine"), pay_it]
    async with scripted(["Done."]) as client:
        await finish(agent(client, history, [pay], MODEL, approve=lambda call: True))
    assert paid == [3]


async def test_undecided_call_waits_beside_another_of_its_id() -> None:
    """A call and an approval of a provider may have the same id: each has its own output."""
    request = ApprovalRequest("c1", "files", "delete", "{}")
    call = FunctionCall("c1", "look", '{"place": "Paris"}')
    async with scripted([[call, request], "Never."], wire_api="responses") as client:
        run = agent(client, "Clean up.", [look], MODEL)
        await finish(run)
    assert [type(each) for each in run.pending] == [ApprovalRequest]
    assert len(client.requests) == 1


async def test_approval_of_a_provider_is_decided_too() -> None:
    request = ApprovalRequest("p1", "files", "delete", "{}")
    response = Response(status="completed", items=(request,), stop_reason="tool_calls")
    assert await run_calls(response) == []
    [found] = await run_calls(response, approve=lambda call: True)
    assert isinstance(found, ApprovalResponse)
    assert found.approve is True
    [found] = await run_calls(response, approve=lambda call: False)
    assert isinstance(found, ApprovalResponse)
    assert found.approve is False


async def test_marked_pair_needs_an_approval_too() -> None:
    pair = (ToolSpec("pay", "Pays.", {"type": "object"}), pay)
    response = Response(
        status="completed",
        items=(FunctionCall("c", "pay", '{"amount": 3}'),),
        stop_reason="tool_calls",
    )
    assert await run_calls(response, [pair]) == []
    assert parse_ui_request("vercel", vercel_body(), tools=[pair]).approval_tools == ("pay",)


class Purse:
    """A tool that is an object, and one that is a method."""

    @needs_approval
    def __call__(self, amount: int = 3) -> str:
        """Pays an amount."""
        return pay(amount)

    pay_more = __call__


@pytest.mark.parametrize(
    "tool",
    [partial(pay, 3), partial(partial(pay), amount=3), partial(Purse().pay_more), Purse()],
    ids=["partial", "partial of a partial", "partial of a method", "object"],
)
async def test_mark_of_a_tool_holds_in_a_partial_and_an_object(tool: Any) -> None:
    for given in (tool, (ToolSpec("charge", "Pays.", {"type": "object"}), tool)):
        offered = parse_ui_request("vercel", vercel_body(), tools=[given])
        [name] = offered.approval_tools
        response = Response(
            status="completed", items=(FunctionCall("c", name, "{}"),), stop_reason="tool_calls"
        )
        assert await run_calls(response, [given]) == []
        assert await run_calls(response, [given], approve=lambda call: None) == []
    assert paid == []


async def test_page_approves_a_call_in_few_lines() -> None:
    """From the question to the answer, over two requests of `useChat`."""
    async with scripted([[PAY], "Paid."]) as client:

        async def chat(body: Any) -> Any:
            asked = parse_ui_request("vercel", body, tools=[pay, look])
            run = agent(client, asked.history, [pay, look], MODEL, approve=asked.approve)
            return await AsgiCall()(StreamResponse(run, asked.encoder()))

        question = page_message(text("Pay 3."))
        first = vercel_page((await chat(vercel_body(question))).body)
        [part] = [part for part in first["parts"] if part["type"] == "tool-pay"]
        assert part["state"] == "approval-requested"
        assert paid == []
        part["state"] = "approval-responded"
        part["approval"] = {"id": part["approval"]["id"], "approved": True}
        second = await chat(vercel_body(question, first))
    assert paid == [3]
    assert b'"tool-output-available"' in second.body
    assert b"Paid." in second.body


async def test_approval_is_none_of_a_later_call_with_its_id() -> None:
    """Some servers number the calls of each response from the start."""
    more = FunctionCall("c1", "pay", '{"amount": 3000}')
    part = {
        "type": "tool-pay",
        "toolCallId": "c1",
        "state": "approval-responded",
        "input": {"amount": 3},
        "approval": {"id": "c1", "approved": True},
    }
    body = vercel_body(page_message(text("Pay 3.")), model_message(part))
    asked = parse_ui_request("vercel", body, tools=[pay])
    async with scripted([[more], "Never."], wire_api="chat") as client:
        run = agent(client, asked.history, [pay], MODEL, approve=asked.approve)
        await finish(run)
    assert paid == [3]
    assert [call.call_id for call in run.pending] == ["c1"]
    kept = FunctionCall("c1", "pay", ' {"amount":3.0}', response_id="r1")
    assert asked.approve(kept) is True  # as the server kept it
    assert asked.approve(FunctionCall("c1", "look", '{"amount": 3}')) is None


def shown_part(name: str, shown: Any, **more: Any) -> Any:
    approval = {"id": "c1", "approved": True}
    part = {"type": f"tool-{name}", "toolCallId": "c1", "state": "approval-responded"}
    return {**part, "input": shown, "approval": approval, **more}


def test_approval_tells_numbers_from_true_and_false() -> None:
    body = vercel_body(page_message(text("Pay.")), model_message(shown_part("pay", [1, 0])))
    asked = parse_ui_request("vercel", body, tools=[pay])
    decided = [
        asked.approve(FunctionCall("c1", "pay", arguments))
        for arguments in ("[1, 0]", "[1.0, -0]", "[true, 0]", "[1, false]")
    ]
    assert decided == [True, True, None, None]


def test_approval_of_a_providers_call_holds_for_its_arguments() -> None:
    part = shown_part("delete", {"path": "/tmp"}, providerExecuted=True)
    body = vercel_body(page_message(text("Delete it.")), model_message(part))
    asked = parse_ui_request("vercel", body, tools=["delete"])
    wanted = ApprovalRequest("c1", "files", "delete", '{"path":"/tmp"}')
    assert asked.approve(wanted) is True
    assert asked.approve(replace(wanted, arguments='{"path": "/"}')) is None


def test_newest_decision_about_an_id_is_taken() -> None:
    body = {"messages": []}
    asked = parse_ui_request("vercel", body, tools=[pay])
    decisions = [
        ToolApproval(id="c1", call_id="c1", name="pay", approved=approved)
        for approved in (False, True)
    ]
    asked = replace(asked, approvals=tuple(decisions))
    assert asked.approve(FunctionCall("c1", "pay", "{}")) is True


# --- broken arguments ---


async def test_broken_arguments_are_an_error_for_the_model() -> None:
    async with scripted([[BROKEN, LOOK], [LOOK], "Fine."]) as client:
        run = agent(client, "Go.", [look], MODEL)
        events = await finish(run)
        sent = client.requests[1].prompt.items
    assert run.response.text == "Fine."
    told, ran, again = outputs(events)
    assert told[1]
    assert "not complete JSON" in str(told[0])
    assert ran == again == ("Paris is fine", False)
    calls = [item for item in sent if isinstance(item, FunctionCall)]
    assert len(calls) == 2
    assert json.loads(calls[0].arguments) == {"_raw": '{"place": "Par'}


async def test_broken_arguments_end_a_run_in_time() -> None:
    async with scripted([[BROKEN]] * 20) as client:
        run = agent(client, "Go.", [look], MODEL)
        with pytest.raises(StreamError) as raised:
            await finish(run)
        assert len(client.requests) == MAX_BROKEN
    assert raised.value.info.code == "broken_arguments"


async def test_broken_call_that_was_mended_counts_anew() -> None:
    turns: Any = [[BROKEN], [BROKEN], [LOOK], [BROKEN], [BROKEN], "Fine."]
    async with scripted(turns) as client:
        run = agent(client, "Go.", [look], MODEL)
        await finish(run)
    assert run.response.text == "Fine."


@pytest.mark.parametrize("protocol", ["vercel", "agui"])
async def test_page_sees_the_run_go_on_after_broken_arguments(protocol: Any) -> None:
    async with scripted([[BROKEN], "Fine."]) as client:
        run = agent(client, "Go.", [look], MODEL)
        call = await AsgiCall()(StreamResponse(run, protocol))
    assert b"Fine." in call.body
    assert b"not complete JSON" in call.body
    if protocol == "vercel":
        page = vercel_page(call.body)
        [part] = [part for part in page["parts"] if part["type"] == "dynamic-tool"]
        assert part["state"] == "output-error"
        assert call.body.count(b'"tool-input-error"') == 1
        assert call.body.count(b'"finish"') == 1
    else:
        assert call.body.count(b"TOOL_CALL_RESULT") == 1
