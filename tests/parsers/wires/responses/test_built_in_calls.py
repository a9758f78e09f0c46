"""Calls of built-in tools that the caller runs: read from streams and bodies, and `pending`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib_parsers import InvalidArguments, Passthrough, Response, accumulate, parser
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    ApplyPatchCall,
    ApprovalRequest,
    ComputerCall,
    FunctionCall,
    PendingCall,
    ShellCall,
    ToolSearchCall,
)
from tests.support.built_in_calls import CALLS, CHECK
from tests.support.responses_frames import (
    added,
    body_of,
    call,
    check_invariants,
    completed,
    created,
    done,
    events_of,
    frame,
    hosted,
    of,
)

NAMES = pytest.mark.parametrize("name", CALLS)


def pending_of(*chunks: bytes) -> list[PendingCall]:
    return accumulate(events_of(*chunks)).pending


def only(name: str) -> Any:
    (item,) = pending_of(created(), done(CALLS[name]), completed())
    return item


def test_computer_call_has_its_actions_and_checks() -> None:
    item = only("computer_call")
    assert isinstance(item, ComputerCall)
    assert [action["type"] for action in item.actions] == ["click", "screenshot"]
    assert item.pending_safety_checks == (CHECK,)


def test_computer_call_of_one_action_has_a_list_of_it() -> None:
    assert only("computer_call-of-one-action").actions == ({"type": "type", "text": "hi"},)


def test_shell_call_has_its_commands_and_timeout() -> None:
    item = only("shell_call")
    assert isinstance(item, ShellCall)
    assert (item.commands, item.timeout) == (["ls -l", "pwd"], 1.5)


def test_local_shell_call_is_quoted_as_one_command() -> None:
    assert (only("local_shell_call").commands, only("local_shell_call").timeout) == (
        ["echo 'a b'"],
        None,
    )


def test_apply_patch_call_has_its_operation() -> None:
    item = only("apply_patch_call")
    assert isinstance(item, ApplyPatchCall)
    assert item.operation["path"] == "a.py"


def test_approval_request_has_the_call_to_approve() -> None:
    item = only("mcp_approval_request")
    assert isinstance(item, ApprovalRequest)
    assert (item.call_id, item.server_label, item.name) == ("mcpr_1", "files", "read")
    assert item.parsed() == {"path": "a.txt", "n": 1.0}


def test_tool_search_call_has_its_arguments() -> None:
    item = only("tool_search_call")
    assert isinstance(item, ToolSearchCall)
    assert item.parsed() == {"goal": "weather"}
    with pytest.raises(InvalidArguments):
        msgspec.structs.replace(item, arguments="[").parsed()


@NAMES
def test_call_is_the_same_at_any_split(name: str) -> None:
    stream = created() + added({**CALLS[name], "status": "in_progress"}) + done(CALLS[name])
    stream += completed(CALLS[name])
    whole = events_of(stream)
    check_invariants(whole)
    for position in range(len(stream)):
        p = parser("responses")
        assert [*p.feed(stream[:position]), *p.feed(stream[position:]), *p.close()] == whole


@NAMES
def test_call_is_the_same_in_every_place(name: str) -> None:
    sent = CALLS[name]
    body = {"id": "resp_1", "model": "gpt-x", "status": "completed", "output": [sent]}
    streamed = accumulate(events_of(created(), added(sent), done(sent), completed(sent)))
    last = accumulate(events_of(created(), completed(sent)))
    assert streamed.items == last.items == accumulate(body_of(body)).items
    assert isinstance(streamed.items[0], BUILT_IN_CALLS)
    assert (streamed.stop_reason, streamed.unfinished) == ("tool_calls", True)
    assert (streamed.pending, streamed.calls) == (list(streamed.items), [])


@NAMES
def test_call_truncated_before_its_end_is_incomplete(name: str) -> None:
    response = accumulate(events_of(created(), added(CALLS[name])))
    assert [item.status for item in response.items] == ["incomplete"]
    assert (response.status, response.pending, response.unfinished) == ("failed", [], False)


@NAMES
def test_call_marked_incomplete_is_not_pending(name: str) -> None:
    sent = {**CALLS[name], "status": "incomplete"}
    ended = completed(sent, kind="incomplete", incomplete_details={"reason": "max_output_tokens"})
    response = accumulate(events_of(created(), done(sent), ended))
    assert [item.status for item in response.items] == ["incomplete"]
    assert (response.stop_reason, response.pending, response.unfinished) == ("length", [], False)


def test_shell_commands_in_deltas_pass_through() -> None:
    item = CALLS["shell_call"]
    prefix = "response.shell_call_command"
    stream = [
        created(),
        added({**item, "status": "in_progress", "action": {"commands": []}}),
        frame(f"{prefix}.added", output_index=0, command_index=0, command=""),
        frame(f"{prefix}.delta", output_index=0, command_index=0, delta="ls -l"),
        frame(f"{prefix}.done", output_index=0, command_index=0, command="ls -l"),
    ]
    events = events_of(*stream, done(item), completed())
    check_invariants(events)
    assert len(of(Passthrough, events)) == 3
    assert accumulate(events).pending[0] == only("shell_call")
    # Its `.done` alone has what the deltas brought.
    assert accumulate(events_of(*stream)).pending == []


def test_pending_has_every_call_in_order() -> None:
    function = call("{}", item_id="fc_1")
    sent = [CALLS["shell_call"], function, CALLS["mcp_approval_request"]]
    ends = [done(item, index) for index, item in enumerate(sent)]
    response = accumulate(events_of(created(), *ends, completed(*sent)))
    assert [type(item) for item in response.pending] == [ShellCall, FunctionCall, ApprovalRequest]
    assert response.calls == [response.pending[1]]


@pytest.mark.parametrize(
    "environment", [{"type": "container_reference", "container_id": "c"}, None]
)
def test_shell_that_the_provider_ran_is_not_pending(environment: Any) -> None:
    shell = {**CALLS["shell_call"], "environment": environment}
    output = hosted("shell_call_output", "sho_1", call_id="call_sh", output=[])
    response = accumulate(body_of({"status": "completed", "output": [shell, output]}))
    assert (response.pending, response.stop_reason, response.unfinished) == ([], "stop", False)


def test_failed_generation_has_nothing_pending() -> None:
    failed = frame(
        "response.failed",
        response={"status": "failed", "error": {"code": "server_error", "message": "no"}},
    )
    response = accumulate(events_of(created(), done(CALLS["shell_call"]), failed))
    assert (response.status, response.unfinished) == ("failed", False)


@pytest.mark.parametrize(
    ("response", "unfinished"),
    [
        (Response(stop_reason="pause", items=(ShellCall("c", {}),)), True),
        (Response(stop_reason="pause"), False),
        (Response(stop_reason="tool_calls"), False),
        (Response(stop_reason="length", items=(FunctionCall("c", "f"),)), True),
        (Response(items=(FunctionCall("c", "f"),)), False),
    ],
    ids=["pause", "empty-pause", "no-call", "length", "not-ended"],
)
def test_response_continues_only_if_the_next_request_differs(
    response: Response, unfinished: bool
) -> None:
    assert response.unfinished is unfinished


@pytest.mark.parametrize("ending", ["done", "incomplete"])
def test_truncated_approval_request_is_not_pending(ending: str) -> None:
    item = {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "server_label": "s",
        "name": "delete",
        "arguments": '{"path":',
    }
    frames = [created(), added(item)]
    if ending == "done":
        frames += [done(item), completed(item)]
    else:
        details = {"reason": "max_output_tokens"}
        frames.append(completed(item, kind="incomplete", incomplete_details=details))
    response = accumulate(events_of(*frames))
    assert response.items[0].status == "incomplete"
    assert not response.pending
    assert not response.unfinished
