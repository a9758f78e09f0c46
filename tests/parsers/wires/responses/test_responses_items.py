"""OpenAI Responses, item by item: what each becomes, round trip, and which wait for the caller."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from streamlib_parsers import (
    Compaction,
    Completed,
    CustomToolCall,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    ToolSpec,
    accumulate,
)
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    ApplyPatchCall,
    ApprovalRequest,
    ComputerCall,
    ShellCall,
    ToolSearchCall,
)
from streamlib_parsers.wires.responses.items import HOSTED, READERS, TO_ANSWER
from streamlib_parsers.wires.responses.wire_items import wire_item
from tests.support.cases import each_case
from tests.support.responses_frames import (
    WEB,
    Json,
    added,
    body_of,
    call,
    completed,
    created,
    done,
    events_of,
    finals,
    frame,
    hosted,
    message,
    reasoning,
    response_of,
    same,
)

# --- every item ---

PATCH = {"type": "update_file", "path": "a.py", "diff": "@@\n-x\n+y\n"}


def waiting(kind: str, **values: Any) -> Json:
    return hosted(kind, **{TO_ANSWER[kind][0]: "call_1"}, **values)


ITEMS: dict[str, tuple[Json, type, Json]] = {
    "message": (
        message("Hi", phase="final_answer"),
        Message,
        {"text": "Hi", "phase": "final_answer", "role": "assistant"},
    ),
    "message-commentary": (message("Hm", phase="commentary"), Message, {"phase": "commentary"}),
    "message-user": (
        {
            "type": "message",
            "id": "m",
            "role": "user",
            "content": [{"type": "input_text", "text": "Q"}],
        },
        Message,
        {"role": "user", "text": "Q"},
    ),
    "refusal": (
        message(content=[{"type": "refusal", "refusal": "No"}]),
        Message,
        {"content": (Refusal("No"),)},
    ),
    "reasoning": (
        reasoning("a", "b", encrypted_content="gAAA"),
        Reasoning,
        {"summary": ("a", "b"), "encrypted_content": "gAAA"},
    ),
    "reasoning-empty-summary": (reasoning(), Reasoning, {"summary": (), "content": ""}),
    "reasoning-text": (
        reasoning(content=[{"type": "reasoning_text", "text": "hm"}]),
        Reasoning,
        {"content": "hm", "signature": None},
    ),
    "function_call": (
        call('{"b":1.0, "a":[]}', namespace="crm"),
        FunctionCall,
        {"arguments": '{"b":1.0, "a":[]}', "namespace": "crm", "native": None},
    ),
    "custom_tool_call": (
        {"type": "custom_tool_call", "id": "i", "call_id": "c", "name": "sql", "input": "SELECT"},
        CustomToolCall,
        {"call_id": "c", "name": "sql", "input": "SELECT"},
    ),
    "custom_tool_call-run-by-xai": (
        {
            "type": "custom_tool_call",
            "id": "ctc_1",
            "call_id": "xs_call-557c03fd-0",
            "name": "x_keyword_search",
            "input": '{"query":"q", "limit":"10"}',
        },
        ServerToolCall,
        {
            "call_id": "xs_call-557c03fd-0",
            "name": "x_keyword_search",
            "arguments": '{"query":"q", "limit":"10"}',
        },
    ),
    "web_search_call": (
        hosted("web_search_call", action=WEB),
        ServerToolCall,
        {"name": "web_search", "call_id": "it_0"},
    ),
    "web_search_call-without-action": (
        hosted("web_search_call"),
        ServerToolCall,
        {"arguments": ""},
    ),
    "web_search_call-xai": (
        hosted("web_search_call", name="web_search", call_id="", arguments='{"query":"q"}'),
        ServerToolCall,
        {"arguments": '{"query":"q"}', "call_id": "it_0"},
    ),
    "file_search_call": (
        hosted("file_search_call", queries=["q"], results=None),
        ServerToolCall,
        {"name": "file_search"},
    ),
    "code_interpreter_call": (
        hosted(
            "code_interpreter_call",
            code="1+1",
            container_id="c",
            outputs=[{"type": "logs", "logs": "2"}],
        ),
        ServerToolCall,
        {"arguments": "1+1", "status": "completed"},
    ),
    "image_generation_call": (
        hosted("image_generation_call", result="iVBO"),
        ServerToolCall,
        {"name": "image_generation", "arguments": ""},
    ),
    "mcp_call": (
        hosted("mcp_call", server_label="s", name="roll", arguments="{}", output="4", error=None),
        ServerToolCall,
        {"name": "roll"},
    ),
    "x_search_call": (
        hosted("x_search_call", call_id="", name="x_semantic_search", arguments="{}"),
        ServerToolCall,
        {"name": "x_semantic_search"},
    ),
    "tool_search_call-server": (
        hosted("tool_search_call", call_id=None, execution="server", arguments={"paths": ["a"]}),
        ServerToolCall,
        {"name": "tool_search", "arguments": '{"paths": ["a"]}'},
    ),
    "tool_search_output-server": (
        hosted("tool_search_output", call_id=None, execution="server", tools=[{"name": "f"}]),
        ServerToolResult,
        {"output": [{"name": "f"}]},
    ),
    "program": (
        hosted("program", call_id="c", code="await f()", fingerprint="gAA"),
        ServerToolCall,
        {"arguments": "await f()", "call_id": "c"},
    ),
    "program_output": (
        hosted("program_output", call_id="c", result="{}"),
        ServerToolResult,
        {"call_id": "c", "name": "program", "output": "{}"},
    ),
    "compaction": (
        {"type": "compaction", "id": "cmp", "encrypted_content": "gAA"},
        Compaction,
        {"encrypted_content": "gAA"},
    ),
    "compaction_summary": (
        {"type": "compaction_summary", "id": "cmp", "encrypted_content": "gAA"},
        Compaction,
        {"encrypted_content": "gAA"},
    ),
    "local_shell_call": (
        waiting("local_shell_call", action={"type": "exec", "command": ["ls"], "env": {}}),
        ShellCall,
        {"call_id": "call_1", "commands": ["ls"]},
    ),
    "shell_call": (
        waiting("shell_call", action={"commands": ["ls"]}, environment=None),
        ShellCall,
        {"call_id": "call_1", "commands": ["ls"]},
    ),
    "shell_call-malformed": (
        waiting("shell_call", action=["ls"], environment={"type": "local"}),
        ShellCall,
        {"call_id": "call_1", "commands": []},
    ),
    "apply_patch_call": (
        waiting("apply_patch_call", operation=PATCH),
        ApplyPatchCall,
        {"call_id": "call_1", "operation": PATCH},
    ),
    "computer_call": (
        waiting("computer_call", actions=[{"type": "wait"}], pending_safety_checks=[]),
        ComputerCall,
        {"call_id": "call_1", "actions": ({"type": "wait"},)},
    ),
    "computer_call-one-action": (
        waiting("computer_call", action={"type": "wait"}, pending_safety_checks=[{"id": "s"}]),
        ComputerCall,
        {"actions": ({"type": "wait"},), "pending_safety_checks": ({"id": "s"},)},
    ),
    "tool_search_call": (
        waiting("tool_search_call", execution="client", arguments={"goal": "g"}),
        ToolSearchCall,
        {"call_id": "call_1", "arguments": '{"goal": "g"}'},
    ),
    "tool_search_call-without-call-id": (
        hosted("tool_search_call", execution="client", call_id=None, arguments={}),
        ToolSearchCall,
        {"call_id": "it_0", "arguments": "{}"},
    ),
    "mcp_approval_request": (
        waiting("mcp_approval_request", server_label="s", name="t", arguments="{}"),
        ApprovalRequest,
        {"call_id": "call_1", "server_label": "s", "name": "t", "arguments": "{}"},
    ),
    "multi_agent_call": (
        hosted(
            "multi_agent_call",
            call_id="call_1",
            action="spawn_agent",
            arguments='{"name": "a"}',
            agent={"agent_name": "/root/b"},
        ),
        ServerToolCall,
        {"name": "spawn_agent", "arguments": '{"name": "a"}', "agent": "/root/b"},
    ),
    "multi_agent_call_output": (
        hosted(
            "multi_agent_call_output",
            call_id="call_1",
            action="wait_agent",
            output=[{"type": "output_text", "text": "done"}],
            agent={"agent_name": "/root", "depth": 0},
        ),
        ServerToolResult,
        {"name": "wait_agent", "output": [{"type": "output_text", "text": "done"}], "agent": None},
    ),
    "agent_message-from-another": (
        hosted(
            "agent_message",
            author="/root/b",
            recipient="/root",
            content=[{"type": "encrypted_content", "encrypted_content": "x"}],
            agent={"agent_name": "/root"},
        ),
        Opaque,
        {"kind": "agent_message", "agent": "/root/b"},
    ),
    **{
        kind: (hosted(kind, call_id="call_1", output="x", tools=[]), Opaque, {"kind": kind})
        for kind in (
            *(
                "mcp_list_tools",
                "mcp_approval_response",
                "additional_tools",
                "function_call_output",
                "custom_tool_call_output",
            ),
            *(
                "computer_call_output",
                "local_shell_call_output",
                "shell_call_output",
                "apply_patch_call_output",
                "agent_message",
                "future_type",
            ),
        )
    },
}
"""Items of the wire: (as sent, our kind, fields). All 28 output types of the SDK are included."""


@each_case("name", ITEMS)
def test_item_is_read_as_its_kind_and_sent_back_unchanged(name: str) -> None:
    sent, kind, fields = ITEMS[name]
    events = events_of(created(), done(sent), completed())
    (final,) = finals(events)
    assert type(final) is kind
    assert {key: getattr(final, key) for key in fields} == fields
    assert final.status == "completed"
    assert same(json.loads(msgspec.json.encode(wire_item(final)))) == same(sent)


@each_case("name", ITEMS)
def test_item_is_the_same_in_events_last_event_and_body(
    name: str,
) -> None:
    sent = ITEMS[name][0]
    body = {"id": "resp_1", "model": "gpt-x", "status": "completed", "output": [sent]}
    ways = [
        events_of(created(), added(sent), done(sent), completed(sent)),
        events_of(created(), added({**sent, "status": "in_progress"}), completed(sent)),
        events_of(created(), completed(sent)),
        body_of(body),
    ]
    assert [finals(events) for events in ways] == [finals(ways[0])] * len(ways)
    assert (
        len({events[-1].stop_reason for events in ways if isinstance(events[-1], Completed)}) == 1
    )


def test_every_typed_kind_has_an_example() -> None:
    assert READERS.keys() | TO_ANSWER.keys() <= {sent["type"] for sent, _, _ in ITEMS.values()}


XAI_SEARCH, *_ = ITEMS["custom_tool_call-run-by-xai"]


def test_search_that_xai_ran_is_not_a_call_to_answer() -> None:
    """A22: nobody offered the tool, and nobody can answer the call."""
    stream = [
        added({**XAI_SEARCH, "input": ""}),
        frame("response.custom_tool_call_input.delta", output_index=0, delta=XAI_SEARCH["input"]),
        done(XAI_SEARCH),
        done(message("It is.", item_id="m"), 1),
        completed(),
    ]
    response = accumulate(events_of(created(), *stream, tools=[ToolSpec("other")]))
    assert [type(item) for item in response.items] == [ServerToolCall, Message]
    assert (response.calls, response.stop_reason, response.unfinished) == ([], "stop", False)


@pytest.mark.parametrize("options", [{"tools": [ToolSpec("x_keyword_search")]}, {}])
def test_custom_call_of_an_offered_tool_is_the_caller_s(options: Json) -> None:
    """A22: the rule looks at the tools offered and at the id, at nothing else."""
    call_id = XAI_SEARCH["call_id"] if options else "call_other-1"
    events = events_of(created(), done({**XAI_SEARCH, "call_id": call_id}), completed(), **options)
    assert [type(call) for call in accumulate(events).calls] == [CustomToolCall]


# A custom tool call is hosted by its id alone.
FREE_TEXT = [kind for kind, row in HOSTED.items() if row.free_text and kind != "custom_tool_call"]


@pytest.mark.parametrize("kind", FREE_TEXT)
def test_code_of_a_hosted_call_need_not_be_json(kind: str) -> None:
    (final,) = finals(events_of(done(hosted(kind, call_id="c", code="print('{')")), completed()))
    assert final.status == "completed"


def test_json_value_arguments_keep_their_own_bytes() -> None:
    item = b'{"type":"web_search_call","id":"w","action":{"b": 1.0, "a" :1e5}}'
    sent = b'{"type":"response.output_item.done","output_index":0,"item":%s}' % item
    (final,) = finals(events_of(b"data: " + sent + b"\n\n", completed()))
    assert final.arguments == '{"b": 1.0, "a" :1e5}'
    assert b'"action":{"b": 1.0, "a" :1e5}' in msgspec.json.encode(wire_item(final))


def test_part_of_unknown_kind_is_an_opaque_with_its_index() -> None:
    hologram = {"type": "hologram", "beam": 1}
    parts = [{"type": "output_text", "text": "a"}, hologram, {"type": "output_text", "text": "b"}]
    item, opaque = finals(events_of(done(message(content=parts)), completed()))
    assert item.content == (Text("a"), Text("b"))
    assert opaque == Opaque(
        "hologram", hologram, native={"item_id": "it_0", "content_index": 1}, origin=opaque.origin
    )


def test_untyped_keys_of_items_and_parts_are_native() -> None:
    sent = message(
        content=[
            {"type": "output_text", "text": "a"},
            {"type": "output_text", "text": "b", "x": None},
        ],
        extra={"y": 1},
    )
    (final,) = finals(events_of(done(sent), completed()))
    assert final.native == {"extra": {"y": 1}, "content": [{}, {"x": None}]}


def test_untyped_keys_are_sent_back_in_their_parts() -> None:
    parts = [{"type": "output_text", "text": "a", "annotations": [], "x": 1}]
    sent = message(content=parts, extra={"y": 1})
    (final,) = finals(events_of(done(sent), completed()))
    assert same(wire_item(final)) == same(sent)


def test_message_with_an_unknown_role_is_the_assistants() -> None:
    (final,) = finals(events_of(done(message("Hi", role="robot")), completed()))
    assert final.role == "assistant"


def test_wire_item_rejects_items_this_wire_never_sends() -> None:
    with pytest.raises(TypeError, match="FunctionCallOutput"):
        wire_item(FunctionCallOutput("call_1", "x"))


# --- stop reasons ---

WAITING = {
    name: sent
    for name, (sent, kind, _) in ITEMS.items()
    if kind in (FunctionCall, CustomToolCall, *BUILT_IN_CALLS)
}
CONTAINER = hosted(
    "shell_call", call_id="c", environment={"type": "container_reference", "container_id": "x"}
)


@each_case("sent", WAITING.values())
def test_call_that_waits_for_the_caller_stops_with_tool_calls(sent: Json) -> None:
    assert response_of(created(), done(sent), completed(sent)).stop_reason == "tool_calls"


@pytest.mark.parametrize(
    "output",
    [
        [hosted("web_search_call")],
        [CONTAINER],
        [hosted("shell_call", call_id="c"), hosted("shell_call_output", call_id="c", output=[])],
        [ITEMS["tool_search_call-server"][0]],
        [ITEMS["mcp_call"][0]],
        [call('{"a":')],
    ],
    ids=["hosted", "container", "answered", "server-search", "mcp", "broken-call"],
)
def test_items_without_pending_calls_stop_with_stop(output: list[Json]) -> None:
    assert accumulate(body_of({"status": "completed", "output": output})).stop_reason == "stop"


@each_case(
    "last, stop, native",
    [
        (completed(message("Hi")), "stop", "completed"),
        (completed(ITEMS["refusal"][0]), "refusal", "completed"),
        (completed(ITEMS["refusal"][0], message("but")), "stop", "completed"),
        (
            completed(kind="incomplete", incomplete_details={"reason": "max_output_tokens"}),
            "length",
            "incomplete:max_output_tokens",
        ),
        (
            completed(kind="incomplete", incomplete_details={"reason": "content_filter"}),
            "content_filter",
            "incomplete:content_filter",
        ),
        (
            completed(kind="incomplete", incomplete_details={"reason": "steered"}),
            "other",
            "incomplete:steered",
        ),
        (completed(kind="incomplete", incomplete_details=None), "other", "incomplete"),
        (
            frame(
                "response.completed",
                response={
                    "status": "incomplete",
                    "incomplete_details": {"reason": "max_output_tokens"},
                },
            ),
            "length",
            None,
        ),
        (frame("response.completed", response={"status": "in_progress"}), "stop", "completed"),
        (frame("response.completed", response=None), "stop", "completed"),
        (frame("response.incomplete", response={"status": "completed"}), "other", "incomplete"),
    ],
)
def test_stop_reason_follows_status_details_and_items(
    last: bytes, stop: str, native: str | None
) -> None:
    response = response_of(created(), last)
    assert response.stop_reason == stop
    assert native in (None, response.native_stop_reason)
